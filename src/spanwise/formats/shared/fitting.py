"""Sentences cut down to what a format can hold, with the rest counted."""

from __future__ import annotations

import re
from collections.abc import Callable, Set
from dataclasses import replace

from spanwise.core import tags
from spanwise.core.types import Entity, Relation, Sentence
from spanwise.formats.base import Ledger

_UNFIT = re.compile(r"[\t\n]|\r$")


def fitted(
    sentence: Sentence, holds: Set[str], ledger: Ledger, refused: Callable[[Entity], str | None] = lambda entity: None
) -> Sentence:
    """The sentence with what a format holds, in the words of ``Format.holds``.

    Without "nested" no entity may overlap another: the wider ones stay, in the order of the text. ``refused`` gives a further
    reason why an entity cannot be written. A relation goes with its entities. Links are left out (a format of documents
    sees to them itself).

    >>> ledger = Ledger()
    >>> outer, inner = Entity("Org", ((0, 3),)), Entity("Place", ((2, 3),))
    >>> s = Sentence("s1", ("University", "of", "Oslo"), (inner, outer), (Relation("in", 1, 0),))
    >>> fitted(s, {"relations"}, ledger).entities == (outer,), str(ledger)
    (True, '1 entity (overlapping another), 1 relation (of an entity that is lost)')
    """
    numbers = list(range(len(sentence.entities)))
    kept: list[int] = []
    for number in numbers:
        entity = sentence.entities[number]
        why = "discontinuous" if entity.is_discontinuous and "discontinuous" not in holds else refused(entity)
        if why is None:
            kept.append(number)
        else:
            ledger.lose("entities", why)
    place = dict(zip(kept, range(len(kept)), strict=True))
    if "nested" not in holds:
        kept, place = _flat(sentence, kept, ledger)
    relations = _relations(sentence, place, holds, ledger)
    if kept == numbers and relations == list(sentence.relations) and not sentence.links:
        return sentence
    entities = tuple(sentence.entities[number] for number in kept)
    return replace(sentence, entities=entities, relations=tuple(relations), links=())


def not_in_a_column(entity: Entity) -> str | None:
    """Why an entity's type cannot stand in a column between tabs, or at the end of a line.

    >>> not_in_a_column(Entity("a\\tb", ((0, 1),))), not_in_a_column(Entity("a b", ((0, 1),)))
    ('with white space in the type', None)
    """
    return "with white space in the type" if _UNFIT.search(entity.type) else None


def _flat(sentence: Sentence, candidates: list[int], ledger: Ledger) -> tuple[list[int], dict[int, int]]:
    """Those that overlap no other, in order, and the new number of each (of a twin, the one of its twin)."""
    first: dict[Entity, int] = {}
    for number in candidates:
        first.setdefault(sentence.entities[number], number)
    ledger.note("entities given twice, merged", len(candidates) - len(first))
    chosen = next(iter(tags.levels(first, most=1)), [])
    ledger.lose("entities", "overlapping another", len(first) - len(chosen))
    new = {entity: number for number, entity in enumerate(chosen)}
    place = {number: new[sentence.entities[number]] for number in candidates if sentence.entities[number] in new}
    return [first[entity] for entity in chosen], place


def _relations(sentence: Sentence, place: dict[int, int], holds: Set[str], ledger: Ledger) -> list[Relation]:
    if "relations" not in holds:
        ledger.lose("relations", "no place for relations", len(sentence.relations) + len(sentence.links))
        return []
    ledger.lose("relations", "across sentences", len(sentence.links))
    found = []
    for relation in sentence.relations:
        if relation.head in place and relation.tail in place:
            found.append(replace(relation, head=place[relation.head], tail=place[relation.tail]))
        else:
            ledger.lose("relations", "of an entity that is lost")
    return found
