"""Hugging Face datasets with tokens and tags: a parquet, arrow or JSON file, or a folder from ``save_to_disk``.

The columns are named ``tokens`` (or ``words``) and ``ner_tags`` (or ``tags``, ``labels``), or given:
``hf_dataset:tokens=text,tags=entities``. Tags are strings or numbers. The names of numbers are read from
the file, from ``dataset_info.json`` next to a JSON file, or given in order:
``hf_dataset:names=O+B-PER+I-PER``. Other columns are preserved.

The writer creates one parquet file with ``id``, ``tokens`` and ``ner_tags``. Tags are numbered by sorted
type, or in the order of ``names``. All splits of a converted corpus use the same numbers.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from spanwise.core import tags as tagging
from spanwise.core.errors import SpanwiseError
from spanwise.core.types import Sentence
from spanwise.files.companions import DATASET_INFO
from spanwise.formats.base import NAME, Format, Ledger, Option
from spanwise.formats.hf_files import BATCH_SIZE, open_rows, pyarrow
from spanwise.formats.hf_json import is_json, open_json_rows
from spanwise.formats.hf_rows import RowReader, find_column, label_names
from spanwise.formats.shared.restriction import restrict
from spanwise.formats.shared.sample import Sample

TOKENS = ("tokens", "words")
TAGS = ("ner_tags", "tags", "labels")


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
    columns, features, rows = open_json_rows(path) if is_json(path) else open_rows(path)
    tokens = find_column(tokens, TOKENS, columns, "tokens", path)
    if with_annotations or not set(columns).isdisjoint((tags,) if tags else TAGS):
        tags = find_column(tags, TAGS, columns, "tags", path)
    labels = label_names(features)
    if tags is not None and names is not None:
        labels[tags] = list(names)
    reader = RowReader(path, ledger, tokens, tags or "", labels, type, with_annotations)
    for number, (line, row) in enumerate(rows):
        yield reader.read(row, number, line)


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
    return sample.raw.startswith((b"PAR1", b"ARROW1", b"\xff\xff\xff\xff")) or _has_rows(sample)


def _has_rows(sample: Sample) -> bool:
    """Return True for JSON records with words, and a tag for each word."""
    tokens, tags = (next((key for key in keys if sample.all_have(key)), None) for keys in (TOKENS, TAGS))
    if tokens is None or tags is None or not all(isinstance(word, str) for word in sample.list_items(tokens)):
        return False
    return any(_are_tags(record[tags], record[tokens]) for record in sample.dicts)


def _are_tags(values: Any, words: Any) -> bool:
    return (
        isinstance(values, list) and isinstance(words, list) and len(values) == len(words) > 0
        and all(isinstance(value, str | int) for value in values)
    )  # fmt: skip


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
    summary="Hugging Face datasets: parquet, arrow, JSON or a save_to_disk folder, with tokens and ner_tags",
    read=read,
    write=write,
    sniff=sniff,
    extensions=(".parquet", ".arrow"),
    metadata=frozenset(("ids",)),
    input_kinds=frozenset(("file", "folder")),
    companions=(DATASET_INFO,),
    read_options={"tokens": NAME, "tags": NAME, "names": _NAMES, "type": NAME},
    write_options={"names": _NAMES},
    corpus_options=_corpus_options,
    pip_extra="datasets",
    can_lack_annotations=True,
)
