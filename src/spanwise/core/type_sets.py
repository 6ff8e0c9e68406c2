"""Types that spans of a corpus have together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from spanwise.core.types import Sentence, Span

MIN_EXAMPLES = 3  # spans with a set of types, from which on it counts
MIN_SHARE = 0.001  # of the spans; a single annotation error must not add a set


def frequent_type_sets(sentences: Iterable[Sentence]) -> tuple[tuple[str, ...], ...]:
    """Return the sets of two and more types that contiguous spans have together, in alphabetical order.

    Empty if hardly any span has several types.

    >>> from spanwise.core.types import Entity
    >>> both = Sentence("s", ("Oslo",), (Entity("City", ((0, 1),)), Entity("Capital", ((0, 1),))))
    >>> frequent_type_sets([both] * 3), frequent_type_sets([both] * 2)
    ((('Capital', 'City'),), ())
    """
    counts: Counter[tuple[str, ...]] = Counter()
    for sentence in sentences:
        types: dict[Span, set[str]] = {}
        for entity in sentence.entities:
            if not entity.is_discontinuous:
                types.setdefault(entity.range, set()).add(entity.type)
        counts.update(tuple(sorted(together)) for together in types.values())
    several = {types: count for types, count in counts.items() if len(types) > 1}
    if sum(several.values()) <= MIN_SHARE * counts.total():
        return ()
    return tuple(sorted(types for types, count in several.items() if count >= MIN_EXAMPLES))
