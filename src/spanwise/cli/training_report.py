"""The scores a training prints when it ends."""

from __future__ import annotations

from typing import Any

import typer


def print_scores(scores: dict[str, dict[str, Any]]) -> None:
    """One line a split: strict micro scores, and macro F1."""
    for split, values in scores.items():
        micro = values["micro"]
        typer.echo(
            f"{split}: P {micro['precision']:.4f} R {micro['recall']:.4f} F1 {micro['f1']:.4f} "
            f"(macro F1 {values['macro']['f1']:.4f}; {micro['correct']:,} of {micro['support']:,} found, "
            f"{micro['predicted']:,} predicted)"
        )
