"""Statistics of real corpora, compared with their published tables."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from spanwise.description import Description, describe
from spanwise.formats import jsonl
from spanwise.formats.base import Ledger

CORPORA = "ade cluener conll04 genia germeval14 litbank ncbi_disease nerel webnlg webnlg_star weibo".split()

# Attributes for the columns of stats.json and, in this order, of the table in SOURCE.md.
COLUMNS = {
    "sents": "sentences",
    "tokens": "words",
    "max_len": "max_length",
    "ents": "entities",
    "dup_ents": "duplicate_entities",
    "inner_nested": "nested",
    "crossing": "crossing",
    "same_span_multi_type": "same_span_two_types",
    "discontinuous": "discontinuous",
    "max_ent_len": "max_width",
    "dup_sents": "duplicate_sentences",
    "relations": "relations",
}


def describe_folder(folder: Path) -> Description:
    paths = {split: folder / f"{split}.jsonl" for split in ("train", "dev", "test")}
    return describe({split: jsonl.read(path, Ledger()) for split, path in paths.items() if path.exists()})


def read_table(source: str) -> dict[str, list[int]]:
    """Read the rows "| train | 15023 | … |" of SOURCE.md."""
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in source.splitlines() if line.startswith("| ")]
    return {split: list(map(int, values)) for split, *values in rows if split in ("train", "dev", "test")}


def read_shared(source: str) -> dict[str, int]:
    """Read the line "Shared token sequences between splits: train&dev: 3, …" of SOURCE.md."""
    line = next(line for line in source.splitlines() if line.startswith("Shared token sequences between splits: "))
    pairs = (pair.split(": ") for pair in line.partition(": ")[2].split(", "))
    return {pair: int(number) for pair, number in pairs}


def read_types(source: str, split: str, kind: str) -> dict[str, int]:
    """Read the line "- train types: protein 27889, DNA 7705, …" of SOURCE.md."""
    lines = [line for line in source.splitlines() if line.startswith(f"- {split} {kind}: ")]
    pairs = (pair.rsplit(" ", 1) for line in lines for pair in line.partition(": ")[2].split(", "))
    return {name: int(number) for name, number in pairs}


@pytest.mark.parametrize("name", CORPORA)
def test_statistics_match_the_tables(shared_data: Path, name: str) -> None:
    folder = shared_data / name
    description = describe_folder(folder)
    stats: dict[str, Any] = json.loads((folder / "stats.json").read_text(encoding="utf-8"))
    source = (folder / "SOURCE.md").read_text(encoding="utf-8")
    assert description.splits.keys() == stats["splits"].keys() == read_table(source).keys()
    for split, counts in description.splits.items():
        values = {column: getattr(counts, attribute) for column, attribute in COLUMNS.items()}
        assert values == {key: stats["splits"][split][key] for key in COLUMNS}
        assert list(values.values()) == read_table(source)[split]
        assert counts.types == stats["splits"][split]["types"] == read_types(source, split, "types")
        assert counts.relation_types == stats["splits"][split]["rel_types"] == read_types(source, split, "relation types")
        assert counts.links == 0
    assert description.shared == stats["shared_sentences"] == read_shared(source)
    assert not [issue.message for issue in description.issues if issue.kind.startswith("ends")]
    if name == "weibo":  # numbers in the text of SOURCE.md
        assert description.conflicts.sequences == 58
        assert description.also_in_train["test"] == 40
    if name == "webnlg":
        assert any("“fullName” (1) and “fullname” (34)" in issue.message for issue in description.issues)


@pytest.mark.parametrize("name", ["weibo", "conll04"])
def test_oov_density_of_real_corpora(shared_data: Path, name: str) -> None:
    """Compare with the definition, computed from the raw lines."""
    lines = {
        split: [json.loads(line)["tokens"] for line in (shared_data / name / f"{split}.jsonl").read_text("utf-8").splitlines()]
        for split in ("train", "dev", "test")
    }
    known = {word for words in lines["train"] for word in words}
    description = describe_folder(shared_data / name)
    for split in ("dev", "test"):
        words = [word for sentence in lines[split] for word in sentence]
        assert description.splits[split].oov_density == sum(word not in known for word in words) / len(words)
