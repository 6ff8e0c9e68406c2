"""Notes on partially annotated training data, and the error for heads that cannot learn from it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from spanwise.core.errors import SpanwiseError
from spanwise.core.types import Sentence
from spanwise.heads import HEADS, head_class, head_values
from spanwise.heads.abilities import LearnsPartial, first_without
from spanwise.heads.base import Head


def check_partial(sentences: Sequence[Sentence], head: Head, *, has_teachers: bool = False) -> list[str]:
    """Return notes on partially annotated training sentences; raise an error if the head cannot learn from them.

    With teachers, the head also learns about the spans that the annotation leaves open.
    """
    partial = [sentence for sentence in sentences if sentence.annotated is not None]
    if not partial:
        return []
    unable = first_without(head, LearnsPartial)
    if unable is not None:
        able = [kind for kind in HEADS if issubclass(head_class(kind), LearnsPartial)]
        raise SpanwiseError(
            f"the head {head_values(unable)['kind']} cannot learn from partially annotated sentences "
            f'("annotated" in jsonl); these heads can: {", ".join(able)}'
        )
    if has_teachers:
        return [f"{_counted(partial, sentences)}: their open spans are learned from the teachers"]
    return list(_notes(sentences, partial, head.marked_share))


def _notes(sentences: Sequence[Sentence], partial: Sequence[Sentence], share: float) -> Iterator[str]:
    incomplete = sum(sentence.annotated == () for sentence in partial)
    weak = (
        f", except in {incomplete:,} without a complete part: there they are weak negatives (training.marked_share={share:g})"
    )
    rest = f"their open spans are ignored{weak * bool(incomplete and share)}"
    yield f"{_counted(partial, sentences)}: {rest}"
    if incomplete == len(sentences) and not share:
        yield (
            "no training sentence has a complete part, so no span is learned as a negative and the model will predict too "
            "many entities; raise training.marked_share"
        )


def _counted(partial: Sequence[Sentence], sentences: Sequence[Sentence]) -> str:
    return f"{len(partial):,} of {len(sentences):,} training sentences are annotated partially"
