"""``bench/roles.py``: relations become second types of the same spans."""

from __future__ import annotations

from roles import add_roles

from spanwise.core.types import Entity, Relation, Sentence


def test_relations_become_second_types() -> None:
    entities = (Entity("Peop", ((0, 1),)), Entity("Org", ((3, 4),)), Entity("Loc", ((5, 6),)))
    relations = (Relation("Work_For", 0, 1), Relation("OrgBased_In", 1, 2), Relation("Live_In", 0, 2))
    sentence = add_roles(Sentence("s", ("Ada", "works", "for", "Acme", "in", "Oslo"), entities, relations))
    roles = (Entity("Employee", ((0, 1),)), Entity("Employer", ((3, 4),)), Entity("Resident", ((0, 1),)))
    assert set(sentence.entities) == {*entities, *roles}
    assert not sentence.relations
