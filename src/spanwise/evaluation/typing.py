"""Typing: the spans of the entities are given, and each wants its type. Its accuracy is not the F1 of finding entities."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from spanwise.core.types import Entity, Sentence
from spanwise.evaluation.scores import entity_items, ratio

if TYPE_CHECKING:
    from rich.console import Console


@dataclass(frozen=True)
class Accuracy:
    """How many of some entities got the right type."""

    correct: int
    entities: int

    @property
    def accuracy(self) -> float:
        return ratio(self.correct, self.entities)

    def to_json(self) -> dict[str, Any]:
        return {"accuracy": self.accuracy, "correct": self.correct, "entities": self.entities}


@dataclass(frozen=True)
class Typing:
    """How well given spans were typed: each type of gold, the commonest first, and what looking the spans up would reach.

    >>> round(Typing({"X": Accuracy(9, 10)}).paper_f1, 4)
    0.9474
    """

    types: Mapping[str, Accuracy]
    lookup: Accuracy | None = None  # None without training sentences to look into
    notes: tuple[str, ...] = ()

    @property
    def every(self) -> Accuracy:
        return Accuracy(sum(own.correct for own in self.types.values()), sum(own.entities for own in self.types.values()))

    @property
    def accuracy(self) -> float:
        return self.every.accuracy

    @property
    def paper_f1(self) -> float:
        """What SNG's tables call F1: with accuracy a as the precision and a recall of 1, 2a / (1 + a)."""
        return ratio(2 * self.accuracy, 1 + self.accuracy)

    def to_json(self) -> dict[str, Any]:
        return {
            "typing": {
                **self.every.to_json(),
                "paper_f1": self.paper_f1,
                "lookup": None if self.lookup is None else self.lookup.to_json(),
                "types": {kind: own.to_json() for kind, own in self.types.items()},
            },
            "notes": list(self.notes),
        }


def typing_scores(gold: Iterable[Sentence], predicted: Iterable[Sentence], train: Iterable[Sentence] | None = None) -> Typing:
    """The accuracy of sentences in the order of gold, whose spans got types; with ``train``, the look-up beside it.

    >>> from dataclasses import replace
    >>> gold = Sentence("s1", ("Oslo", "or", "Bergen"), (Entity("Place", ((0, 1),)), Entity("Team", ((2, 3),))))
    >>> found = replace(gold, entities=(Entity("Place", ((0, 1),)), Entity("Place", ((2, 3),))))
    >>> typing_scores([gold], [found]).accuracy
    0.5
    """
    look_up = None if train is None else Lookup(train)
    entities, correct, looked_up = Counter[str](), Counter[str](), 0
    for sentence, found in zip(gold, predicted, strict=True):
        right = entity_items(sentence)
        entities.update(kind for kind, _ in right)
        correct.update(kind for kind, _ in right & entity_items(found))
        if look_up is not None:
            looked_up += sum(look_up(sentence, entity) == entity.type for entity in set(sentence.entities))
    types = {kind: Accuracy(correct[kind], count) for kind, count in sorted(entities.items(), key=lambda kv: (-kv[1], kv[0]))}
    return Typing(types, None if look_up is None else Accuracy(looked_up, entities.total()))


class Lookup:
    """The baseline of typing: the commonest type that the same words have in training, else the same last word, else any.

    >>> train = [Sentence("s1", ("New", "York", "Times"), (Entity("Paper", ((0, 3),)), Entity("Place", ((0, 2),))))]
    >>> asked = Sentence("s2", ("The", "Times"), (Entity("Paper", ((0, 2),)),))
    >>> Lookup(train)(asked, asked.entities[0])
    'Paper'
    """

    def __init__(self, train: Iterable[Sentence]) -> None:
        self._strings: dict[tuple[str, ...], Counter[str]] = defaultdict(Counter)
        self._last_words: dict[str, Counter[str]] = defaultdict(Counter)
        self._types: Counter[str] = Counter()
        for sentence in train:
            for entity in set(sentence.entities):
                words = sentence.words_of(entity)
                for counts in (self._strings[words], self._last_words[words[-1]], self._types):
                    counts[entity.type] += 1

    def __call__(self, sentence: Sentence, entity: Entity) -> str | None:
        """The type that the entity's words have in training; None where there are no entities."""
        words = sentence.words_of(entity)
        counts = self._strings.get(words) or self._last_words.get(words[-1]) or self._types
        return min(counts, key=lambda kind: (-counts[kind], -self._types[kind], kind), default=None)


def typing_line(scores: Mapping[str, Any]) -> str:
    """What ``Typing.to_json`` says, for people: the accuracy, the look-up beside it, and the paper's figure by its name.

    >>> typing_line(Typing({"X": Accuracy(9, 10)}, Accuracy(7, 10)).to_json())
    'typing accuracy 0.9000 (9 of 10; look-up 0.7000; paper_f1 = 2a / (1 + a) = 0.9474)'
    """
    own = scores["typing"]
    beside = "" if own["lookup"] is None else f"look-up {own['lookup']['accuracy']:.4f}; "
    counts = f"{own['correct']:,} of {own['entities']:,}"
    return f"typing accuracy {own['accuracy']:.4f} ({counts}; {beside}paper_f1 = 2a / (1 + a) = {own['paper_f1']:.4f})"


def print_typing(typing: Typing, console: Console) -> None:
    """A row a type, then the line above."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, show_edge=False, padding=(0, 1, 0, 0))
    table.add_column("type", overflow="fold")
    for name in ("accuracy", "correct", "entities"):
        table.add_column(name, justify="right")
    for kind, own in typing.types.items():
        table.add_row(Text(kind), f"{100 * own.accuracy:.2f}", f"{own.correct:,}", f"{own.entities:,}")
    console.print(table)
    for line in (typing_line(typing.to_json()), *(f"note: {note}" for note in typing.notes)):
        console.print(Text(line), soft_wrap=True)
