"""How often strings and words are annotated in the corpus."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence

from spanwise.core.types import Sentence

Words = tuple[str, ...]


class Strings:
    """Sequences of words that are searched in sentences.

    >>> list(Strings([("New", "York"), ("York",), ("York", "Times")]).occurrences(("in", "New", "York")))
    [(1, ('New', 'York')), (2, ('York',))]
    """

    def __init__(self, strings: Iterable[Words]) -> None:
        self._strings = frozenset(strings)
        widths: defaultdict[str, set[int]] = defaultdict(set)
        for string in self._strings:
            widths[string[0]].add(len(string))
        self._widths = {word: sorted(lengths) for word, lengths in widths.items()}  # by first word

    def occurrences(self, words: Words) -> Iterator[tuple[int, Words]]:
        """Yield the strings in a sentence with their first words."""
        for start, word in enumerate(words):
            for width in self._widths.get(word, ()):
                string = words[start : start + width]
                if len(string) == width and string in self._strings:
                    yield start, string


class StringCounts:
    """Occurrences of word sequences, and how many of them have an entity of each type.

    >>> sentences = [Sentence("1", ("in", "Oslo"), ()), Sentence("2", ("Oslo", "is"), ())]
    >>> counts = StringCounts(sentences, [("Oslo",)])
    >>> counts.occurrences["Oslo",], counts.annotated["Oslo",]
    (2, Counter())
    """

    def __init__(self, sentences: Sequence[Sentence], strings: Iterable[Words]) -> None:
        self.occurrences: Counter[Words] = Counter()
        self.annotated: dict[Words, Counter[str]] = {string: Counter() for string in strings}
        searched = Strings(self.annotated)
        for sentence in sentences:
            self.occurrences.update(string for _, string in searched.occurrences(sentence.words))
            for entity in sentence.entities:
                if not entity.is_discontinuous and (string := sentence.words_of(entity)) in self.annotated:
                    self.annotated[string][entity.type] += 1


class WordCounts:
    """Occurrences of words, and how many are inside entities, their first word, or their last.

    An entity with several types counts once.
    """

    def __init__(self, sentences: Sequence[Sentence]) -> None:
        self.occurrences: Counter[str] = Counter()
        self.inside: Counter[str] = Counter()
        self.first: Counter[str] = Counter()
        self.last: Counter[str] = Counter()
        for sentence in sentences:
            ranges = {entity.range for entity in sentence.entities if not entity.is_discontinuous}
            self.occurrences.update(sentence.words)
            self.inside.update(sentence.words[index] for index in {i for start, end in ranges for i in range(start, end)})
            self.first.update(sentence.words[start] for start, _ in ranges)
            self.last.update(sentence.words[end - 1] for _, end in ranges)
