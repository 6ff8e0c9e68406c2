"""The sentences of an audit with gold and the outputs of the models, as index tuples."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import cached_property
from itertools import combinations, pairwise

from spanwise.audit.candidates import Candidate, Key, TypePair, find_candidates
from spanwise.audit.evidence import LIMIT, UNSCORED, Evidence, SentenceOdds
from spanwise.core.partial import is_known, known_ends
from spanwise.core.type_sets import frequent_type_sets
from spanwise.core.types import Entity, Sentence, Span


class AuditView:
    """Sentences, their contiguous gold entities as keys, and the log-odds of the models.

    Discontinuous entities are not audited, because a model gives probabilities to single spans.
    """

    def __init__(self, sentences: Sequence[Sentence], types: Sequence[str], evidence: Evidence) -> None:
        self.sentences, self.types, self._evidence = sentences, tuple(types), evidence
        labels = {type: label for label, type in enumerate(self.types)}
        self.gold: list[list[Key]] = [
            [(*entity.range, labels[entity.type]) for entity in dict.fromkeys(sentence.entities) if not entity.is_discontinuous]
            for sentence in sentences
        ]
        neighbours = (pair for keys in self.gold for pair in pairwise(sorted({key[:2] for key in keys})))
        self.is_flat = not any(following[0] < span[1] for span, following in neighbours)
        #: Types that spans have together, often enough that models learn it.
        self.type_pairs: frozenset[TypePair] = frozenset(
            frozenset((labels[one], labels[two]))
            for types in frequent_type_sets(sentences)
            for one, two in combinations(types, 2)
        )

    def odds(self, index: int) -> SentenceOdds:
        """The log-odds of the spans of a sentence, without spans that its partial annotation leaves open.

        Gold entities that are too wide for the models are trusted.
        """
        odds, sentence = self._evidence.sentence(index), self.sentences[index]
        if sentence.annotated is not None:
            ends, gold = known_ends(sentence), set(self.gold[index])
            odds = {key: value for key, value in odds.items() if key in gold or is_known(sentence, self.entity(key), ends)}
        too_wide = (key for key in self.gold[index] if key[1] - key[0] > self._evidence.max_width)
        return odds | dict.fromkeys(too_wide, LIMIT)

    @cached_property
    def candidates(self) -> list[tuple[int, Candidate]]:
        """All disagreements between gold and the models, each with the index of its sentence."""
        return [(index, candidate) for index, keys in enumerate(self.gold) for candidate in self.find_candidates(index, keys)]

    def find_candidates(self, index: int, gold: Collection[Key]) -> list[Candidate]:
        """The disagreements between the models and ``gold``, entities of a sentence."""
        return find_candidates(gold, self.odds(index), is_flat=self.is_flat, type_pairs=self.type_pairs)

    @property
    def entity_count(self) -> int:
        return sum(map(len, self.gold))

    @property
    def accepted_count(self) -> int:
        """The number of gold entities that the models accept: with log-odds of at least 0."""
        scored = ((keys, self.odds(index)) for index, keys in enumerate(self.gold))
        return sum(odds.get(key, UNSCORED) >= 0 for keys, odds in scored for key in keys)

    def words(self, index: int, key: Key) -> tuple[str, ...]:
        return self.sentences[index].words[key[0] : key[1]]

    def entity(self, key: Key) -> Entity:
        start, end, label = key
        return Entity(self.types[label], (Span(start, end),))
