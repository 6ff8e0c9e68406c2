"""``spanwise evaluate``."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from spanwise.cli import main

Run = Callable[..., tuple[int, str, str]]

GOLD = [
    {"id": "s1", "tokens": ["Oslo", "and", "New", "York"], "entities": [["Place", 0, 1], ["Place", 2, 4]]},
    {"id": "s2", "tokens": ["Cold", "soup"], "entities": [["Food", 1, 2]]},
]
PREDICTED = [
    {"id": "s2", "tokens": ["Cold", "soup"], "entities": [["Food", 1, 2]]},
    {"id": "s1", "tokens": ["Oslo", "and", "New", "York"], "entities": [["Place", 0, 1], ["Place", 3, 4]]},
]

EITHER = "spanwise evaluate: pass either MODEL and DATA, or --pred FILE and --gold FILE (see spanwise evaluate --help)"


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    def call(*arguments: object) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as exited:
            main(["evaluate", *map(str, arguments)])
        return int(exited.value.code or 0), *capsys.readouterr()

    return call


def write(path: Path, records: list[dict[str, object]]) -> Path:
    rows = []
    for record in records:
        entities = [{"type": kind, "spans": [[start, end]]} for kind, start, end in record["entities"]]  # type: ignore[attr-defined]
        rows.append(json.dumps({**record, "entities": entities}))
    path.parent.mkdir(exist_ok=True)
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    return path


@pytest.fixture
def gold(tmp_path: Path) -> Path:
    return write(tmp_path / "gold.jsonl", GOLD)


@pytest.fixture
def pred(tmp_path: Path) -> Path:
    return write(tmp_path / "pred.jsonl", PREDICTED)


def test_table(run: Run, gold: Path, pred: Path) -> None:
    code, out, err = run("--pred", pred, "--gold", gold)
    assert (code, err) == (0, "")
    rows = {line.split()[0]: line.split()[1:] for line in out.splitlines() if line.endswith((" 1 ", " 2 "))}
    # Place: 2 in gold, 2 predicted, 1 correct; Food: 1 of 1. Together 2 of 3.
    assert rows["Place"] == ["50.00", "50.00", "50.00", "2", "2", "1"]
    assert rows["Food"] == ["100.00", "100.00", "100.00", "1", "1", "1"]
    assert rows["micro"] == ["66.67", "66.67", "66.67", "3", "3", "2"]


def test_json(run: Run, gold: Path, pred: Path, tmp_path: Path) -> None:
    code, out, _ = run("--pred", pred, "--gold", gold, "--json", tmp_path / "scores.json")
    assert code == 0
    assert "micro" in out, "the table is printed as well"
    result = json.loads((tmp_path / "scores.json").read_text(encoding="utf-8"))
    assert result["micro"] == {
        "precision": pytest.approx(2 / 3),
        "recall": pytest.approx(2 / 3),
        "f1": pytest.approx(2 / 3),
        "support": 3,
        "predicted": 3,
        "correct": 2,
    }
    assert set(result) == {
        "micro", "macro", "types", "unlabelled", "relaxed", "discontinuous", "nested", "unseen_sentences", "confusion",
        "interval", "relations", "sentences", "missing_sentences", "paired_by", "notes",
    }  # fmt: skip


def test_json_on_standard_output(run: Run, gold: Path, pred: Path) -> None:
    _, out, _ = run("--pred", pred, "--gold", gold, "--json", "-")
    assert json.loads(out)["types"]["Food"]["f1"] == 1


@pytest.mark.parametrize("train", ["corpus", "corpus/train.jsonl", "other.jsonl"])
def test_train_as_a_folder_or_a_file(run: Run, gold: Path, pred: Path, tmp_path: Path, train: str) -> None:
    seen = [{**GOLD[1], "id": "t1"}]
    for name in ("corpus/train.jsonl", "other.jsonl"):
        write(tmp_path / name, seen)
    write(tmp_path / "corpus/test.jsonl", GOLD)
    _, out, _ = run("--pred", pred, "--gold", gold, "--train", tmp_path / train, "--json", "-")
    unseen = json.loads(out)["unseen_sentences"]
    assert (unseen["sentences"], unseen["support"], unseen["correct"]) == (1, 2, 1)


def test_columns_without_ids_are_paired_in_order(run: Run, gold: Path, tmp_path: Path) -> None:
    columns = tmp_path / "system.conll"
    columns.write_text("Oslo B-Place\nand O\nNew B-Place\nYork I-Place\n\nCold B-Food\nsoup I-Food\n", encoding="utf-8")
    _, out, _ = run("--pred", columns, "--gold", gold, "--pred-format", "conll", "--json", "-")
    result = json.loads(out)
    assert result["paired_by"] == "order"
    assert (result["micro"]["correct"], result["micro"]["support"]) == (2, 3)
    code, out, _ = run("--pred", columns, "--gold", gold)
    assert code == 0
    assert "note: sentences are paired in order: their ids differ, but their text is the same" in out


def test_folder_with_one_split(run: Run, gold: Path, pred: Path, tmp_path: Path) -> None:
    write(tmp_path / "corpus/test.jsonl", GOLD)
    code, out, _ = run("--pred", pred, "--gold", tmp_path / "corpus")
    assert code == 0
    assert "Place" in out


def test_unread_gold_is_reported(run: Run, gold: Path, pred: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import spanwise.corpora.splits

    original = spanwise.corpora.splits.open_splits

    def lossy(path, format, ledger):  # type: ignore[no-untyped-def]
        if path == gold:
            ledger.lose("entities", "not on words", 2)
        return original(path, format, ledger)

    monkeypatch.setattr(spanwise.corpora.splits, "open_splits", lossy)
    _, out, err = run("--pred", pred, "--gold", gold, "--json", "-")
    assert json.loads(out)["notes"] == [
        "gold annotations that could not be read and are not counted: 2 entities (not on words)"
    ]
    assert err == "lost: 2 entities (not on words)\n"


def test_errors_are_one_line_with_exit_code_2(run: Run, gold: Path, pred: Path, tmp_path: Path) -> None:
    unknown = write(tmp_path / "unknown.jsonl", [*PREDICTED, {**GOLD[0], "id": "s9"}])
    for split in ("dev", "test"):
        write(tmp_path / f"corpus/{split}.jsonl", GOLD)
    corpus, missing = tmp_path / "corpus", tmp_path / "none.jsonl"
    for arguments, message in (
        (
            ["--pred", unknown, "--gold", gold],
            f"{unknown}: predicted sentence 's9' is not in gold; predictions are paired with gold by id",
        ),
        (["--pred", missing, "--gold", gold], f"{missing}: no such file or folder"),
        (["--pred", pred, "--gold", corpus], f"{corpus}: expected one split, found dev, test; pass the file of one split"),
        (["--pred", pred, "--gold", gold, "--train", corpus], f"{corpus}: no train split; found dev, test"),
        (["--pred", pred, "--gold", gold, "--train", missing], f"{missing}: no such file or folder"),
        (["--gold", gold], EITHER),
        ([tmp_path], EITHER),
        ([tmp_path, gold, "--pred", pred], EITHER),
    ):
        assert run(*arguments) == (2, "", message + "\n")
    code, _, err = run("--pred", pred, "--gold", gold, "--gold-format", "jsonk")
    assert code == 2
    assert err.startswith("unknown format 'jsonk' (did you mean 'jsonl'?)")


def test_scoring_imports_neither_torch_nor_numpy() -> None:
    code = "import spanwise.evaluation, spanwise.cli, sys; sys.exit(bool({'torch', 'numpy'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("options", [(), ("--find-threshold",)])
def test_gold_without_sentences(run: Run, pred: Path, tmp_path: Path, options: tuple[str, ...]) -> None:
    empty = tmp_path / "empty.jsonl"
    empty.write_text("")
    for predictions in (empty, pred):
        code, out, err = run("--pred", predictions, "--gold", empty, "--json", tmp_path / "scores.json", *options)
        assert (code, out, err) == (2, "", f"{empty}: no sentences; expected gold annotations\n")
    assert not (tmp_path / "scores.json").exists()


def test_empty_predictions_are_scored(run: Run, gold: Path, tmp_path: Path) -> None:
    (tmp_path / "empty.jsonl").write_text("")
    code, _, _ = run("--pred", tmp_path / "empty.jsonl", "--gold", gold, "--json", tmp_path / "scores.json")
    assert code == 0
    assert json.loads((tmp_path / "scores.json").read_text())["micro"]["f1"] == 0


def test_find_threshold(run: Run, tmp_path: Path) -> None:
    gold, pred = tmp_path / "gold.jsonl", tmp_path / "pred.jsonl"
    gold.write_text('{"id": "s", "tokens": ["a", "b"], "entities": [{"type": "X", "spans": [[0, 1]]}]}\n')
    pred.write_text(
        '{"id": "s", "tokens": ["a", "b"], "entities": [{"type": "X", "spans": [[0, 1]], "score": 0.9}, '
        '{"type": "X", "spans": [[1, 2]], "score": 0.1}]}\n'
    )
    code, out, err = run("--pred", pred, "--gold", gold, "--find-threshold", "--json", tmp_path / "s.json")
    assert (code, err) == (0, "")
    assert out.startswith(
        "best threshold on these predictions: 0.5 (F1 100.00; without a threshold 66.67)\n  X: 0.5 (F1 100.00)\n"
    )
    scores = json.loads((tmp_path / "s.json").read_text())
    assert (scores["micro"]["predicted"], scores["micro"]["f1"]) == (1, 1.0)
    assert (scores["threshold"]["threshold"], scores["threshold"]["types"]["X"]["threshold"]) == (0.5, 0.5)
    assert run("--pred", pred, "--gold", gold, "--find-threshold", "--threshold", "0.5")[2].startswith(
        "spanwise evaluate: pass either --threshold or --find-threshold"
    )
    assert run("--pred", gold, "--gold", gold, "--find-threshold") == (
        2, "", "some predicted entities have no score; calibration and thresholds need the scores of all\n",
    )  # fmt: skip


def test_threshold_drops_low_scores(run: Run, tmp_path: Path) -> None:
    gold, pred = tmp_path / "gold.jsonl", tmp_path / "pred.jsonl"
    gold.write_text('{"id": "s", "tokens": ["a", "b"], "entities": [{"type": "X", "spans": [[0, 1]]}]}\n')
    pred.write_text(
        '{"id": "s", "tokens": ["a", "b"], "entities": [{"type": "X", "spans": [[0, 1]], "score": 0.9}, '
        '{"type": "X", "spans": [[1, 2]], "score": 0.1}]}\n'
    )
    scores = []
    for threshold in ("0", "0.5", "1"):
        run("--pred", pred, "--gold", gold, "--threshold", threshold, "--json", tmp_path / "s.json")
        scores.append(json.loads((tmp_path / "s.json").read_text())["micro"]["predicted"])
    assert scores == [2, 1, 0]
