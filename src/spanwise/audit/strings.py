"""How often the words of an entity are annotated elsewhere in the corpus."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

from spanwise.core.types import Sentence

Words = tuple[str, ...]


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
        widths: defaultdict[str, set[int]] = defaultdict(set)
        for string in self.annotated:
            widths[string[0]].add(len(string))
        for sentence in sentences:
            words = sentence.words
            for start, word in enumerate(words):
                for width in widths.get(word, ()):
                    string = words[start : start + width]
                    if len(string) == width and string in self.annotated:
                        self.occurrences[string] += 1
            for entity in sentence.entities:
                if not entity.is_discontinuous and (string := sentence.words_of(entity)) in self.annotated:
                    self.annotated[string][entity.type] += 1
