"""Requests of Label Studio 1.23, written after those that a real server sent, without the keys that nobody reads."""

from __future__ import annotations

from typing import Any

from fake_service import TEXT

from spanwise.label_studio.configuration import write_configuration

CONFIGURATION = write_configuration(["Disease", "Organization", "Place"], ["treats"])
HYPERTEXT = (
    '<View><HyperTextLabels name="label" toName="html"><Label value="Place"/></HyperTextLabels>'
    '<HyperText name="html" value="$page"/></View>'
)


def setup(configuration: str = CONFIGURATION) -> dict[str, Any]:
    return {
        "project": "1.1794848734",
        "schema": configuration,
        "hostname": "http://localhost:8080",
        "access_token": "aaaabbbb",
        "extra_params": None,
    }


def task(text: str = TEXT, id: int = 1) -> dict[str, Any]:
    return {
        "id": id,
        "data": {"text": text},
        "meta": {},
        "updated_at": "2026-11-16T17:05:37.117473Z",
        "is_labeled": False,
        "overlap": 1,
        "project": 1,
        "annotations": [],
        "predictions": [],
    }


def predict(*tasks: dict[str, Any], configuration: str = CONFIGURATION) -> dict[str, Any]:
    params = {"login": None, "password": None, "context": None}
    return {"tasks": list(tasks), "project": "1.1794848734", "label_config": configuration, "params": params}


def region(start: int, end: int, text: str, label: str, id: str = "a") -> dict[str, Any]:
    value = {"start": start, "end": end, "text": text, "labels": [label]}
    return {"id": id, "from_name": "label", "to_name": "text", "type": "labels", "origin": "manual", "value": value}


RELATION = {"from_id": "a", "to_id": "b", "type": "relation", "direction": "right", "labels": ["lives_in"]}
SENTENCE = "Ann Lee lives in Oslo 😀."
RESULT = [region(0, 7, "Ann Lee", "Person"), region(17, 21, "Oslo", "Place", "b"), RELATION]
PEOPLE = write_configuration(["Person", "Place"], ["lives_in"])


def project(configuration: str = PEOPLE) -> dict[str, Any]:
    return {"id": 1, "title": "Places", "label_config": configuration, "task_number": 2, "model_version": "run"}


def saved(
    id: int = 1,
    result: list[dict[str, Any]] | None = None,
    *,
    text: str = SENTENCE,
    task_id: int = 1,
    second: int = 35,
    action: str = "ANNOTATION_CREATED",
    **changes: Any,
) -> dict[str, Any]:
    annotation = {
        "id": id,
        "result": RESULT if result is None else result,
        "was_cancelled": False,
        "ground_truth": False,
        "created_at": "2026-11-16T17:05:35.938070Z",
        "updated_at": f"2026-11-16T17:05:{second}.938103Z",
        "lead_time": None,
        "unique_id": "0f39930e-ce92-4631-b140-82aec00122be",
        "task": task_id,
        "project": 1,
    }
    return {"action": action, "annotation": annotation | changes, "project": project(), "task": task(text, task_id)}


def deleted(*ids: int) -> dict[str, Any]:
    return {"action": "ANNOTATIONS_DELETED", "annotations": [{"id": id} for id in ids], "project": project()}


def tasks_deleted(*ids: int) -> dict[str, Any]:
    return {"action": "TASKS_DELETED", "tasks": [{"id": id} for id in ids], "project": project()}


START_TRAINING = {"action": "START_TRAINING", "project": project()}
