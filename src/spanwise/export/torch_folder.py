"""Export of a trained model to a folder without training state."""

from __future__ import annotations

from pathlib import Path

from spanwise.files.writing import atomic_output
from spanwise.models.model import Model
from spanwise.runs.provenance import Provenance


def export(run: str | Path, out: str | Path) -> Model:
    """Write the part of a run folder's model that prediction needs to a new folder, which ``load`` reads.

    Of a bundle, only the branch that predicts remains, as an ordinary head. The provenance is kept, so
    that ``evaluate`` gives the same scores.
    """
    with atomic_output(Path(out), is_folder=True) as temporary:
        model = Model.load(run).for_prediction()
        model.save(temporary)
        Provenance.read(Path(run)).write(temporary)
    return model
