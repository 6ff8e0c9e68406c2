"""Data sets of Hugging Face: a parquet or arrow file, or a folder that ``save_to_disk`` wrote, with tokens and a tag for each.

The columns are called ``tokens`` (or ``words``) and ``ner_tags`` (or ``tags``, ``labels``); others can be said:
``hf_dataset:tokens=text,tags=entities``. Tags are strings, or numbers whose names the file holds as ``datasets`` keeps them;
numbers without names need them in order: ``hf_dataset:names=O+B-PER+I-PER``. Other columns are kept with the sentences.

Written is one parquet file with ``id``, ``tokens`` and ``ner_tags``, numbered in the order of the types' names, or as ``names``
says. The splits of a corpus that is converted as a whole are numbered alike.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from spanwise.core import tags as tagging
from spanwise.core.errors import FormatError, SpanwiseError
from spanwise.core.types import Entity, Sentence
from spanwise.files.names import default_id
from spanwise.formats.base import NAME, Format, Ledger, Option
from spanwise.formats.hf_files import ROWS, open_rows, pyarrow
from spanwise.formats.shared.fitting import fitted
from spanwise.formats.shared.records import own_id
from spanwise.formats.shared.sample import Sample

TOKENS = ("tokens", "words")
TAGS = ("ner_tags", "tags", "labels")
POS = ("pos_tags", "pos")


def read(
    path: Path,
    ledger: Ledger,
    /,
    *,
    tokens: str | None = None,
    tags: str | None = None,
    names: tuple[str, ...] | None = None,
    type: str = tagging.UNTYPED,
) -> Iterator[Sentence]:
    """``tokens`` and ``tags`` name columns, ``names`` the tags that numbers stand for, ``type`` what tags without one mean."""
    columns, features, batches = open_rows(path)
    tokens = _column(tokens, TOKENS, columns, "tokens", path)
    tags = _column(tags, TAGS, columns, "tags", path)
    labels = _label_names(features)
    if names is not None:
        labels[tags] = list(names)
    reader = _Reader(path, ledger, tokens, tags, labels, type)
    number = 0
    for rows in batches:
        for row in rows:
            yield reader.sentence(row, number)
            number += 1


def _column(wanted: str | None, usual: tuple[str, ...], columns: list[str], what: str, path: Path) -> str:
    found = [name for name in ((wanted,) if wanted else usual) if name in columns]
    if not found:
        named = f"no column {wanted!r}" if wanted else f"no column of {what} ({', '.join(usual)})"
        raise FormatError(
            path, None, f"{named}; there are {', '.join(map(repr, columns)) or 'none'} (say which: hf_dataset:{what}=…)"
        )
    return found[0]


def _label_names(features: bytes) -> dict[str, list[str]]:
    """The names of the numbers in each column, as ``datasets`` keeps them."""
    try:
        columns = json.loads(features)["info"]["features"]
        named = {column: _names_in(feature) for column, feature in columns.items()}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return {}
    return {column: names for column, names in named.items() if names}


def _names_in(feature: Any) -> list[str]:
    if isinstance(feature, list) and feature:
        return _names_in(feature[0])
    if not isinstance(feature, dict):
        return []
    names = feature.get("names")
    if isinstance(names, list) and all(isinstance(name, str) for name in names):
        return names
    return _names_in(feature.get("feature"))


class _Reader:
    """Makes sentences of rows."""

    def __init__(self, path: Path, ledger: Ledger, tokens: str, tags: str, labels: dict[str, list[str]], untyped: str) -> None:
        self.path, self.ledger, self.tokens, self.tags, self.labels = path, ledger, tokens, tags, labels
        self.untyped = untyped
        # Whether tags have letters (B-X) or not (X): the names tell, or else the first row that has any.
        self.decode: Callable[[list[str]], list[Entity]] | None = self._decoder(labels.get(tags, ()))

    def sentence(self, row: dict[str, Any], number: int) -> Sentence:
        try:
            return self._sentence(row, default_id(self.path, number))
        except ValueError as error:
            raise FormatError(self.path, None, f"row {number + 1}: {error}") from None

    def _sentence(self, row: dict[str, Any], default_id: str) -> Sentence:
        words, values = row.pop(self.tokens, None), row.pop(self.tags, None)
        if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
            raise ValueError(f"{self.tokens}: expected a list of strings, found {words!r:.60}")
        name = row.pop("id") if isinstance(row.get("id"), str | int) else None
        others = {key: self._named(key, value) for key, value in row.items()}
        pos = next((others.pop(key) for key in POS if _are_strings(others.get(key), len(words))), None)
        extra = {key: value for key, value in others.items() if _is_json(value)}
        self.ledger.note("values that JSON cannot hold, such as bytes, left out", len(others) - len(extra))
        return Sentence(
            id=own_id(name, default_id),
            words=tuple(words),
            entities=tuple(self._entities(values, len(words))),
            pos=pos and tuple(pos),
            extra=extra or None,
        )

    def _entities(self, values: Any, count: int) -> list[Entity]:
        if values is None or (isinstance(values, list) and values and all(value in (None, -1) for value in values)):
            self.ledger.note("rows without tags")
            return []
        if not isinstance(values, list) or len(values) != count:
            found = len(values) if isinstance(values, list) else repr(values)[:60]
            raise ValueError(f"{self.tags}: expected a list of {count} tags, found {found}")
        if any(type(value) is int for value in values) and self.tags not in self.labels:
            raise ValueError(
                f"{self.tags} has numbers, and the file does not name them; give the names in order, as in "
                f"hf_dataset:names=O+B-PER+I-PER"
            )
        tags = self._named(self.tags, values)
        if not _are_strings(tags, count):
            known = self.labels.get(self.tags)
            expected = f"numbers below {len(known)}" if known else "strings"
            raise ValueError(f"{self.tags}: expected {expected}, found {values!r:.60}")
        self.decode = self.decode or self._decoder(tags)
        return self.decode(tags) if self.decode else []

    def _decoder(self, seen: Iterable[str]) -> Callable[[list[str]], list[Entity]] | None:
        inside = [tag for tag in seen if tag != "O"]
        if not inside:
            return None
        if tagging.are_untyped(inside):
            return self._untyped
        return self._letters if any(map(tagging.is_tag, inside)) else tagging.decode_runs

    def _untyped(self, tags: list[str]) -> list[Entity]:
        entities = self._letters([tagging.typed(tag, self.untyped) for tag in tags])
        self.ledger.note(tagging.untyped_note("hf_dataset", self.untyped), len(entities))
        return entities

    def _letters(self, tags: list[str]) -> list[Entity]:
        entities, repairs = tagging.decode(tags)
        self.ledger.note(tagging.REPAIRED, repairs)
        return entities

    def _named(self, column: str, value: Any) -> Any:
        """Numbers of a column of labels as their names; what has none stays a number."""
        names = self.labels.get(column)
        if names is None:
            return value
        if isinstance(value, list):
            return [self._named(column, item) for item in value]
        return names[value] if type(value) is int and 0 <= value < len(names) else value


def _are_strings(value: Any, count: int) -> bool:
    return isinstance(value, list) and len(value) == count and all(isinstance(item, str) for item in value)


def _is_json(value: Any) -> bool:
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError):
        return False
    return True


def write(sentences: Iterable[Sentence], path: Path, ledger: Ledger, /, *, names: tuple[str, ...] | None = None) -> None:
    """Tags are written to a temporary file first, for their numbers are known only at the end."""
    pa = pyarrow()
    import pyarrow.parquet as pq

    strings = pa.list_(pa.string())
    plain = pa.schema([("id", pa.string()), ("tokens", strings), ("ner_tags", strings)])
    types: set[str] = set()
    with tempfile.TemporaryFile() as spool:
        with pa.ipc.new_stream(spool, plain) as stream:
            for rows in _rows(sentences, types, ledger):
                stream.write_batch(pa.RecordBatch.from_pylist(rows, plain))
        spool.seek(0)
        needed = _tags_of(types)
        if names is None:
            names = tuple(needed)
        numbers = {name: number for number, name in enumerate(names)}
        missing = [tag for tag in needed if tag not in numbers]
        if missing:
            raise SpanwiseError(f"hf_dataset:names lacks {', '.join(missing)}")
        schema = pa.schema([*list(plain)[:2], ("ner_tags", pa.list_(pa.int64()))], {"huggingface": _features(names)})
        with pq.ParquetWriter(path, schema) as writer, pa.ipc.open_stream(spool) as stream:
            for batch in stream:
                tags = [[numbers[tag] for tag in row] for row in batch.column("ner_tags").to_pylist()]
                columns = [*batch.columns[:2], pa.array(tags, pa.list_(pa.int64()))]
                writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=schema))


def _rows(sentences: Iterable[Sentence], types: set[str], ledger: Ledger) -> Iterator[list[dict[str, Any]]]:
    """Rows by the thousand; the types met are added to ``types``."""
    flat = (fitted(sentence, frozenset(), ledger) for sentence in sentences)
    while group := list(islice(flat, ROWS)):
        types.update(entity.type for sentence in group for entity in sentence.entities)
        yield [{"id": s.id, "tokens": list(s.words), "ner_tags": tagging.encode(s.entities, len(s.words))} for s in group]


def _features(names: Iterable[str]) -> str:
    """What ``datasets`` keeps of the columns. "Sequence" is read by all its versions, "List" by the newer ones only."""
    string = {"dtype": "string", "_type": "Value"}
    labels = {"names": list(names), "_type": "ClassLabel"}
    features = {
        "id": string,
        "tokens": {"feature": string, "_type": "Sequence"},
        "ner_tags": {"feature": labels, "_type": "Sequence"},
    }
    return json.dumps({"info": {"features": features}})


def sniff(sample: Sample) -> bool:
    if sample.is_folder:
        return (sample.path / "dataset_dict.json").is_file() or any(sample.path.glob("data-*.arrow"))
    return sample.raw.startswith((b"PAR1", b"ARROW1", b"\xff\xff\xff\xff"))


def _names(value: str) -> tuple[str, ...]:
    return tuple(value.split("+"))


def _tags_of(types: Iterable[str]) -> list[str]:
    return ["O", *(f"{letter}-{kind}" for kind in sorted(types) for letter in "BI")]


def _for_corpus(sentences: Iterable[Sentence], options: dict[str, Any]) -> dict[str, Any]:
    """The same number for a tag in all splits, whichever of them has it."""
    types = {entity.type for sentence in sentences for entity in sentence.entities}
    return {"names": tuple(_tags_of(types)), **options}


_NAMES = Option(_names, "O+B-X+I-X")


FORMAT = Format(
    name="hf_dataset",
    summary="data sets of Hugging Face: parquet, arrow, or a folder of save_to_disk, with tokens and ner_tags",
    read=read,
    write=write,
    sniff=sniff,
    extensions=(".parquet", ".arrow"),
    keeps=frozenset(("ids",)),
    read_from=frozenset(("file", "folder")),
    read_options={"tokens": NAME, "tags": NAME, "names": _NAMES, "type": NAME},
    write_options={"names": _NAMES},
    for_corpus=_for_corpus,
    extra="datasets",
)
