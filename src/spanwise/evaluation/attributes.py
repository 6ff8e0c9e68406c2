"""Attributes of an entity in its sentence and corpus, by which scores are broken down.

The names eLen, tLen, eCon, eDen and oDen come from Bundling Learning for NER (Eq. 21 and 23). Read
literally, its Eq. 23c and 23d give the share of a type and the number of entities per word;
``Attribute.paper_value`` computes these. ``Attribute.value`` computes what the names suggest: how
consistently the entity's string is labelled, and the share of words inside entities.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from spanwise.core.nesting import NestingIndex, nested_spans
from spanwise.core.types import Sentence, Span
from spanwise.evaluation.alignment import CharacterOrigin, SentencePair, character_origins
from spanwise.evaluation.scores import EntityItem, ratio
from spanwise.evaluation.train_index import TrainIndex

NESTING = ("flat", "nested", "covering", "both")


class EntityWords(NamedTuple):
    """The type of an entity and the sorted indices of its words."""

    type: str
    words: tuple[int, ...]

    @property
    def range(self) -> Span:
        return Span(self.words[0], self.words[-1] + 1)


@dataclass(frozen=True, eq=False)
class SentenceContext:
    """The words of a sentence, its entities on one side (gold or predicted), its gold entities, and train."""

    words: tuple[str, ...]
    entities: Set[EntityWords]
    gold: Set[EntityWords]
    train: TrainIndex

    @cached_property
    def covered_words(self) -> int:
        """Number of words inside at least one entity."""
        return len({word for entity in self.entities for word in entity.words})

    @cached_property
    def oov_share(self) -> float:
        """Share of the words that do not occur in the training sentences (Eq. 21, for one sentence)."""
        return ratio(sum(not self.train.has_word(word) for word in self.words), len(self.words))

    @cached_property
    def inner(self) -> NestingIndex:
        """Ranges of the gold entities inside others."""
        return NestingIndex(nested_spans(entity.range for entity in self.gold))

    @cached_property
    def outer(self) -> NestingIndex:
        """Ranges of the gold entities that contain others."""
        return NestingIndex(entity.range for entity in self.gold if self.inner.has_inside(entity.range))


class EntityInContext(NamedTuple):
    """An entity and the sentence it occurs in."""

    entity: EntityWords
    context: SentenceContext

    @property
    def string(self) -> tuple[str, ...]:
        words = self.context.words
        return tuple(words[index] for index in self.entity.words if index < len(words))


Value = Callable[[EntityInContext], float | str]


@dataclass(frozen=True)
class Attribute:
    """An attribute with numeric values, or with one of a few ``categories``.

    ``published_cuts`` are the bucket edges of Table 5, empty if the paper gives none.
    """

    value: Value
    paper_value: Value | None = None
    published_cuts: tuple[float, ...] = ()
    categories: tuple[str, ...] = ()
    needs_train: bool = False


def nesting(item: EntityInContext) -> str:
    """Assign an entity to one of the subsets of DSpERT's Figure 3, which gold defines for both sides.

    A span is nested if it is inside a gold entity that contains others, and covering if it contains
    a gold entity that is inside others. Spans with equal ranges do not contain each other.
    """
    span, context = item.entity.range, item.context
    return NESTING[context.outer.has_outside(span) + 2 * context.inner.has_inside(span)]


ATTRIBUTES: Mapping[str, Attribute] = {
    # Number of words in the entity, without those between its fragments.
    "eLen": Attribute(lambda item: len(item.entity.words), published_cuts=(1, 2, 4)),
    "tLen": Attribute(lambda item: len(item.context.words), published_cuts=(7, 16, 31)),
    "eCon": Attribute(
        lambda item: item.context.train.consistency(item.string, item.entity.type),
        paper_value=lambda item: item.context.train.type_share(item.entity.type),
        published_cuts=(0.1, 0.5, 0.9),
        needs_train=True,
    ),
    "eDen": Attribute(
        lambda item: ratio(item.context.covered_words, len(item.context.words)),
        paper_value=lambda item: ratio(len(item.context.entities), len(item.context.words)),
        published_cuts=(0.01, 0.025, 0.05),
    ),
    "oDen": Attribute(lambda item: item.context.oov_share, needs_train=True),
    # Number of occurrences of the string in train, annotated or not.
    "frequency": Attribute(lambda item: item.context.train.occurrences(item.string), needs_train=True),
    # Whether the string is an entity of any type in train.
    "seen": Attribute(
        lambda item: "seen" if item.context.train.annotations(item.string) else "unseen",
        categories=("seen", "unseen"),
        needs_train=True,
    ),
    "nesting": Attribute(nesting, categories=NESTING),
    "discontinuous": Attribute(
        lambda item: "continuous" if item.entity.range.width == len(item.entity.words) else "discontinuous",
        categories=("continuous", "discontinuous"),
    ),
}


def entities_in_context(
    pair: SentencePair, train: TrainIndex
) -> tuple[dict[EntityItem, EntityInContext], dict[EntityItem, EntityInContext]]:
    """Return the gold and the predicted entities of a pair, located in gold's sentences and words.

    Gold's attributes therefore do not depend on the system. A prediction with a different
    tokenisation gets the attributes of the gold words it touches; if it crosses a sentence boundary,
    only the words in its first sentence count.
    """
    sentences = pair.originals
    gold = [  # in the order of the pair's entities
        (index, EntityWords(entity.type, entity.word_indices))
        for index, sentence in enumerate(sentences)
        for entity in sentence.entities
    ]
    predicted: list[tuple[int, EntityWords]] = []
    if pair.predicted is not None:
        if len(sentences) == 1 and pair.gold.words == sentences[0].words:
            predicted = [(0, EntityWords(entity.type, entity.word_indices)) for entity in pair.predicted.entities]
        else:
            origins = character_origins(sentences)
            predicted = [_original_words(entity.type, entity.fragments, origins) for entity in pair.predicted.entities]
    gold_by_sentence = _by_sentence(gold, len(sentences))
    return (
        _in_context(pair.gold, gold, sentences, gold_by_sentence, train),
        _in_context(pair.predicted, predicted, sentences, gold_by_sentence, train),
    )


def _in_context(
    side: Sentence | None,
    entities: list[tuple[int, EntityWords]],
    sentences: Sequence[Sentence],
    gold: list[set[EntityWords]],
    train: TrainIndex,
) -> dict[EntityItem, EntityInContext]:
    """``entities`` are those of ``side``, each with the index of its original sentence."""
    rows = zip(sentences, _by_sentence(entities, len(sentences)), gold, strict=True)
    contexts = [SentenceContext(sentence.words, side_entities, of_gold, train) for sentence, side_entities, of_gold in rows]
    return {
        (entity.type, entity.fragments): EntityInContext(words, contexts[index])
        for entity, (index, words) in zip(side.entities if side is not None else (), entities, strict=True)
    }


def _by_sentence(entities: Iterable[tuple[int, EntityWords]], count: int) -> list[set[EntityWords]]:
    groups: list[set[EntityWords]] = [set() for _ in range(count)]
    for index, words in entities:
        groups[index].add(words)
    return groups


def _original_words(type: str, fragments: Iterable[Span], origins: list[CharacterOrigin]) -> tuple[int, EntityWords]:
    """Map an entity over characters to the words of the sentence in which it starts."""
    touched = [origin for start, end in fragments for origin in origins[start:end]]
    first = touched[0].sentence
    return first, EntityWords(type, tuple(sorted({origin.word for origin in touched if origin.sentence == first})))
