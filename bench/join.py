"""Join consecutive sentences of jsonl files to texts of at most --words words, without their annotations.

    python bench/join.py DATA/ncbi_disease/train.jsonl DATA/ade/train.jsonl --words 230 --out TEXTS.jsonl

A student of models of documents needs documents, too, and many corpora have only sentences. No text has sentences of two
files. A sentence with more words is not joined with others.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path

from spanwise.core.errors import SpanwiseError
from spanwise.files.reading import read_json_records


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--words", type=int, default=230)
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    try:
        texts = [words for path in arguments.files for words in join(path, arguments.words)]
    except SpanwiseError as error:
        parser.error(str(error))
    lines = [json.dumps({"id": f"text-{n}", "tokens": words, "entities": []}) + "\n" for n, words in enumerate(texts, 1)]
    arguments.out.write_text("".join(lines), encoding="utf-8")
    print(f"{len(texts):,} texts, {sum(map(len, texts)):,} words")


def join(path: Path, limit: int) -> Iterator[list[str]]:
    """The words of a file's sentences, joined up to ``limit`` words."""
    words: list[str] = []
    for _, record in read_json_records(path):
        if words and len(words) + len(record["tokens"]) > limit:
            yield words
            words = []
        words = words + record["tokens"]
    if words:
        yield words


if __name__ == "__main__":
    main()
