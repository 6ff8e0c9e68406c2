"""``spanwise compare``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli_runner import Runner

GOLD = {"s1": ["Oslo and New York", ["Place", 0, 1], ["Place", 2, 4]], "s2": ["Cold soup", ["Food", 1, 2]]}
ONE = {"s1": ["Oslo and New York", ["Place", 0, 1], ["Place", 2, 4]], "s2": ["Cold soup", ["Food", 0, 2]]}
OTHER = {"s1": ["Oslo and New York", ["Place", 0, 1], ["Team", 2, 4]], "s2": ["Cold soup", ["Food", 1, 2]]}


def write(path: Path, data: dict[str, list[object]]) -> Path:
    rows = []
    for id, (text, *marks) in data.items():
        entities = [{"type": type, "spans": [[start, end]]} for type, start, end in marks]  # type: ignore[misc]
        rows.append(json.dumps({"id": id, "tokens": str(text).split(), "entities": entities}))
    path.parent.mkdir(exist_ok=True)
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    return path


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    return {
        name: write(tmp_path / f"{name}.jsonl", data) for name, data in (("gold", GOLD), ("one", ONE), ("other", OTHER))
    }  # fmt: skip


def test_table(run: Runner, files: dict[str, Path]) -> None:
    result = run("compare", files["one"], files["other"], "--gold", files["gold"], "--errors", "--buckets", "eLen,tLen:2")
    assert (result.code, result.err) == (0, "")
    rows = {line.split()[0]: line.split()[1:] for line in reversed(result.out.splitlines()) if line}
    assert "3 gold entities: 1 found by both, 1 by one only, 1 by other only, 0 by neither" in result.out
    assert rows["oracle"][-3:] == ["100.00", "100.00", "100.00"]
    assert rows["other"] == ["66.67", "66.67", "66.67", "1"]
    assert "F1 by eLen" in result.out
    assert "F1 by tLen" in result.out
    assert "% of FP + FN" in result.out
    assert "BE-Rate" in result.out


@pytest.mark.parametrize(
    ("buckets", "message"),
    [("length", "unknown attribute"), ("seen", "training sentences"), ("eLen:0", "one bucket"), ("nesting:2", "no cuts")],
)
def test_attributes_are_checked_before_anything_is_predicted(
    run: Runner, files: dict[str, Path], buckets: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*arguments: object, **options: object) -> None:
        raise AssertionError("predicted")

    monkeypatch.setattr("spanwise.prediction.systems.system_predictions", fail)
    result = run("compare", files["one"], files["other"], "--gold", files["gold"], "--buckets", buckets)
    assert (result.code, message in result.err) == (2, True)


def test_attributes_by_the_literal_equations(run: Runner, files: dict[str, Path]) -> None:
    outputs = [
        run(
            "compare",
            files["one"],
            files["other"],
            "--gold",
            files["gold"],
            "--train",
            files["gold"],
            "--buckets",
            "eCon",
            *more,
        )
        for more in ((), ("--paper-attributes",))
    ]
    assert [result.code for result in outputs] == [0, 0]
    assert outputs[0].out != outputs[1].out


def test_json(run: Runner, files: dict[str, Path], tmp_path: Path) -> None:
    result = run("compare", files["one"], files["other"], "--gold", files["gold"], "--json", "-")
    record = json.loads(result.out)
    assert list(record["systems"]) == ["one", "other"]
    assert record["pairs"][0]["difference"] == 0.0
    assert record["pairs"][0]["agreement"]["only_first"]["strings"] == [{"type": "Place", "text": "New York", "count": 1}]
    assert record["systems"]["other"]["error_rates"]["type"] == 0.5
    run("compare", files["one"], files["other"], "--gold", files["gold"], "--json", tmp_path / "c.json")
    assert json.loads((tmp_path / "c.json").read_text()) == record


def test_note_on_missing_sentences(run: Runner, files: dict[str, Path], tmp_path: Path) -> None:
    part = write(tmp_path / "part.jsonl", {"s1": ONE["s1"]})
    result = run("compare", files["one"], part, "--gold", files["gold"])
    assert "note: part has no predictions for 1 of 2 sentences; their entities count as missed" in result.out
    assert "note" not in run("compare", files["one"], files["other"], "--gold", files["gold"]).out
    record = json.loads(run("compare", files["one"], part, "--gold", files["gold"], "--json", "-").out)
    assert record["missing_sentences"] == {"part": 1}


def test_names_and_seeds(run: Runner, files: dict[str, Path]) -> None:
    one, other, gold = files["one"], files["other"], files["gold"]
    result = run("compare", f"mine={one},{gold}", f"theirs={other},{other}", "--gold", gold, "--json", "-")
    systems = json.loads(result.out)["systems"]
    assert list(systems) == ["mine", "theirs"]
    assert systems["mine"]["f1"] == pytest.approx([2 / 3, 1.0])
    assert systems["mine"]["deviation"] == pytest.approx(0.2357, abs=1e-4)


def test_train_split_of_the_data_folder(run: Runner, files: dict[str, Path], tmp_path: Path) -> None:
    write(tmp_path / "corpus/test.jsonl", GOLD)
    write(tmp_path / "corpus/train.jsonl", {"t": ["Oslo soup", ["Place", 0, 1]]})
    result = run(
        "compare", files["one"], files["other"], "--data", tmp_path / "corpus", "--buckets", "seen", "--json", "-"
    )  # fmt: skip
    seen = json.loads(result.out)["buckets"]["seen"]["other"]
    assert [(bucket["name"], bucket["support"]) for bucket in seen] == [("seen", 1), ("unseen", 2)]
    bare = run("compare", files["one"], files["other"], "--gold", files["gold"], "--buckets", "seen")
    assert (bare.code, bare.err) == (2, "the attribute seen needs the training sentences; pass them as train (--train)\n")


def test_predictions_in_another_format(run: Runner, files: dict[str, Path], tmp_path: Path) -> None:
    columns = tmp_path / "system.conll"
    columns.write_text("Oslo B-Place\nand O\nNew B-Place\nYork I-Place\n\nCold B-Food\nsoup I-Food\n", encoding="utf-8")
    result = run("compare", columns, files["other"], "--gold", files["gold"], "--json", "-")
    assert json.loads(result.out)["systems"]["system"]["mean"] == pytest.approx(2 / 3)


def test_run_folders(run: Runner, tmp_path: Path) -> None:
    import tiny

    from spanwise.evaluation import evaluate
    from spanwise.formats import write as write_sentences
    from spanwise.prediction.load import load
    from spanwise.recipes.resolve import Choices
    from spanwise.training.run import RunOptions
    from spanwise.training.seeds import train_seeds

    corpus = tiny.corpus(40, 8, 12)
    data = tmp_path / "data"
    data.mkdir()
    for split, sentences in corpus.splits.items():
        write_sentences(sentences, data / f"{split}.jsonl")
    settings = {"epochs": 2, "batch_size": 8, "head_rate": 0.03}
    choices = Choices("seqner", "static", overrides=tiny.STATIC, settings=settings)
    train_seeds(corpus, tmp_path / "runs", [10, 2], choices, RunOptions("cpu", log=tiny.quiet))
    seed = tmp_path / "runs/seed-2"
    result = run(
        "compare", tmp_path / "runs", f"twice={seed},{seed}", "--data", data, "--device", "cpu", "--json", "-"
    )  # fmt: skip
    assert result.code == 0, result.err
    systems = json.loads(result.out)["systems"]
    expected = [
        evaluate(corpus["test"], load(tmp_path / f"runs/seed-{number}", "cpu").predict(corpus["test"])).f1 for number in (2, 10)
    ]
    assert systems["runs"]["f1"] == pytest.approx(expected)  # seed 2 comes before seed 10
    assert systems["twice"]["f1"] == pytest.approx([expected[0]] * 2)


def test_errors_are_one_line_with_exit_code_2(run: Runner, files: dict[str, Path], tmp_path: Path) -> None:
    one, other, gold = files["one"], files["other"], files["gold"]
    write(tmp_path / "corpus/test.jsonl", GOLD)
    write(tmp_path / "corpus/dev.jsonl", GOLD)
    corpus = tmp_path / "corpus"
    usage = "spanwise compare: "
    for arguments, message in (
        ([one, other], f"{usage}pass either --gold FILE or --data DATA"),
        ([one, other, "--gold", gold, "--data", corpus], f"{usage}pass either --gold FILE or --data DATA"),
        ([one, "--gold", gold], f"{usage}expected two or more systems"),
        ([one, one, "--gold", gold], "two systems are named 'one'; name each of them with NAME=PATH"),
        ([one, "none.jsonl", "--gold", gold], "none.jsonl: no such file or folder"),
        ([one, f"={other}", "--gold", gold], f"={other}: expected [NAME=]PATH[,PATH…]"),
        ([one, other, "--gold", corpus], f"{corpus}: expected one split, found dev, test; pass the file of one split"),
        ([one, other, "--data", corpus, "--split", "train"], f"{corpus}: no train split; found dev, test"),
        ([one, other, "--gold", gold, "--buckets", "eLen:x"], f"{usage}--buckets eLen:x: expected a number of buckets"),
        ([one, other, "--gold", gold, "--buckets", "length"], "unknown attribute 'length'; expected one of eLen"),
        (
            [one, f"b={other},{other}", "--gold", gold],
            "runs are compared in pairs; expected the same number of runs for all systems, but one has 1, b",
        ),
    ):
        result = run("compare", *arguments)
        assert (result.code, result.out) == (2, "")
        assert result.err.startswith(message)
        assert result.err.count("\n") == 1


def test_mismatched_predictions_name_the_file(run: Runner, files: dict[str, Path], tmp_path: Path) -> None:
    words = write(tmp_path / "words.jsonl", {"s1": ["Oslo and New York"], "s2": ["Hot soup"]})
    more = write(tmp_path / "more.jsonl", {**OTHER, "s3": ["Warm soup"]})
    one, gold = files["one"], files["gold"]
    for systems, message in (
        (
            [one, words],
            f"{words}: sentence 's2': the prediction has other words than gold: expected 'Cold' at word 0, found 'Hot'",
        ),
        ([more, one], f"{more}: predicted sentence 's3' is not in gold; predictions are paired with gold by id"),
        ([f"a={one},{one}", f"b={one},{more}"], f"{more}: predicted sentence 's3' is not in gold; "),
    ):
        result = run("compare", *systems, "--gold", gold)
        assert (result.code, result.out, result.err.count("\n")) == (2, "", 1)
        assert result.err.startswith(message)
    for command in (
        ("evaluate", "--pred", more), ("analyze", "--pred", more, "--out", tmp_path / "out"),
        ("analyze", "--pred", one, "--against", f"b={more}", "--out", tmp_path / "out"),
    ):  # fmt: skip
        result = run(*command, "--gold", gold)
        assert (result.code, result.out) == (2, "")
        assert result.err.startswith(f"{more}: predicted sentence 's3' is not in gold")


def test_typing_models_cannot_be_compared(run: Runner, files: dict[str, Path], tmp_path: Path) -> None:
    import tiny

    tiny.fit(tmp_path / "typing", recipe="sng", task="typing", encoder="static", epochs=1)
    write(tmp_path / "corpus/test.jsonl", GOLD)
    result = run("compare", files["one"], tmp_path / "typing", "--data", tmp_path / "corpus", "--device", "cpu")
    assert result.code == 2
    assert "types given spans and predicts no entities" in result.err


def test_a_sweep_is_not_one_system(run: Runner, files: dict[str, Path], tmp_path: Path) -> None:
    for name in ("training.seed=1", "training.seed=2"):
        (tmp_path / "sweep" / name).mkdir(parents=True)
        (tmp_path / "sweep" / name / "config.yaml").touch()
    (tmp_path / "sweep" / "sweep.json").write_text("{}")
    result = run("compare", tmp_path / "sweep", files["one"], "--gold", files["gold"])
    message = f"{tmp_path / 'sweep'}: is a folder of several runs; pass one of them, or several with commas\n"
    assert (result.code, result.err) == (2, message)
