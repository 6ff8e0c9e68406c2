"""Write a copy of a corpus whose sentences are merged to documents, as in the authors' program of DSpERT.

python bench/papers/merge.py DATA/genia MERGED/genia --encoder minilm

Consecutive sentences of a document in one split become one sentence of at most --subwords subwords of the
encoder (510, which leaves room for its two special tokens). Each subword is then encoded once and has the
whole document as context. Entities keep their words, so scores can be compared with those of sentences;
relations and parts of speech are not copied.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

from spanwise.core.errors import SpanwiseError
from spanwise.encoders.pretrained import load_pretrained

Record = dict[str, Any]  # a line of a jsonl file


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--encoder", default="minilm", help="Encoder whose subwords are counted.")
    parser.add_argument("--subwords", type=int, default=510, help="Maximum subwords of a merged sentence.")
    arguments = parser.parse_args()
    paths = sorted(arguments.data.glob("*.jsonl"))
    if not paths:
        parser.error(f"{arguments.data} has no .jsonl file")
    try:
        _, tokenizer = load_pretrained(arguments.encoder)
    except SpanwiseError as error:
        parser.error(str(error))
    arguments.out.mkdir(parents=True, exist_ok=True)
    for path in paths:
        with path.open(encoding="utf-8") as file:
            records = [json.loads(line) for line in file]
        rows = tokenizer([record["tokens"] for record in records], is_split_into_words=True, add_special_tokens=False)
        merged = list(merge(records, [len(row) for row in rows["input_ids"]], arguments.subwords))
        lines = [json.dumps(record, ensure_ascii=False) + "\n" for record in merged]
        (arguments.out / path.name).write_text("".join(lines), encoding="utf-8")
        print(f"{path.name}: {len(records):,} sentences, {len(merged):,} merged")


def merge(records: list[Record], sizes: list[int], limit: int) -> Iterator[Record]:
    """Merge consecutive records of a document, each of the given size, up to a total size of ``limit``."""
    for _, document in groupby(zip(records, sizes, strict=True), key=lambda item: item[0].get("document") or item[0]["id"]):
        group: list[Record] = []
        total = 0
        for record, size in document:
            if group and total + size > limit:
                yield join(group)
                group, total = [], 0
            group.append(record)
            total += size
        yield join(group)


def join(records: list[Record]) -> Record:
    """One record with the words and entities of several."""
    words: list[str] = []
    entities: list[Record] = []
    for record in records:
        first = len(words)
        for entity in record["entities"]:
            spans = [[first + start, first + end] for start, end in entity["spans"]]
            entities.append({"spans": spans, "type": entity["type"]})
        words += record["tokens"]
    return {"id": records[0]["id"], "tokens": words, "entities": entities}


if __name__ == "__main__":
    main()
