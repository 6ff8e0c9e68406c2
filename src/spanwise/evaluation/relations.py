"""Scores of relations."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from spanwise.core.errors import SpanwiseError
from spanwise.core.partial import without_open
from spanwise.core.types import Relation, Sentence
from spanwise.evaluation.alignment import SentencePair
from spanwise.evaluation.scores import Item, Score, Scores, Tally


@dataclass(frozen=True)
class RelationScores:
    """Scores of relations under criteria of different strictness.

    All require the relation's type and direction. ``strict`` also requires the type and fragments of
    both entities, ``boundaries`` only their fragments. ``last_words``, if requested, compares only the
    last words of the entities, as papers on WebNLG do. Duplicates count once; relations across
    sentences count like others.
    """

    strict: Scores
    boundaries: Scores
    last_words: Scores | None = None

    def to_json(self) -> dict[str, Any]:
        scores = {"strict": self.strict.to_json(), "boundaries": self.boundaries.to_json()}
        return scores if self.last_words is None else {**scores, "last_words": self.last_words.to_json()}


def micro_relations(gold: Iterable[Sentence], predicted: Iterable[Sentence]) -> Score:
    """Return the strict micro score of relations within sentences; both sides are in the same order."""
    tally = Tally()
    for gold_sentence, predicted_sentence in zip(gold, predicted, strict=True):
        tally.add(gold_relations(gold_sentence), _within(predicted_sentence))
    return tally.scores.micro


def gold_relations(sentence: Sentence) -> set[Item]:
    """Return the relations of a sentence; those across sentences never equal a relation within one."""
    return _within(sentence) | {(link.type, object(), link.position, link.tail) for link in set(sentence.links)}


def scored_relations(gold: Iterable[Sentence], predicted: Iterable[Sentence]) -> Iterator[tuple[float, bool]]:
    """Yield the score of each predicted relation and whether it is strictly correct; both sides are in the same order."""
    for gold_sentence, prediction in zip(gold, predicted, strict=True):
        gold_items, predicted_sentence = _within(gold_sentence), without_open(gold_sentence, prediction)
        for relation in predicted_sentence.relations:
            yield relation.score or 0.0, _item(predicted_sentence, relation) in gold_items


def relation_scores(sentence: Sentence | None) -> dict[Item, float]:
    """Return the score of each distinct relation within a sentence, the highest of duplicates."""
    scores: dict[Item, float] = {}
    if sentence is None:
        return scores
    for relation in sentence.relations:
        if relation.score is None:
            raise SpanwiseError("some predicted relations have no score; calibration and thresholds need the scores of all")
        item = _item(sentence, relation)
        scores[item] = max(relation.score, scores.get(item, 0.0))
    return scores


def count_relations(sentences: Iterable[Sentence | None]) -> int:
    return sum(len(sentence.relations) + len(sentence.links) for sentence in sentences if sentence is not None)


def score_relations(pairs: Sequence[SentencePair], *, last_words: bool = False) -> RelationScores:
    strict, boundaries, last_word_tally = Tally(), Tally(), Tally()
    gold_items, predicted_items = _items([pair.gold for pair in pairs]), _items([pair.predicted for pair in pairs])
    for gold, predicted in zip(gold_items, predicted_items, strict=True):
        strict.add(gold, predicted)
        boundaries.add(_without_entity_types(gold), _without_entity_types(predicted))
        if last_words:
            last_word_tally.add(_by_last_words(gold), _by_last_words(predicted))
    return RelationScores(strict.scores, boundaries.scores, last_word_tally.scores if last_words else None)


def _items(sentences: Sequence[Sentence | None]) -> Iterator[set[Item]]:
    """Yield the relations of each sentence as (type, head, index of the tail's sentence, tail)."""
    for index, sentence in enumerate(sentences):
        items: set[Item] = set()
        if sentence is not None:
            items = _within(sentence, index)
            for link in sentence.links:
                target = sentences[link.position] if link.position < len(sentences) else None
                if target is not None:
                    items.add((link.type, _entity(sentence, link.head), link.position, _entity(target, link.tail)))
                else:  # an unresolved link counts, but equals no other
                    items.add((link.type, _entity(sentence, link.head), object(), ("", ())))
        yield items


def _within(sentence: Sentence, index: int = 0) -> set[Item]:
    return {_item(sentence, relation, index) for relation in sentence.relations}


def _item(sentence: Sentence, relation: Relation, index: int = 0) -> Item:
    return relation.type, _entity(sentence, relation.head), index, _entity(sentence, relation.tail)


def _entity(sentence: Sentence, index: int) -> Item:
    entity = sentence.entities[index]
    return entity.type, entity.fragments


def _by_last_words(items: set[Item]) -> set[Item]:
    return {(type, _last_word(head), index, _last_word(tail)) for type, head, index, tail in items}


def _last_word(entity: Item) -> int | None:
    return entity[1][-1].end if entity[1] else None


def _without_entity_types(items: set[Item]) -> set[Item]:
    return {(type, head[1], index, tail[1]) for type, head, index, tail in items}
