"""Scores of relations."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from spanwise.evaluation.alignment import Pair
from spanwise.evaluation.scores import Item, Scores, Tally
from spanwise.types import Sentence


@dataclass(frozen=True)
class RelationScores:
    """``strict``: type, direction, and both entities with type and fragments; ``boundaries``: the entities' types do not count.

    What is given twice counts once, and relations that leave their sentence count like the others.
    """

    strict: Scores
    boundaries: Scores

    def to_json(self) -> dict[str, Any]:
        return {"strict": self.strict.to_json(), "boundaries": self.boundaries.to_json()}


def count_relations(sentences: Iterable[Sentence | None]) -> int:
    return sum(len(sentence.relations) + len(sentence.links) for sentence in sentences if sentence is not None)


def score_relations(pairs: Sequence[Pair]) -> RelationScores:
    strict, boundaries = Tally(), Tally()
    sides = (_items([pair.gold for pair in pairs]), _items([pair.predicted for pair in pairs]))
    for gold, predicted in zip(*sides, strict=True):
        strict.add(gold, predicted)
        boundaries.add(_without_entity_types(gold), _without_entity_types(predicted))
    return RelationScores(strict.scores, boundaries.scores)


def _items(sentences: Sequence[Sentence | None]) -> Iterator[set[Item]]:
    """The relations of each sentence as (type, head, number of the tail's sentence, tail)."""
    for number, sentence in enumerate(sentences):
        items: set[Item] = set()
        if sentence is not None:
            for relation in sentence.relations:
                items.add((relation.type, _entity(sentence, relation.head), number, _entity(sentence, relation.tail)))
            for link in sentence.links:
                target = sentences[link.position] if link.position < len(sentences) else None
                if target is not None:
                    items.add((link.type, _entity(sentence, link.head), link.position, _entity(target, link.tail)))
                else:  # it leads nowhere: it counts, and equals no other
                    items.add((link.type, _entity(sentence, link.head), object(), ("", ())))
        yield items


def _entity(sentence: Sentence, number: int) -> Item:
    entity = sentence.entities[number]
    return entity.type, entity.fragments


def _without_entity_types(items: set[Item]) -> set[Item]:
    return {(type, head[1], place, tail[1]) for type, head, place, tail in items}
