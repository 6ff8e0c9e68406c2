"""Pair predicted sentences with gold sentences."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Literal, TypeAlias

from spanwise.core.counting import counted
from spanwise.core.errors import SpanwiseError
from spanwise.core.other_words import without_whitespace
from spanwise.core.types import Sentence
from spanwise.evaluation.alignment import SentenceGroup, SentencePair, align_sentences, pair_groups


@dataclass(frozen=True, slots=True)
class Pairing:
    """All gold sentences with their predictions, in the order of gold.

    ``missing`` holds the ids of gold sentences without a prediction. ``retokenised`` counts gold
    sentences that the predictions tokenise differently, ``resegmented`` those that they split
    differently; the latter are paired together with their neighbours.
    """

    pairs: tuple[SentencePair, ...]
    by: Literal["id", "order", "document"]
    sentences: int
    missing: tuple[str, ...]
    retokenised: int
    resegmented: int


SystemOutput: TypeAlias = Iterable[Sentence] | Pairing  # predictions, or predictions already paired with gold


def pair(gold: Iterable[Sentence], predicted: SystemOutput) -> Pairing:
    """Pair sentences by id; sentences with the same id are paired in order of occurrence.

    A gold sentence without a prediction counts as missed; a prediction without a gold sentence is an
    error. If the ids do not match, because a format has none or numbers its sentences, the text
    decides: sentences are paired in order if both sides have the same text, otherwise by document if
    every predicted document has the text of a gold document. A ``Pairing`` is returned unchanged, so
    an output that is evaluated several times needs to be paired only once.

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
        elif {sentence.id for sentence in gold}.isdisjoint(sentence.id for sentence in predicted):
            raise _no_common_id(gold, predicted) from None
        else:
            raise
    simple = [group for group in groups if group.predicted is not None and len(group.gold) == len(group.predicted) == 1]
    missing = tuple(sentence.id for group in groups if group.predicted is None for sentence in group.gold)
    return Pairing(
        pair_groups(groups),
        by,
        sentences=len(gold),
        missing=missing,
        retokenised=sum(group.gold[0].words != (group.predicted or group.gold)[0].words for group in simple),
        resegmented=len(gold) - len(simple) - len(missing),
    )


def gold_indices(gold: Sequence[Sentence], pairing: Pairing) -> list[list[int]]:
    """Return the indices of the gold sentences in each pair.

    A sentence that occurs twice in gold has two indices, assigned in the same order in all pairings.
    """
    unused: defaultdict[int, list[int]] = defaultdict(list)
    for index in reversed(range(len(gold))):
        unused[id(gold[index])].append(index)
    return [[unused[id(sentence)].pop() for sentence in sentence_pair.originals] for sentence_pair in pairing.pairs]


def _by_id(gold: Sequence[Sentence], predicted: Sequence[Sentence]) -> list[SentenceGroup]:
    indices: dict[str, list[int]] = {}
    for index, sentence in enumerate(gold):
        indices.setdefault(sentence.id, []).append(index)
    predictions: list[Sentence | None] = [None] * len(gold)
    used: Counter[str] = Counter()
    for sentence in predicted:
        candidates = indices.get(sentence.id, [])
        if used[sentence.id] == len(candidates):
            raise _not_in_gold(sentence, predicted, {id: len(occurrences) for id, occurrences in indices.items()})
        predictions[candidates[used[sentence.id]]] = sentence
        used[sentence.id] += 1
    groups = []
    for sentence, prediction in zip(gold, predictions, strict=True):
        if prediction is not None and not _same_text(sentence, prediction):
            raise SpanwiseError(f"sentence {sentence.id!r}: {_difference(sentence, prediction)}")
        groups.append(SentenceGroup((sentence,), None if prediction is None else (prediction,)))
    return groups


def _by_order(gold: Sequence[Sentence], predicted: Sequence[Sentence]) -> list[SentenceGroup] | None:
    if len(gold) == len(predicted) and all(map(_same_text, gold, predicted)):
        return [SentenceGroup((sentence,), (prediction,)) for sentence, prediction in zip(gold, predicted, strict=True)]
    return align_sentences(gold, predicted) if _text(gold) == _text(predicted) else None


def _by_document(gold: Sequence[Sentence], predicted: Sequence[Sentence]) -> list[SentenceGroup] | None:
    gold_documents, predicted_documents = _documents(gold), _documents(predicted)
    for document, sentences in predicted_documents.items():
        if document is None or document not in gold_documents or _text(gold_documents[document]) != _text(sentences):
            return None
    groups: list[SentenceGroup] = []
    for document, sentences in gold_documents.items():
        if document in predicted_documents:
            groups += align_sentences(sentences, predicted_documents[document])
        else:
            groups += (SentenceGroup((sentence,), None) for sentence in sentences)
    return groups


def _documents(sentences: Iterable[Sentence]) -> dict[str | None, list[Sentence]]:
    documents: dict[str | None, list[Sentence]] = {}
    for sentence in sentences:
        documents.setdefault(sentence.document, []).append(sentence)
    return documents


def _text(sentences: Iterable[Sentence]) -> str:
    return "".join(without_whitespace(sentence.text) for sentence in sentences)


def _same_text(gold: Sentence, predicted: Sentence) -> bool:
    """Whether the words are equal, or the texts are equal up to white space."""
    return gold.words == predicted.words or without_whitespace(gold.text) == without_whitespace(predicted.text)


def _difference(gold: Sentence, predicted: Sentence) -> str:
    pairs = enumerate(zip_longest(gold.words, predicted.words))
    index, (expected, word) = next((index, words) for index, words in pairs if words[0] != words[1])
    if word is None:
        return f"expected {counted(len(gold.words), 'word')} as in gold, found {index} in the prediction"
    if expected is None:
        return f"expected {counted(index, 'word')} as in gold, found {len(predicted.words)} in the prediction"
    return f"the prediction has other words than gold: expected {expected!r} at word {index}, found {word!r}"


def _not_in_gold(sentence: Sentence, predicted: Sequence[Sentence], gold_counts: dict[str, int]) -> SpanwiseError:
    if sentence.id in gold_counts:
        predicted_count = sum(other.id == sentence.id for other in predicted)
        return SpanwiseError(
            f"sentence {sentence.id!r} occurs {_times(predicted_count)} in the predictions "
            f"and {_times(gold_counts[sentence.id])} in gold"
        )
    others = sum(other.id not in gold_counts for other in predicted) - 1
    more = f" (nor are {others:,} others)" if others > 1 else " (nor is 1 other)" if others else ""
    return SpanwiseError(f"predicted sentence {sentence.id!r} is not in gold{more}; predictions are paired with gold by id")


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def _no_common_id(gold: Sequence[Sentence], predicted: Sequence[Sentence]) -> SpanwiseError:
    message = f"gold has none of the predictions' ids (first: {predicted[0].id!r}), and they cannot be paired in order"
    if len(gold) != len(predicted):
        return SpanwiseError(f"{message}: expected {counted(len(gold), 'sentence')} as in gold, found {len(predicted):,}")
    pairs = enumerate(zip(gold, predicted, strict=True), 1)
    number, (sentence, prediction) = next((number, both) for number, both in pairs if not _same_text(*both))
    return SpanwiseError(f"{message}: sentence {number:,} ({sentence.id!r} in gold): {_difference(sentence, prediction)}")
