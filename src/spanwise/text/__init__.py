"""Raw text into sentences and words, with offsets."""

from spanwise.text.sentences import split_sentences
from spanwise.text.words import split_words

__all__ = ["split_sentences", "split_words"]
