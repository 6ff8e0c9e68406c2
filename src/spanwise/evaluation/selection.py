"""The entities that are hard for their shape: discontinuous ones, and ones inside others."""

from __future__ import annotations

from collections.abc import Iterable, Set

from spanwise.core.nesting import inside_others
from spanwise.core.types import Span
from spanwise.evaluation.scores import EntityItem


def discontinuous(items: Iterable[EntityItem]) -> set[EntityItem]:
    """The entities of several fragments."""
    return {item for item in items if len(item[1]) > 1}


def nested(items: Iterable[EntityItem]) -> set[EntityItem]:
    """The entities that lie within the range of a wider one. Two with the very same range are not inside each other.

    >>> sorted(nested([("DNA", ((0, 3),)), ("RNA", ((0, 3),)), ("Cell", ((1, 3),)), ("Cell", ((2, 5),))]))
    [('Cell', ((1, 3),))]
    """
    ranges = {item: Span(item[1][0][0], item[1][-1][1]) for item in items}
    inside = inside_others(ranges.values())
    return {item for item, span in ranges.items() if span in inside}


def nested_sides(gold: Set[EntityItem], predicted: Set[EntityItem]) -> tuple[set[EntityItem], set[EntityItem]]:
    """What the score of nested entities compares: gold's nested entities, and what counts as a prediction of one.

    That is every right prediction of one, whether or not the entity around it was found too, and every wrong entity that the
    predictions themselves put inside another. A right entity that only the predictions have inside another is no mistake of
    nesting, and counts on neither side.

    >>> inner, outer, wrong = ("DNA", ((1, 2),)), ("DNA", ((0, 3),)), ("RNA", ((0, 2),))
    >>> nested_sides({inner, outer}, {inner}) == ({inner}, {inner})
    True
    >>> nested_sides({outer}, {outer, wrong}) == (set(), {wrong})
    True
    """
    right = nested(gold)
    return right, (right & predicted) | (nested(predicted) - gold)
