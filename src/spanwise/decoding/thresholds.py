"""Score thresholds: drop low-scoring predictions and find the threshold with the best F1."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

from spanwise.core.documents import document_keys
from spanwise.core.errors import unknown_name
from spanwise.core.types import Entity, Link, Relation, Sentence

MIN_THRESHOLD = 0.02  # the lowest threshold that a search or a service uses
MAX_THRESHOLD = 1 - 1e-6  # the highest threshold of a head: its odds must be finite
ROUNDING = 1e-6  # scores have six digits
ENTITY, RELATION = "entity:", "relation:"  # prefixes for type names that entities and relations share
MinScore: TypeAlias = float | Mapping[str, float]  # for all types, or by type; 0 is the model's default


@dataclass(frozen=True, slots=True)
class Thresholds:
    """The thresholds of entities and those of relations, which may have types of the same name."""

    entities: MinScore = 0.0
    relations: MinScore = 0.0

    def __bool__(self) -> bool:
        return bool(self.entities or self.relations)


Threshold: TypeAlias = MinScore | Thresholds  # as users pass it, or separate ones


def split_threshold(
    threshold: Threshold, types: Collection[str], relation_types: Collection[str], *, ignores_unknown: bool = False
) -> Thresholds:  # fmt: skip
    """Return the thresholds of entities and those of relations, without those that are 0.

    ``NAME`` applies to entities and relations of this type. ``entity:NAME`` and ``relation:NAME`` apply to
    one of the two, and have priority.

    >>> split_threshold({"work": 0.3, "relation:work": 0.6, "Place": 0.0}, ["work", "Place"], ["work"])
    Thresholds(entities={'work': 0.3}, relations={'work': 0.6})
    >>> split_threshold(0.5, ["work"], ["work"])
    Thresholds(entities=0.5, relations=0.5)
    """
    if isinstance(threshold, Thresholds):
        return threshold
    if not isinstance(threshold, Mapping):
        return Thresholds(threshold, threshold)
    unknown = threshold.keys() - set(threshold_names(types, relation_types))
    if unknown and not ignores_unknown:
        raise unknown_name("type with a threshold", min(unknown), {*types, *relation_types})
    given = (
        {type: threshold.get(prefix + type, threshold.get(type, 0.0)) for type in known}
        for prefix, known in ((ENTITY, types), (RELATION, relation_types))
    )
    return Thresholds(*({type: value for type, value in values.items() if value} for values in given))


def threshold_names(types: Iterable[str], relation_types: Iterable[str]) -> list[str]:
    """The names under which the types of a model can have a threshold.

    >>> threshold_names(["work"], ["work"])
    ['work', 'entity:work', 'relation:work']
    """
    types, relation_types = list(types), list(relation_types)
    separate = [f"{ENTITY}{type}" for type in types] + [f"{RELATION}{type}" for type in relation_types]
    return list(dict.fromkeys([*types, *relation_types, *separate]))


def apply_threshold(sentences: Iterable[Sentence], threshold: Threshold) -> Iterator[Sentence]:
    """Drop entities and relations with a lower score, and the relations of dropped entities.

    Predictions without a score stay, and so do types without a threshold. A mapping is by type, for
    entities and relations of this type. The indices of relations across sentences are updated.

    >>> from spanwise.core.types import Entity
    >>> sentence = Sentence("s", ("a", "b"), (Entity("X", ((0, 1),), 0.2), Entity("Y", ((1, 2),), 0.8)))
    >>> [entity.type for entity in next(apply_threshold([sentence], 0.5)).entities]
    ['Y']
    >>> [entity.type for entity in next(apply_threshold([sentence], {"Y": 0.9})).entities]
    ['X']
    """
    sentences = list(sentences)
    thresholds = threshold if isinstance(threshold, Thresholds) else Thresholds(threshold, threshold)
    min_entity, min_relation = thresholds.entities, thresholds.relations
    has_all_entities = all(_reaches(entity, min_entity) for s in sentences for entity in s.entities)
    relations_and_links = (item for s in sentences for items in (s.relations, s.links) for item in items)
    if has_all_entities and all(_reaches(item, min_relation) for item in relations_and_links):
        yield from sentences
        return
    documents = list(document_keys(sentences))
    dropped = [{index for index, e in enumerate(s.entities) if not _reaches(e, min_entity)} for s in sentences]
    dropped_at = {(document, s.position): indices for s, document, indices in zip(sentences, documents, dropped, strict=True)}
    for sentence, document, indices in zip(sentences, documents, dropped, strict=True):
        relations = tuple(relation for relation in sentence.relations if _reaches(relation, min_relation))
        links = []
        for link in sentence.links:
            dropped_tails = dropped_at.get((document, link.position), set())
            if link.tail not in dropped_tails and _reaches(link, min_relation):
                links.append(replace(link, tail=link.tail - sum(index < link.tail for index in dropped_tails)))
        if relations != sentence.relations or links != list(sentence.links):
            sentence = replace(sentence, relations=relations, links=tuple(links))
        yield drop_entities(sentence, indices) if indices else sentence


def lowest_threshold(threshold: MinScore) -> float:
    """The lowest score of a head that may reach the threshold of any type after rounding.

    0 if no type has a threshold (the model's default applies); otherwise positive.

    >>> lowest_threshold({"X": 0.7, "Y": 0.0, "Z": 0.2})
    0.199999
    """
    values = threshold.values() if isinstance(threshold, Mapping) else [threshold]
    lowest = min((value for value in values if value > 0), default=0.0)
    return max(lowest - ROUNDING, lowest / 2)


def with_default(threshold: MinScore, types: Iterable[str], default: float) -> MinScore:
    """Add a model's threshold for the types without one, if other types have one.

    >>> with_default({"work": 0.3}, ["work", "live"], 0.5), with_default(0.3, ["work"], 0.5), with_default({}, ["work"], 0.5)
    ({'work': 0.3, 'live': 0.5}, 0.3, {})
    """
    return {**dict.fromkeys(types, default), **threshold} if isinstance(threshold, Mapping) and threshold else threshold


def best_threshold(scored: Iterable[tuple[float, bool]], support: int, lowest: float | None = None) -> float | None:
    """Return the threshold with the best F1, half-way between two scores.

    None if no prediction is correct.

    ``scored`` holds the score of each prediction and whether it is correct. ``support`` counts the
    gold items. If predictions are complete only down to a score, pass it as ``lowest``: predictions
    below it are ignored, and the result is never below it.

    >>> best_threshold([(0.9, True), (0.2, False), (0.4, True), (0.7, False)], support=2)
    0.3
    """
    rows = sorted((row for row in scored if lowest is None or row[0] >= lowest), reverse=True)
    best, threshold, correct = 0.0, None, 0
    for count, (score, is_correct) in enumerate(rows, 1):
        correct += is_correct
        next_score = rows[count][0] if count < len(rows) else lowest
        f1 = 2 * correct / (count + support)
        if f1 > best and (count == len(rows) or next_score is None or next_score < score):  # equal scores stay together
            middle = score if next_score is None else round((score + next_score) / 2, 6)
            best, threshold = f1, middle if next_score is None or next_score < middle <= score else score
    return threshold


def _reaches(item: Entity | Relation | Link, threshold: MinScore) -> bool:
    cutoff = threshold.get(item.type, 0.0) if isinstance(threshold, Mapping) else threshold
    return item.score is None or item.score >= cutoff


def drop_entities(sentence: Sentence, dropped: Collection[int]) -> Sentence:
    """Remove entities by index, and their relations.

    Links of other sentences are not updated.
    """
    remaining = [index for index in range(len(sentence.entities)) if index not in dropped]
    new = {old: index for index, old in enumerate(remaining)}
    return replace(
        sentence,
        entities=tuple(sentence.entities[index] for index in remaining),
        relations=tuple(
            replace(r, head=new[r.head], tail=new[r.tail]) for r in sentence.relations if r.head in new and r.tail in new
        ),
        links=tuple(replace(link, head=new[link.head]) for link in sentence.links if link.head in new),
    )
