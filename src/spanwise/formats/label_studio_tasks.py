"""Label Studio tasks of all export formats in one form, and the choice of an annotation."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NotRequired

from pydantic import ConfigDict, TypeAdapter
from typing_extensions import TypedDict

from spanwise.files.reading import read_json_records, validate_record
from spanwise.formats.base import Ledger
from spanwise.formats.shared.records import Id, StrictFloat, StrictInt


class _Result(TypedDict):
    __pydantic_config__ = ConfigDict(extra="allow", defer_build=True)  # type: ignore[misc]
    type: str
    id: NotRequired[Id | None]
    value: NotRequired[dict[str, Any] | None]
    score: NotRequired[StrictFloat | None]
    to_name: NotRequired[str | None]
    from_name: NotRequired[str | None]
    from_id: NotRequired[Id | None]
    to_id: NotRequired[Id | None]
    direction: NotRequired[str | None]
    labels: NotRequired[list[str] | None]


class _Annotation(TypedDict):
    __pydantic_config__ = ConfigDict(extra="allow", defer_build=True)  # type: ignore[misc]
    result: NotRequired[list[_Result] | None]


class _Task(TypedDict):
    __pydantic_config__ = ConfigDict(extra="allow", defer_build=True)  # type: ignore[misc]
    data: dict[str, Any]
    id: NotRequired[Id | None]
    annotations: NotRequired[list[_Annotation] | None]
    completions: NotRequired[list[_Annotation] | None]  # the name of annotations before version 1
    predictions: NotRequired[list[_Annotation | StrictInt] | None]  # a number is the id of one that was not exported


_SHAPE: TypeAdapter[_Task] = TypeAdapter(_Task)
TASK_KEYS = frozenset(_Task.__annotations__)
RESULT_KEYS = frozenset(_Result.__annotations__)
# Keys of annotations in JSON-MIN, which are among the task's data, and their names in the export.
_MIN_KEYS = {"annotator": "completed_by", "annotation_id": "id", "created_at": "created_at", "updated_at": "updated_at",
             "lead_time": "lead_time"}  # fmt: skip


def tasks(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the validated tasks of a file in the form of the export, with their line numbers."""
    for line, task in _merge_records(path):
        yield line, validate_task(task, path, line)


def validate_task(task: Any, path: Path, line: int) -> dict[str, Any]:
    """Check the shape of a task in the form of the export."""
    return dict(validate_record(_SHAPE, task, path, line))


def _merge_records(path: Path) -> Iterator[tuple[int, Any]]:
    """Yield full tasks. Consecutive JSON-MIN records with the same id are annotations of one task."""
    previous: tuple[int, dict[str, Any]] | None = None
    for line, record in read_json_records(path):
        if not isinstance(record, dict) or isinstance(record.get("data"), dict):
            if previous:
                yield previous
            previous = None
            yield line, record
            continue
        task = _expand(record)
        if previous and task["id"] is not None and previous[1]["id"] == task["id"]:
            previous[1]["annotations"] += task["annotations"]
            continue
        if previous:
            yield previous
        previous = line, task
    if previous:
        yield previous


def _expand(record: dict[str, Any]) -> dict[str, Any]:
    """Return a JSON-MIN record as a task of the export."""
    results = []
    data = {}
    for key, value in record.items():
        if isinstance(value, list) and value and all(map(labels_key, value)):
            results += [{"type": labels_key(region), "value": region, "from_name": key} for region in value]
        elif key != "id" and key not in _MIN_KEYS:
            data[key] = value
    # A task without an annotation has these keys, too, if all tasks were exported; their values are null.
    metadata = {name: record[key] for key, name in _MIN_KEYS.items() if key in record}
    metadata = metadata if any(value is not None for value in metadata.values()) else {}
    annotations = [{"result": results, **metadata}] if results or metadata else []
    return {"id": record.get("id"), "data": data, "annotations": annotations}


def labels_key(value: Any) -> str | None:
    """Return the key of a region's labels (labels, hypertextlabels, paragraphlabels); None for other values."""
    if not isinstance(value, dict) or not ("start" in value or "globalOffsets" in value):
        return None
    return next((key for key in value if key.endswith("labels") and isinstance(value[key], list)), None)


def choose_annotation(task: dict[str, Any], ledger: Ledger) -> tuple[str, dict[str, Any]] | None:
    """Return "annotation" or "prediction" and the one to read, which may be empty; None for a skipped task."""
    annotations = task.get("annotations") or task.get("completions") or []
    predictions = [prediction for prediction in task.get("predictions") or [] if isinstance(prediction, dict)]
    if not annotations:
        if not predictions:
            ledger.note("tasks without annotations")
            return "annotation", {}
        ledger.note("tasks without annotations, read with a prediction")
        ledger.note("additional predictions of a task, not read", len(predictions) - 1)
        return "prediction", max(enumerate(predictions), key=_rank)[1]
    submitted = [a for a in annotations if not a.get("was_cancelled") and not a.get("skipped")]
    ledger.note("cancelled annotations, not read", len(annotations) - len(submitted))
    ledger.note("predictions of annotated tasks, not read", len(predictions))
    if not submitted:
        return None
    ledger.note("additional annotations of a task, not read", len(submitted) - 1)
    return "annotation", max(enumerate(submitted), key=_rank)[1]


def _rank(numbered: tuple[int, dict[str, Any]]) -> tuple[bool, str, int]:
    """Return a sort key: the ground truth is best, then the latest submission."""
    number, annotation = numbered
    submitted = annotation.get("updated_at") or annotation.get("created_at") or ""
    return bool(annotation.get("ground_truth")), str(submitted), number
