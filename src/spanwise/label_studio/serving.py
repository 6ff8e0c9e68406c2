"""Serve a model to Label Studio, with or without learning."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from spanwise.core.errors import SpanwiseError
from spanwise.files.names import printable
from spanwise.label_studio.backend import Backend
from spanwise.label_studio.learner import Learner, LearningOptions
from spanwise.label_studio.rounds import LearningFolder
from spanwise.prediction.load import model_folder
from spanwise.runs.folder import RunFolder
from spanwise.runs.outputs import check_output
from spanwise.runtime.hub import hub_name
from spanwise.serve.server import serve


def serve_label_studio(
    source: str | Path,
    learning: LearningOptions | None = None,
    folder: Path | None = None,
    *,
    device: str = "auto",
    log: Callable[[str], None] = print,
    **options: Any,
) -> None:
    """Serve a model as a machine learning backend of Label Studio; ``options`` are those of ``serve``.

    With ``learning``, annotations are collected in ``folder``. Service and learning continue where they
    were when a service of the same model and folder ended.
    """
    if learning is None:
        serve(source, extension=Backend(), device=device, log=log, **options)
        return
    is_elsewhere = bool(hub_name(source)) or model_folder(source) != Path(source).expanduser()  # on the hub, or installed
    if folder is None and is_elsewhere:
        raise SpanwiseError(f"{source}: not a run folder, next to which annotations can be collected; pass --learn-folder")
    model = model_folder(source)
    if RunFolder(model).is_onnx or not RunFolder(model).has_model:
        raise SpanwiseError(f"{source}: --learn needs a run folder; exported ONNX models cannot be trained")
    if learning.data is not None and not learning.data.exists():
        raise SpanwiseError(f"{learning.data}: no such file or folder")
    state = LearningFolder(folder or model.absolute().with_name(f"{model.absolute().name}-label-studio"), model)
    check_output(state.path / "learning.json", [path for path in (learning.data, model) if path is not None])
    with state.opened():
        learner = Learner(state, learning, log)
        served = state.served_round
        log(f"collecting annotations in {state.path}: {learner.collection.annotations:,} so far")
        if served is not None:
            log(f"serving the model of round {served.number}")
        serve(state.model, extension=Backend(learner), device=device, log=log, title=printable(learner.version), **options)
