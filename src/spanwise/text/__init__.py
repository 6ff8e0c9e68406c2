"""Splitting of raw text into sentences and words, with character offsets."""

from spanwise.text.sentences import split_sentences
from spanwise.text.words import cut_words, split_words

__all__ = ["cut_words", "split_sentences", "split_words"]
