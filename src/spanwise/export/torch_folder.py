"""A trained model without what only its training needed."""

from __future__ import annotations

from pathlib import Path

from spanwise.files.writing import atomic_output
from spanwise.models.model import Model


def export(run: str | Path, out: str | Path) -> Model:
    """Write what prediction needs of a run folder's model to a new folder, which ``load`` reads like any other.

    Of a bundle only the branch that predicts is left, an ordinary head from now on.
    """
    with atomic_output(Path(out), folder=True) as temporary:
        model = Model.load(run).exported()
        model.save(temporary)
    return model
