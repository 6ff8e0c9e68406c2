"""Select discontinuous and nested entities."""

from __future__ import annotations

from collections.abc import Iterable, Set

from spanwise.core.nesting import nested_spans
from spanwise.core.types import Span
from spanwise.evaluation.scores import EntityItem


def discontinuous(items: Iterable[EntityItem]) -> set[EntityItem]:
    """Return the entities with several fragments."""
    return {item for item in items if len(item[1]) > 1}


def nested(items: Iterable[EntityItem]) -> set[EntityItem]:
    """Return the entities inside the range of a wider one. Equal ranges are not nested.

    >>> sorted(nested([("DNA", ((0, 3),)), ("RNA", ((0, 3),)), ("Cell", ((1, 3),)), ("Cell", ((2, 5),))]))
    [('Cell', ((1, 3),))]
    """
    ranges = {item: Span(item[1][0][0], item[1][-1][1]) for item in items}
    inside = nested_spans(ranges.values())
    return {item for item, span in ranges.items() if span in inside}


def nested_items(gold: Set[EntityItem], predicted: Set[EntityItem]) -> tuple[set[EntityItem], set[EntityItem]]:
    """Return the gold and the predicted items that the score of nested entities compares.

    The gold items are the nested gold entities. The predicted items are the correct predictions of
    them, even if the outer entity was not predicted, and the wrong predictions inside another
    prediction. A correct entity that is nested only in the predictions is not counted.

    >>> inner, outer, wrong = ("DNA", ((1, 2),)), ("DNA", ((0, 3),)), ("RNA", ((0, 2),))
    >>> nested_items({inner, outer}, {inner}) == ({inner}, {inner})
    True
    >>> nested_items({outer}, {outer, wrong}) == (set(), {wrong})
    True
    """
    nested_gold = nested(gold)
    return nested_gold, (nested_gold & predicted) | (nested(predicted) - gold)
