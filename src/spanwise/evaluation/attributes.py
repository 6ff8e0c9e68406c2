"""What is said of an entity in its sentence and its corpus: the attributes that scores are broken down by.

The names eLen, tLen, eCon, eDen and oDen are those of Bundling Learning for NER (Eq. 21 and 23). Its Eq. 23c and 23d, read
literally, give the share of a type and the number of entities a word; ``Attribute.literal`` has these. ``Attribute.value`` is
what the names say: how consistently the entity's own string is labelled, and how many of the words are in entities.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from spanwise.core.nesting import inside_others
from spanwise.core.types import Sentence, Span
from spanwise.evaluation.alignment import Home, Pair, homes
from spanwise.evaluation.scores import EntityItem, ratio
from spanwise.evaluation.train_index import TrainIndex

NESTING = ("flat", "nested", "covering", "both")


class Place(NamedTuple):
    """A type and the numbers of the words that have it, in order."""

    type: str
    words: tuple[int, ...]

    @property
    def range(self) -> Span:
        return Span(self.words[0], self.words[-1] + 1)


@dataclass(frozen=True, eq=False)
class Context:
    """The words of a sentence, the entities that one side, gold or a system, has in it, and those of gold."""

    words: tuple[str, ...]
    entities: frozenset[Place]
    gold: frozenset[Place]

    @cached_property
    def covered(self) -> int:
        """How many words are in entities, each counted once."""
        return len({word for entity in self.entities for word in entity.words})

    @cached_property
    def inner(self) -> set[Span]:
        """The ranges of the gold entities inside others."""
        return inside_others(entity.range for entity in self.gold)

    @cached_property
    def outer(self) -> set[Span]:
        """The ranges of the gold entities around others."""
        return {span for span in {entity.range for entity in self.gold} if _around(span, self.inner)}


class Mention(NamedTuple):
    """An entity where it stands."""

    place: Place
    context: Context

    @property
    def string(self) -> tuple[str, ...]:
        words = self.context.words
        return tuple(words[number] for number in self.place.words if number < len(words))


@dataclass(frozen=True)
class Attribute:
    """Either numbers, with the cuts of Table 5 where it has some, or one of a few ``categories``."""

    value: Callable[[Mention, TrainIndex], float | str]
    literal: Callable[[Mention, TrainIndex], float | str] | None = None
    published: tuple[float, ...] = ()
    categories: tuple[str, ...] = ()
    needs_train: bool = False


def oov_share(words: Sequence[str], train: TrainIndex) -> float:
    """The share of the words that do not occur in the training sentences (Eq. 21, of one sentence)."""
    return ratio(sum(not train.has(word) for word in words), len(words))


def nesting(mention: Mention) -> str:
    """The subsets of DSpERT's Figure 3, which gold defines for both sides.

    A span is nested when it lies inside a gold entity around others, covering when it lies around a gold entity inside others.
    Spans with the same range are not inside each other.
    """
    span, context = mention.place.range, mention.context
    is_nested = any(outer != span and outer.contains(span) for outer in context.outer)
    return NESTING[is_nested + 2 * _around(span, context.inner)]


def _around(span: Span, others: Iterable[Span]) -> bool:
    return any(other != span and span.contains(other) for other in others)


ATTRIBUTES: Mapping[str, Attribute] = {
    # The words of the entity; those between its fragments are not its own.
    "eLen": Attribute(lambda mention, _: len(mention.place.words), published=(1, 2, 4)),
    "tLen": Attribute(lambda mention, _: len(mention.context.words), published=(7, 16, 31)),
    "eCon": Attribute(
        lambda mention, train: train.consistency(mention.string, mention.place.type),
        literal=lambda mention, train: train.prior(mention.place.type),
        published=(0.1, 0.5, 0.9),
        needs_train=True,
    ),
    "eDen": Attribute(
        lambda mention, _: ratio(mention.context.covered, len(mention.context.words)),
        literal=lambda mention, _: ratio(len(mention.context.entities), len(mention.context.words)),
        published=(0.01, 0.025, 0.05),
    ),
    "oDen": Attribute(lambda mention, train: oov_share(mention.context.words, train), needs_train=True),
    # How often the string occurs in train, annotated or not.
    "frequency": Attribute(lambda mention, train: train.occurrences(mention.string), needs_train=True),
    # Whether the string is an entity in train, of whatever type.
    "seen": Attribute(
        lambda mention, train: "seen" if train.annotated(mention.string) else "unseen",
        categories=("seen", "unseen"),
        needs_train=True,
    ),
    "nesting": Attribute(lambda mention, _: nesting(mention), categories=NESTING),
    "discontinuous": Attribute(
        lambda mention, _: "continuous" if mention.place.range.width == len(mention.place.words) else "discontinuous",
        categories=("continuous", "discontinuous"),
    ),
}


def mentions(pair: Pair) -> tuple[dict[EntityItem, Mention], dict[EntityItem, Mention]]:
    """The entities of gold and of the predictions where they stand in gold's sentences and words.

    So gold's attributes are the same whoever predicted, and a prediction in other words has the attributes of the gold words
    that it touches; if it leaves the sentence it begins in, of those in this sentence.
    """
    sentences = pair.originals
    gold = [
        (number, Place(entity.type, entity.places)) for number, s in enumerate(sentences) for entity in s.entities
    ]  # in the order of the pair's own entities
    found: list[tuple[int, Place]] = []
    if pair.predicted is not None:
        if len(sentences) == 1 and pair.gold.words == sentences[0].words:
            found = [(0, Place(entity.type, entity.places)) for entity in pair.predicted.entities]
        else:
            places = homes(sentences)
            found = [_at_home(entity.type, entity.fragments, places) for entity in pair.predicted.entities]
    right = [frozenset(place for home, place in gold if home == number) for number in range(len(sentences))]
    return (
        _in_context(pair.gold, gold, sentences, right),
        _in_context(pair.predicted, found, sentences, right),
    )


def _in_context(
    side: Sentence | None, places: list[tuple[int, Place]], sentences: Sequence[Sentence], gold: list[frozenset[Place]]
) -> dict[EntityItem, Mention]:
    contexts = [
        Context(sentence.words, frozenset(place for home, place in places if home == number), gold[number])
        for number, sentence in enumerate(sentences)
    ]
    entities = side.entities if side is not None else ()
    return {
        (entity.type, entity.fragments): Mention(place, contexts[home])
        for entity, (home, place) in zip(entities, places, strict=True)
    }


def _at_home(type: str, fragments: Iterable[Span], homes: list[Home]) -> tuple[int, Place]:
    touched = [home for start, end in fragments for home in homes[start:end]]
    first = touched[0].sentence
    return first, Place(type, tuple(sorted({home.word for home in touched if home.sentence == first})))
