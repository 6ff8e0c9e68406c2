"""Everything that is said about a system's output."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Literal

from spanwise.core.types import Sentence
from spanwise.evaluation.bootstrap import Interval, f1_interval
from spanwise.evaluation.confusion import Confusion
from spanwise.evaluation.pairing import Pairing, pair
from spanwise.evaluation.relations import RelationScores, count_relations, score_relations
from spanwise.evaluation.relaxed import RelaxedScore, RelaxedTally
from spanwise.evaluation.scores import EntityItem, Score, Scores, Tally, entity_items
from spanwise.evaluation.selection import discontinuous, nested_sides


@dataclass(frozen=True)
class Unseen:
    """The strict score on the ``sentences`` of gold whose words do not occur as a sentence of train."""

    score: Score
    sentences: int

    def to_json(self) -> dict[str, Any]:
        return {**self.score.to_json(), "sentences": self.sentences}


@dataclass(frozen=True)
class Evaluation:
    """The scores of one set of predictions, all between 0 and 1.

    ``entities`` is strict: an entity is right when its type and all its fragments are. ``unlabelled`` asks for the fragments
    only, ``relaxed`` for the type and one common word. ``discontinuous`` and ``nested`` are strict, over such entities only,
    and None where gold has none. ``unseen`` is None without train, ``interval`` where fewer than 20 sentences have entities,
    ``relations`` where gold or the predictions have none. ``notes`` say what a reader of the numbers must know.
    """

    entities: Scores
    unlabelled: Score
    relaxed: RelaxedScore
    discontinuous: Score | None
    nested: Score | None
    unseen: Unseen | None
    confusion: Confusion
    interval: Interval | None
    relations: RelationScores | None
    sentences: int
    missing_sentences: int
    paired_by: Literal["id", "order", "document"] = "id"
    notes: tuple[str, ...] = field(default=())

    @property
    def f1(self) -> float:
        """The strict micro F1, the number that systems are compared by."""
        return self.entities.micro.f1

    def to_json(self) -> dict[str, Any]:
        def json_of(part: Score | Unseen | Interval | RelationScores | None) -> dict[str, Any] | None:
            return None if part is None else part.to_json()

        return {
            **self.entities.to_json(),
            "unlabelled": self.unlabelled.to_json(),
            "relaxed": self.relaxed.to_json(),
            "discontinuous": json_of(self.discontinuous),
            "nested": json_of(self.nested),
            "unseen_sentences": json_of(self.unseen),
            "confusion": self.confusion.to_json(),
            "interval": json_of(self.interval),
            "relations": json_of(self.relations),
            "sentences": self.sentences,
            "missing_sentences": self.missing_sentences,
            "paired_by": self.paired_by,
            "notes": list(self.notes),
        }


def evaluate(
    gold: Iterable[Sentence],
    predicted: Iterable[Sentence],
    train: Iterable[Sentence] | None = None,
    *,
    finds_relations: bool = False,
    last_words: bool = False,
) -> Evaluation:
    """Score predicted sentences against gold ones; see ``pair`` for which belongs to which.

    With ``train``, also on those gold sentences alone that are not in it. A system that predicts no relation is taken for one
    that does not look for them, unless ``finds_relations``. ``last_words`` also scores relations by the entities' last words.

    >>> from spanwise.core.types import Entity
    >>> words = ("Oslo", "and", "New", "York")
    >>> gold = Sentence("s1", words, (Entity("Place", ((0, 1),)), Entity("Place", ((2, 4),))))
    >>> found = Sentence("s1", words, (Entity("Place", ((0, 1),)), Entity("Place", ((3, 4),))))
    >>> evaluation = evaluate([gold], [found])
    >>> evaluation.entities.micro.f1, evaluation.relaxed.f1
    (0.5, 1.0)
    """
    pairing = pair(gold, predicted)
    seen = None if train is None else {sentence.words for sentence in train}

    strict, boundaries, broken, inner, new = Tally(), Tally(), Tally(), Tally(), Tally()
    relaxed, confusion, counts, new_sentences = RelaxedTally(), Confusion(), [], 0
    for both in pairing.pairs:
        right, found = entity_items(both.gold), entity_items(both.predicted)
        counts.append(strict.add(right, found))
        boundaries.add(_without_types(right), _without_types(found))
        relaxed.add(right, found)
        confusion.add(right, found)
        broken.add(discontinuous(right), discontinuous(found))
        inner.add(*nested_sides(right, found))
        if seen is not None and any(sentence.words not in seen for sentence in both.originals):
            new.add(right, found)
            new_sentences += len(both.originals)

    with_relations = (
        count_relations(both.gold for both in pairing.pairs),
        count_relations(both.predicted for both in pairing.pairs),
    )
    is_scored = bool(with_relations[0] and (with_relations[1] or finds_relations))
    scores = strict.scores
    return Evaluation(
        entities=scores,
        unlabelled=boundaries.scores.micro,
        relaxed=relaxed.score,
        discontinuous=_unless_empty(broken),
        nested=_unless_empty(inner),
        unseen=None if seen is None else Unseen(new.scores.micro, new_sentences),
        confusion=confusion,
        interval=f1_interval(counts),
        relations=score_relations(pairing.pairs, last_words=last_words) if is_scored else None,
        sentences=pairing.sentences,
        missing_sentences=len(pairing.missing),
        paired_by=pairing.by,
        notes=tuple(_notes(pairing, scores, *((0, 0) if is_scored else with_relations))),
    )


def _without_types(items: set[EntityItem]) -> set[EntityItem]:
    return {("", fragments) for _, fragments in items}


def _unless_empty(tally: Tally) -> Score | None:
    score = tally.scores.micro
    return score if score.support else None


def _notes(pairing: Pairing, scores: Scores, gold_relations: int, predicted_relations: int) -> Iterable[str]:
    if pairing.by != "id":
        how = "in order" if pairing.by == "order" else "by document"
        yield f"the sentences are paired {how}, for their ids do not fit; all have the same text"
    if pairing.retokenised:
        yield f"sentences with other words than gold but the same text, compared by characters: {pairing.retokenised:,}"
    if pairing.recut:
        yield f"sentences that the predictions cut elsewhere, compared together with their neighbours: {pairing.recut:,}"
    if missing := pairing.missing:
        yield (
            f"gold sentences that are not in the predictions, and whose entities count as misses: "
            f"{len(missing):,} of {pairing.sentences:,} (the first is {missing[0]!r})"
        )
    if types_without_gold := sorted(type for type, score in scores.types.items() if not score.support):
        names = ", ".join(types_without_gold[:5]) + (", …" if len(types_without_gold) > 5 else "")
        yield f"the predictions have types that gold does not have: {names}"
    if gold_relations and not predicted_relations:
        yield f"relations are not scored, for the predictions have none (gold: {gold_relations:,})"
    if predicted_relations and not gold_relations:
        yield f"relations are not scored, for gold has none (predicted: {predicted_relations:,})"
