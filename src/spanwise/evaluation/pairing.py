"""Which predicted sentence belongs to which gold sentence."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Literal, TypeAlias

from spanwise.core.errors import SpanwiseError
from spanwise.core.types import Sentence
from spanwise.evaluation.alignment import Group, Pair, align, in_step, squeezed


@dataclass(frozen=True, slots=True)
class Pairing:
    """Every gold sentence with what was predicted for it, in gold's order.

    Of the gold sentences, ``missing`` are the ids of those that were not predicted, ``retokenised`` is the number of those
    whose words were others, and ``recut`` of those that were cut elsewhere, so that they are one pair with their neighbours.
    """

    pairs: tuple[Pair, ...]
    by: Literal["id", "order", "document"]
    sentences: int
    missing: tuple[str, ...]
    retokenised: int
    recut: int


Output: TypeAlias = Iterable[Sentence] | Pairing  # what a system predicted, or that already paired with the same gold


def pair(gold: Iterable[Sentence], predicted: Output) -> Pairing:
    """Pair sentences by id, those that share an id in order of occurrence.

    A gold sentence without a prediction stays alone, so that its entities are misses; a prediction without a gold sentence is
    an error. Where ids do not pair everything, the text may: formats without ids number their sentences, which may fit no id
    of gold or a wrong one, and formats that count characters are cut into sentences around their entities. So where both
    sides have the same text in the same order, the order decides, and where each predicted document has the text of gold's,
    the documents do. What is paired already stays so: who asks for several things of one output pairs it once.

    >>> one, two = Sentence("s1", ("Hello", "!")), Sentence("s2", ("Bye", "!"))
    >>> pair([one, two], [two]).missing
    ('s1',)
    >>> pair([one, two], [Sentence("x-1", one.words), Sentence("x-2", two.words)]).by
    'order'
    """
    if isinstance(predicted, Pairing):
        return predicted
    gold, predicted = list(gold), list(predicted)
    by: Literal["id", "order", "document"] = "id"
    try:
        groups = _by_id(gold, predicted)
    except SpanwiseError:
        if in_order := _by_order(gold, predicted):
            by, groups = "order", in_order
        elif in_documents := _by_document(gold, predicted):
            by, groups = "document", in_documents
        elif {s.id for s in gold}.isdisjoint(s.id for s in predicted):
            raise _no_common_id(gold, predicted) from None
        else:
            raise
    simple = [group for group in groups if group.predicted is not None and len(group.gold) == len(group.predicted) == 1]
    return Pairing(
        align(groups),
        by,
        sentences=len(gold),
        missing=tuple(sentence.id for group in groups if group.predicted is None for sentence in group.gold),
        retokenised=sum(group.gold[0].words != (group.predicted or group.gold)[0].words for group in simple),
        recut=len(gold) - len(simple) - sum(len(group.gold) for group in groups if group.predicted is None),
    )


def gold_numbers(gold: Sequence[Sentence], pairing: Pairing) -> list[list[int]]:
    """Which sentences of gold are in each pair. One that is in gold twice has two numbers, dealt out alike in all pairings."""
    waiting: defaultdict[int, list[int]] = defaultdict(list)
    for number in reversed(range(len(gold))):
        waiting[id(gold[number])].append(number)
    return [[waiting[id(sentence)].pop() for sentence in both.originals] for both in pairing.pairs]


def _by_id(gold: Sequence[Sentence], predicted: Sequence[Sentence]) -> list[Group]:
    places: dict[str, list[int]] = {}
    for number, sentence in enumerate(gold):
        places.setdefault(sentence.id, []).append(number)
    partners: list[Sentence | None] = [None] * len(gold)
    used: Counter[str] = Counter()
    for sentence in predicted:
        here = places.get(sentence.id, [])
        if used[sentence.id] == len(here):
            raise _not_in_gold(sentence, predicted, {id: len(numbers) for id, numbers in places.items()})
        partners[here[used[sentence.id]]] = sentence
        used[sentence.id] += 1
    groups = []
    for right, found in zip(gold, partners, strict=True):
        if found is not None and not _same_text(right, found):
            raise SpanwiseError(f"sentence {right.id!r}: {_difference(right, found)}")
        groups.append(Group((right,), None if found is None else (found,)))
    return groups


def _by_order(gold: Sequence[Sentence], predicted: Sequence[Sentence]) -> list[Group] | None:
    if len(gold) == len(predicted) and all(map(_same_text, gold, predicted)):
        return [Group((right,), (found,)) for right, found in zip(gold, predicted, strict=True)]
    return in_step(gold, predicted) if _text(gold) == _text(predicted) else None


def _by_document(gold: Sequence[Sentence], predicted: Sequence[Sentence]) -> list[Group] | None:
    ours, theirs = _documents(gold), _documents(predicted)
    for document, found in theirs.items():
        if document is None or document not in ours or _text(ours[document]) != _text(found):
            return None
    groups: list[Group] = []
    for document, sentences in ours.items():
        if document in theirs:
            groups += in_step(sentences, theirs[document])
        else:
            groups += (Group((sentence,), None) for sentence in sentences)
    return groups


def _documents(sentences: Iterable[Sentence]) -> dict[str | None, list[Sentence]]:
    documents: dict[str | None, list[Sentence]] = {}
    for sentence in sentences:
        documents.setdefault(sentence.document, []).append(sentence)
    return documents


def _text(sentences: Iterable[Sentence]) -> str:
    return "".join(squeezed(sentence.text) for sentence in sentences)


def _same_text(one: Sentence, other: Sentence) -> bool:
    """True when the words are the same, or the texts are but for white space."""
    return one.words == other.words or squeezed(one.text) == squeezed(other.text)


def _difference(right: Sentence, found: Sentence) -> str:
    pairs = enumerate(zip_longest(right.words, found.words))
    number, (expected, word) = next((number, words) for number, words in pairs if words[0] != words[1])
    if word is None:
        return f"the prediction has {number} instead of {len(right.words)} words"
    if expected is None:
        return f"the prediction has {len(found.words)} instead of {number} words"
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
