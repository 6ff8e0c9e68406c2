"""Tags per word (BIO and its relatives) to typed ranges and back.

One decoder serves every scheme, for their letters do not contradict each other: B begins, I and M go on, E and L end, S and U
stand alone, O is outside. What does not fit (an I behind nothing) begins an entity, as the first scheme (IOB1) means it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import groupby

from spanwise.core import nesting
from spanwise.core.types import Entity, Span

_TAG = re.compile(r"([BIOEMSLU])[-_](.+)", re.DOTALL)
_ENDS = "ELSU"

# How a reader notes what ``decode`` had to mend.
REPAIRED = "entities that begin with I or E instead of B (read as a beginning)"

UNTYPED = "Entity"  # the type of tags that are a letter and nothing else
_LETTERS = frozenset("BIEMSLU")

# What begins, goes on, ends and stands alone in each scheme.
SCHEMES = {
    "bio": ("B", "I", "I", "B"),
    "bioes": ("B", "I", "E", "S"),
    "bmes": ("B", "M", "E", "S"),
    "bilou": ("B", "I", "L", "U"),
    "iob1": ("I", "I", "I", "I"),
}


def is_tag(text: str) -> bool:
    """True for what may stand in a column of tags.

    >>> is_tag("B-PER"), is_tag("O"), is_tag("NNP"), is_tag("B-")
    (True, True, False, False)
    """
    return text == "O" or _TAG.fullmatch(text) is not None


def are_untyped(tags: Iterable[str]) -> bool:
    """True when the tags of a column are letters without a type, as in files of one type (BioBERT's).

    >>> are_untyped(["O", "B", "I"]), are_untyped(["O", "PER"]), are_untyped(["O"])
    (True, False, False)
    """
    found = set(tags) - {"O"}
    return found <= _LETTERS and not found.isdisjoint("BI")


def typed(tag: str, type: str) -> str:
    """A tag that is a letter alone, with a type.

    >>> typed("B", "Entity"), typed("O", "Entity")
    ('B-Entity', 'O')
    """
    return tag if tag == "O" or tag not in _LETTERS else f"{tag}-{type}"


def untyped_note(format: str, type: str) -> str:
    """How a reader notes the type that it gave to such tags."""
    return f"entities tagged without a type, read as {type} ({format}:type=NAME names it)"


def decode(tags: Iterable[str]) -> tuple[list[Entity], int]:
    """The entities that the tags of a sentence spell, and how many began with a tag that continues or ends (I, M, E, L).

    >>> decode(["B-PER", "I-PER", "O", "I-LOC"])[0][1].fragments
    (Span(start=3, end=4),)
    >>> decode(["B-A", "I-B", "E-B"])[1], decode(["S-A", "B-A", "M-A", "E-A"])[1]
    (1, 0)
    """
    entities: list[Entity] = []
    repairs = 0
    open_type, start, count = "", 0, 0
    for place, tag in enumerate(tags):
        count = place + 1
        if tag == "O":
            letter, kind = "O", ""
        else:
            match = _TAG.fullmatch(tag)
            if not match:
                raise ValueError(f"{tag!r} is not a tag: expected O or a letter of BIOES, BILOU or BMES, a hyphen and a type")
            letter, kind = match.groups()
        begins = letter in "BSU" or kind != open_type
        if open_type and (begins or letter == "O"):
            entities.append(Entity(open_type, (Span(start, place),)))
            open_type = ""
        if letter == "O":
            continue
        if not open_type:
            repairs += letter in "IMEL"
            open_type, start = kind, place
        if letter in _ENDS:
            entities.append(Entity(open_type, (Span(start, place + 1),)))
            open_type = ""
    if open_type:
        entities.append(Entity(open_type, (Span(start, count),)))
    return entities, repairs


def decode_runs(tags: Iterable[str]) -> list[Entity]:
    """The entities of tags without a letter (as in Few-NERD): each run of one type.

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
    """One tag per word for contiguous entities that do not overlap.

    >>> encode([Entity("PER", ((0, 2),)), Entity("LOC", ((3, 4),))], 4, "bioes")
    ['B-PER', 'E-PER', 'O', 'S-LOC']
    >>> encode([Entity("PER", ((0, 1),)), Entity("PER", ((1, 2),))], 2, "iob1")
    ['I-PER', 'B-PER']
    """
    begin, inside, end, single = SCHEMES[scheme]
    tags = ["O"] * length
    for entity in sorted(entities, key=lambda entity: entity.range):
        start, stop = entity.range
        for place in range(start, stop):
            tags[place] = f"{inside}-{entity.type}"
        tags[start] = f"{begin}-{entity.type}"
        tags[stop - 1] = f"{single if stop - start == 1 else end}-{entity.type}"
        if scheme == "iob1" and start > 0 and tags[start - 1][1:] == f"-{entity.type}":
            tags[start] = f"B-{entity.type}"
    return tags


def levels(entities: Iterable[Entity], most: int | None = None) -> list[list[Entity]]:
    """Entities sorted into levels of which none overlaps itself, the wider ones in the first; each in the order of the text.

    Discontinuous entities fit no level of tags and are left out, and so is what does not fit the first ``most`` levels.

    >>> outer, inner = Entity("A", ((0, 4),)), Entity("B", ((1, 2),))
    >>> levels([inner, outer]) == [[outer], [inner]], levels([inner, outer], most=1) == [[outer]]
    (True, True)
    """
    contiguous = [entity for entity in entities if not entity.is_discontinuous]
    contiguous.sort(key=lambda entity: (-entity.range.width, entity.range.start))
    found: list[list[Entity]] = []
    for entity, level in zip(contiguous, nesting.levels(entity.range for entity in contiguous), strict=True):
        if level == len(found):
            found.append([])
        found[level].append(entity)
    return [sorted(level, key=lambda entity: entity.range.start) for level in found[:most]]
