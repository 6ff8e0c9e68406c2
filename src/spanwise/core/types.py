"""The data types that all subpackages share."""

from spanwise.core.annotations import Entity, Extra, Link, Relation, Span, word_indices_in
from spanwise.core.corpus import Corpus
from spanwise.core.sentence import Sentence, SentenceList

__all__ = ["Corpus", "Entity", "Extra", "Link", "Relation", "Sentence", "SentenceList", "Span", "word_indices_in"]
