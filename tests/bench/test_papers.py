"""``bench/papers``: all tables are valid, cells are trained and measured, and reports show both sides."""

from __future__ import annotations

import argparse
import json
import multiprocessing
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tiny import STATIC, corpus

from spanwise.core.errors import SpanwiseError
from spanwise.core.types import Entity, Sentence
from spanwise.formats import write
from spanwise.recipes.resolve import resolve_config
from spanwise.training.run import train

sys.path.insert(0, str(Path(__file__).parents[2] / "bench" / "papers"))

import cells
import run as papers
from cells import SMALL, Cell, Table


@pytest.mark.parametrize("name", cells.table_names())
def test_tables_are_valid(name: str) -> None:
    table = Table.read(name)
    assert set(table.small) <= {corpus for shared in (name, *table.shares) for corpus in Table.read(shared).corpora}
    for system_name, system in table.systems.items():
        encoder = "somebody/some-model" if system.get("encoder", True) else None
        for corpus_name in table.corpora:
            cell = Cell(corpus_name, system_name, 1)
            overrides = (*table.settings(cell), *table.small_settings(cell))
            resolve_config(system["recipe"], encoder=encoder, task=system.get("task"), overrides=overrides)
    for systems in table.published.values():
        assert set(systems) <= set(table.systems)
        assert {len(values) for values in systems.values()} == {len(table.columns)}
    for shared in table.shares:
        same = set(table.systems) & set(Table.read(shared).systems)
        assert same
        assert all(table.systems[system] == Table.read(shared).systems[system] for system in same)


def test_published_f1_follows_from_precision_and_recall() -> None:
    """A digit that is copied wrongly would break this. The papers round, and average over runs."""
    checked, wrong = 0, []
    for name in cells.table_names():
        table = Table.read(name)
        for corpus_name, systems in table.published.items():
            for system, values in systems.items():
                means = [value[0] if isinstance(value, list) else value for value in values]
                row = dict(zip(table.columns, means, strict=True))
                for group in (column.removesuffix("F1") for column in row if column.endswith("F1")):
                    precision, recall, f1 = (row.get(f"{group}{column}") for column in ("P", "R", "F1"))
                    if precision and recall and f1:
                        checked += 1
                        if abs(2 * precision * recall / (precision + recall) - f1) > 0.03:
                            wrong.append((name, corpus_name, system))
    assert checked > 20
    assert wrong == [  # as published
        ("bundling:table3", "conll04", "SeqNER"),  # below precision and recall
        ("dspert:table9", "weibo", "all layers"),  # a mean of five runs
        ("locate:table7", "weibo", "Full model"),  # 69.10 from precision and recall
    ]


@pytest.mark.parametrize(
    ("name", "system", "corpus", "values"),
    [
        ("bundling:table3", "SpanNER", "ncbi_disease", ["head.span.max_width=7", "training.batch_size=16"]),  # Table 2
        ("bundling:table6", "BL-SpanNER", "conll04", ["head.span.max_width=10", "training.batch_size=2"]),
        ("bundling:figure6", "SpanNER, pooling", "conll04", ["head.span.max_width=10", "training.batch_size=2"]),
        ("sng:table2", "sng-paper", "nerel", ["training.epochs=1500"]),  # Table 1
        ("locate:table2", "Full model", "litbank", ["head.lengths=[1,2,3,4,5,6,7,9,11,13,15]", "head.overlap=0.6"]),  # Table 6
    ],
)
def test_settings_of_a_corpus_are_those_of_the_paper(name: str, system: str, corpus: str, values: list[str]) -> None:
    settings = Table.read(name).owner(system).settings(Cell(corpus, system, 1))
    assert settings[: len(values)] == values


def test_settings_for_a_small_encoder_replace_the_published_ones() -> None:
    table = Table.read("bundling:figure6")  # with the settings of bundling:table3
    cell = Cell("conll04", "SeqNER, CRF", 1)
    assert table.corpus_set == Table.read("bundling:table3").corpus_set
    assert table.settings(cell)[-1] == "head.sequence.tagging=crf"
    assert table.small_settings(cell) == [*SMALL, "training.batch_size=16", "training.epochs=20"]
    assert Table.read("sng:table2").small_settings(Cell("nerel", "sng-paper", 1)) == []


def test_a_cell_is_trained_and_measured_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    for split, sentences in corpus(30, 10, 10).splits.items():
        (tmp_path / "tiny").mkdir(exist_ok=True)
        write(sentences, tmp_path / "tiny" / f"{split}.jsonl")
    system = {"recipe": "spanner", "set": ["head.max_width=3", *STATIC]}
    columns = {
        "F1": "scores.micro.f1",
        "short": "lengths.1-4",
        "BE-Rate": "errors.BE-Rate",
        "strong": "overlaps.strong overlap",
    }
    table = Table(
        "x:table1", "X", ("tiny",), {"a b": system}, columns, {"tiny": {"a b": [12.3, None, None, None]}}, vectors=("a b",)
    )
    monkeypatch.setattr(Table, "read", classmethod(lambda cls, name: table))
    monkeypatch.setattr(papers, "table_names", lambda: ["x:table1"])
    arguments = ["run.py", "x:table1", "--data", str(tmp_path), "--out", str(tmp_path / "out"), "--encoder", "static"]
    monkeypatch.setattr(sys, "argv", [*arguments, "--device", "cpu", "--set", "training.epochs=1"])
    papers.main()
    assert "| tiny | a b | 12.30 / " in capsys.readouterr().out
    (path,) = (tmp_path / "out").glob("*.json")
    record = json.loads(path.read_text())
    assert (path.name, record["epsilon"], record["seed"]) == ("x-table1--tiny-a_b-1.json", "3 words", 1)
    assert papers.find(record, "overlaps.strong overlap") is not None
    assert record["support"]["10+"] == 0
    assert record["lengths"]["10+"] is record["length"]["20"] is record["buckets"]["eDen"]["XS"] is None
    assert record["lengths"]["1-4"] is not None
    assert sum(record["sentences"][f"D-{number}"]["sentences"] for number in (1, 2, 3)) == 10
    assert sum(record["sentences"][f"L-{number}"]["support"] for number in (1, 2, 3)) == record["scores"]["micro"]["support"]
    path.write_text(json.dumps(record | {"scores": {"micro": {"f1": 0.5}}}))
    papers.main()  # reads the record
    assert "| tiny | a b | 12.30 / 50.00 | – / " in capsys.readouterr().out


def test_sentences_are_grouped_by_their_longest_entity_and_their_density() -> None:
    """GlobalPointer, section 4.5."""
    words = tuple("abcdefghij")
    spans = [((0, 2),), ((0, 3),), ((0, 5),), ((0, 6),)]
    gold = [Sentence(str(index), words, (Entity("X", span),)) for index, span in enumerate(spans)]
    predicted = [gold[0], *(replace(sentence, entities=()) for sentence in gold[1:])]
    groups = cells.score_groups(gold, predicted, cells.longest, cells.LONGEST)
    assert [(count, score.f1) for score, count in groups] == [(1, 1.0), (2, 0.0), (1, 0.0)]
    assert [count for _, count in cells.score_groups(gold, predicted, cells.density, cells.DENSITY)] == [0, 2, 2]


def test_dev_is_scored_where_test_has_no_public_labels(tmp_path: Path, capsys: Any) -> None:
    folder = tmp_path / "tiny"
    folder.mkdir()
    splits = corpus(30, 10, 1).splits
    for split in ("train", "dev"):
        write(splits[split], folder / f"{split}.jsonl")
    table = Table("x:table1", "X", ("tiny",), {"a": {"recipe": "spanner", "set": ["training.epochs=1", *STATIC]}}, {}, {})
    record = cells.run_cell(
        table, cells.Cell("tiny", "a", 1), tmp_path, tmp_path / "runs",
        encoder="static", is_small=False, overrides=(), device="cpu",
    )  # fmt: skip
    assert record["scores"]["sentences"] == len(splits["dev"])
    assert sum(record["support"].values()) == record["scores"]["micro"]["support"] > 0
    assert "using 5 of 30 training sentences as dev" in capsys.readouterr().out  # the epoch is not chosen on the scored split


def test_an_interrupted_cell_is_resumed(tmp_path: Path, capsys: Any) -> None:
    (tmp_path / "tiny").mkdir()
    for split, sentences in corpus(30, 10, 10).splits.items():
        write(sentences, tmp_path / "tiny" / f"{split}.jsonl")
    system = {"recipe": "spanner", "set": ["training.epochs=2", *STATIC]}
    table, cell = Table("x:table1", "X", ("tiny",), {"a": system}, {}, {}), Cell("tiny", "a", 1)

    def stop(line: str) -> None:
        if line.startswith("epoch 2"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(
            tmp_path / "tiny", tmp_path / "runs" / "x-table1" / cell.name, recipe="spanner", encoder="static",
            overrides=system["set"], device="cpu", seed=1, log=stop,
        )  # fmt: skip
    record = cells.run_cell(
        table, cell, tmp_path, tmp_path / "runs", encoder="static", is_small=False, overrides=(), device="cpu"
    )  # fmt: skip
    assert record["epochs"] == 2
    assert "epoch 1:" not in capsys.readouterr().out


def test_a_cell_that_cannot_be_trained_is_skipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    table = Table("x:table1", "X", ("no_corpus",), {"a": {"recipe": "spanner"}}, {"F1": "f1"}, {"no_corpus": {"a": [12.3]}})
    monkeypatch.setattr(Table, "read", classmethod(lambda cls, name: table))
    monkeypatch.setattr(papers, "table_names", lambda: ["x:table1"])
    arguments = ["run.py", "x:table1", "--data", str(tmp_path), "--out", str(tmp_path / "out")]
    monkeypatch.setattr(sys, "argv", arguments)
    with pytest.raises(SystemExit, match="1"):
        papers.main()
    output = capsys.readouterr().out
    message = f"no_corpus-a-1 is skipped: {tmp_path / 'no_corpus'}: no such file or folder"
    assert message in output
    assert "| no_corpus | a | 12.30 / – | – | 0 |" in output
    # In parallel, the message is in a log file, and printed again.
    monkeypatch.setattr(sys, "argv", [*arguments, "--jobs", "2"])
    with pytest.raises(SystemExit, match="1"):
        papers.main()
    assert f"x-table1--no_corpus-a-1: skipped: {message}" in capsys.readouterr().out
    assert message in (tmp_path / "out" / "logs" / "x-table1--no_corpus-a-1.log").read_text()


def test_a_cell_of_two_tables_is_trained_once() -> None:
    arguments = argparse.Namespace(seeds=[], only="conll04", corpora=None, tag="", out=Path("out"))
    tables = [Table.read(name) for name in ("bundling:table3", "bundling:table6", "bundling:table7")]
    names = sorted(path.name for path in papers.find_cells(tables, arguments))
    systems = ("BL-SeqNER", "BL-SpanNER", "SeqNER", "SpanNER")
    assert names == [f"bundling-table3--conll04-{system}-{seed}.json" for system in systems for seed in (1, 2, 3)]


def test_a_failed_cell_does_not_end_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    def fail_once(table: Table, cell: Cell, *args: Any, **options: Any) -> dict[str, Any]:
        if cell.system == "a":
            raise RuntimeError("out of memory")
        return {**vars(cell), "encoder": "static", "f1": 0.5}

    table = Table("x:table1", "X", ("c",), {"a": {"recipe": "spanner"}, "b": {"recipe": "spanner"}}, {"F1": "f1"}, {})
    monkeypatch.setattr(papers, "run_cell", fail_once)
    monkeypatch.setattr(Table, "read", classmethod(lambda cls, name: table))
    monkeypatch.setattr(papers, "table_names", lambda: ["x:table1"])
    monkeypatch.setattr(sys, "argv", ["run.py", "x:table1", "--out", str(tmp_path)])
    with pytest.raises(SystemExit, match="1"):
        papers.main()
    output = capsys.readouterr()
    assert "c-a-1 failed:" in output.out
    assert "| c | b | 50.00 | any | 1 |\n\nEncoder of our runs: static." in output.out
    assert "RuntimeError: out of memory" in output.err
    # In the background, the last line of the log is printed.
    arguments = argparse.Namespace(
        out=tmp_path, data=tmp_path, runs=None, tag="", encoder=None, small=False, overrides=[], device="cpu"
    )
    result = papers.train_in_background(tmp_path / "x.json", table, Cell("c", "a", 1), arguments)
    assert result == ("failed", "RuntimeError: out of memory")


def test_skipped_cells_are_no_failure_if_others_are_trained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Such as depths that a small encoder does not have, when a table is continued."""

    def run_first(table: Table, cell: Cell, *args: Any, **options: Any) -> dict[str, Any]:
        if cell.system == "b":
            raise SpanwiseError("expected at most 6 layers, found 8")
        return {**vars(cell), "encoder": None, "f1": 0.5}

    table = Table("x:table1", "X", ("c",), {"a": {"recipe": "spanner"}, "b": {"recipe": "spanner"}}, {"F1": "f1"}, {})
    monkeypatch.setattr(papers, "run_cell", run_first)
    monkeypatch.setattr(Table, "read", classmethod(lambda cls, name: table))
    monkeypatch.setattr(papers, "table_names", lambda: ["x:table1"])
    monkeypatch.setattr(sys, "argv", ["run.py", "x:table1", "--out", str(tmp_path)])
    papers.main()
    papers.main()  # only the skipped cell remains


@pytest.mark.skipif("forkserver" not in multiprocessing.get_all_start_methods(), reason="this system has no fork server")
def test_processes_of_cells_have_imported_everything() -> None:
    code = f"""
import sys
from concurrent.futures import ProcessPoolExecutor

sys.path.insert(0, {str(cells.FOLDER)!r})
import run

with ProcessPoolExecutor(1, mp_context=run.cell_context()) as pool:
    print(pool.submit(eval, "{{*{papers.PRELOADED}}} - {{*__import__('sys').modules}}").result())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("set()\n", "")


def test_the_modules_of_cells_use_no_gpu_when_they_are_imported() -> None:
    """A process that has used a GPU cannot be forked into others that use it."""
    code = f"""
import importlib, sys, torch

def refuse(*arguments):
    raise RuntimeError("a GPU was used")

torch.cuda.is_available = torch.cuda.device_count = torch.cuda._lazy_init = refuse
sys.path.insert(0, {str(cells.FOLDER)!r})
for name in {papers.PRELOADED}:
    importlib.import_module(name)
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_record_that_is_not_complete_is_no_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def write_a_part(path: Path, text: str, **options: Any) -> int:
        path.write_bytes(text[:5].encode())
        raise KeyboardInterrupt

    monkeypatch.setattr(papers, "run_cell", lambda *args, **options: {"f1": 0.5})
    monkeypatch.setattr(Path, "write_text", write_a_part)
    arguments = argparse.Namespace(
        out=tmp_path, data=tmp_path, runs=None, tag="", encoder=None, small=False, overrides=[], device="cpu"
    )
    table = Table("x:table1", "X", ("c",), {"a": {"recipe": "spanner"}}, {"F1": "f1"}, {})
    with pytest.raises(KeyboardInterrupt):
        papers.train_cell(tmp_path / "x.json", table, Cell("c", "a", 1), arguments)
    assert not (tmp_path / "x.json").exists()


def test_every_table_has_a_command_in_the_docs() -> None:
    page = (Path(__file__).parents[2] / "docs" / "papers.md").read_text(encoding="utf-8")
    commands = re.findall(r"^python bench/papers/run\.py (.+?)(?: +#.*)?$", page, re.MULTILINE)
    commands += re.findall(r"`python\s+bench/papers/run\.py ([^`]+)`", page)
    names = {name for command in commands for name in papers.make_parser().parse_args(command.split()).names}
    assert names == {*cells.table_names(), "list", "all"}


def test_all_systems_are_trained_with_one_seed_before_the_next() -> None:
    arguments = argparse.Namespace(seeds=[], only="", corpora=["ncbi_disease", "conll04"], tag="", out=Path("out"))
    tables = [Table.read(name) for name in ("bundling:table3", "bundling:figure6")]
    seeds = [cell.seed for _, cell in papers.find_cells(tables, arguments).values()]
    assert seeds == [1] * 26 + [2] * 26 + [3] * 26


def test_a_selection_without_cells_is_refused() -> None:
    arguments = argparse.Namespace(seeds=[], only="conl04", corpora=None, tag="", out=Path("out"))
    with pytest.raises(SystemExit, match="no cell of these tables"):
        papers.find_cells([Table.read("bundling:table3")], arguments)


def test_reports_give_means_and_deviations() -> None:
    table = Table("x:table1", "X", ("c",), {"a": {"recipe": "spanner"}}, {"F1": "scores.f1"}, {"c": {"a": [70.0]}}, note="N")
    deviation = replace(table, published={"c": {"a": [[70.0, 0.25]]}})
    records = [{"corpus": "c", "system": "a", "seed": 1, "scores": {"f1": f1}, "epsilon": 7} for f1 in (0.6, 0.7)]
    assert "| c | a | 70.00 / 65.00 ± 7.07 | 7 | 2 |" in papers.format_table(table, records)
    assert papers.format_table(table, []).splitlines()[-3:] == ["| c | a | 70.00 / – | – | 0 |", "", "N"]
    assert "| c | a | 70.00 ± 0.25 / – | – | 0 |" in papers.format_table(deviation, [])


def test_reports_compare_with_a_base_system_by_seed() -> None:
    systems = {"a": {"recipe": "spanner"}, "b": {"recipe": "seqner"}}
    table = Table("x:table1", "X", ("c",), systems, {"F1": "f1"}, {}, base="a")
    scores = [("a", 1, 0.6), ("a", 2, 0.7), ("b", 1, 0.65), ("b", 2, 0.69), ("b", 3, 0.1)]  # seed 3 has no base
    records = [{"corpus": "c", "system": system, "seed": seed, "f1": f1, "epsilon": 7} for system, seed, f1 in scores]
    assert papers.format_table(table, records).splitlines()[-2:] == [
        "| c | a | 65.00 ± 7.07 | 7 | 2 |",
        "| c | b | +2.00 ± 4.24 | 7 | 3 |",
    ]
