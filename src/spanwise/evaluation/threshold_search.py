"""The threshold that was found to be best, for people and for programs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from spanwise.core.types import Sentence
from spanwise.evaluation.calibration import AtThreshold, Calibration, calibration


@dataclass(frozen=True)
class FoundThreshold:
    """What thresholds do on the sentences that are called ``where``.

    ``own`` is a model's own threshold with the score at it, None where it has none. ``note`` says what no threshold can do.
    """

    where: str
    calibration: Calibration
    own: AtThreshold | None = None
    note: str = ""

    @property
    def threshold(self) -> float:
        """The best one; 0, which leaves nothing out, where nothing is right."""
        return 0.0 if self.calibration.best is None else self.calibration.best.threshold

    @property
    def lines(self) -> list[str]:
        """The best threshold, that of each type, and how much there is to find at all."""
        best, everything = self.calibration.best, self.calibration.everything
        if best is None:
            return [f"no threshold was found on {self.where}, for nothing that is predicted there is right"]
        before = self.own.score if self.own else everything
        without = f"with the model's own, {self.own.threshold:g}, it is" if self.own else "without one it is"
        lines = [f"best threshold on {self.where}: {best.threshold:g} (F1 {best.score.f1:.4f}; {without} {before.f1:.4f})"]
        for type, found in self.calibration.types.items():
            lines.append(f"  {type}: " + (f"{found.threshold:g} (F1 {found.score.f1:.4f})" if found else "nothing is right"))
        missing = everything.support - everything.correct
        lines.append(f"of {everything.support:,} entities {missing:,} are not among the predictions, whatever the threshold")
        return [*lines, self.note] if self.note else lines

    def to_json(self) -> dict[str, Any]:
        return {
            "threshold": self.threshold,
            "where": self.where,
            "own": None if self.own is None else self.own.to_json(),
            "note": self.note,
            **self.calibration.to_json(),
        }


def found_threshold(gold: Iterable[Sentence], predicted: Iterable[Sentence]) -> FoundThreshold:
    """The best threshold for any system's predictions, which are taken for those of a dev split."""
    note = "it was chosen on the predictions that are scored here: on others it may do less good"
    return FoundThreshold("these predictions", calibration(gold, predicted), note=note)
