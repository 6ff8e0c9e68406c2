"""A threshold for entities that is chosen on dev."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from spanwise.core.partial import without_open
from spanwise.core.types import Sentence, Span
from spanwise.decoding.thresholds import drop_entities
from spanwise.evaluation.matching import best_scores
from spanwise.evaluation.scores import entity_items
from spanwise.heads.abilities import HasThreshold, Tunable

DEFAULT_THRESHOLD = 0.5
CANDIDATES = tuple(round(0.25 + 0.05 * step, 2) for step in range(10))  # 0.25 to 0.7; few, so that noise selects little
MIN_ENTITIES = 50  # of dev; with fewer, chance would choose the threshold


class TunedThreshold(HasThreshold, Tunable):
    """Base of heads that predict entities from a ``threshold`` on. If its setting is ``dev``, dev chooses it by the best F1."""

    threshold: float

    @property
    def is_tuned_on_dev(self) -> bool:
        return bool(self.settings.threshold == "dev")  # type: ignore[attr-defined]

    def set_threshold(self, threshold: float) -> float:
        previous, self.threshold = self.threshold, threshold
        return previous

    def tune(self, gold: Sequence[Sentence], predict: Callable[[], Iterable[Sentence]]) -> bool:
        if not self.is_tuned_on_dev:
            return False
        self.threshold = choose_threshold(gold, self._candidates(predict))
        self.settings = self.settings.model_copy(update={"threshold": self.threshold})
        return True

    def predict_tuned(self, gold: Sequence[Sentence], predict: Callable[[], Iterable[Sentence]]) -> list[Sentence]:
        if not self.is_tuned_on_dev:
            return list(predict())
        predicted = self._candidates(predict)
        threshold = choose_threshold(gold, predicted)
        return [_drop_below(sentence, threshold) for sentence in predicted]

    def _candidates(self, predict: Callable[[], Iterable[Sentence]]) -> list[Sentence]:
        """Predict with the lowest threshold.

        Of two conflicting entities the more probable one wins, so a higher threshold only removes entities.
        """
        previous = self.set_threshold(CANDIDATES[0])
        try:
            return list(predict())
        finally:
            self.set_threshold(previous)


def choose_threshold(gold: Iterable[Sentence], predicted: Iterable[Sentence]) -> float:
    """Return the candidate with the best F1, of equal ones that nearest to 0.5; 0.5 if dev has few entities.

    >>> from spanwise.core.types import Entity
    >>> gold = [Sentence(f"s{i}", ("Oslo",), (Entity("Place", ((0, 1),)),)) for i in range(60)]
    >>> predicted = [Sentence(f"s{i}", ("Oslo",), (Entity("Place", ((0, 1),), 0.42),)) for i in range(60)]
    >>> choose_threshold(gold, predicted)
    0.4
    >>> choose_threshold(gold[:10], predicted[:10])
    0.5
    """
    support, rows = 0, []
    for gold_sentence, predicted_sentence in zip(gold, predicted, strict=True):
        items = entity_items(gold_sentence)
        support += len(items)
        scores = best_scores(without_open(gold_sentence, predicted_sentence))
        rows += [(score, fragments, (type, fragments) in items) for (type, fragments), score in scores.items()]
    if support < MIN_ENTITIES:
        return DEFAULT_THRESHOLD

    def f1(threshold: float) -> float:
        kept = [is_correct for score, fragments, is_correct in rows if _is_kept(fragments, score, threshold)]
        return 2 * sum(kept) / (len(kept) + support)

    return max(CANDIDATES, key=lambda threshold: (f1(threshold), -abs(threshold - DEFAULT_THRESHOLD)))


def _drop_below(sentence: Sentence, threshold: float) -> Sentence:
    entities = enumerate(sentence.entities)
    dropped = [index for index, entity in entities if not _is_kept(entity.fragments, entity.score, threshold)]
    return drop_entities(sentence, dropped) if dropped else sentence


def _is_kept(fragments: Sequence[Span], score: float | None, threshold: float) -> bool:
    """Whether a head with this threshold predicts an entity: ``Discontinuous`` joins several fragments without it."""
    return len(fragments) > 1 or (score or 0.0) >= threshold
