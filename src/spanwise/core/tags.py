"""Conversion between word tags (BIO and related schemes) and entities.

One decoder reads every scheme, because their letters agree: B starts an entity, I and M continue it,
E and L end it, S and U are entities of one word, O is outside. An I without an entity to continue
starts one, as in the first scheme (IOB1).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import groupby

from spanwise.core.nesting import assign_levels
from spanwise.core.types import Entity, Span

_TAG = re.compile(r"([BIOEMSLU])[-_](.+)", re.DOTALL)
_ENDS = "ELSU"

# The note for the entities that ``decode`` repaired.
REPAIRED = "entities that start with I or E instead of B (read as B)"

UNTYPED = "Entity"  # the type for tags that are only a letter
_LETTERS = frozenset("BIEMSLU")

# The letters of each scheme for the first, an inner, the last and the only word of an entity.
SCHEMES = {
    "bio": ("B", "I", "I", "B"),
    "bioes": ("B", "I", "E", "S"),
    "bmes": ("B", "M", "E", "S"),
    "bilou": ("B", "I", "L", "U"),
    "iob1": ("I", "I", "I", "I"),
}


def is_tag(text: str) -> bool:
    """Return True if the text is a valid tag.
    >>> is_tag("B-PER"), is_tag("O"), is_tag("NNP"), is_tag("B-")
    (True, True, False, False)
    """
    return text == "O" or _TAG.fullmatch(text) is not None


def are_untyped(tags: Iterable[str]) -> bool:
    """Return True if the tags of a column are letters without a type, as in BioBERT's files.
    >>> are_untyped(["O", "B", "I"]), are_untyped(["O", "PER"]), are_untyped(["O"])
    (True, False, False)
    """
    letters = set(tags) - {"O"}
    return letters <= _LETTERS and not letters.isdisjoint("BI")


def with_type(tag: str, type: str) -> str:
    """Add a type to a tag that is only a letter.

    >>> with_type("B", "Entity"), with_type("O", "Entity")
    ('B-Entity', 'O')
    """
    return tag if tag == "O" or tag not in _LETTERS else f"{tag}-{type}"


def untyped_tags_note(format: str, type: str) -> str:
    """Return the note for tags without a type that were given one."""
    return f"entities tagged without a type, read as {type} (set it with {format}:type=NAME)"


def decode(tags: Iterable[str]) -> tuple[list[Entity], int]:
    """Return the entities of a sentence's tags, and how many of them start with I, M, E or L.
    >>> decode(["B-PER", "I-PER", "O", "I-LOC"])[0][1].fragments
    (Span(start=3, end=4),)
    >>> decode(["B-A", "I-B", "E-B"])[1], decode(["S-A", "B-A", "M-A", "E-A"])[1]
    (1, 0)
    """
    entities: list[Entity] = []
    repairs = 0
    open_type, start, count = "", 0, 0
    for index, tag in enumerate(tags):
        count = index + 1
        if tag == "O":
            letter, kind = "O", ""
        else:
            match = _TAG.fullmatch(tag)
            if not match:
                raise ValueError(f"{tag!r} is not a tag; expected O or a letter of BIOES, BILOU or BMES, a hyphen and a type")
            letter, kind = match.groups()
        is_start = letter in "BSU" or kind != open_type
        if open_type and (is_start or letter == "O"):
            entities.append(Entity(open_type, (Span(start, index),)))
            open_type = ""
        if letter == "O":
            continue
        if not open_type:
            repairs += letter in "IMEL"
            open_type, start = kind, index
        if letter in _ENDS:
            entities.append(Entity(open_type, (Span(start, index + 1),)))
            open_type = ""
    if open_type:
        entities.append(Entity(open_type, (Span(start, count),)))
    return entities, repairs


def decode_runs(tags: Iterable[str]) -> list[Entity]:
    """Return the entities of tags without a letter (as in Few-NERD): each run of one type.
    >>> [entity.fragments[0] for entity in decode_runs(["place", "place", "O", "org", "place"])]
    [Span(start=0, end=2), Span(start=3, end=4), Span(start=4, end=5)]
    """
    entities, start = [], 0
    for kind, run in groupby(tags):
        end = start + len(list(run))
        if kind and kind != "O":
            entities.append(Entity(kind, (Span(start, end),)))
        start = end
    return entities


def encode(entities: Iterable[Entity], length: int, scheme: str = "bio") -> list[str]:
    """Return one tag per word for contiguous entities that do not overlap.
    >>> encode([Entity("PER", ((0, 2),)), Entity("LOC", ((3, 4),))], 4, "bioes")
    ['B-PER', 'E-PER', 'O', 'S-LOC']
    >>> encode([Entity("PER", ((0, 1),)), Entity("PER", ((1, 2),))], 2, "iob1")
    ['I-PER', 'B-PER']
    """
    begin, inside, end, single = SCHEMES[scheme]
    tags = ["O"] * length
    for entity in sorted(entities, key=lambda entity: entity.range):
        start, stop = entity.range
        for index in range(start, stop):
            tags[index] = f"{inside}-{entity.type}"
        tags[start] = f"{begin}-{entity.type}"
        tags[stop - 1] = f"{single if stop - start == 1 else end}-{entity.type}"
        if scheme == "iob1" and start > 0 and tags[start - 1][1:] == f"-{entity.type}":
            tags[start] = f"B-{entity.type}"
    return tags


def split_into_levels(entities: Iterable[Entity], max_levels: int | None = None) -> list[list[Entity]]:
    """Split entities into levels without overlaps, wide entities first; each level in text order.

    Discontinuous entities, which tags cannot express, are dropped, and so are entities that do not fit
    the first ``max_levels`` levels.

    >>> outer, inner = Entity("A", ((0, 4),)), Entity("B", ((1, 2),))
    >>> split_into_levels([inner, outer]) == [[outer], [inner]], split_into_levels([inner, outer], max_levels=1) == [[outer]]
    (True, True)
    """
    contiguous = [entity for entity in entities if not entity.is_discontinuous]
    contiguous.sort(key=lambda entity: (-entity.range.width, entity.range.start))
    levels: list[list[Entity]] = []
    for entity, level in zip(contiguous, assign_levels((entity.range for entity in contiguous), max_levels), strict=True):
        if level == len(levels):
            levels.append([])
        levels[level].append(entity)
    return [sorted(level, key=lambda entity: entity.range.start) for level in levels[:max_levels]]
