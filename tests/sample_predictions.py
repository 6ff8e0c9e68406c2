"""Five gold sentences and predictions with all error types, small enough to count by hand."""

from __future__ import annotations

from spanwise.core.types import Entity, Sentence

SCRIPT = "<script>alert(1)</script>"


def entity(type: str, *fragments: tuple[int, int], score: float | None = None) -> Entity:
    return Entity(type, fragments, score)


def _pair(id: str, text: str, gold: tuple[Entity, ...], predicted: tuple[Entity, ...]) -> tuple[Sentence, Sentence]:
    words = tuple(text.split())
    return Sentence(id, words, gold), Sentence(id, words, predicted)


_PAIRS = (
    # Nested entities, one of them predicted with a wrong type.
    _pair(
        "nested", "human T cell receptor gene",
        (entity("DNA", (0, 5)), entity("Protein", (1, 4)), entity("Cell", (1, 3))),
        (entity("DNA", (0, 5), score=0.9), entity("Protein", (1, 4), score=0.8), entity("Protein", (1, 3), score=0.95)),
    ),
    # A discontinuous entity with one of two fragments predicted, and a spurious entity.
    _pair(
        "discontinuous", "severe joint and mild shoulder pain today",
        (entity("Disease", (0, 2), (5, 6)), entity("Disease", (3, 6))),
        (entity("Disease", (0, 2), score=0.6), entity("Disease", (3, 6), score=0.7), entity("Date", (6, 7), score=0.4)),
    ),
    # Text that is dangerous if interpreted as HTML, and a URL.
    _pair(
        "hostile", f"{SCRIPT} and http://example.org/?a=1&b=2 \"quoted\"",
        (entity("A<b>&\"c\"", (0, 1)), entity("Link", (2, 3))),
        (entity("Link", (2, 3), score=0.5),),
    ),
    # No errors.
    _pair("correct", "the gene is here", (entity("DNA", (1, 2)),), (entity("DNA", (1, 2), score=1.0),)),
    # No entities.
    _pair("empty", "nothing at all", (), ()),
)  # fmt: skip

GOLD = tuple(gold for gold, _ in _PAIRS)
PREDICTED = tuple(predicted for _, predicted in _PAIRS)
TRAIN = (
    Sentence(
        "t1", ("the", "gene", "is", "a", "T", "cell", "receptor", "gene"), (entity("DNA", (1, 2)), entity("Protein", (4, 7)))
    ),
    Sentence("t2", ("shoulder", "pain"), (entity("Disease", (0, 2)),)),
)
