"""Choose which sentences or documents of a pool to annotate next."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random

from spanwise.active_learning.candidate_spans import predict_candidate_spans
from spanwise.active_learning.candidates import Candidate, Shortlist, add_masses
from spanwise.active_learning.coverage import choose_by_coverage
from spanwise.active_learning.masses import ENTITY_WEIGHT, uncertainty_masses, word_masses
from spanwise.active_learning.units import UNITS, SeenTexts, group_by_unit
from spanwise.core.errors import SpanwiseError, unknown_name
from spanwise.core.types import Sentence
from spanwise.prediction.base import BasePredictor

STRATEGIES = {
    "both": "many entities and uncertain spans, but few with the same words",
    "uncertainty": "the most uncertain spans",
    "diversity": "as many different words as possible",
    "random": "a random sample",
}
PREFERRED_WEIGHT = 10.0
SHORTLIST = 10  # candidates per unit to choose, from which the coverage of words chooses
SATURATION = {"both": 0.2, "diversity": 1.0}  # how fast a word that has been chosen loses its value


@dataclass(frozen=True)
class Criteria:
    """How many texts to choose for annotation, and how.

    Args:
        count: number of sentences or documents.
        strategy: a key of ``STRATEGIES``.
        unit: ``sentence`` or ``document``.
        preferred: weights of entity types to prefer, such as rare ones.
        per_word: divide by the number of words, if the cost of annotation grows with it.
        seed: seed of random choice and of ties.
    """

    count: int = 100
    strategy: str = "both"
    unit: str = "sentence"
    preferred: Mapping[str, float] = field(default_factory=dict)
    per_word: bool = False
    seed: int = 1

    def __post_init__(self) -> None:
        if self.count < 1:
            raise SpanwiseError(f"count {self.count}: expected 1 or more")
        if self.strategy not in STRATEGIES:
            raise unknown_name("strategy", self.strategy, STRATEGIES)
        if self.unit not in UNITS:
            raise unknown_name("unit", self.unit, UNITS)
        if self.preferred and not self.needs_model:
            raise SpanwiseError(f"the strategy {self.strategy} does not use a model's probabilities, so it cannot prefer types")

    @property
    def needs_model(self) -> bool:
        """Whether the pool is scored by the model; otherwise it only predicts what is chosen."""
        return self.strategy in ("both", "uncertainty")


def parse_preferred(texts: Iterable[str]) -> dict[str, float]:
    """Parse types with optional weights.

    >>> parse_preferred(["Drug", "Gene=2.5"])
    {'Drug': 10.0, 'Gene': 2.5}
    """
    weights = {}
    for text in texts:
        name, equals, value = text.rpartition("=")
        if not equals:
            name, value = text, str(PREFERRED_WEIGHT)
        try:
            weight = float(value)
        except ValueError:
            weight = -1.0
        if not name or not 0 < weight < float("inf"):
            raise SpanwiseError(f"preferred type {text!r}: expected TYPE or TYPE=WEIGHT with a positive weight, as in Drug=5")
        weights[name] = weight
    return weights


class Pool:
    """Counts the sentences of a pool while they are read, and what is skipped."""

    def __init__(self, seen: SeenTexts | None = None) -> None:
        self.seen = seen or SeenTexts()
        self.sentences = self.units = self.skipped = 0

    def read(self, sentences: Iterable[Sentence], unit: str) -> Iterator[tuple[int, Sequence[Sentence]]]:
        """Yield the units of the pool that have a new sentence, with their numbers."""
        for group in group_by_unit(sentences, unit):
            self.sentences += len(group)
            self.units += 1
            are_new = [self.seen.add(sentence) for sentence in group if sentence.words]  # a list: all are remembered
            if any(are_new):
                yield self.units - 1, group
            else:
                self.skipped += 1


def choose(
    predictor: BasePredictor | None, sentences: Iterable[Sentence], criteria: Criteria, pool: Pool | None = None, *,
    batch_size: int = 64,
) -> list[Candidate]:  # fmt: skip
    """Choose texts to annotate from a pool of any size; memory holds the shortlist and a hash of each sentence.

    ``pool`` knows which texts are already annotated and counts what was read. The result is in the order of
    choice, the most valuable first.
    """
    pool = pool or Pool()
    for type in criteria.preferred:
        if predictor is not None and type not in predictor.types:
            raise unknown_name("type", type, predictor.types)
    random = Random(criteria.seed)
    saturation = SATURATION.get(criteria.strategy)
    shortlist = Shortlist(criteria.count * SHORTLIST if saturation else criteria.count)
    units = pool.read(sentences, criteria.unit)
    for candidate in _score(predictor, units, criteria, batch_size):
        score = candidate.score if criteria.needs_model else 0.0
        if criteria.per_word:
            score /= max(1, candidate.words)
        shortlist.add(candidate, (score, random.random()))
    candidates = shortlist.candidates
    if saturation is None:
        return candidates
    return choose_by_coverage(candidates, criteria.count, saturation=saturation, per_word=criteria.per_word)


def _score(
    predictor: BasePredictor | None, units: Iterable[tuple[int, Sequence[Sentence]]], criteria: Criteria,
    batch_size: int,
) -> Iterator[Candidate]:  # fmt: skip
    if not criteria.needs_model:
        for number, unit in units:
            masses = add_masses(map(word_masses, unit)) if criteria.strategy == "diversity" else {}
            yield Candidate(number, tuple(unit), masses)
        return
    if predictor is None:
        raise SpanwiseError(f"the strategy {criteria.strategy} needs a model")
    entity_weight = ENTITY_WEIGHT if criteria.strategy == "both" else 0.0
    # The sentences of all units are predicted as one stream, and divided into the same units again.
    pending: deque[tuple[int, Sequence[Sentence]]] = deque()

    def flatten() -> Iterator[Sentence]:
        for number, unit in units:
            pending.append((number, unit))
            yield from unit

    predicted = predict_candidate_spans(predictor, flatten(), batch_size)
    for first in predicted:
        number, unit = pending.popleft()
        rows = [first, *(next(predicted) for _ in unit[1:])]
        masses = add_masses(uncertainty_masses(row, criteria.preferred, entity_weight) for row in rows)
        yield Candidate(number, tuple(unit), masses)
