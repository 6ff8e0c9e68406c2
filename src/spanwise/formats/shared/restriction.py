"""Restrict sentences to what a format supports, and count the rest as lost."""

from __future__ import annotations

import re
from collections.abc import Callable, Set
from dataclasses import replace

from spanwise.core import tags
from spanwise.core.types import Entity, Relation, Sentence
from spanwise.formats.base import Ledger

_NOT_IN_COLUMN = re.compile(r"[\t\n]|\r$")


def restrict(
    sentence: Sentence,
    supports: Set[str],
    ledger: Ledger,
    rejection_reason: Callable[[Entity], str | None] = lambda entity: None,
) -> Sentence:
    """Return the sentence with only what ``Format.supports`` allows.

    Without "nested", the wider of two overlapping entities is kept and entities are in text order.
    ``rejection_reason`` returns why an entity cannot be written, or None. Relations with a dropped
    entity are dropped. Links are always dropped; formats with documents write them themselves.

    >>> ledger = Ledger()
    >>> outer, inner = Entity("Org", ((0, 3),)), Entity("Place", ((2, 3),))
    >>> s = Sentence("s1", ("University", "of", "Oslo"), (inner, outer), (Relation("in", 1, 0),))
    >>> restrict(s, {"relations"}, ledger).entities == (outer,), str(ledger)
    (True, '1 entity (overlapping another), 1 relation (with a dropped entity)')
    """
    all_indices = list(range(len(sentence.entities)))
    kept: list[int] = []
    for index in all_indices:
        entity = sentence.entities[index]
        is_unsupported = entity.is_discontinuous and "discontinuous" not in supports
        reason = "discontinuous" if is_unsupported else rejection_reason(entity)
        if reason is None:
            kept.append(index)
        else:
            ledger.lose("entities", reason)
    new_indices = {index: new for new, index in enumerate(kept)}
    if "nested" not in supports:
        kept, new_indices = _drop_overlapping(sentence, kept, ledger)
    relations = _restrict_relations(sentence, new_indices, supports, ledger)
    if kept == all_indices and relations == list(sentence.relations) and not sentence.links:
        return sentence
    entities = tuple(sentence.entities[index] for index in kept)
    return replace(sentence, entities=entities, relations=tuple(relations), links=())


def column_problem(entity: Entity) -> str | None:
    """Return why the type of an entity cannot be written in a tab-separated column, or None.

    >>> column_problem(Entity("a\\tb", ((0, 1),))), column_problem(Entity("a b", ((0, 1),)))
    ('with whitespace in the type', None)
    """
    return "with whitespace in the type" if _NOT_IN_COLUMN.search(entity.type) else None


def _drop_overlapping(sentence: Sentence, candidates: list[int], ledger: Ledger) -> tuple[list[int], dict[int, int]]:
    """Return the indices of entities that do not overlap, in text order, and their new indices.

    Duplicates get the new index of the entity that they repeat.
    """
    first: dict[Entity, int] = {}
    for index in candidates:
        first.setdefault(sentence.entities[index], index)
    ledger.note("duplicate entities, merged", len(candidates) - len(first))
    flat = next(iter(tags.split_into_levels(first, max_levels=1)), [])
    ledger.lose("entities", "overlapping another", len(first) - len(flat))
    new = {entity: index for index, entity in enumerate(flat)}
    new_indices = {index: new[sentence.entities[index]] for index in candidates if sentence.entities[index] in new}
    return [first[entity] for entity in flat], new_indices


def _restrict_relations(sentence: Sentence, new_indices: dict[int, int], supports: Set[str], ledger: Ledger) -> list[Relation]:
    if "relations" not in supports:
        ledger.lose("relations", "not supported by the format", len(sentence.relations) + len(sentence.links))
        return []
    ledger.lose("relations", "across sentences", len(sentence.links))
    relations = []
    for relation in sentence.relations:
        if relation.head in new_indices and relation.tail in new_indices:
            relations.append(replace(relation, head=new_indices[relation.head], tail=new_indices[relation.tail]))
        else:
            ledger.lose("relations", "with a dropped entity")
    return relations
