"""Base classes of heads that score spans."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from spanwise.core.errors import SpanwiseError
from spanwise.core.types import Sentence, Span
from spanwise.encoders.fixed_shapes import SizeTable, pad_to
from spanwise.heads.abilities import LearnsProbabilities
from spanwise.heads.base import Head, Labels
from spanwise.heads.partial import Known, is_weighed, known_targets
from spanwise.heads.sentence_cache import BatchCache, Ints, SentenceCache
from spanwise.heads.span_settings import SoftmaxSettings, SpanSettings, count_disjoint, count_without_crossing
from spanwise.heads.type_sets import TypeSets
from spanwise.losses.smoothing import SoftSpans, smooth_boundaries
from spanwise.losses.teaching import TaughtSentence, mix_targets, open_rows


class SpanHead(Head):
    """Base of heads for contiguous spans of up to ``max_width`` words, or of any width if it is None."""

    settings: SpanSettings

    def __init__(self, labels: Labels, settings: SpanSettings) -> None:
        super().__init__(labels, settings)
        if settings.decoding == "auto" or (settings.max_width is None and settings.coverage is not None):
            raise SpanwiseError("max_width or decoding is still automatic; call settings.resolve(sentences) first")
        self.max_width, self.decoding = settings.max_width, settings.decoding
        self._type_index = {type: index for index, type in enumerate(labels.entities)}
        self._gold = SentenceCache(self._gold_rows)

    def gold(self, sentences: Sequence[Sentence]) -> dict[str, Tensor]:
        """The learnable gold entities, packed: ``sentence``, ``start``, ``end`` and ``label``."""
        return pack_rows([self._gold(sentence) for sentence in sentences])

    def known_targets(self, sentences: Sequence[Sentence]) -> dict[str, Tensor]:
        """The marks of partial annotation (see ``Known``); empty if all sentences are annotated completely."""
        return known_targets(sentences, self.labels.entities, self.marked_share)

    def count_unreachable(self, sentence: Sentence) -> int:
        """Entities that are too wide, discontinuous, of unknown type, or excluded by other entities.

        Which entities exclude each other depends on ``decoding`` and on the types that a span can have together.
        """
        types: dict[Span, list[int]] = {}
        for start, end, label in self.reachable_gold(sentence).tolist():
            types.setdefault(Span(start, end), []).append(label)
        spans = [span for span, labels in types.items() for _ in range(self.count_together(labels))]
        count = len(spans)
        if self.settings.decoding != "overlapping":
            count = count_disjoint(spans) if self.settings.decoding == "flat" else count_without_crossing(spans)
        return len(set(sentence.entities)) - count

    def reachable_gold(self, sentence: Sentence) -> Ints:
        """Start, end and label of each gold entity that could be predicted if it were the only one: [n, 3]."""
        return self._gold(sentence)

    def count_together(self, labels: Sequence[int]) -> int:
        """How many of the types of a span can be predicted together."""
        return len(labels) if self.settings.allows_several_types else 1

    @property
    def widest_span(self) -> str | None:
        if self.task == "typing":
            return None
        return f"{'any number of' if self.max_width is None else self.max_width} {getattr(self.settings, 'unit', 'words')}"

    def length(self, sentence: Sentence) -> int:
        """The length in the units of the head's spans, by default words."""
        return len(sentence.words)

    def with_teacher(self, gold: SoftSpans, sentence: Sentence, *, has_one_type: bool) -> SoftSpans:
        """Mix gold with the probabilities of teachers, if the sentence has any (see ``TaughtSentence``).

        Spans that count for nothing get none: without negatives, a low probability would be learned as a positive.
        If only one of several overlapping entities is returned, gold has precedence on its spans.
        """
        if not isinstance(sentence, TaughtSentence) or sentence.teacher is None:
            return gold
        teacher = sentence.teacher
        if not is_weighed(sentence, self.marked_share):
            teacher = teacher.select(~open_rows(sentence, teacher, self.labels.entities))
        teacher = self.scored_spans(teacher, sentence)
        gold_first = self.decoding == "flat"
        return mix_targets(gold, teacher, sentence.gold_weight, has_one_type=has_one_type, gold_first=gold_first)

    def scored_spans(self, spans: SoftSpans, sentence: Sentence) -> SoftSpans:
        """Those of the ``spans`` of a sentence, given in words, that the head scores, in its units."""
        widest = len(sentence.words) if self.max_width is None else self.max_width
        return spans.select(spans.end - spans.start <= widest)

    def _gold_rows(self, sentence: Sentence) -> Ints:
        """Start, end and label of each gold entity that is contiguous, narrow enough and of a known type: [n, 3]."""
        widest = len(sentence.words) if self.max_width is None else self.max_width
        rows = {
            (*entity.range, self._type_index[entity.type])
            for entity in sentence.entities
            if not entity.is_discontinuous and entity.range.width <= widest and entity.type in self._type_index
        }
        return np.array(sorted(rows), np.int64).reshape(-1, 3)


class SoftmaxHead(SpanHead, LearnsProbabilities):
    """Base of heads that give each span one of the types or NONE, the last of C + 1 classes.

    A span with several gold types learns each of them with equal weight, but only one can be predicted,
    unless the head has classes for sets of types (``TypeSets``).
    """

    settings: SoftmaxSettings

    def __init__(self, labels: Labels, settings: SoftmaxSettings) -> None:
        super().__init__(labels, settings)
        self.none = len(labels.entities)
        self.type_sets: TypeSets | None = None
        self._smoothed = BatchCache(self._smoothed_spans)

    def count_together(self, labels: Sequence[int]) -> int:
        return 1 if self.type_sets is None else self.type_sets.count_together(labels)

    def scored_spans(self, spans: SoftSpans, sentence: Sentence) -> SoftSpans:
        spans = super().scored_spans(spans, sentence)
        return spans if self.type_sets is None else self.type_sets.join_probabilities(spans)

    def target_spans(self, sentences: Sequence[Sentence]) -> list[SoftSpans]:
        return self._smoothed(sentences)

    def smoothed_gold(self, sentences: Sequence[Sentence]) -> tuple[Ints, SoftSpans]:
        """The smoothed gold of a batch, packed: the sentence index of each row, and the rows."""
        return concatenate_soft_spans(self._smoothed(sentences))

    def smoothed_targets(self, sentences: Sequence[Sentence]) -> dict[str, Tensor]:
        """The smoothed gold of a batch as tensors: ``sentence``, ``start``, ``end``, ``label``, ``mass``, and marks."""
        return pack_soft_spans(self._smoothed(sentences)) | self.known_targets(sentences)

    def _is_known(self, sentences: Sequence[Sentence]) -> Callable[[Ints, Ints, Ints, Ints], npt.NDArray[np.bool_]] | None:
        """Whether spans of sentences are known: no probability is given to those that count for nothing."""
        known = Known.select(self.known_targets(sentences))
        if known is None:
            return None
        ends, classes, _ = (column.numpy() for column in known)
        if self.type_sets is not None:
            classes = self.type_sets.known_classes(classes)
        weighed = np.array([is_weighed(sentence, self.marked_share) for sentence in sentences], bool)
        return lambda sentence, start, end, label: (
            weighed[sentence] | ((end <= ends[sentence, start]) & classes[sentence, label])
        )

    def _smoothed_spans(self, sentences: Sequence[Sentence]) -> list[SoftSpans]:
        settings, is_known = self.settings, self._is_known(sentences)
        gold, lengths = [self._gold(sentence) for sentence in sentences], [self.length(sentence) for sentence in sentences]
        if self.type_sets is not None:
            gold = list(map(self.type_sets.join, gold))
        smoothed = smooth_boundaries(
            gold, lengths, self.max_width, settings.smoothing, settings.smoothing_distance, is_known
        )  # fmt: skip
        return [
            self.with_teacher(spans, sentence, has_one_type=True) for spans, sentence in zip(smoothed, sentences, strict=True)
        ]


def row_sizes(head: LearnsProbabilities, sentences: Sequence[Sentence]) -> SizeTable:
    """The number of ``rows`` that each sentence adds to the targets."""
    return SizeTable({"rows": np.array([len(spans.start) for spans in head.target_spans(sentences)], np.int64)}, {})


def pad_soft_spans(targets: Mapping[str, Tensor], rows: int) -> dict[str, Tensor]:
    """Add rows with a mass of 0, which change no loss.

    >>> spans = {"sentence": [1], "start": [2], "end": [4], "label": [0], "mass": [0.5]}
    >>> padded = pad_soft_spans({name: torch.tensor(values) for name, values in spans.items()}, 2)
    >>> padded["end"].tolist(), padded["mass"].tolist()
    ([4, 1], [0.5, 0.0])
    """
    values = {"sentence": 0, "start": 0, "end": 1, "label": 0, "mass": 0}
    return {name: pad_to(tensor, (rows,), values[name]) for name, tensor in targets.items()}


def pack_rows(rows_by_sentence: Sequence[Ints]) -> dict[str, Tensor]:
    """Concatenate each sentence's rows of start, end and label to columns, with the ``sentence`` of each row."""
    rows = np.concatenate([*rows_by_sentence, np.empty((0, 3), np.int64)])
    names = ("start", "end", "label")
    return to_tensors({"sentence": sentence_indices(rows_by_sentence), **dict(zip(names, rows.T, strict=True))})


def concatenate_soft_spans(spans_by_sentence: Sequence[SoftSpans]) -> tuple[Ints, SoftSpans]:
    """The sentence index of each row, and the rows of all sentences."""
    columns = (np.concatenate([*column, np.empty(0, np.int64)]) for column in zip(*spans_by_sentence, strict=True))
    start, end, label, mass = columns if spans_by_sentence else (np.empty(0, np.int64),) * 4
    index = sentence_indices([spans.start for spans in spans_by_sentence])
    return index, SoftSpans(start, end, label, mass.astype(np.float32))


def pack_soft_spans(spans_by_sentence: Sequence[SoftSpans]) -> dict[str, Tensor]:
    """The rows of all sentences as tensors: ``sentence``, ``start``, ``end``, ``label``, ``mass``."""
    sentence, soft = concatenate_soft_spans(spans_by_sentence)
    return to_tensors({"sentence": sentence, **soft._asdict()})


def to_tensors(columns: Mapping[str, npt.NDArray[np.generic]]) -> dict[str, Tensor]:
    """Named arrays as tensors; columns of a table are copied to contiguous memory.

    >>> to_tensors({"start": np.array([[0, 2], [3, 4]])[:, 0]})
    {'start': tensor([0, 3])}
    """
    return {name: torch.from_numpy(np.ascontiguousarray(column)) for name, column in columns.items()}


def sentence_indices(rows_by_sentence: Sequence[Ints]) -> Ints:
    """The sentence index of each row, if the rows of all sentences are concatenated.

    >>> sentence_indices([np.zeros(2), np.zeros(0), np.zeros(1)]).tolist()
    [0, 0, 2]
    """
    return np.repeat(np.arange(len(rows_by_sentence)), np.array([len(rows) for rows in rows_by_sentence], np.int64))
