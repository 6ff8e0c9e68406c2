"""Label Studio's tasks in one form, whichever of its exports they come from, and the annotation of each that counts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NotRequired

from pydantic import ConfigDict, TypeAdapter
from typing_extensions import TypedDict

from spanwise.files.reading import json_records, validate_record
from spanwise.formats.base import Ledger
from spanwise.formats.shared.records import Id, Number, Whole


class _Result(TypedDict):
    __pydantic_config__ = ConfigDict(extra="allow")  # type: ignore[misc]
    type: str
    id: NotRequired[Id | None]
    value: NotRequired[dict[str, Any] | None]
    score: NotRequired[Number | None]
    to_name: NotRequired[str | None]
    from_name: NotRequired[str | None]
    from_id: NotRequired[Id | None]
    to_id: NotRequired[Id | None]
    direction: NotRequired[str | None]
    labels: NotRequired[list[str] | None]


class _Annotation(TypedDict):
    __pydantic_config__ = ConfigDict(extra="allow")  # type: ignore[misc]
    result: NotRequired[list[_Result] | None]


class _Task(TypedDict):
    __pydantic_config__ = ConfigDict(extra="allow")  # type: ignore[misc]
    data: dict[str, Any]
    id: NotRequired[Id | None]
    annotations: NotRequired[list[_Annotation] | None]
    completions: NotRequired[list[_Annotation] | None]  # what annotations were called before version 1
    predictions: NotRequired[list[_Annotation | Whole] | None]  # a number stands for one that was not exported


_SHAPE: TypeAdapter[_Task] = TypeAdapter(_Task)
TASK_KEYS = frozenset(_Task.__annotations__)
RESULT_KEYS = frozenset(_Result.__annotations__)
# What JSON-MIN says of an annotation among the columns of its task, and what the export calls it.
_MIN_KEYS = {"annotator": "completed_by", "annotation_id": "id", "created_at": "created_at", "updated_at": "updated_at",
             "lead_time": "lead_time"}  # fmt: skip


def tasks(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """The tasks of a file in the form of the export, checked, with the lines they begin on."""
    for line, task in _records(path):
        yield line, validate_record(_SHAPE, task, path, line)


def _records(path: Path) -> Iterator[tuple[int, Any]]:
    """The tasks in full. JSON-MIN has a record for each annotation of a task: those that follow each other are one task."""
    before: tuple[int, dict[str, Any]] | None = None
    for line, record in json_records(path):
        if not isinstance(record, dict) or isinstance(record.get("data"), dict):
            if before:
                yield before
            before = None
            yield line, record
            continue
        task = _full(record)
        if before and task["id"] is not None and before[1]["id"] == task["id"]:
            before[1]["annotations"] += task["annotations"]
            continue
        if before:
            yield before
        before = line, task
    if before:
        yield before


def _full(record: dict[str, Any]) -> dict[str, Any]:
    results = []
    data = {}
    for key, value in record.items():
        if isinstance(value, list) and value and all(map(labels_key, value)):
            results += [{"type": labels_key(region), "value": region, "from_name": key} for region in value]
        elif key != "id" and key not in _MIN_KEYS:
            data[key] = value
    about = {name: record[key] for key, name in _MIN_KEYS.items() if key in record}
    return {"id": record.get("id"), "data": data, "annotations": [{"result": results, **about}] if results or about else []}


def labels_key(value: Any) -> str | None:
    """The key under which a region has its labels: labels, hypertextlabels, paragraphlabels; None where it is no region."""
    if not isinstance(value, dict) or not ("start" in value or "globalOffsets" in value):
        return None
    return next((key for key in value if key.endswith("labels") and isinstance(value[key], list)), None)


def chosen(task: dict[str, Any], ledger: Ledger) -> tuple[str, dict[str, Any]] | None:
    """The "annotation" or the "prediction" to read (an empty one where there is none); None for a task that was skipped."""
    annotations = task.get("annotations") or task.get("completions") or []
    predictions = [prediction for prediction in task.get("predictions") or [] if isinstance(prediction, dict)]
    if not annotations:
        if not predictions:
            ledger.note("tasks without annotations")
            return "annotation", {}
        ledger.note("further predictions of a task, not read", len(predictions) - 1)
        return "prediction", max(enumerate(predictions), key=_rank)[1]
    submitted = [a for a in annotations if not a.get("was_cancelled") and not a.get("skipped")]
    ledger.note("cancelled annotations, not read", len(annotations) - len(submitted))
    ledger.note("predictions beside annotations, not read", len(predictions))
    if not submitted:
        return None
    ledger.note("further annotations of a task, not read", len(submitted) - 1)
    return "annotation", max(enumerate(submitted), key=_rank)[1]


def _rank(numbered: tuple[int, dict[str, Any]]) -> tuple[bool, str, int]:
    """The ground truth first, then the last one submitted."""
    number, annotation = numbered
    submitted = annotation.get("updated_at") or annotation.get("created_at") or ""
    return bool(annotation.get("ground_truth")), str(submitted), number
