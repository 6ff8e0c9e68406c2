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
SMALL, LARGE = 1_000, 6_000  # sentences: the second file is 0.8 MB larger or more, and much more as Python objects

MEASURE = """
import sys
import spanwise
for path, count in ((sys.argv[1], {small}), (sys.argv[2], {large})):
    {code}
    for line in open("/proc/self/status"):
        if line.startswith("VmHWM"):
            print(line.split()[1])
"""
READ = "assert sum(1 for _ in spanwise.read(path)) == count"
CONVERT = "spanwise.convert(path, path + '.conll', lossy=True)"


def content(format: str, count: int) -> str:
    if format == "jsonl":
        return (json.dumps(JSONL) + "\n") * count
    if format == "spert":
        return "[" + ",\n".join([json.dumps(SPERT)] * count) + "]"
    return ("\n".join(f"{word}\t{'B-ORG' if word == 'Bank' else 'O'}" for word in RECORD["tokens"]) + "\n\n") * count


def peaks(small: Path, large: Path, code: str) -> list[int]:
    """Return the peak memory of a process after it has run the code for each file, in KiB.

    ``getrusage`` would include the memory of the parent.
    """
    command = [sys.executable, "-c", MEASURE.format(code=code, small=SMALL, large=LARGE), str(small), str(large)]
    return [int(line) for line in subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()]


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
    paths = [tmp_path / f"{count}-{name}" for count in (SMALL, LARGE)]
    for path, count in zip(paths, (SMALL, LARGE), strict=True):
        path.write_text(content(format, count), encoding="utf-8")
    before, after = peaks(*paths, code)
    assert after - before < 700


def long_sentences(count: int, length: int) -> Iterator[Sentence]:
    entities = (Entity("Drug", ((0, 1),)), Entity("Adverse-Effect", ((1, 2),)))
    for number in range(count):
        words = ("zinc", "rash", f"{number}" + "x" * length)
        yield Sentence(f"s{number}", words, entities, (Relation("Adverse-Effect", 1, 0),))


@pytest.mark.parametrize("name", ["dygie", "doccano", "label_studio", "pubtator", "ade_rel", "multihead", "hf_dataset", "brat"])
def test_no_format_keeps_the_corpus_in_memory(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A corpus three times as large needs hardly more memory in Python. (brat keeps file names.)"""
    put(name, tmp_path)  # imports the library, or skips the test
    for module in ("hf_dataset", "hf_files"):  # it works in batches of a thousand sentences
        monkeypatch.setattr(f"spanwise.formats.{module}.BATCH_SIZE", 20)
    # pathlib interns the names of files. The interpreter's table of interned strings doubles at some number of them, which
    # depends on the tests before this one.
    monkeypatch.setattr(sys, "intern", str)
    size, length = 40, 10_000
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
