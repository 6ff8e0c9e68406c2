"""Memory use does not grow with the size of the file."""

from __future__ import annotations

import json
import subprocess
import sys
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest
from samples import put

from spanwise import Entity, Relation, Sentence, read, write

RECORD = {"tokens": ["The", "Bank", "of", "Japan", "met", "."] * 4}
JSONL = {**RECORD, "entities": [{"type": "ORG", "spans": [[1, 4]]}, {"type": "LOC", "spans": [[3, 4]]}]}
SPERT = {**RECORD, "entities": [{"type": "ORG", "start": 1, "end": 4}], "relations": []}
SMALL, LARGE = 5_000, 30_000  # sentences: about 1.5 and 9 MB

MEASURE = """
import sys
import spanwise
{code}
for line in open("/proc/self/status"):
    if line.startswith("VmHWM"):
        print(line.split()[1])
"""
READ = "count = sum(1 for _ in spanwise.read(sys.argv[1])); assert count == int(sys.argv[2])"
CONVERT = "spanwise.convert(sys.argv[1], sys.argv[1] + '.conll', lossy=True)"


def content(format: str, count: int) -> str:
    if format == "jsonl":
        return (json.dumps(JSONL) + "\n") * count
    if format == "spert":
        return "[" + ",\n".join([json.dumps(SPERT)] * count) + "]"
    return ("\n".join(f"{word}\t{'B-ORG' if word == 'Bank' else 'O'}" for word in RECORD["tokens"]) + "\n\n") * count


def peak(path: Path, count: int, code: str) -> int:
    """Return the peak memory of a process that runs the code, in KiB. (getrusage includes the parent's memory.)"""
    command = [sys.executable, "-c", MEASURE.format(code=code), str(path), str(count)]
    return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()[-1])


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the system does not report peak memory")
@pytest.mark.parametrize(
    ("format", "name", "code"),
    [
        ("jsonl", "x.jsonl", READ),
        ("spert", "x.json", READ),
        ("conll", "x.conll", READ),
        ("jsonl", "x.jsonl", CONVERT),
    ],
    ids=["read jsonl", "read a JSON array", "read columns", "convert"],
)
def test_a_file_six_times_as_large_needs_no_more_memory(tmp_path: Path, format: str, name: str, code: str) -> None:
    peaks = []
    for count in (SMALL, LARGE):
        path = tmp_path / name
        path.write_text(content(format, count), encoding="utf-8")
        peaks.append(peak(path, count, code))
    assert peaks[1] - peaks[0] < 3 * 1024  # the second file is 7.5 MB larger, and more as Python objects


def long_sentences(count: int, length: int) -> Iterator[Sentence]:
    entities = (Entity("Drug", ((0, 1),)), Entity("Adverse-Effect", ((1, 2),)))
    for number in range(count):
        words = ("zinc", "rash", f"{number}" + "x" * length)
        yield Sentence(f"s{number}", words, entities, (Relation("Adverse-Effect", 1, 0),))


@pytest.mark.parametrize("name", ["dygie", "doccano", "label_studio", "pubtator", "ade_rel", "multihead", "hf_dataset", "brat"])
def test_no_format_keeps_the_corpus_in_memory(name: str, tmp_path: Path) -> None:
    """A corpus three times as large needs hardly more memory in Python. (brat keeps file names.)"""
    put(name, tmp_path)  # imports the library, or skips the test
    # hf_dataset works in batches of a thousand sentences.
    size, length = (2000, 1000) if name == "hf_dataset" else (200, 3000)
    peaks = []
    for count in (size, 3 * size):
        tracemalloc.start()
        try:
            write(long_sentences(count, length), tmp_path / f"{count}", name, lossy=True)
            assert sum(len(sentence.entities) for sentence in read(tmp_path / f"{count}", name)) == 2 * count
            peaks.append(tracemalloc.get_traced_memory()[1])
        finally:
            tracemalloc.stop()
    assert peaks[1] - peaks[0] < size * length  # half the size of the additional sentences
