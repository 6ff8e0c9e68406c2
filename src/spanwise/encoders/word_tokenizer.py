"""A tokenizer for words with a cache of their subwords."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate, chain
from typing import Any

import numpy as np
from tokenizers import Encoding, Tokenizer

from spanwise.encoders.distinct_words import cut, number_words
from spanwise.encoders.prediction_tokenizer import PredictionTokenizer
from spanwise.encoders.subwords import Ints

GROUP = 256  # words per call of the tokenizer
LIMIT = 1 << 21  # characters of the cached words


class WordTokenizer:
    """A fast tokenizer for texts that are already split into words.

    Such a tokenizer reads each word without its neighbours, so the subwords of a word are cached,
    which is several times as fast. Copies start with an empty cache.
    """

    def __init__(self, tokenizer: Tokenizer, unknown_id: int) -> None:
        self.tokenizer, self.unknown_id = tokenizer, unknown_id
        # A tokenizer file may enable both; text is never truncated here, and rows are padded when batches are collated.
        tokenizer.no_truncation()
        tokenizer.no_padding()
        self.prefix = _prefix(tokenizer)
        self._cache: dict[str, list[int]] = {}
        self._size = 0

    @classmethod
    def of(cls, tokenizer: Any) -> WordTokenizer:
        """Tokenize words like a fast tokenizer. Those of transformers are copied, because every call changes their backend."""
        candidates = (tokenizer.unk_token_id, tokenizer.pad_token_id, tokenizer.eos_token_id, 0)
        unknown_id = next(id for id in candidates if id is not None)
        backend = tokenizer.backend_tokenizer
        if not isinstance(tokenizer, PredictionTokenizer):
            backend = Tokenizer.from_str(backend.to_str())
        return cls(backend, int(unknown_id))

    def __call__(self, texts: Sequence[Sequence[str]]) -> list[tuple[Ints, Ints]]:
        """The subword ids and the number of subwords per word of each text."""
        ids, counts, ends = self.pack(texts)
        return list(zip(cut(ids, ends.tolist()), cut(counts, [*accumulate(map(len, texts))]), strict=True))

    def pack(self, texts: Sequence[Sequence[str]]) -> tuple[Ints, Ints, Ints]:
        """The subword ids of all texts, the number of subwords per word, and where the ids of each text end.

        A word for which the tokenizer returns no subword, such as a lone joiner, is the unknown word.
        """
        words, numbers = number_words(texts)
        cache = self._subwords(words)
        subwords = [cache[word] for word in words]
        depths = np.fromiter(map(len, subwords), np.int64, len(subwords))
        ids = np.fromiter(chain.from_iterable(subwords), np.int64, depths.sum())
        counts = depths[numbers]
        ends = np.concatenate([[0], counts.cumsum()])
        # Each subword is at the start of its word's subwords, plus its position in the word.
        first = (depths.cumsum() - depths)[numbers] - ends[:-1]
        ids = ids[np.repeat(first, counts) + np.arange(ends[-1])]
        return ids, counts, ends[np.fromiter(accumulate(map(len, texts)), np.int64, len(texts))]

    def _subwords(self, words: Iterable[str]) -> dict[str, list[int]]:
        """A cache with at least these words. It is replaced, never cleared, because another thread may be reading it."""
        if self._size > LIMIT:
            self._cache, self._size = {}, 0
        cache = self._cache
        new = [word for word in words if word not in cache]
        groups = [new[first : first + GROUP] for first in range(0, len(new), GROUP)]
        encodings = self._encode([[self.prefix + word for word in group] for group in groups])
        for group, encoding in zip(groups, encodings, strict=True):
            subwords: list[list[int]] = [[] for _ in group]
            for index, id in zip(encoding.word_ids, encoding.ids, strict=True):
                subwords[index].append(id)  # type: ignore[index]  # None only for special tokens
            cache.update(zip(group, (ids or [self.unknown_id] for ids in subwords), strict=True))
            self._size += sum(map(len, group))
        return cache

    def _encode(self, texts: list[list[str]]) -> list[Encoding]:
        options = {"is_pretokenized": True, "add_special_tokens": False}
        try:
            return self.tokenizer.encode_batch(texts, **options)
        except (TypeError, UnicodeError):  # a lone surrogate is not valid text for a tokenizer
            encodable = [[word.encode("utf-8", "replace").decode("utf-8") for word in words] for words in texts]
            return self.tokenizer.encode_batch(encodable, **options)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_cache": {}, "_size": 0}


def _prefix(tokenizer: Tokenizer) -> str:
    """The prefix with which a word is read as in running text: a space for byte-level tokenizers."""

    def last(text: str | list[str]) -> int:
        ids: list[int] = tokenizer.encode(text, is_pretokenized=isinstance(text, list), add_special_tokens=False).ids
        return ids[-1] if ids else -1

    return " " if last(["a", "a"]) != last("a a") == last([" a", " a"]) else ""
