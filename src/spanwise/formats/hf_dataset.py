"""Hugging Face datasets: a parquet or arrow file, or a folder from ``save_to_disk``, with tokens and tags.

The columns are named ``tokens`` (or ``words``) and ``ner_tags`` (or ``tags``, ``labels``), or given:
``hf_dataset:tokens=text,tags=entities``. Tags are strings or numbers. The names of numbers are read from
the file, or given in order: ``hf_dataset:names=O+B-PER+I-PER``. Other columns are preserved.

The writer creates one parquet file with ``id``, ``tokens`` and ``ner_tags``. Tags are numbered by sorted
type, or in the order of ``names``. All splits of a converted corpus use the same numbers.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from spanwise.core import tags as tagging
from spanwise.core.counting import counted
from spanwise.core.errors import FormatError, SpanwiseError
from spanwise.core.types import Entity, Sentence
from spanwise.files.names import default_id
from spanwise.formats.base import NAME, Format, Ledger, Option, fill_empty_words
from spanwise.formats.hf_files import BATCH_SIZE, open_rows, pyarrow
from spanwise.formats.shared.records import id_or_default
from spanwise.formats.shared.restriction import restrict
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
    with_annotations: bool = True,
) -> Iterator[Sentence]:
    """Read rows. ``tokens`` and ``tags`` are columns, ``names`` the tags of numbers, ``type`` the type for tags without one.

    ``with_annotations=False`` needs no column of tags, and ignores it if there is one.
    """
    columns, features, batches = open_rows(path)
    tokens = _find_column(tokens, TOKENS, columns, "tokens", path)
    if with_annotations or not set(columns).isdisjoint((tags,) if tags else TAGS):
        tags = _find_column(tags, TAGS, columns, "tags", path)
    labels = _label_names(features)
    if tags is not None and names is not None:
        labels[tags] = list(names)
    reader = _RowReader(path, ledger, tokens, tags or "", labels, type, with_annotations)
    number = 0
    for rows in batches:
        for row in rows:
            yield reader.read(row, number)
            number += 1


def _find_column(given: str | None, usual: tuple[str, ...], columns: list[str], option: str, path: Path) -> str:
    candidates = [name for name in ((given,) if given else usual) if name in columns]
    if not candidates:
        problem = f"no column {given!r}" if given else f"no column of {option} ({', '.join(usual)})"
        listed = ", ".join(map(repr, columns)) or "none"
        raise FormatError(path, None, f"{problem}; found {listed}; choose one with hf_dataset:{option}=NAME")
    return candidates[0]


def _label_names(features: bytes) -> dict[str, list[str]]:
    """Return the names of the numbers in each column, from the metadata of ``datasets``."""
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


class _RowReader:
    """The reader of rows."""

    def __init__(
        self, path: Path, ledger: Ledger, tokens: str, tags: str, labels: dict[str, list[str]], untyped: str,
        with_annotations: bool,
    ) -> None:  # fmt: skip
        self.path, self.ledger, self.tokens, self.tags, self.labels = path, ledger, tokens, tags, labels
        self.untyped, self.with_annotations = untyped, with_annotations
        # Tags have prefixes (B-X) or not (X), as the names show, or else the first row with tags.
        self.decode: Callable[[list[str]], list[Entity]] | None = self._choose_decoder(labels.get(tags, ()))

    def read(self, row: dict[str, Any], number: int) -> Sentence:
        try:
            return self._to_sentence(row, default_id(self.path, number))
        except ValueError as error:
            raise FormatError(self.path, None, f"row {number + 1}: {error}") from None

    def _to_sentence(self, row: dict[str, Any], default_id: str) -> Sentence:
        words, values = row.pop(self.tokens, None), row.pop(self.tags, None)
        if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
            raise ValueError(f"{self.tokens}: expected a list of strings, found {words!r:.60}")
        id = row.pop("id") if isinstance(row.get("id"), str | int) else None
        others = {key: self._to_names(key, value) for key, value in row.items()}
        pos = next((others.pop(key) for key in POS if _are_strings(others.get(key), len(words))), None)
        extra = {key: value for key, value in others.items() if _is_json(value)}
        self.ledger.note("values that JSON cannot hold (such as bytes), dropped", len(others) - len(extra))
        return Sentence(
            id=id_or_default(id, default_id),
            words=fill_empty_words(words, self.ledger),
            entities=tuple(self._to_entities(values, len(words))) if self.with_annotations else (),
            pos=pos and tuple(pos),
            extra=extra or None,
        )

    def _to_entities(self, values: Any, count: int) -> list[Entity]:
        if values is None or (isinstance(values, list) and values and all(value in (None, -1) for value in values)):
            self.ledger.note("rows without tags")
            return []
        if not isinstance(values, list) or len(values) != count:
            actual = len(values) if isinstance(values, list) else repr(values)[:60]
            raise ValueError(f"{self.tags}: expected a list of {counted(count, 'tag')}, found {actual}")
        if any(type(value) is int for value in values) and self.tags not in self.labels:
            raise ValueError(
                f"{self.tags} has numbers without names; give the names in order, as in hf_dataset:names=O+B-PER+I-PER"
            )
        tags = self._to_names(self.tags, values)
        if not _are_strings(tags, count):
            known = self.labels.get(self.tags)
            expected = f"numbers below {len(known)}" if known else "strings"
            raise ValueError(f"{self.tags}: expected {expected}, found {values!r:.60}")
        self.decode = self.decode or self._choose_decoder(tags)
        return self.decode(tags) if self.decode else []

    def _choose_decoder(self, tags: Iterable[str]) -> Callable[[list[str]], list[Entity]] | None:
        inside = [tag for tag in tags if tag != "O"]
        if not inside:
            return None
        if tagging.are_untyped(inside):
            return self._decode_untyped
        return self._decode_prefixed if any(map(tagging.is_tag, inside)) else tagging.decode_runs

    def _decode_untyped(self, tags: list[str]) -> list[Entity]:
        entities = self._decode_prefixed([tagging.with_type(tag, self.untyped) for tag in tags])
        self.ledger.note(tagging.untyped_tags_note("hf_dataset", self.untyped), len(entities))
        return entities

    def _decode_prefixed(self, tags: list[str]) -> list[Entity]:
        entities, repairs = tagging.decode(tags)
        self.ledger.note(tagging.REPAIRED, repairs)
        return entities

    def _to_names(self, column: str, value: Any) -> Any:
        """Replace the numbers of a label column by their names, if they have any."""
        names = self.labels.get(column)
        if names is None:
            return value
        if isinstance(value, list):
            return [self._to_names(column, item) for item in value]
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
    """Write a parquet file, through a temporary file because the tag numbers are known only at the end."""
    pa = pyarrow()
    import pyarrow.parquet as pq

    strings = pa.list_(pa.string())
    text_schema = pa.schema([("id", pa.string()), ("tokens", strings), ("ner_tags", strings)])
    types: set[str] = set()
    with tempfile.TemporaryFile() as spool:
        with pa.ipc.new_stream(spool, text_schema) as stream:
            for rows in _to_rows(sentences, types, ledger):
                stream.write_batch(pa.RecordBatch.from_pylist(rows, text_schema))
        spool.seek(0)
        needed = _all_tags(types)
        if names is None:
            names = tuple(needed)
        numbers = {name: number for number, name in enumerate(names)}
        missing = [tag for tag in needed if tag not in numbers]
        if missing:
            raise SpanwiseError(f"hf_dataset:names is missing {', '.join(missing)}")
        schema = pa.schema([*list(text_schema)[:2], ("ner_tags", pa.list_(pa.int64()))], {"huggingface": _features(names)})
        with pq.ParquetWriter(path, schema) as writer, pa.ipc.open_stream(spool) as stream:
            for batch in stream:
                tags = [[numbers[tag] for tag in row] for row in batch.column("ner_tags").to_pylist()]
                columns = [*batch.columns[:2], pa.array(tags, pa.list_(pa.int64()))]
                writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=schema))


def _to_rows(sentences: Iterable[Sentence], types: set[str], ledger: Ledger) -> Iterator[list[dict[str, Any]]]:
    """Yield batches of rows, and add their entity types to ``types``."""
    flat = (restrict(sentence, frozenset(), ledger) for sentence in sentences)
    while group := list(islice(flat, BATCH_SIZE)):
        types.update(entity.type for sentence in group for entity in sentence.entities)
        yield [{"id": s.id, "tokens": list(s.words), "ner_tags": tagging.encode(s.entities, len(s.words))} for s in group]


def _features(names: Iterable[str]) -> str:
    """Return the metadata of ``datasets``. All its versions read "Sequence", only newer ones "List"."""
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


def _parse_names(value: str) -> tuple[str, ...]:
    return tuple(value.split("+"))


def _all_tags(types: Iterable[str]) -> list[str]:
    return ["O", *(f"{prefix}-{type}" for type in sorted(types) for prefix in "BI")]


def _corpus_options(sentences: Iterable[Sentence], options: dict[str, Any]) -> dict[str, Any]:
    """Return the tag names of all splits, so that a tag has the same number in each."""
    types = {entity.type for sentence in sentences for entity in sentence.entities}
    return {"names": tuple(_all_tags(types)), **options}


_NAMES = Option(_parse_names, "O+B-X+I-X")


FORMAT = Format(
    name="hf_dataset",
    summary="Hugging Face datasets: parquet, arrow or a save_to_disk folder, with tokens and ner_tags",
    read=read,
    write=write,
    sniff=sniff,
    extensions=(".parquet", ".arrow"),
    metadata=frozenset(("ids",)),
    input_kinds=frozenset(("file", "folder")),
    read_options={"tokens": NAME, "tags": NAME, "names": _NAMES, "type": NAME},
    write_options={"names": _NAMES},
    corpus_options=_corpus_options,
    pip_extra="datasets",
    can_lack_annotations=True,
)
