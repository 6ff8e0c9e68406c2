"""Memory does not grow with the file."""

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
SMALL, LARGE = 10_000, 60_000  # sentences: some 3 and 18 MB

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
    """The most memory, in KiB, of a process that does this. (getrusage would count what its parent had, too.)"""
    words = [sys.executable, "-c", MEASURE.format(code=code), str(path), str(count)]
    return int(subprocess.run(words, capture_output=True, text=True, check=True).stdout.split()[-1])


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the system does not tell a process's peak of memory")
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
def test_six_times_the_file_needs_no_more_memory(tmp_path: Path, format: str, name: str, code: str) -> None:
    peaks = []
    for count in (SMALL, LARGE):
        path = tmp_path / name
        path.write_text(content(format, count), encoding="utf-8")
        peaks.append(peak(path, count, code))
    assert peaks[1] - peaks[0] < 6 * 1024  # the larger file is 15 MB larger, and more as Python objects


def long_sentences(count: int) -> Iterator[Sentence]:
    entities = (Entity("Drug", ((0, 1),)), Entity("Adverse-Effect", ((1, 2),)))
    for number in range(count):
        yield Sentence(f"s{number}", ("zinc", "rash", f"{number}" + "x" * 3000), entities, (Relation("Adverse-Effect", 1, 0),))


@pytest.mark.parametrize("name", ["dygie", "doccano", "label_studio", "pubtator", "ade_rel", "multihead", "hf_dataset", "brat"])
def test_no_format_gathers_the_corpus(name: str, tmp_path: Path) -> None:
    """Three times the corpus, and hardly more memory of Python's. (brat keeps the names of its files.)"""
    put(name, tmp_path)  # loads what it needs, or skips the test
    size = 2000 if name == "hf_dataset" else 400  # which is read and written by the thousand, one behind another
    peaks = []
    for count in (size, 3 * size):
        tracemalloc.start()
        try:
            write(long_sentences(count), tmp_path / f"{count}", name, lossy=True)
            assert sum(len(sentence.entities) for sentence in read(tmp_path / f"{count}", name)) == 2 * count
            peaks.append(tracemalloc.get_traced_memory()[1])
        finally:
            tracemalloc.stop()
    assert peaks[1] - peaks[0] < size * 3000  # half of what the further sentences weigh
