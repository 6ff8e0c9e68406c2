"""Connected components and maximal cliques of a graph of spans."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Set

from spanwise.core.types import Span


def connected_components(edges: Iterable[tuple[Span, Span]]) -> list[set[Span]]:
    """Group the spans that are connected by a path of edges.

    >>> a, b, c, d, e = (Span(i, i + 1) for i in (0, 2, 4, 6, 8))
    >>> [sorted(span.start for span in spans) for spans in connected_components([(a, b), (c, d), (b, e)])]
    [[4, 6], [0, 2, 8]]
    """
    groups: list[set[Span]] = []
    for edge in edges:
        touched = [group for group in groups if not group.isdisjoint(edge)]
        groups = [group for group in groups if group.isdisjoint(edge)] + [set(edge).union(*touched)]
    return groups


def maximal_cliques(edges: Iterable[tuple[Span, Span]]) -> Iterator[tuple[Span, ...]]:
    """Maximal cliques of two or more spans (Bron and Kerbosch 1973), sorted.

    >>> a, b, c, d = (Span(i, i + 1) for i in (0, 2, 4, 6))
    >>> [[span.start for span in clique] for clique in maximal_cliques([(a, d), (b, c), (b, d), (c, d)])]
    [[0, 6], [2, 4, 6]]
    """
    neighbours: dict[Span, set[Span]] = {}
    for one, other in edges:
        neighbours.setdefault(one, set()).add(other)
        neighbours.setdefault(other, set()).add(one)
    return iter(sorted(_extensions((), set(neighbours), set(), neighbours)))


def _extensions(
    clique: tuple[Span, ...], candidates: Set[Span], excluded: Set[Span], neighbours: Mapping[Span, Set[Span]]
) -> Iterator[tuple[Span, ...]]:
    """Maximal cliques that extend ``clique`` by ``candidates`` and no ``excluded`` span."""
    if not candidates and not excluded and clique:
        yield tuple(sorted(clique))
    if not candidates:
        return
    # Every maximal clique contains the pivot or a span that is not its neighbour, so the pivot's
    # neighbours need not be tried.
    pivot = max(sorted(candidates | excluded), key=lambda span: len(candidates & neighbours[span]))
    for span in sorted(candidates - neighbours[pivot]):
        yield from _extensions((*clique, span), candidates & neighbours[span], excluded & neighbours[span], neighbours)
        candidates, excluded = candidates - {span}, excluded | {span}
