"""Conversion between tags and entities."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spanwise import Entity
from spanwise.core.tags import SCHEMES, decode, encode, split_into_levels


def spans(tags: str) -> list[tuple[str, int, int]]:
    return [(e.type, *e.range) for e in decode(tags.split())[0]]


@pytest.mark.parametrize(
    ("tags", "expected"),
    [
        ("B-A I-A O B-B", [("A", 0, 2), ("B", 3, 4)]),
        ("B-A B-A I-A", [("A", 0, 1), ("A", 1, 3)]),
        ("I-A I-A B-A I-B", [("A", 0, 2), ("A", 2, 3), ("B", 3, 4)]),
        ("B-A M-A E-A S-A", [("A", 0, 3), ("A", 3, 4)]),
        ("B-A I-A L-A U-B O", [("A", 0, 3), ("B", 3, 4)]),
        ("B-A E-A I-A", [("A", 0, 2), ("A", 2, 3)]),
        ("E-A E-A", [("A", 0, 1), ("A", 1, 2)]),
        ("B_A I_A", [("A", 0, 2)]),
        ("B-GPE-NAM I-GPE-NAM", [("GPE-NAM", 0, 2)]),
        ("O", []),
        ("", []),
    ],
)
def test_decode_reads_every_scheme(tags: str, expected: list[tuple[str, int, int]]) -> None:
    assert spans(tags) == expected


def test_repairs_are_counted() -> None:
    assert decode(["I-A", "O", "B-B", "I-A", "E-C"])[1] == 3


@pytest.mark.parametrize("tag", ["X-A", "B-", "b-A", "PER", ""])
def test_invalid_tags_are_rejected(tag: str) -> None:
    with pytest.raises(ValueError, match="is not a tag"):
        decode(["O", tag])


@st.composite
def flat_entities(draw: st.DrawFn) -> tuple[int, list[Entity]]:
    length = draw(st.integers(0, 12))
    entities, start = [], 0
    while start < length:
        width = draw(st.integers(1, 4))
        if draw(st.booleans()) and start + width <= length:
            entities.append(Entity(draw(st.sampled_from(["A", "B", "O", "B-A"])), ((start, start + width),)))
        start += width
    return length, entities


@given(flat_entities(), st.sampled_from(sorted(SCHEMES)))
def test_decode_reverses_encode_in_every_scheme(example: tuple[int, list[Entity]], scheme: str) -> None:
    length, entities = example
    tags = encode(entities, length, scheme)
    assert len(tags) == length
    assert decode(tags)[0] == entities


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(1, 6)), max_size=10))
def test_levels_contain_every_entity_once_without_overlaps(ranges: list[tuple[int, int]]) -> None:
    entities = [Entity("X", ((a, a + width),)) for a, width in ranges]
    levels = split_into_levels(entities)
    assert sorted(e.range for level in levels for e in level) == sorted(e.range for e in entities)
    for level in levels:
        assert not any(a.range.overlaps(b.range) for i, a in enumerate(level) for b in level[:i])
