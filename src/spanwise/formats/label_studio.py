"""JSON of Label Studio: tasks with labelled regions of a text, and relations between regions.

Reads the export, the import format with predictions, and JSON-MIN, as one array or one task per line.

- A region with several labels becomes several entities; relations use the first. A relation without a
  label has the type "related". A bidirectional relation becomes two.
- If a task has several annotations, the ground truth or else the latest submission is read; without
  annotations, a prediction. Skipped tasks are not read.
- Other keys of tasks, data and annotations are preserved.

The key of ``data`` with the text is detected, or given: ``label_studio:text=body``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from spanwise.core.errors import FormatError
from spanwise.core.types import Sentence
from spanwise.files.names import default_id
from spanwise.formats.base import NAME, YES_OR_NO, Format, Ledger, one_of
from spanwise.formats.label_studio_regions import locate_region
from spanwise.formats.label_studio_tasks import RESULT_KEYS, TASK_KEYS, choose_annotation, labels_key, tasks
from spanwise.formats.shared.documents import (
    DEFAULT_RELATION_TYPE,
    Document,
    Mention,
    MentionRelation,
    drop_discontinuous,
    to_documents,
)
from spanwise.formats.shared.records import add_extra, id_or_default, json_id, score_field, unknown_keys, write_json_array
from spanwise.formats.shared.sample import Sample
from spanwise.formats.shared.splitting import to_sentences


def read(
    path: Path, ledger: Ledger, /, *, text: str | None = None, split: bool = True, with_annotations: bool = True
) -> Iterator[Sentence]:  # fmt: skip
    """Read tasks. ``text`` is the key of the text in ``data``; ``split=False`` keeps each text as one sentence."""
    for number, (line, task) in enumerate(tasks(path)):
        yield from read_task(
            task, default_id(path, number), path, line, ledger, text=text, split=split, with_annotations=with_annotations
        )


def read_task(
    task: dict[str, Any], default_id: str, path: Path, line: int, ledger: Ledger,
    *, text: str | None = None, split: bool = True, with_annotations: bool = True,
) -> Iterator[Sentence]:  # fmt: skip
    """Yield the sentences of a validated task. ``path`` and ``line`` are those of errors."""
    choice = choose_annotation(task, ledger if with_annotations else Ledger())
    if choice is None:
        ledger.note("tasks skipped by their annotators")
        return
    kind, annotation = choice
    key = _find_text_key(task["data"], annotation.get("result") or [], text, path, line)
    document = _document(task, key, kind, annotation if with_annotations else {}, default_id, path, line, ledger)
    yield from to_sentences(document, path, ledger, line=line, split=split)


def _document(
    task: dict[str, Any], key: str, kind: str, annotation: dict[str, Any], default_id: str,
    path: Path, line: int, ledger: Ledger,
) -> Document:  # fmt: skip
    results = annotation.get("result") or []
    columns = {name: value for name, value in task["data"].items() if name != key}
    id = task.get("id")
    if id is None and isinstance(columns.get("id"), str):
        id = columns.pop("id")
    extra = dict(unknown_keys(task, TASK_KEYS) or {})
    if columns:
        extra["data"] = columns
    if metadata := unknown_keys(annotation, {"result"}):
        extra[kind] = metadata
    document = Document(id_or_default(id, default_id), task["data"][key], extra=extra or None)
    regions: dict[str, str] = {}
    for result in results:
        if result["type"] != "relation":
            _add_region(document, result, key, task["data"], regions, path, line, ledger)
    for result in results:
        if result["type"] == "relation":
            _add_relation(document, result, regions, ledger)
    return document


def _find_text_key(data: dict[str, Any], results: list[dict[str, Any]], given: str | None, path: Path, line: int) -> str:
    texts = [key for key, value in data.items() if isinstance(value, str)]
    if given is not None:
        if given not in texts:
            listed = ", ".join(map(repr, texts)) or "none"
            raise FormatError(path, line, f"data has no text {given!r}; its texts are {listed}")
        return given
    targets = [name for result in results if (name := result.get("to_name")) in texts]
    mentions = [value["text"] for result in results if isinstance((value := result.get("value") or {}).get("text"), str)]
    matching = [key for key in texts if mentions and all(mention in data[key] for mention in mentions)]
    for candidates in (targets[:1], ["text"] if "text" in texts else [], texts, matching):
        if len(candidates) == 1:
            return str(candidates[0])
    if texts:
        problem = f"cannot tell which text is annotated ({' or '.join(map(repr, texts))}); use label_studio:text=KEY"
    else:
        problem = f"data has no text; its keys are {', '.join(map(repr, data)) or 'none'}"
    raise FormatError(path, line, problem)


def _add_region(
    document: Document, result: dict[str, Any], key: str, data: dict[str, Any], regions: dict[str, str],
    path: Path, line: int, ledger: Ledger,
) -> None:  # fmt: skip
    if not result["type"].endswith("labels"):
        ledger.lose("results", f"of type {result['type']}")
        return
    value = result.get("value") or {}
    kind = result["type"] if result["type"] in value else "labels"
    labels = value.get(kind) or []
    if not isinstance(labels, list) or not all(isinstance(label, str) and label for label in labels):
        raise FormatError(path, line, f"value.{kind}: expected a list of names, found {labels!r:.60}")
    target = result.get("to_name")
    if target != key and isinstance(data.get(target or ""), str):
        ledger.lose("entities", "in another text field of the task", len(labels))
        return
    if not labels:
        ledger.lose("entities", "regions without a label")
        return
    span = locate_region(value, document.text, path, line, ledger)
    if span is None:
        ledger.lose("entities", "regions without text offsets (HTML, paragraphs, images)", len(labels))
        return
    for label in labels:
        id = str(len(document.mentions) + 1)
        document.mentions.append(Mention(id, label, (span,), result.get("score"), unknown_keys(result, RESULT_KEYS)))
        if result.get("id") is not None:
            regions.setdefault(str(result["id"]), id)


def _add_relation(document: Document, result: dict[str, Any], regions: dict[str, str], ledger: Ledger) -> None:
    head, tail = (regions.get(str(result.get(key))) for key in ("from_id", "to_id"))
    labels = result.get("labels") or [DEFAULT_RELATION_TYPE]
    if head is None or tail is None:
        ledger.lose("relations", "with a region that is not in the result", len(labels))
        return
    direction = result.get("direction")
    pairs = {"left": [(tail, head)], "bi": [(head, tail), (tail, head)]}.get(direction or "right", [(head, tail)])
    for label in labels:
        for pair in pairs:
            document.relations.append(MentionRelation(label, *pair, result.get("score"), unknown_keys(result, RESULT_KEYS)))


def write(sentences: Iterable[Sentence], path: Path, ledger: Ledger, /, *, kind: str = "annotations") -> None:
    """Write tasks. ``kind="predictions"`` writes predictions (pre-annotations) instead of annotations."""
    documents = (drop_discontinuous(document, ledger) for document in to_documents(sentences, ledger))
    write_json_array((_to_task(document, kind.removesuffix("s"), ledger) for document in documents), path)


def _to_task(document: Document, kind: str, ledger: Ledger) -> dict[str, Any]:
    results: list[dict[str, Any]] = []
    for mention in document.mentions:
        start, end = mention.fragments[0]
        value = {"start": start, "end": end, "text": document.text[start:end], "labels": [mention.type]}
        names = {"id": mention.id, "from_name": "label", "to_name": "text", "type": "labels"}
        results.append(add_extra({**names, "value": value, **score_field(mention.score)}, mention.extra, RESULT_KEYS, ledger))
    for relation in document.relations:
        ends = {"type": "relation", "from_id": relation.head, "to_id": relation.tail, "direction": "right"}
        result = {**ends, "labels": [relation.type], **score_field(relation.score)}
        results.append(add_extra(result, relation.extra, RESULT_KEYS, ledger))
    extra = dict(document.extra or {})
    metadata = {name: extra.pop(name) for name in ("annotation", "prediction") if isinstance(extra.get(name), dict)}
    annotation = add_extra({"result": results}, metadata.pop(kind, None), {"result"}, ledger)
    ledger.note(f"metadata of {' and '.join(metadata)}s dropped: {kind}s are written", len(metadata))
    columns = extra.pop("data") if isinstance(extra.get("data"), dict) else {}
    id = json_id(document.id)
    task: dict[str, Any] = {}
    if isinstance(id, int) or "id" in columns:
        task["id"] = id
    else:
        columns = {"id": id, **columns}  # the id of a task must be a number
    task["data"] = add_extra({"text": document.text}, columns, {"text"}, ledger)
    return add_extra({**task, f"{kind}s": [annotation]}, extra, TASK_KEYS, ledger)


def sniff(sample: Sample) -> bool:
    if not sample.dicts:  # the first task may be longer than the sample
        return not sample.is_complete and sample.text.lstrip().startswith(("[", "{")) and '"to_name"' in sample.text
    if all(isinstance(record.get("data"), dict) for record in sample.dicts):
        return any(key in record for record in sample.dicts for key in ("annotations", "predictions", "completions"))
    return any(
        labels_key(item)
        for record in sample.dicts for value in record.values() if isinstance(value, list)
        for item in value
    )  # fmt: skip


FORMAT = Format(
    name="label_studio",
    has_character_offsets=True,
    summary="JSON of Label Studio: tasks with labelled regions of a text, and relations",
    read=read,
    write=write,
    sniff=sniff,
    extensions=(".json",),
    supports=frozenset(("nested", "crossing", "several types", "relations", "links")),
    metadata=frozenset(("documents", "scores", "relation scores", "keys", "entity keys", "relation keys")),
    read_options={"text": NAME, "split": YES_OR_NO},
    write_options={"kind": one_of("annotations", "predictions")},
)
