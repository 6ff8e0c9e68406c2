"""Training sentences with the probabilities of other models, the teachers, and the targets that a head learns from them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace

import numpy as np
import numpy.typing as npt

from spanwise.core.partial import known_ends, known_types
from spanwise.core.types import Entity, Sentence, Span
from spanwise.losses.smoothing import SoftSpans, sum_masses


@dataclass(frozen=True, slots=True)
class TaughtSentence(Sentence):
    """A sentence with the probabilities that teachers give to spans and types.

    ``teacher`` has one row per span and type in words; spans without a row have the probability 0. A
    head that learns probabilities (``LearnsProbabilities``) learns ``gold_weight`` times the
    entities plus 1 - ``gold_weight`` times the probabilities. Without ``gold_weight``, both are learned
    with full weight: they have different types. Other heads learn only the entities, which are gold, or
    predictions of the teachers if the sentence has none.
    """

    teacher: SoftSpans | None = field(default=None, compare=False, repr=False)
    gold_weight: float | None = field(default=1.0, compare=False)

    @classmethod
    def teach(cls, sentence: Sentence, teacher: SoftSpans, gold_weight: float | None) -> TaughtSentence:
        """Add probabilities to a sentence."""
        values = {field.name: getattr(sentence, field.name) for field in fields(Sentence)}
        return cls(**values, teacher=teacher, gold_weight=gold_weight)


def mix_targets(
    gold: SoftSpans, teacher: SoftSpans, gold_weight: float | None, *, has_one_type: bool, gold_first: bool = False
) -> SoftSpans:  # fmt: skip
    """Return the weighted mean of two tables of probabilities, or without a weight their sum, in text order.

    With ``has_one_type``, the probabilities of a span are scaled to sum to at most 1. In a sum, teachers
    then get what gold leaves of a span, with ``gold_first`` also if types are independent.

    >>> def rows(*values):
    ...     start, end, label, mass = np.array(values).T
    ...     return SoftSpans(start.astype(int), end.astype(int), label.astype(int), mass)
    >>> mixed = mix_targets(rows((0, 1, 0, 1.0)), rows((0, 1, 0, 0.5), (2, 3, 1, 0.5)), 0.25, has_one_type=True)
    >>> [(int(s), int(e), int(l), float(m)) for s, e, l, m in zip(*mixed)]
    [(0, 1, 0, 0.625), (2, 3, 1, 0.375)]
    """
    if gold_weight is None:
        rest = _rest(gold, teacher) if has_one_type or gold_first else 1.0
        teacher, weights = teacher._replace(mass=(teacher.mass * rest).astype(np.float32)), (1.0, 1.0)
    else:
        weights = (gold_weight, 1 - gold_weight)
    parts = [(table, weight) for table, weight in zip((gold, teacher), weights, strict=True) if weight > 0]
    rows = np.concatenate([np.stack(table[:3], 1) for table, _ in parts])
    masses = np.concatenate([weight * table.mass.astype(np.float64) for table, weight in parts])
    return sum_masses(rows, masses, has_one_type=has_one_type)


def teach_open_spans(
    sentence: Sentence, teacher: SoftSpans, gold_weight: float, types: Sequence[str]
) -> TaughtSentence:  # fmt: skip
    """Add probabilities to a partially annotated sentence; where it is open, they are learned with full weight.

    ``types`` are the types to which labels refer.

    >>> sentence = Sentence("s", ("Oslo", "or", "Rome"), annotated=((0, 1),))
    >>> teacher = SoftSpans(np.array([0, 2]), np.array([1, 3]), np.array([0, 0]), np.array([0.5, 0.5], np.float32))
    >>> teach_open_spans(sentence, teacher, 0.75, ("Place",)).teacher.mass.tolist()
    [0.5, 2.0]
    """
    is_open, complete = open_rows(sentence, teacher, types), replace(sentence, annotated=None)
    if gold_weight == 1:
        return TaughtSentence.teach(complete, teacher.select(is_open), None)
    mass = np.where(is_open, teacher.mass / (1 - gold_weight), teacher.mass).astype(np.float32)
    return TaughtSentence.teach(complete, teacher._replace(mass=mass), gold_weight)


def open_rows(sentence: Sentence, spans: SoftSpans, types: Sequence[str]) -> npt.NDArray[np.bool_]:
    """Whether each row is open in a partially annotated sentence; annotated entities never are."""
    ends, known, gold = np.array(known_ends(sentence), np.int64), known_types(sentence), set(sentence.entities)
    is_known_type = np.array([known is None or type in known for type in types], bool)
    is_open: npt.NDArray[np.bool_] = (spans.end > ends[spans.start]) | ~is_known_type[spans.label]
    for row in np.flatnonzero(is_open).tolist():
        span = Span(int(spans.start[row]), int(spans.end[row]))
        is_open[row] = Entity(types[spans.label[row]], (span,)) not in gold
    return is_open


def _rest(gold: SoftSpans, teacher: SoftSpans) -> npt.NDArray[np.float32]:
    """The probability that gold leaves to each row of the teacher: 1 minus that of its span."""
    masses: dict[tuple[int, int], float] = {}
    for start, end, mass in zip(gold.start.tolist(), gold.end.tolist(), gold.mass.tolist(), strict=True):
        masses[start, end] = masses.get((start, end), 0.0) + mass
    spans = zip(teacher.start.tolist(), teacher.end.tolist(), strict=True)
    return np.array([max(0.0, 1 - masses.get(span, 0.0)) for span in spans], np.float32)
