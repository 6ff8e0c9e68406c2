"""The marks of partially annotated sentences as targets of a head."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import pad

from spanwise.core.partial import known_ends, known_types
from spanwise.core.types import Sentence
from spanwise.encoders.fixed_shapes import pad_to

EVERYTHING = np.iinfo(np.int64).max  # the end of known spans in a complete sentence


class Known(NamedTuple):
    """Which spans of a batch are known, as targets of a head.

    A span of a type is known if it ends at or before ``known_end`` of its first word and the type is known.
    """

    known_end: Tensor  # [B, T], in the units of the head's spans
    known_type: Tensor  # [B, C]
    marked_share: Tensor  # [B], the share of the entities that is marked where a sentence is open: c

    @classmethod
    def select(cls, targets: Mapping[str, Tensor]) -> Known | None:
        """The marks among the targets of a batch; None if all sentences are annotated completely."""
        return cls(*(targets[name] for name in cls._fields)) if "known_end" in targets else None

    def is_open(self, start: Tensor, end: Tensor) -> Tensor:
        """Whether spans are open for each type: ``start`` and ``end`` [K], of every sentence, to [B, C, K]."""
        ends = self.known_end.index_select(1, start.clamp(max=self.known_end.shape[1] - 1))
        return (ends < end).unsqueeze(1) | ~self.known_type.unsqueeze(2)

    def is_open_span(self, sentence: Tensor, start: Tensor, end: Tensor) -> Tensor:
        """Whether packed spans are open for each type: [S] each to [S, C]."""
        length = self.known_end.shape[1]
        ends = self.known_end.view(-1).index_select(0, sentence * length + start.clamp(max=length - 1))
        return (ends < end).unsqueeze(1) | ~self.known_type.index_select(0, sentence)

    def log_masses(self, is_open: Tensor, sentence: Tensor | None = None) -> Tensor:
        """The log-probability that an entity is not marked: 1 - c if it is open, else 0.

        The rows of ``is_open`` are sentences, or spans whose ``sentence`` is given.
        """
        share = self.marked_share if sentence is None else self.marked_share.index_select(0, sentence)
        masses = torch.log1p(-share).view(-1, *(1,) * (is_open.ndim - 1))
        return masses.expand_as(is_open).masked_fill(~is_open, -torch.inf)

    def is_open_pair(self, sentence: Tensor, start: Tensor, end: Tensor) -> Tensor:
        """Whether a relation may be unmarked between two entities; ``start`` and ``end`` [P] cover both of them."""
        return self.is_open_span(sentence, start, end).any(1)

    def is_open_word_pair(self, length: int) -> Tensor:
        """The same for pairs of words: [B, length, length]."""
        ends = pad(self.known_end, (0, length - self.known_end.shape[1]), value=EVERYTHING)
        words = torch.arange(length, device=ends.device)
        first, last = torch.minimum(words.unsqueeze(1), words), torch.maximum(words.unsqueeze(1), words)
        is_open = ends.index_select(1, first.view(-1)).view(-1, length, length) <= last
        return is_open | ~self.known_type.all(1).view(-1, 1, 1)

    def is_ignored(self, sentence: Tensor, start: Tensor, end: Tensor) -> Tensor:
        """Whether packed spans without an entity count neither for nor against any type: [S]."""
        return self.is_open_span(sentence, start, end).all(1) & (self.marked_share.index_select(0, sentence) == 0)


def known_targets(
    sentences: Sequence[Sentence], types: Sequence[str], share: float,
    boundaries: Callable[[Sentence], np.ndarray] | None = None,
) -> dict[str, Tensor]:  # fmt: skip
    """The targets that ``Known`` reads; empty if all sentences are annotated completely.

    ``boundaries`` gives the first subword of each word and the end of the last, for spans of subwords.
    Only sentences without any mark of completeness use ``share``: elsewhere open spans are ignored.
    """
    if all(sentence.annotated is None for sentence in sentences):
        return {}
    rows = []
    for sentence in sentences:
        ends = np.array(known_ends(sentence), np.int64)
        if boundaries is not None:
            limits = boundaries(sentence)
            ends = np.repeat(limits[ends], np.diff(limits))
        rows.append(ends)
    table = np.full((len(rows), max([1, *map(len, rows)])), EVERYTHING)
    for row, ends in zip(table, rows, strict=True):
        row[: len(ends)] = ends
    limited = [known_types(sentence) for sentence in sentences]
    known = np.array([[known is None or type in known for type in types] for known in limited], bool)
    shares = np.array([open_share(sentence, share) for sentence in sentences], np.float32)
    columns = (table, known.reshape(len(sentences), len(types)), shares)
    return {name: torch.from_numpy(column) for name, column in zip(Known._fields, columns, strict=True)}


def is_weighed(sentence: Sentence, share: float) -> bool:
    """Whether all spans of a sentence count: it is complete, or its open spans are weak negatives."""
    return sentence.annotated is None or open_share(sentence, share) > 0


def open_share(sentence: Sentence, share: float) -> float:
    """The share of the entities that is assumed to be marked in the open parts of a sentence."""
    return share if sentence.annotated == () else 0.0


def pad_known(targets: Mapping[str, Tensor], shape: Sequence[int], types: int) -> dict[str, Tensor]:
    """Pad the marks of a batch to the ``shape`` of its mask; a batch of complete sentences gets marks, too."""
    known = Known.select(targets)
    if known is None:
        return {
            "known_end": torch.full(tuple(shape), EVERYTHING),
            "known_type": torch.ones(shape[0], types, dtype=torch.bool),
            "marked_share": torch.zeros(shape[0]),
        }
    return known._replace(known_end=pad_to(known.known_end, shape, EVERYTHING))._asdict()


def without_known(targets: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The targets of a head without marks."""
    return {name: tensor for name, tensor in targets.items() if name not in Known._fields}
