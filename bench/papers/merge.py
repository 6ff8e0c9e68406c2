"""Write a copy of a corpus whose sentences are merged to documents, as in the authors' program of DSpERT.

python bench/papers/merge.py DATA/genia MERGED/genia --encoder minilm [--complete]

Consecutive sentences of a document in one split become one sentence of at most --subwords subwords of the
encoder (510, which leaves room for its two special tokens). Each subword is then encoded once and has the
whole document as context. Entities keep their words, so scores can be compared with those of sentences;
relations and parts of speech are not copied.

With --complete, the sentences of a document that are in other splits are merged, too: without their entities,
and marked as not annotated ("annotated" in jsonl), so they are neither learned nor scored. Partially annotated
sentences are refused, because these marks would be lost.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

from spanwise.core.errors import FormatError, SpanwiseError
from spanwise.encoders.pretrained import load_pretrained
from spanwise.files.reading import read_json_records
from spanwise.runs.outputs import check_output

Record = dict[str, Any]  # a line of a jsonl file


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--encoder", default="minilm", help="Encoder whose subwords are counted.")
    parser.add_argument("--subwords", type=int, default=510, help="Maximum subwords of a merged sentence.")
    parser.add_argument("--complete", action="store_true", help="Add sentences of other splits as context.")
    arguments = parser.parse_args()
    paths = sorted(arguments.data.glob("*.jsonl"))
    if not paths:
        parser.error(f"{arguments.data} has no .jsonl file")
    try:
        check_output(arguments.out, [arguments.data])
        _, tokenizer = load_pretrained(arguments.encoder)
        splits = {path: read(path) for path in paths}
        if arguments.complete:
            splits = {
                path: complete(records, [record for other in splits if other != path for record in splits[other]])
                for path, records in splits.items()
            }
    except SpanwiseError as error:
        parser.error(str(error))
    arguments.out.mkdir(parents=True, exist_ok=True)
    for path, records in splits.items():
        rows = tokenizer([record["tokens"] for record in records], is_split_into_words=True, add_special_tokens=False)
        merged = list(merge(records, [len(row) for row in rows["input_ids"]], arguments.subwords))
        lines = [json.dumps(record, ensure_ascii=False) + "\n" for record in merged]
        (arguments.out / path.name).write_text("".join(lines), encoding="utf-8")
        print(f"{path.name}: {len(records):,} sentences, {len(merged):,} merged")


def read(path: Path) -> list[Record]:
    """Read the sentences of a split, which must be annotated completely."""
    records = []
    for number, record in read_json_records(path):
        if record.get("annotated") is not None:
            raise FormatError(path, number, "the sentence is annotated partially; expected complete annotations")
        records.append(record)
    return records


def complete(records: list[Record], others: list[Record]) -> list[Record]:
    """Add the other sentences of the documents of ``records``, without entities, in the order of positions."""
    documents: dict[str, list[Record]] = {}
    for record in records:
        documents.setdefault(record.get("document") or record["id"], []).append(record)
    for record in others:
        if record.get("document") in documents:
            documents[record["document"]].append({**record, "entities": [], "is_context": True})
    for name, document in documents.items():
        if any(record.get("is_context") for record in document):
            if any(record.get("position") is None for record in document):
                raise SpanwiseError(f"document {name} is in several splits; expected a position in each of its sentences")
            document.sort(key=lambda record: int(record["position"]))
    return [record for document in documents.values() for record in document]


def merge(records: list[Record], sizes: list[int], limit: int) -> Iterator[Record]:
    """Merge consecutive records of a document, each of the given size, up to a total size of ``limit``."""
    for _, document in groupby(zip(records, sizes, strict=True), key=lambda item: item[0].get("document") or item[0]["id"]):
        group: list[Record] = []
        total = 0
        for record, size in document:
            if group and total + size > limit:
                yield from join(group)
                group, total = [], 0
            group.append(record)
            total += size
        yield from join(group)


def join(records: list[Record]) -> Iterator[Record]:
    """One record with the words and entities of several; none if all of them are only context."""
    words: list[str] = []
    entities: list[Record] = []
    annotated: list[list[int]] = []
    for record in records:
        first = len(words)
        for entity in record["entities"]:
            spans = [[first + start, first + end] for start, end in entity["spans"]]
            entities.append({"spans": spans, "type": entity["type"]})
        words += record["tokens"]
        if not record.get("is_context"):
            annotated.append([first, len(words)])
    if annotated:
        marks = {"annotated": annotated} if len(annotated) < len(records) else {}
        yield {"id": records[0]["id"], "tokens": words, "entities": entities, **marks}


if __name__ == "__main__":
    main()
