"""A corpus of five sentences and a system's output for them, small enough to count by hand, with all that can go wrong in it."""

from __future__ import annotations

from spanwise.core.types import Entity, Sentence

SCRIPT = "<script>alert(1)</script>"


def entity(type: str, *fragments: tuple[int, int], score: float | None = None) -> Entity:
    return Entity(type, fragments, score)


def _both(id: str, text: str, gold: tuple[Entity, ...], predicted: tuple[Entity, ...]) -> tuple[Sentence, Sentence]:
    words = tuple(text.split())
    return Sentence(id, words, gold), Sentence(id, words, predicted)


_PAIRS = (
    # An entity in another, both found; one of the wrong type.
    _both(
        "nested", "human T cell receptor gene",
        (entity("DNA", (0, 5)), entity("Protein", (1, 4)), entity("Cell", (1, 3))),
        (entity("DNA", (0, 5), score=0.9), entity("Protein", (1, 4), score=0.8), entity("Protein", (1, 3), score=0.95)),
    ),
    # Two fragments, of which one was found; and one too many.
    _both(
        "broken", "severe joint and mild shoulder pain today",
        (entity("Disease", (0, 2), (5, 6)), entity("Disease", (3, 6))),
        (entity("Disease", (0, 2), score=0.6), entity("Disease", (3, 6), score=0.7), entity("Date", (6, 7), score=0.4)),
    ),
    # Text that would be dangerous if it were taken for HTML, or an address.
    _both(
        "hostile", f"{SCRIPT} and http://example.org/?a=1&b=2 \"quoted\"",
        (entity("A<b>&\"c\"", (0, 1)), entity("Link", (2, 3))),
        (entity("Link", (2, 3), score=0.5),),
    ),
    # Nothing wrong.
    _both("right", "the gene is here", (entity("DNA", (1, 2)),), (entity("DNA", (1, 2), score=1.0),)),
    # Nothing there.
    _both("empty", "nothing at all", (), ()),
)  # fmt: skip

GOLD = tuple(gold for gold, _ in _PAIRS)
PREDICTED = tuple(predicted for _, predicted in _PAIRS)
TRAIN = (
    Sentence(
        "t1", ("the", "gene", "is", "a", "T", "cell", "receptor", "gene"), (entity("DNA", (1, 2)), entity("Protein", (4, 7)))
    ),
    Sentence("t2", ("shoulder", "pain"), (entity("Disease", (0, 2)),)),
)
