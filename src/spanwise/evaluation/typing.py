"""Accuracy of typing: the spans of the entities are given, and a model predicts their types."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from spanwise.core.percentages import percent
from spanwise.core.terminal import escape_controls
from spanwise.core.types import Entity, Sentence
from spanwise.evaluation.scores import entity_items, ratio

if TYPE_CHECKING:
    from rich.console import Console


@dataclass(frozen=True)
class Accuracy:
    """Number of entities, and how many of them were typed correctly."""

    correct: int
    entities: int

    @property
    def accuracy(self) -> float:
        return ratio(self.correct, self.entities)

    def to_json(self) -> dict[str, Any]:
        return {"accuracy": self.accuracy, "correct": self.correct, "entities": self.entities}


@dataclass(frozen=True)
class TypingScores:
    """Accuracy of each gold type, the most frequent first, and of a lookup baseline.

    Accuracy is not comparable with the F1 of finding entities.

    >>> round(TypingScores({"X": Accuracy(9, 10)}).paper_f1, 4)
    0.9474
    >>> round(TypingScores({"X": Accuracy(9, 10)}, discontinuous=Accuracy(1, 2)).paper_f1, 4)
    0.9412
    """

    types: Mapping[str, Accuracy]
    lookup: Accuracy | None = None  # None without training sentences
    discontinuous: Accuracy = Accuracy(0, 0)  # also counted in their types
    notes: tuple[str, ...] = ()

    @property
    def overall(self) -> Accuracy:
        scores = self.types.values()
        return Accuracy(sum(score.correct for score in scores), sum(score.entities for score in scores))

    @property
    def accuracy(self) -> float:
        return self.overall.accuracy

    @property
    def paper_precision(self) -> float:
        """The number called precision in SNG's tables: the accuracy of the contiguous entities."""
        return self._contiguous.accuracy

    @property
    def paper_recall(self) -> float:
        """The number called recall in SNG's tables: 1 without discontinuous entities.

        With them it is c / (n + w), where n is the number of contiguous entities, c of them are correct, and
        w discontinuous entities are wrong.
        """
        if not self.discontinuous.entities:
            return 1.0
        wrong = self.discontinuous.entities - self.discontinuous.correct
        return ratio(self._contiguous.correct, self._contiguous.entities + wrong)

    @property
    def paper_f1(self) -> float:
        """The number called F1 in SNG's tables; without discontinuous entities, 2a / (1 + a) of the accuracy a."""
        precision, recall = self.paper_precision, self.paper_recall
        return ratio(2 * precision * recall, precision + recall)

    @property
    def _contiguous(self) -> Accuracy:
        overall, discontinuous = self.overall, self.discontinuous
        return Accuracy(overall.correct - discontinuous.correct, overall.entities - discontinuous.entities)

    def to_json(self) -> dict[str, Any]:
        return {
            "typing": {
                **self.overall.to_json(),
                "paper_precision": self.paper_precision,
                "paper_recall": self.paper_recall,
                "paper_f1": self.paper_f1,
                "discontinuous": self.discontinuous.to_json(),
                "lookup": None if self.lookup is None else self.lookup.to_json(),
                "types": {type: score.to_json() for type, score in self.types.items()},
            },
            "notes": list(self.notes),
        }


def score_typing(
    gold: Iterable[Sentence], predicted: Iterable[Sentence], train: Iterable[Sentence] | None = None
) -> TypingScores:
    """Compute the typing accuracy of sentences in the order of gold; ``train`` adds the lookup baseline.

    >>> from dataclasses import replace
    >>> gold = Sentence("s1", ("Oslo", "or", "Bergen"), (Entity("Place", ((0, 1),)), Entity("Team", ((2, 3),))))
    >>> predicted = replace(gold, entities=(Entity("Place", ((0, 1),)), Entity("Place", ((2, 3),))))
    >>> score_typing([gold], [predicted]).accuracy
    0.5
    """
    lookup = None if train is None else LookupBaseline(train)
    entities, correct, lookup_correct = Counter[str](), Counter[str](), 0
    discontinuous, discontinuous_correct = 0, 0
    for sentence, prediction in zip(gold, predicted, strict=True):
        gold_items = entity_items(sentence)
        entities.update(type for type, _ in gold_items)
        correct_items = gold_items & entity_items(prediction)
        correct.update(type for type, _ in correct_items)
        discontinuous += sum(len(fragments) > 1 for _, fragments in gold_items)
        discontinuous_correct += sum(len(fragments) > 1 for _, fragments in correct_items)
        if lookup is not None:
            lookup_correct += sum(lookup(sentence, entity) == entity.type for entity in set(sentence.entities))
    by_count = sorted(entities.items(), key=lambda row: (-row[1], row[0]))
    types = {type: Accuracy(correct[type], count) for type, count in by_count}
    return TypingScores(
        types,
        None if lookup is None else Accuracy(lookup_correct, entities.total()),
        Accuracy(discontinuous_correct, discontinuous),
    )


class LookupBaseline:
    """Typing baseline: the most frequent type of the same words in training, else of the same last word, else overall.

    >>> train = [Sentence("s1", ("New", "York", "Times"), (Entity("Paper", ((0, 3),)), Entity("Place", ((0, 2),))))]
    >>> sentence = Sentence("s2", ("The", "Times"), (Entity("Paper", ((0, 2),)),))
    >>> LookupBaseline(train)(sentence, sentence.entities[0])
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
        """Return the predicted type of an entity; None if the training data has no entities."""
        words = sentence.words_of(entity)
        counts = self._strings.get(words) or self._last_words.get(words[-1]) or self._types
        return min(counts, key=lambda name: (-counts[name], -self._types[name], name), default=None)


def format_typing(scores: Mapping[str, Any]) -> str:
    """Format the result of ``TypingScores.to_json`` as one line.

    >>> format_typing(TypingScores({"X": Accuracy(9, 10)}, Accuracy(7, 10)).to_json())
    'typing accuracy 90.00 (9 of 10; lookup baseline 70.00; paper_f1 = 2a / (1 + a) = 94.74)'
    """
    typing = scores["typing"]
    lookup = "" if typing["lookup"] is None else f"lookup baseline {percent(typing['lookup']['accuracy'])}; "
    counts = f"{typing['correct']:,} of {typing['entities']:,}"
    formula = "with wrong discontinuous entities as misses" if typing["discontinuous"]["entities"] else "= 2a / (1 + a)"
    paper_f1 = f"paper_f1 {formula} = {percent(typing['paper_f1'])}"
    return f"typing accuracy {percent(typing['accuracy'])} ({counts}; {lookup}{paper_f1})"


def print_typing(typing: TypingScores, console: Console) -> None:
    """Print the accuracy of each type, a summary line and the notes."""
    from rich.text import Text

    from spanwise.evaluation.table import plain_table

    table = plain_table("type", "accuracy", "correct", "entities")
    for type, score in typing.types.items():
        table.add_row(Text(escape_controls(type)), percent(score.accuracy), f"{score.correct:,}", f"{score.entities:,}")
    console.print(table)
    for line in (format_typing(typing.to_json()), *(f"note: {note}" for note in typing.notes)):
        console.print(Text(escape_controls(line)), soft_wrap=True)
