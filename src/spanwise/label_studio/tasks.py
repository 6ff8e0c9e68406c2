"""Tasks of Label Studio: their text, predictions for it as results, and annotations of it as sentences."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from spanwise.core.errors import SpanwiseError
from spanwise.core.types import Sentence, Span
from spanwise.formats import Ledger
from spanwise.formats.label_studio import read_task
from spanwise.formats.label_studio_tasks import validate_task
from spanwise.label_studio.configuration import LABELS_TAGS, Configuration
from spanwise.label_studio.hypertext import TaskText, html_text

TEXT = "text"  # the key of the text in the data of a simplified task
_RELATION_KEYS = ("type", "from_id", "to_id", "direction", "labels")


def text_of(data: dict[str, Any], configuration: Configuration, task: object) -> TaskText:
    """Return the text of a task, without markup; raise ``SpanwiseError`` if there is none."""
    value = data.get(configuration.key)
    if not isinstance(value, str):
        keys = ", ".join(map(repr, sorted(data))) or "none"
        raise SpanwiseError(f"task {task}: expected a text in data.{configuration.key}; the keys of data are {keys}"[:500])
    if not _is_unicode(value):
        raise SpanwiseError(f"task {task}: data.{configuration.key}: unpaired surrogate; expected valid Unicode")
    return html_text(value) if configuration.is_html else TaskText(value)


def _is_unicode(text: str) -> bool:
    """Whether a text has no unpaired surrogates, which UTF-8 cannot store."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def to_prediction(sentences: Iterable[Sentence], text: TaskText, configuration: Configuration, version: str) -> dict[str, Any]:
    """Return the predictions for one text as Label Studio stores them.

    Types and relations without a label in the configuration are omitted, as are discontinuous entities,
    which Label Studio cannot represent. The score is the lowest of the entities, so that sorting by it
    shows the least certain task first.
    """
    results: list[dict[str, Any]] = []
    for sentence in sentences:
        ids: dict[int, str] = {}
        for index, entity in enumerate(sentence.entities):
            if len(entity.fragments) > 1 or not (tag := configuration.tag_of(entity.type)):
                continue
            ids[index] = f"e{len(results) + 1}"
            start, end = sentence.characters(entity.fragments[0])
            offset = sentence.start or 0
            span = text.to_label_studio(Span(offset + start, offset + end))
            value = _region(span, sentence.text[start:end], configuration)
            names = {"id": ids[index], "from_name": tag.name, "to_name": configuration.text_name, "type": tag.kind}
            results.append({**names, "value": {**value, tag.kind: [entity.type]}, "score": entity.score})
        for relation in sentence.relations:
            if relation.type in configuration.relations and relation.head in ids and relation.tail in ids:
                ends = {"type": "relation", "from_id": ids[relation.head], "to_id": ids[relation.tail], "direction": "right"}
                results.append({**ends, "labels": [relation.type], "score": relation.score})
    scores = [result["score"] for result in results if result["type"] != "relation" and result["score"] is not None]
    return {"result": results, "score": min(scores, default=1.0), "model_version": version}


def _region(span: Span, text: str, configuration: Configuration) -> dict[str, Any]:
    offsets = {"start": span.start, "end": span.end}
    if not configuration.is_html:
        return {**offsets, "text": text}
    # Paths of the nodes are unknown; Label Studio then uses the offsets in the whole text.
    paths = {"start": "", "startOffset": 0, "end": "", "endOffset": 0}
    return {**paths, "globalOffsets": offsets, "text": text}


def simplify_results(results: Sequence[dict[str, Any]], text: TaskText, configuration: Configuration) -> list[dict[str, Any]]:
    """Return the regions and relations of the configured text, with offsets in it; drop results of other tags."""
    simplified = []
    for result in results:
        kind, value = result.get("type"), result.get("value")
        if kind == "relation":
            simplified.append({key: result[key] for key in _RELATION_KEYS if key in result})
        elif kind in LABELS_TAGS and result.get("to_name") == configuration.text_name and isinstance(value, dict):
            offsets = value.get("globalOffsets") if configuration.is_html else value
            region = {key: offsets[key] for key in ("start", "end") if isinstance(offsets, dict) and key in offsets}
            if text.inserted and all(type(offset) is int for offset in region.values()) and len(region) == 2:
                region["start"], region["end"] = text.from_label_studio(Span(region["start"], region["end"]))
            region["labels"] = value.get(kind) or value.get("labels")
            if isinstance(value.get("text"), str) and _is_unicode(value["text"]):  # not half of an emoji
                region["text"] = value["text"]
            simplified.append({"id": result.get("id"), "type": "labels", "to_name": TEXT, "value": region})
    return simplified


def to_sentences(
    id: str, text: str, annotations: Sequence[dict[str, Any]], path: Path, line: int, ledger: Ledger
) -> Iterator[Sentence]:
    """Yield the sentences of a text with one of its annotations: the ground truth, or else the latest."""
    task = validate_task({"data": {TEXT: text}, "annotations": list(annotations)}, path, line)
    for sentence in read_task(task, id, path, line, ledger, text=TEXT):
        yield replace(sentence, extra=None)
