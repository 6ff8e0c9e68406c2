"""Scores of relations."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from spanwise.core.types import Sentence
from spanwise.evaluation.alignment import Pair
from spanwise.evaluation.scores import Item, Score, Scores, Tally


@dataclass(frozen=True)
class RelationScores:
    """``strict``: type, direction, and both entities with type and fragments; ``boundaries``: the entities' types do not count.

    ``last_words``, where asked for: of the entities only the last words count, as papers do on WebNLG. What is given twice
    counts once, and relations that leave their sentence count like the others.
    """

    strict: Scores
    boundaries: Scores
    last_words: Scores | None = None

    def to_json(self) -> dict[str, Any]:
        scores = {"strict": self.strict.to_json(), "boundaries": self.boundaries.to_json()}
        return scores if self.last_words is None else {**scores, "last_words": self.last_words.to_json()}


def micro_relations(gold: Iterable[Sentence], predicted: Iterable[Sentence]) -> Score:
    """The strict micro score of what is found within sentences that stand in the same order."""
    tally = Tally()
    for one, other in zip(gold, predicted, strict=True):
        tally.add(gold_relations(one), _within(other))
    return tally.scores.micro


def gold_relations(sentence: Sentence) -> set[Item]:
    """All that is to be found: the relations within the sentence and those that leave it, which nothing found within equals."""
    return _within(sentence) | {(link.type, object(), link.position, link.tail) for link in set(sentence.links)}


def judged_relations(gold: Iterable[Sentence], predicted: Iterable[Sentence]) -> Iterator[tuple[float, bool]]:
    """The score of each predicted relation within sentences that stand in the same order, and whether it is strictly right."""
    for one, other in zip(gold, predicted, strict=True):
        right = _within(one)
        for relation in other.relations:
            item = (relation.type, _entity(other, relation.head), 0, _entity(other, relation.tail))
            yield relation.score or 0.0, item in right


def count_relations(sentences: Iterable[Sentence | None]) -> int:
    return sum(len(sentence.relations) + len(sentence.links) for sentence in sentences if sentence is not None)


def score_relations(pairs: Sequence[Pair], *, last_words: bool = False) -> RelationScores:
    strict, boundaries, lasts = Tally(), Tally(), Tally()
    sides = (_items([pair.gold for pair in pairs]), _items([pair.predicted for pair in pairs]))
    for gold, predicted in zip(*sides, strict=True):
        strict.add(gold, predicted)
        boundaries.add(_without_entity_types(gold), _without_entity_types(predicted))
        if last_words:
            lasts.add(_by_last_words(gold), _by_last_words(predicted))
    return RelationScores(strict.scores, boundaries.scores, lasts.scores if last_words else None)


def _items(sentences: Sequence[Sentence | None]) -> Iterator[set[Item]]:
    """The relations of each sentence as (type, head, number of the tail's sentence, tail)."""
    for number, sentence in enumerate(sentences):
        items: set[Item] = set()
        if sentence is not None:
            items = _within(sentence, number)
            for link in sentence.links:
                target = sentences[link.position] if link.position < len(sentences) else None
                if target is not None:
                    items.add((link.type, _entity(sentence, link.head), link.position, _entity(target, link.tail)))
                else:  # it leads nowhere: it counts, and equals no other
                    items.add((link.type, _entity(sentence, link.head), object(), ("", ())))
        yield items


def _within(sentence: Sentence, number: int = 0) -> set[Item]:
    return {
        (relation.type, _entity(sentence, relation.head), number, _entity(sentence, relation.tail))
        for relation in sentence.relations
    }


def _entity(sentence: Sentence, number: int) -> Item:
    entity = sentence.entities[number]
    return entity.type, entity.fragments


def _by_last_words(items: set[Item]) -> set[Item]:
    return {(type, _last(head), place, _last(tail)) for type, head, place, tail in items}


def _last(entity: Item) -> int | None:
    return entity[1][-1].end if entity[1] else None


def _without_entity_types(items: set[Item]) -> set[Item]:
    return {(type, head[1], place, tail[1]) for type, head, place, tail in items}
