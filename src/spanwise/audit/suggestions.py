"""Suggestions of an audit: what gold has, what it should have, and how sure that is."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import ConfigDict, TypeAdapter, with_config
from typing_extensions import TypedDict

from spanwise.analysis.writing import csv_safe
from spanwise.core.errors import FormatError
from spanwise.core.types import Corpus, Entity, Sentence
from spanwise.corpora.splits import select_split
from spanwise.files.reading import read_json_records, validate_record
from spanwise.files.writing import JsonArray, open_output
from spanwise.formats.shared.sample import Sample

COLUMNS = (
    "rank", "score", "kind", "split", "sentence", "gold_type", "gold_text", "suggested_type", "suggested_text",
    "gold_probability", "suggested_probability", "annotated_elsewhere", "occurs_elsewhere", "context",
)  # fmt: skip


@with_config(ConfigDict(extra="forbid", strict=True))
class _EntityRecord(TypedDict, total=False):
    type: str
    spans: list[list[int]]
    text: str


@with_config(ConfigDict(extra="ignore", strict=True))
class _Record(TypedDict):
    sentence: str
    kind: Literal["missing", "spurious", "type", "boundary"]
    gold: _EntityRecord | None
    suggestion: _EntityRecord | None


_SHAPE: TypeAdapter[_Record] = TypeAdapter(_Record)


@dataclass(frozen=True, slots=True)
class Suggestion:
    """Replace ``gold`` (None: nothing) by ``suggestion`` (None: nothing) in the sentence with this key.

    ``kind`` is ``missing`` if gold lacks an entity, ``spurious`` if it has one too many, ``type`` or
    ``boundary`` if it should have another type or other words (and perhaps another type). ``details`` are
    more columns of the table.
    """

    sentence: str
    kind: str
    gold: Entity | None
    suggestion: Entity | None
    score: float
    details: Mapping[str, Any]

    def to_json(self, sentence: Sentence) -> dict[str, Any]:
        return {
            "sentence": self.sentence,
            "kind": self.kind,
            "gold": _entity_json(self.gold, sentence),
            "suggestion": _entity_json(self.suggestion, sentence),
            "score": self.score,
        }


def _entity_json(entity: Entity | None, sentence: Sentence) -> dict[str, Any] | None:
    if entity is None:
        return None
    return {"type": entity.type, "spans": [list(span) for span in entity.fragments], "text": sentence.text_of(entity)}


def audited_part(corpus: Corpus, split: str | None, source: str | Path) -> Corpus:
    """The part of a corpus that is audited: one split, or all. Sentences have their keys from this part alone."""
    if split is None:
        return corpus
    name = select_split(corpus, split, source)
    return Corpus({name: corpus[name]}, corpus.name)


def sentence_keys(corpus: Corpus) -> dict[str, tuple[str, Sentence]]:
    """The sentences of all splits with their split, under unique names.

    The name is the id of a sentence; if several have it, the later ones get a number.

    >>> corpus = Corpus({"train": (Sentence("a", ("x",)), Sentence("a", ("y",)))})
    >>> list(sentence_keys(corpus))
    ['a', 'a#2']
    """
    counts: Counter[str] = Counter()
    keys: dict[str, tuple[str, Sentence]] = {}
    for split in corpus:
        for sentence in corpus[split]:
            counts[sentence.id] += 1
            key = sentence.id if counts[sentence.id] == 1 else f"{sentence.id}#{counts[sentence.id]}"
            while key in keys:
                key += "'"
            keys[key] = split, sentence
    return keys


def write_json_suggestions(suggestions: Iterable[Suggestion], keys: Mapping[str, tuple[str, Sentence]], path: Path) -> None:
    with open_output(path) as file, JsonArray(file) as array:
        for item in suggestions:
            array.add(item.to_json(keys[item.sentence][1]))


def write_csv_suggestions(suggestions: Sequence[Suggestion], keys: Mapping[str, tuple[str, Sentence]], path: Path) -> None:
    """Write a table for spreadsheets, one row per suggestion."""
    with open_output(path) as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        for rank, item in enumerate(suggestions, 1):
            split, sentence = keys[item.sentence]
            row: dict[str, Any] = {
                "rank": rank, "score": item.score, "kind": item.kind, "split": split, "sentence": item.sentence, **item.details
            }  # fmt: skip
            for name, entity in (("gold", item.gold), ("suggested", item.suggestion)):
                row[f"{name}_type"] = "" if entity is None else entity.type
                row[f"{name}_text"] = "" if entity is None else sentence.text_of(entity)
            row["context"] = " ".join(sentence.text.split())
            writer.writerow([csv_safe(row.get(column, "")) for column in COLUMNS])


def is_suggestion_file(path: Path) -> bool:
    """Whether a file looks like a list of suggestions, perhaps with mistakes, and not like annotated data."""
    if not path.is_file() or path.suffix.lower() not in (".json", ".jsonl"):
        return False
    sample = Sample(path)
    has_suggestion = any(len(record.keys() & {"kind", "gold", "suggestion"}) > 1 for record in sample.dicts)
    return has_suggestion or "".join(sample.text.split()) == "[]"


def is_suggestion_table(path: Path) -> bool:
    """Whether a file is the table for spreadsheets, perhaps with another separator."""
    return path.suffix.lower() == ".csv" and {"gold_text", "suggested_text"} <= set(re.split(r"\W+", Sample(path).text[:1000]))


def read_suggestions(path: Path) -> list[Suggestion]:
    """Read a file in the form of ``suggestions.json``; other keys of the records are ignored."""
    suggestions = []
    for line, record in read_json_records(path):
        valid = validate_record(_SHAPE, record, path, line)
        gold, suggestion = (_read_entity(valid[name], path, line) for name in ("gold", "suggestion"))
        if gold is None and suggestion is None:
            raise FormatError(path, line, "gold and suggestion are both null; expected an entity in at least one of them")
        texts = {"gold_text": (valid["gold"] or {}).get("text"), "suggested_text": (valid["suggestion"] or {}).get("text")}
        suggestions.append(Suggestion(valid["sentence"], valid["kind"], gold, suggestion, 1.0, texts))
    return suggestions


def _read_entity(record: _EntityRecord | None, path: Path, line: int) -> Entity | None:
    if record is None:
        return None
    try:
        return Entity(record["type"], tuple(record["spans"]))  # type: ignore[arg-type]
    except KeyError as error:
        raise FormatError(path, line, f"an entity has no {error.args[0]!r}; expected type and spans") from None
    except ValueError as error:
        raise FormatError(path, line, str(error)) from None
