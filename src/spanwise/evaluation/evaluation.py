"""Evaluate predictions against gold annotations."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Literal

from spanwise.core.types import Sentence
from spanwise.evaluation.bootstrap import Interval, f1_interval
from spanwise.evaluation.calibration import CalibrationErrors
from spanwise.evaluation.confusion import Confusion
from spanwise.evaluation.pairing import Pairing, pair
from spanwise.evaluation.relations import RelationScores, count_relations, score_relations
from spanwise.evaluation.relaxed import RelaxedScore, RelaxedTally
from spanwise.evaluation.scores import EntityItem, Score, Scores, Tally, entity_items
from spanwise.evaluation.selection import discontinuous, nested_items

MAX_TYPES_IN_NOTE = 5


@dataclass(frozen=True)
class UnseenScore:
    """The strict score on the gold ``sentences`` that do not occur in train."""

    score: Score
    sentences: int

    def to_json(self) -> dict[str, Any]:
        return {**self.score.to_json(), "sentences": self.sentences}


@dataclass(frozen=True)
class Evaluation:
    """Scores of one set of predictions, all between 0 and 1.

    ``entities`` is strict: type and all fragments must match. ``unlabelled`` ignores the type,
    ``relaxed`` requires the type and one common word. ``discontinuous`` and ``nested`` are strict
    scores over such entities, None if gold has none. ``unseen`` is None without train, ``interval`` if
    fewer than 20 sentences have entities, ``relations`` if gold or the predictions have none. ``notes``
    explain how to read the numbers. ``calibration`` is that of a calibrated model's scores.
    """

    entities: Scores
    unlabelled: Score
    relaxed: RelaxedScore
    discontinuous: Score | None
    nested: Score | None
    unseen: UnseenScore | None
    confusion: Confusion
    interval: Interval | None
    relations: RelationScores | None
    sentences: int
    missing_sentences: int
    paired_by: Literal["id", "order", "document"] = "id"
    notes: tuple[str, ...] = field(default=())
    calibration: CalibrationErrors | None = None

    @property
    def f1(self) -> float:
        """The strict micro F1, by which systems are compared."""
        return self.entities.micro.f1

    def to_json(self) -> dict[str, Any]:
        """Return all scores as a record, with the keys of ``spanwise evaluate --json``."""

        def optional(part: Score | UnseenScore | Interval | RelationScores | None) -> dict[str, Any] | None:
            return None if part is None else part.to_json()

        return {
            **self.entities.to_json(),
            "unlabelled": self.unlabelled.to_json(),
            "relaxed": self.relaxed.to_json(),
            "discontinuous": optional(self.discontinuous),
            "nested": optional(self.nested),
            "unseen_sentences": optional(self.unseen),
            "confusion": self.confusion.to_json(),
            "interval": optional(self.interval),
            "relations": optional(self.relations),
            "sentences": self.sentences,
            "missing_sentences": self.missing_sentences,
            "paired_by": self.paired_by,
            "notes": list(self.notes),
            **({} if self.calibration is None else {"calibration": self.calibration.to_json()}),
        }


def evaluate(
    gold: Iterable[Sentence],
    predicted: Iterable[Sentence],
    train: Iterable[Sentence] | None = None,
    *,
    finds_relations: bool = False,
    last_words: bool = False,
) -> Evaluation:
    """Score predicted sentences against gold sentences.

    Use it for the predictions of any system. Sentences are paired by id, or in order if the ids do not
    match but the texts do. Both sides may split words differently. The entities of a gold sentence
    without a prediction count as missed.

    ``train`` adds the score on the gold sentences that are not in it. Relations are scored if the
    predictions have any; pass ``finds_relations`` to score a system that predicts none.
    ``last_words`` also scores relations by the last words of their entities.

    >>> from spanwise.core.types import Entity
    >>> words = ("Oslo", "and", "New", "York")
    >>> gold = Sentence("s1", words, (Entity("Place", ((0, 1),)), Entity("Place", ((2, 4),))))
    >>> predicted = Sentence("s1", words, (Entity("Place", ((0, 1),)), Entity("Place", ((3, 4),))))
    >>> evaluation = evaluate([gold], [predicted])
    >>> evaluation.entities.micro.f1, evaluation.relaxed.f1
    (0.5, 1.0)
    """
    pairing = pair(gold, predicted)
    train_sentences = None if train is None else {sentence.words for sentence in train}

    strict, unlabelled, discontinuous_tally, nested_tally, unseen = Tally(), Tally(), Tally(), Tally(), Tally()
    relaxed, confusion, counts, unseen_sentences = RelaxedTally(), Confusion(), [], 0
    for sentence_pair in pairing.pairs:
        gold_items, predicted_items = entity_items(sentence_pair.gold), entity_items(sentence_pair.predicted)
        counts.append(strict.add(gold_items, predicted_items))
        unlabelled.add(_without_types(gold_items), _without_types(predicted_items))
        relaxed.add(gold_items, predicted_items)
        confusion.add(gold_items, predicted_items)
        discontinuous_tally.add(discontinuous(gold_items), discontinuous(predicted_items))
        nested_tally.add(*nested_items(gold_items, predicted_items))
        originals = sentence_pair.originals
        if train_sentences is not None and any(sentence.words not in train_sentences for sentence in originals):
            unseen.add(gold_items, predicted_items)
            unseen_sentences += len(originals)

    gold_relations = count_relations(sentence_pair.gold for sentence_pair in pairing.pairs)
    predicted_relations = count_relations(sentence_pair.predicted for sentence_pair in pairing.pairs)
    has_relation_scores = bool(gold_relations and (predicted_relations or finds_relations))
    notes = list(_notes(pairing, strict.scores))
    if not has_relation_scores:
        notes += _relation_notes(gold_relations, predicted_relations)
    if train_sentences is not None and pairing.sentences and not unseen_sentences:
        notes.append("all sentences are also in the training data: the scores on new text may be much lower")
    return Evaluation(
        entities=strict.scores,
        unlabelled=unlabelled.scores.micro,
        relaxed=relaxed.score,
        discontinuous=_unless_empty(discontinuous_tally),
        nested=_unless_empty(nested_tally),
        unseen=None if train_sentences is None else UnseenScore(unseen.scores.micro, unseen_sentences),
        confusion=confusion,
        interval=f1_interval(counts),
        relations=score_relations(pairing.pairs, last_words=last_words) if has_relation_scores else None,
        sentences=pairing.sentences,
        missing_sentences=len(pairing.missing),
        paired_by=pairing.by,
        notes=tuple(notes),
    )


def _without_types(items: set[EntityItem]) -> set[EntityItem]:
    return {("", fragments) for _, fragments in items}


def _unless_empty(tally: Tally) -> Score | None:
    score = tally.scores.micro
    return score if score.support else None


def _notes(pairing: Pairing, scores: Scores) -> Iterable[str]:
    if pairing.by != "id":
        how = "in order" if pairing.by == "order" else "by document"
        yield f"sentences are paired {how}: their ids differ, but their text is the same"
    if pairing.retokenised:
        yield f"sentences tokenised differently from gold, compared by characters: {pairing.retokenised:,}"
    if pairing.resegmented:
        yield f"sentences split differently from gold, compared together with their neighbours: {pairing.resegmented:,}"
    if missing := pairing.missing:
        yield (
            f"gold sentences without a prediction, whose entities count as missed: {len(missing):,} of {pairing.sentences:,} "
            f"(first: {missing[0]!r})"
        )
    partial = sum(sentence.annotated is not None for pair in pairing.pairs for sentence in pair.originals)
    if partial:
        yield f"gold sentences that are annotated partially, where open predictions do not count: {partial:,}"
    if types := sorted(type for type, score in scores.types.items() if not score.support):
        names = ", ".join(types[:MAX_TYPES_IN_NOTE]) + (", …" if len(types) > MAX_TYPES_IN_NOTE else "")
        yield f"predicted types that do not occur in gold: {names}"


def _relation_notes(gold: int, predicted: int) -> Iterable[str]:
    if gold and not predicted:
        yield f"relations are not scored: the predictions have none (gold has {gold:,})"
    if predicted and not gold:
        yield f"relations are not scored: gold has none (the predictions have {predicted:,})"
