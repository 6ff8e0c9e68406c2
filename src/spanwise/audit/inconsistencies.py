"""Strings that are annotated in several ways: as one type here, as another or as no entity there."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from spanwise.audit.strings import Strings, Words
from spanwise.core.partial import known_ends, known_types
from spanwise.core.types import Entity, Sentence, Span

NO_TYPE = "none"  # the label of an occurrence without an entity
MIN_SHARE = 0.5  # of the occurrences that the most frequent label needs


@dataclass(frozen=True)
class InconsistentString:
    """A string with several labels.

    ``labels`` counts its occurrences by type (``none`` without an entity), the most frequent first.
    ``exceptions`` are the occurrences with another label than the first: the index of the sentence, the
    span and its types, which are empty if there is no entity.
    """

    words: Words
    labels: Counter[str]
    exceptions: tuple[tuple[int, Span, tuple[str, ...]], ...]

    @property
    def share(self) -> float:
        """The share of the most frequent label, which tends to 1/2 for few occurrences."""
        return (self.labels.most_common(1)[0][1] + 1) / (self.labels.total() + 2)


def inconsistent_strings(sentences: Sequence[Sentence]) -> list[InconsistentString]:
    """All strings that are an entity somewhere and are labelled differently elsewhere, the clearest first.

    An occurrence inside a larger entity is not counted as one without an entity, because a corpus without
    nested entities cannot annotate it. Neither is one that a partial annotation leaves open.
    """
    entities = Strings(
        sentence.words_of(entity) for sentence in sentences for entity in sentence.entities if not entity.is_discontinuous
    )
    occurrences_by_string: defaultdict[Words, list[tuple[int, Span, tuple[str, ...]]]] = defaultdict(list)
    for index, sentence in enumerate(sentences):
        for words, span, types in _occurrences(sentence, entities):
            occurrences_by_string[words].append((index, span, types))
    result = []
    for words, occurrences in occurrences_by_string.items():
        labels = Counter(label for _, _, types in occurrences for label in types or (NO_TYPE,))
        if len({types for _, _, types in occurrences}) > 1:
            first = labels.most_common(1)[0][0]
            exceptions = tuple(item for item in occurrences if first not in (item[2] or (NO_TYPE,)))
            result.append(InconsistentString(words, labels, exceptions))
    return sorted(result, key=lambda string: (-string.share, string.words))


def _occurrences(sentence: Sentence, entities: Strings) -> Iterator[tuple[Words, Span, tuple[str, ...]]]:
    """The occurrences of known strings in a sentence, with the types that they have there."""
    types: defaultdict[Span, list[str]] = defaultdict(list)
    for entity in sentence.entities:
        if not entity.is_discontinuous:
            types[entity.range].append(entity.type)
    covered = {index for span in types for index in range(*span)}
    ends = [0] * len(sentence.words) if known_types(sentence) is not None else known_ends(sentence)
    for start, words in entities.occurrences(sentence.words):
        span = Span(start, start + len(words))
        if span in types or (span.end <= ends[start] and covered.isdisjoint(range(*span))):
            yield words, span, tuple(sorted(types.get(span, ())))


def count_suggestions(sentences: Sequence[Sentence]) -> Iterator[tuple[int, str, Entity | None, Entity | None, float]]:
    """Suggestions from inconsistent strings alone, the clearest first: sentence, kind, gold, suggestion and score.

    Each exception should get the most frequent label of its string. This is what counting can find
    without a model.
    """
    for string in inconsistent_strings(sentences):
        label = string.labels.most_common(1)[0][0]
        for index, span, types in string.exceptions if string.share > MIN_SHARE else ():
            gold = Entity(types[0], (span,)) if types else None
            suggestion = None if label == NO_TYPE else Entity(label, (span,))
            kind = "missing" if gold is None else "spurious" if suggestion is None else "type"
            yield index, kind, gold, suggestion, string.share
