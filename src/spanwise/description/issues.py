"""Checks of sentences for annotations that are probably mistakes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from spanwise.core.types import Entity, Sentence
from spanwise.description.boundaries import VERDICTS, EntityEnds, is_punctuation
from spanwise.description.duplicates import MAX_EXAMPLES, Example, make_example

MAX_SENTENCE_WORDS = 512  # more than the window of most encoders
# Entities that are a whole sentence are reported if they exceed this share of the sentences and this count.
MAX_WHOLE_SENTENCE_SHARE = 0.05
MAX_WHOLE_SENTENCE_COUNT = 2

# Start of the message in singular and plural, and its end; the most important kind first.
KINDS = {
    "duplicate entities": ("entity repeats another one", "entities repeat another one", "of the same type and words"),
    "whole sentences": ("entity is", "entities are", "a whole sentence"),
    "white space at a boundary": ("entity starts or ends", "entities start or end", "with white space"),
    "punctuation at a boundary": ("entity starts or ends", "entities start or end", "with punctuation"),
    "shared ids": ("sentence has", "sentences have", "the id of an earlier one"),
    "white space in words": ("word has", "words have", "white space inside"),
    "empty sentences": ("sentence has", "sentences have", "no words"),
    "long sentences": ("sentence has", "sentences have", f"more than {MAX_SENTENCE_WORDS} words"),
}

# Opening marks and their closing marks: an entity with both may start and end with them.
_PAIRS = dict(zip("([{<«‹“‘„‚「『《〈【（［｛", ")]}>»›”’“‘」』》〉】）］｝", strict=True))
_PAIRS |= {'"': '"', "'": "'", "`": "'", "``": "''"}
_LONGEST_ABBREVIATION = 4  # letters: "Corp ." may end in a full stop


@dataclass
class Issue:
    """One kind of problem with its count, its split (None for the whole corpus) and up to five examples."""

    kind: str
    split: str | None
    count: int
    message: str
    examples: list[Example] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "split": self.split,
            "count": self.count,
            "message": self.message,
            "examples": self.examples,
        }


class SentenceChecks:
    """Checks the sentences of one split."""

    def __init__(self, split: str) -> None:
        self.split = split
        self.counts: Counter[str] = Counter()
        self.examples: dict[str, list[Example]] = {}
        self.boundaries = EntityEnds(split)
        self.sentences = 0
        self.ids: set[str] = set()

    def add(self, sentence: Sentence, *, is_new: bool = True) -> None:
        """Check a sentence. ``is_new`` is false if its words repeat an earlier sentence."""
        words = sentence.words
        self.sentences += 1
        if sentence.id in self.ids:
            self._note("shared ids", sentence, sentence.text)
        self.ids.add(sentence.id)
        if not words:
            self._note("empty sentences", sentence, "")
        if len(words) > MAX_SENTENCE_WORDS:
            self._note("long sentences", sentence, f"{len(words)} words")
        if " ".join(words).split() != list(words):
            for word in words:
                if word.split() != [word]:
                    self._note("white space in words", sentence, word)
        seen: set[Entity] = set()
        for entity in sentence.entities:
            start, end = entity.range
            name = words[start:end]
            if entity in seen:
                self._note("duplicate entities", sentence, entity)
            seen.add(entity)
            if len(name) == len(words) and not entity.is_discontinuous:
                self._note("whole sentences", sentence, entity)
            if name[0][0].isspace() or name[-1][-1].isspace():
                self._note("white space at a boundary", sentence, entity)
            elif has_stray_punctuation(name):
                self._note("punctuation at a boundary", sentence, entity)
        if is_new:
            self.boundaries.add(sentence)  # repeated sentences would distort these statistics

    def _note(self, kind: str, sentence: Sentence, excerpt: Entity | str) -> None:
        self.counts[kind] += 1
        examples = self.examples.setdefault(kind, [])
        if len(examples) < MAX_EXAMPLES:
            examples.append(make_example(self.split, sentence, excerpt))

    def issues(self, vocabulary: Counter[str]) -> Iterator[Issue]:
        """Yield the issues, most important first; ``vocabulary`` counts the words of the split."""
        verdict = self.boundaries.verdict(vocabulary)
        if verdict:
            message, examples = f"{self.split}: {VERDICTS[verdict]}", self.boundaries.examples[verdict]
            yield Issue(f"ends too {verdict}", self.split, self.boundaries.entities, message, examples)
        max_whole_sentences = max(MAX_WHOLE_SENTENCE_COUNT, MAX_WHOLE_SENTENCE_SHARE * self.sentences)
        for kind in KINDS:
            count = self.counts[kind]
            is_few = kind == "whole sentences" and count <= max_whole_sentences
            if count and not is_few:
                yield Issue(kind, self.split, count, f"{self.split}: {format_issue(kind, count)}", self.examples[kind])


def format_issue(kind: str, count: int) -> str:
    """Return the message for a number of issues of one kind.

    >>> format_issue("empty sentences", 1), format_issue("long sentences", 2000)
    ('1 sentence has no words', '2,000 sentences have more than 512 words')
    """
    singular, plural, rest = KINDS[kind]
    return f"{count:,} {singular if count == 1 else plural} {rest}"


def has_stray_punctuation(name: Sequence[str]) -> bool:
    """Return True if the words start or end with punctuation that is not part of the entity.

    >>> has_stray_punctuation(["IL-2", ","]), has_stray_punctuation(["(", "Paris", ")"]), has_stray_punctuation(["Inc", "."])
    (True, False, False)
    """
    first, last = name[0], name[-1]
    if is_punctuation(first) and _PAIRS.get(first) not in name[1:]:
        return True
    if not is_punctuation(last) or any(_PAIRS.get(word) == last for word in name[:-1]):
        return False
    return not (last == "." and len(name) > 1 and len(name[-2]) <= _LONGEST_ABBREVIATION)
