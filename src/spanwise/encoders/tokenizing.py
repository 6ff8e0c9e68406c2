"""Subwords of words, each word tokenised once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any

import numpy as np
from tokenizers import Encoding, Tokenizer

from spanwise.encoders.subwords import Ints

GROUP = 256  # words that a tokenizer is given as one text
LIMIT = 1 << 21  # characters of the words that are kept


class WordTokenizer:
    """A fast tokenizer for texts that are words already.

    Given words, such a tokenizer reads each by itself, whatever stands beside it. So a word's subwords are kept and looked up
    when it comes again, which is several times as fast. Copies start empty.
    """

    def __init__(self, tokenizer: Tokenizer, unknown_id: int) -> None:
        self.tokenizer, self.unknown_id = tokenizer, unknown_id
        # A tokenizer's file may ask for both: nothing is cut off here, and rows are padded where they are made.
        tokenizer.no_truncation()
        tokenizer.no_padding()
        self.blank = _blank(tokenizer)
        self._kept: dict[str, list[int]] = {}
        self._size = 0

    @classmethod
    def of(cls, tokenizer: Any) -> WordTokenizer:
        """From one of transformers' fast tokenizers; a copy, for theirs changes with every call."""
        known = (tokenizer.unk_token_id, tokenizer.pad_token_id, tokenizer.eos_token_id, 0)
        unknown_id = next(number for number in known if number is not None)
        return cls(Tokenizer.from_str(tokenizer.backend_tokenizer.to_str()), int(unknown_id))

    def __call__(self, texts: Sequence[Sequence[str]]) -> list[tuple[Ints, Ints]]:
        """Ids and subwords per word of each text. A word that the tokenizer does not see (a lone joiner, say) is unknown."""
        kept = self._subwords(dict.fromkeys(chain.from_iterable(texts)))
        results = []
        for words in texts:
            pieces = [kept[word] for word in words]
            counts = np.fromiter(map(len, pieces), np.int64, len(pieces))
            results.append((np.fromiter(chain.from_iterable(pieces), np.int64), counts))
        return results

    def _subwords(self, words: Iterable[str]) -> dict[str, list[int]]:
        """A table in which at least these words are. It is never emptied, only replaced: another thread may be reading it."""
        if self._size > LIMIT:
            self._kept, self._size = {}, 0
        kept = self._kept
        new = [word for word in words if word not in kept]
        groups = [new[first : first + GROUP] for first in range(0, len(new), GROUP)]
        encoded = self._encoded([[self.blank + word for word in group] for group in groups])
        for group, encoding in zip(groups, encoded, strict=True):
            pieces: list[list[int]] = [[] for _ in group]
            for place, piece in zip(encoding.word_ids, encoding.ids, strict=True):
                pieces[place].append(piece)  # type: ignore[index]  # of no special token
            kept.update(zip(group, (found or [self.unknown_id] for found in pieces), strict=True))
            self._size += sum(map(len, group))
        return kept

    def _encoded(self, texts: list[list[str]]) -> list[Encoding]:
        options = {"is_pretokenized": True, "add_special_tokens": False}
        try:
            return self.tokenizer.encode_batch(texts, **options)
        except (TypeError, UnicodeError):  # half a pair of surrogates is no text to a tokenizer
            encodable = [[word.encode("utf-8", "replace").decode("utf-8") for word in words] for words in texts]
            return self.tokenizer.encode_batch(encodable, **options)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_kept": {}, "_size": 0}


def _blank(tokenizer: Tokenizer) -> str:
    """What a word must begin with so that it is read as in running text: byte-level tokenizers want the blank before it."""

    def last(text: str | list[str]) -> int:
        ids: list[int] = tokenizer.encode(text, is_pretokenized=isinstance(text, list), add_special_tokens=False).ids
        return ids[-1] if ids else -1

    return " " if last(["a", "a"]) != last("a a") == last([" a", " a"]) else ""
