"""Which predicted sentence belongs to which gold sentence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Literal

from spanwise.errors import SpanwiseError
from spanwise.types import Entity, Sentence, Span


@dataclass(frozen=True, slots=True)
class Pair:
    """A gold sentence and what was predicted for it; None when nothing was. Both have the same words."""

    gold: Sentence
    predicted: Sentence | None


@dataclass(frozen=True, slots=True)
class Pairing:
    """One pair for each gold sentence, in gold's order.

    ``retokenised`` counts the pairs whose words differed while the text did not: in these the words are characters.
    """

    pairs: tuple[Pair, ...]
    by: Literal["id", "order"] = "id"
    retokenised: int = 0

    @property
    def missing(self) -> list[str]:
        """The ids of the gold sentences that the predictions do not have."""
        return [pair.gold.id for pair in self.pairs if pair.predicted is None]


def pair(gold: Iterable[Sentence], predicted: Iterable[Sentence]) -> Pairing:
    """Pair sentences by id, those that share an id in order of occurrence.

    A gold sentence without a prediction stays alone, so that its entities are misses; a prediction without a gold sentence is
    an error. Formats without ids number their sentences, which may fit no id of gold, or a wrong one. So where ids do not
    pair everything, and both sides have as many sentences with the same text in the same order, the order decides.

    >>> one, two = Sentence("s1", ("Hello", "!")), Sentence("s2", ("Bye", "!"))
    >>> pair([one, two], [two]).missing
    ['s1']
    >>> pair([one, two], [Sentence("x-1", one.words), Sentence("x-2", two.words)]).by
    'order'
    """
    gold, predicted = list(gold), list(predicted)
    try:
        return _aligned(gold, _partners_by_id(gold, predicted), "id")
    except SpanwiseError:
        if len(gold) == len(predicted) and all(map(_same_text, gold, predicted)):
            return _aligned(gold, predicted, "order")
        if {s.id for s in gold}.isdisjoint(s.id for s in predicted):
            raise _no_common_id(gold, predicted) from None
        raise


def _partners_by_id(gold: Sequence[Sentence], predicted: Sequence[Sentence]) -> list[Sentence | None]:
    places: dict[str, list[int]] = {}
    for number, sentence in enumerate(gold):
        places.setdefault(sentence.id, []).append(number)
    partners: list[Sentence | None] = [None] * len(gold)
    used: Counter[str] = Counter()
    for sentence in predicted:
        here = places.get(sentence.id, [])
        if used[sentence.id] == len(here):
            raise _not_in_gold(sentence, predicted, {key: len(value) for key, value in places.items()})
        partners[here[used[sentence.id]]] = sentence
        used[sentence.id] += 1
    return partners


def _aligned(gold: Sequence[Sentence], partners: Sequence[Sentence | None], by: Literal["id", "order"]) -> Pairing:
    pairs, retokenised = [], 0
    for right, found in zip(gold, partners, strict=True):
        if found is None or right.words == found.words:
            pairs.append(Pair(right, found))
        elif _same_text(right, found):
            retokenised += 1
            pairs.append(Pair(in_characters(right), in_characters(found)))
        else:
            raise SpanwiseError(f"sentence {right.id!r}: {_difference(right, found)}")
    return Pairing(tuple(pairs), by, retokenised)


def _same_text(one: Sentence, other: Sentence) -> bool:
    """True when the words are the same, or the texts are but for white space."""
    return one.words == other.words or "".join(one.text.split()) == "".join(other.text.split())


def in_characters(sentence: Sentence) -> Sentence:
    """The sentence with every character, white space left out, as a word of its own, so that two tokenisations compare.

    >>> in_characters(Sentence("s", ("can't", "go"), (Entity("Verb", ((1, 2),)),))).entities[0].fragments
    (Span(start=5, end=7),)
    """
    places, characters = [0], []
    for character in sentence.text:
        if not character.isspace():
            characters.append(character)
        places.append(len(characters))
    entities = []
    for entity in sentence.entities:
        spans = (sentence.characters(fragment) for fragment in entity.fragments)
        fragments = tuple(Span(places[start], places[end]) for start, end in spans if places[start] < places[end])
        if not fragments:
            raise SpanwiseError(
                f"sentence {sentence.id!r}: an entity of type {entity.type!r} is white space only, "
                f"which cannot be compared with another tokenisation"
            )
        entities.append(Entity(entity.type, fragments, entity.score))
    return Sentence(
        sentence.id, tuple(characters), tuple(entities), sentence.relations, sentence.links,
        document=sentence.document, position=sentence.position,
    )  # fmt: skip


def _difference(right: Sentence, found: Sentence) -> str:
    pairs = enumerate(zip_longest(right.words, found.words))
    number, (expected, word) = next((number, words) for number, words in pairs if words[0] != words[1])
    if word is None:
        return f"the prediction has {number} words, gold has {len(right.words)}"
    if expected is None:
        return f"the prediction has {len(found.words)} words, gold has {number}"
    return f"the prediction has other words than gold: word {number} is {word!r}, expected {expected!r}"


def _not_in_gold(sentence: Sentence, predicted: Sequence[Sentence], known: dict[str, int]) -> SpanwiseError:
    if sentence.id in known:
        times = sum(other.id == sentence.id for other in predicted)
        return SpanwiseError(
            f"sentence {sentence.id!r} occurs {_times(times)} in the predictions and {_times(known[sentence.id])} in gold"
        )
    others = sum(other.id not in known for other in predicted) - 1
    more = f" (nor are {others:,} others)" if others > 1 else " (nor is 1 other)" if others else ""
    return SpanwiseError(f"predicted sentence {sentence.id!r} is not in gold{more}; predictions are paired with gold by id")


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def _no_common_id(gold: Sequence[Sentence], predicted: Sequence[Sentence]) -> SpanwiseError:
    start = f"no id of the predictions (the first is {predicted[0].id!r}) occurs in gold, and they cannot be paired in order"
    if len(gold) != len(predicted):
        return SpanwiseError(f"{start}: {len(predicted):,} predicted, {len(gold):,} in gold")
    sides = enumerate(zip(gold, predicted, strict=True), 1)
    number, (right, found) = next((number, both) for number, both in sides if not _same_text(*both))
    return SpanwiseError(f"{start}: sentence {number:,} ({right.id!r} in gold): {_difference(right, found)}")
