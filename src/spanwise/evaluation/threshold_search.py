"""The best threshold on a set of predictions, as text and JSON."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from spanwise.core.percentages import percent
from spanwise.core.types import Sentence
from spanwise.evaluation.calibration import Calibration, ThresholdScore, calibration


@dataclass(frozen=True)
class ThresholdSearch:
    """Result of a search for the best threshold on the sentences called ``data``.

    ``default`` is the model's own threshold with its score, None if it has none. ``note`` explains the
    limits of the result.
    """

    data: str
    calibration: Calibration
    default: ThresholdScore | None = None
    note: str = ""

    @property
    def threshold(self) -> float:
        """The best threshold; 0, which keeps all predictions, if none of them is correct."""
        return 0.0 if self.calibration.best is None else self.calibration.best.threshold

    def thresholds(self, types: Iterable[str], *, is_per_type: bool = False) -> dict[str, float]:
        """Return the threshold of each type: the best for all types or, with ``is_per_type``, for each of them.

        A type without correct predictions gets the threshold for all types.
        """
        best = self.calibration.types if is_per_type else {}
        return {type: point.threshold if (point := best.get(type)) else self.threshold for type in types}

    @property
    def lines(self) -> list[str]:
        """The best threshold overall and per type, and the number of unreachable entities, as text."""
        best, unfiltered = self.calibration.best, self.calibration.unfiltered
        if best is None:
            return [f"no best threshold on {self.data}: none of the predictions is correct"]
        if self.default is None:
            baseline = f"without a threshold {percent(unfiltered.f1)}"
        else:
            baseline = f"with the model's default {self.default.threshold:g} {percent(self.default.score.f1)}"
        lines = [f"best threshold on {self.data}: {best.threshold:g} (F1 {percent(best.score.f1)}; {baseline})"]
        for type, point in self.calibration.types.items():
            result = f"{point.threshold:g} (F1 {percent(point.score.f1)})" if point else "no correct predictions"
            lines.append(f"  {type}: {result}")
        missing = unfiltered.support - unfiltered.correct
        lines.append(f"gold entities that are not predicted at any threshold: {missing:,} of {unfiltered.support:,}")
        return [*lines, self.note] if self.note else lines

    def to_json(self) -> dict[str, Any]:
        return {
            "threshold": self.threshold,
            "data": self.data,
            "default": None if self.default is None else self.default.to_json(),
            "note": self.note,
            **self.calibration.to_json(),
        }


def search_threshold(gold: Iterable[Sentence], predicted: Iterable[Sentence]) -> ThresholdSearch:
    """Find the best threshold for any system's predictions, which should be those of a dev split."""
    note = "the threshold is chosen and scored on the same predictions; expect a lower F1 on other data"
    return ThresholdSearch("these predictions", calibration(gold, predicted), note=note)
