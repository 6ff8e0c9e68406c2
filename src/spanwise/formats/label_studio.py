"""Label Studio's JSON: tasks with labelled regions of a text, and relations between regions.

Read are the export, the import form with predictions, and JSON-MIN, as one array or one task a line. A region with several
labels becomes several entities (a relation goes to the first); a relation without a label is called "related", one in both
directions becomes two. Of several annotations of a task the ground truth is taken, or else the last one submitted; a
prediction where there are no annotations. Tasks that were skipped are left out. Other keys of tasks, columns of their data, and
what else is said of the annotation are kept.

Which key of ``data`` holds the text is seen from the task and can be said: ``label_studio:text=body``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from spanwise.core.errors import FormatError
from spanwise.core.types import Sentence
from spanwise.files.names import default_id
from spanwise.formats.base import NAME, Format, Ledger, one_of
from spanwise.formats.label_studio_regions import place_of
from spanwise.formats.label_studio_tasks import RESULT_KEYS, TASK_KEYS, chosen, labels_key, tasks
from spanwise.formats.shared.cutting import to_sentences
from spanwise.formats.shared.documents import UNNAMED, Arrow, Document, Mention, to_documents, without_discontinuous
from spanwise.formats.shared.records import id_value, own_id, rest, scored, with_rest, write_array
from spanwise.formats.shared.sample import Sample


def read(path: Path, ledger: Ledger, /, *, text: str | None = None, annotated: bool = True) -> Iterator[Sentence]:
    """``text`` is the key of ``data`` that holds the text."""
    for number, (line, task) in enumerate(tasks(path)):
        choice = chosen(task, ledger if annotated else Ledger())
        if choice is None:
            ledger.note("tasks skipped by their annotators, left out")
            continue
        kind, annotation = choice
        key = _text_key(task["data"], annotation.get("result") or [], text, path, line)
        document = _document(task, key, kind, annotation if annotated else {}, default_id(path, number), path, line, ledger)
        yield from to_sentences(document, path, ledger, line=line)


def _document(
    task: dict[str, Any], key: str, kind: str, annotation: dict[str, Any], default_id: str,
    path: Path, line: int, ledger: Ledger,
) -> Document:  # fmt: skip
    results = annotation.get("result") or []
    columns = {name: value for name, value in task["data"].items() if name != key}
    name = task.get("id")
    if name is None and isinstance(columns.get("id"), str):
        name = columns.pop("id")
    extra = dict(rest(task, TASK_KEYS) or {})
    if columns:
        extra["data"] = columns
    if about := rest(annotation, {"result"}):
        extra[kind] = about
    document = Document(own_id(name, default_id), task["data"][key], extra=extra or None)
    regions: dict[str, str] = {}
    for result in results:
        if result["type"] != "relation":
            _add_region(document, result, key, task["data"], regions, path, line, ledger)
    for result in results:
        if result["type"] == "relation":
            _add_relation(document, result, regions, ledger)
    return document


def _text_key(data: dict[str, Any], results: list[dict[str, Any]], wanted: str | None, path: Path, line: int) -> str:
    texts = [key for key, value in data.items() if isinstance(value, str)]
    if wanted is not None:
        if wanted not in texts:
            raise FormatError(path, line, f"data has no text {wanted!r}; its texts are {', '.join(map(repr, texts)) or 'none'}")
        return wanted
    targets = [name for result in results if (name := result.get("to_name")) in texts]
    said = [value["text"] for result in results if isinstance((value := result.get("value") or {}).get("text"), str)]
    fitting = [key for key in texts if said and all(piece in data[key] for piece in said)]
    for candidates in (targets[:1], ["text"] if "text" in texts else [], texts, fitting):
        if len(candidates) == 1:
            return str(candidates[0])
    if texts:
        problem = f"which text is annotated, {' or '.join(map(repr, texts))}? Say it, as in label_studio:text=KEY"
    else:
        problem = f"data has no text; its keys are {', '.join(map(repr, data)) or 'none'}"
    raise FormatError(path, line, problem)


def _add_region(
    document: Document, result: dict[str, Any], key: str, data: dict[str, Any], regions: dict[str, str],
    path: Path, line: int, ledger: Ledger,
) -> None:  # fmt: skip
    if not result["type"].endswith("labels"):
        ledger.lose("notes", f"of the type {result['type']}")
        return
    value = result.get("value") or {}
    kind = result["type"] if result["type"] in value else "labels"
    labels = value.get(kind) or []
    if not isinstance(labels, list) or not all(isinstance(label, str) and label for label in labels):
        raise FormatError(path, line, f"value.{kind}: expected a list of names, found {labels!r:.60}")
    target = result.get("to_name")
    if target != key and isinstance(data.get(target or ""), str):
        ledger.lose("entities", "of another text of the task", len(labels))
        return
    if not labels:
        ledger.lose("entities", "regions without a label")
        return
    place = place_of(value, document.text, path, line, ledger)
    if place is None:
        ledger.lose("entities", "regions whose place in the text is not known (HTML, paragraphs, images)", len(labels))
        return
    for label in labels:
        name = str(len(document.mentions) + 1)
        document.mentions.append(Mention(name, label, (place,), result.get("score"), rest(result, RESULT_KEYS)))
        if result.get("id") is not None:
            regions.setdefault(str(result["id"]), name)


def _add_relation(document: Document, result: dict[str, Any], regions: dict[str, str], ledger: Ledger) -> None:
    head, tail = (regions.get(str(result.get(key))) for key in ("from_id", "to_id"))
    labels = result.get("labels") or [UNNAMED]
    if head is None or tail is None:
        ledger.lose("relations", "of a region that is not in the result", len(labels))
        return
    direction = result.get("direction")
    pairs = {"left": [(tail, head)], "bi": [(head, tail), (tail, head)]}.get(direction or "right", [(head, tail)])
    for label in labels:
        for pair in pairs:
            document.arrows.append(Arrow(label, *pair, result.get("score"), rest(result, RESULT_KEYS)))


def write(sentences: Iterable[Sentence], path: Path, ledger: Ledger, /, *, kind: str = "annotations") -> None:
    """``kind="predictions"`` writes what is there as a model's, to be corrected, instead of as annotations."""
    documents = (without_discontinuous(document, ledger) for document in to_documents(sentences, ledger))
    write_array((_task(document, kind.removesuffix("s"), ledger) for document in documents), path)


def _task(document: Document, kind: str, ledger: Ledger) -> dict[str, Any]:
    results: list[dict[str, Any]] = []
    for mention in document.mentions:
        start, end = mention.fragments[0]
        value = {"start": start, "end": end, "text": document.text[start:end], "labels": [mention.type]}
        names = {"id": mention.id, "from_name": "label", "to_name": "text", "type": "labels"}
        results.append(with_rest({**names, "value": value, **scored(mention.score)}, mention.extra, RESULT_KEYS, ledger))
    for arrow in document.arrows:
        ends = {"type": "relation", "from_id": arrow.head, "to_id": arrow.tail, "direction": "right", "labels": [arrow.type]}
        results.append(with_rest({**ends, **scored(arrow.score)}, arrow.extra, RESULT_KEYS, ledger))
    extra = dict(document.extra or {})
    about = {name: extra.pop(name) for name in ("annotation", "prediction") if isinstance(extra.get(name), dict)}
    annotation = with_rest({"result": results}, about.pop(kind, None), {"result"}, ledger)
    ledger.note(f"what is said of {' and '.join(about)}s besides, no part of {kind}s", len(about))
    columns = extra.pop("data") if isinstance(extra.get("data"), dict) else {}
    number = id_value(document.id)
    task: dict[str, Any] = {}
    if isinstance(number, int) or "id" in columns:
        task["id"] = number
    else:
        columns = {"id": number, **columns}  # a task's own id is a number
    task["data"] = with_rest({"text": document.text}, columns, {"text"}, ledger)
    return with_rest({**task, f"{kind}s": [annotation]}, extra, TASK_KEYS, ledger)


def sniff(sample: Sample) -> bool:
    if not sample.dicts:  # the first task may be longer than the sample
        return not sample.is_whole and sample.text.lstrip().startswith(("[", "{")) and '"to_name"' in sample.text
    if all(isinstance(record.get("data"), dict) for record in sample.dicts):
        return any(key in record for record in sample.dicts for key in ("annotations", "predictions", "completions"))
    return any(
        labels_key(item)
        for record in sample.dicts for value in record.values() if isinstance(value, list)
        for item in value
    )  # fmt: skip


FORMAT = Format(
    name="label_studio",
    by_characters=True,
    summary="Label Studio's JSON: tasks with labelled regions of a text, and relations",
    read=read,
    write=write,
    sniff=sniff,
    extensions=(".json",),
    holds=frozenset(("nested", "crossing", "several types", "relations", "links")),
    keeps=frozenset(("documents", "scores", "relation scores", "keys", "entity keys", "relation keys")),
    read_options={"text": NAME},
    write_options={"kind": one_of("annotations", "predictions")},
)
