"""``spanwise audit``: files, resuming, refusals, and corrections."""

from __future__ import annotations

import csv
import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from interruptions import Interrupted, interrupt
from tiny import STATIC, corpus, quiet

from spanwise.audit import audit as audit_module
from spanwise.audit import cross_validation
from spanwise.audit.application import apply_corrections
from spanwise.audit.audit import audit
from spanwise.cli import main
from spanwise.core.errors import SpanwiseError
from spanwise.core.types import Corpus, Entity, Sentence
from spanwise.formats import read, write
from spanwise.recipes.resolve import Choices

OPTIONS: dict[str, Any] = {
    "folds": 2, "recipe": "biaffine", "encoder": "static", "overrides": STATIC, "epochs": 2, "device": "cpu", "log": quiet,
    "head_rate": 0.03,
}  # fmt: skip


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A corpus folder whose first training sentence lacks an entity."""
    folder = tmp_path_factory.mktemp("audit") / "data"
    folder.mkdir()
    for split, sentences in corpus(60, 6, 6).splits.items():
        write(sentences, folder / f"{split}.jsonl")
    return folder


@pytest.fixture(scope="module")
def finished(data: Path) -> Path:
    """The folder of a finished audit with tasks for Label Studio."""
    folder = data.parent / "finished"
    audit(data, folder, to="label-studio", **OPTIONS)
    return folder


def records(folder: Path) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = json.loads((folder / "suggestions.json").read_text())
    return items


def test_all_files_have_the_same_suggestions_in_the_same_order(finished: Path) -> None:
    assert sorted(path.name for path in finished.iterdir()) == [
        "audit.json", "folds", "report.html", "suggestions.csv", "suggestions.json", "tables", "to-correct.json",
    ]  # fmt: skip
    items = records(finished)
    assert items
    scores = [item["score"] for item in items]
    assert scores == sorted(scores, reverse=True)
    assert all(0 <= score <= 1 for score in scores)
    with (finished / "suggestions.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["sentence"], row["kind"], float(row["score"])) for row in rows] == [
        (item["sentence"], item["kind"], item["score"]) for item in items
    ]
    tasks = json.loads((finished / "to-correct.json").read_text())
    assert [task["data"]["sentence"] for task in tasks] == list(dict.fromkeys(item["sentence"] for item in items))
    page = (finished / "report.html").read_text()
    assert f"<h3>{items[0]['sentence']}</h3>" in page
    assert page.count("data-e=") == len(items)
    assert sorted(path.name for path in (finished / "tables").iterdir()) == [
        "consistency-duplicates.csv", "consistency-habits.csv", "consistency-strings.csv",
    ]  # fmt: skip


@pytest.mark.parametrize(("epochs", "has_learned"), [(1, False), (12, True)])
def test_models_that_learned_nothing_suggest_no_spurious_entities(
    data: Path, tmp_path: Path, epochs: int, has_learned: bool
) -> None:
    lines: list[str] = []
    result = audit(data, tmp_path / "audit", **OPTIONS | {"epochs": epochs, "log": lines.append})
    note = "the models predict only 0 of 124 gold entities, so an entity that they do not predict is probably right"
    assert any(line.startswith(f"note: {note}") for line in lines) is not has_learned
    assert (note in (tmp_path / "audit" / "report.html").read_text()) is not has_learned
    assert "spurious" not in result.counts


def test_models_are_removed_when_their_scores_are_written(finished: Path) -> None:
    assert sorted(path.name for path in (finished / "folds").iterdir()) == ["fold-1.npz", "fold-2.npz"]


def test_an_interrupted_audit_reuses_finished_folds(
    data: Path, finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "audit"
    with monkeypatch.context() as patch:
        interrupt(patch, cross_validation, "score_spans", 2)
        with pytest.raises(Interrupted):
            audit(data, out, **OPTIONS)
    assert sorted(path.name for path in (out / "folds").iterdir()) == ["fold-1.npz", "fold-2"]
    trained: list[Path] = []
    train = cross_validation.train_config

    def count(*arguments: Any) -> Any:
        trained.append(arguments[1])
        return train(*arguments)

    monkeypatch.setattr(cross_validation, "train_config", count)
    audit(data, out, resume=True, device="cpu", log=quiet)  # settings come from the record
    assert [path.name for path in trained] == ["fold-2"]
    assert records(out) == records(finished)
    audit(data, out, resume=True, device="cpu", log=quiet, to="brat", limit=1)  # writes the files again, without training
    assert len(trained) == 1
    assert len(records(out)) == 1
    assert len(list((out / "to-correct").glob("*.ann"))) == 1


def test_the_command_takes_the_folds_of_a_resumed_audit(data: Path, finished: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = records(finished)
    with pytest.raises(SystemExit) as exit:
        main(["audit", str(data), "--out", str(finished), "--resume"])
    assert (exit.value.code, capsys.readouterr().err) == (0, "")
    assert records(finished) == before


def test_the_model_of_a_finished_fold_is_removed_after_an_interruption(data: Path, finished: Path, tmp_path: Path) -> None:
    """The scores were written, but the process was killed before the model was removed."""
    out = Path(shutil.copytree(finished, tmp_path / "audit"))
    (out / "folds" / "fold-1").mkdir()
    (out / "folds" / "fold-1" / "model.safetensors").write_bytes(b"weights")
    audit(data, out, resume=True, device="cpu", log=quiet)
    assert sorted(path.name for path in (out / "folds").iterdir()) == ["fold-1.npz", "fold-2.npz"]


@pytest.fixture
def audited(data: Path, finished: Path, tmp_path: Path) -> Path:
    """A copy of the finished audit that a test may change."""
    return Path(shutil.copytree(finished, tmp_path / "audited"))


def test_the_table_of_suggestions_cannot_be_applied(audited: Path) -> None:
    with pytest.raises(SpanwiseError, match=r"a table of suggestions cannot be applied; .* from suggestions\.json, and pass"):
        apply_corrections(audited / "suggestions.csv")


@pytest.mark.parametrize(
    ("format", "name", "file"), [("brat", "to-correct", "*.ann"), ("label-studio", "to-correct.json", None)]
)
def test_corrections_of_a_person_are_never_overwritten(
    data: Path, audited: Path, format: str, name: str, file: str | None
) -> None:
    again: dict[str, Any] = {"resume": True, "device": "cpu", "to": format}
    audit(data, audited, **again, log=quiet)
    path = audited / name if file is None else min((audited / name).glob(file))
    written = path.read_bytes()
    audit(data, audited, **again, limit=1, log=quiet)  # nobody has edited it: it is written again
    assert not path.exists() or path.read_bytes() != written
    audit(data, audited, **again, log=quiet)
    assert path.read_bytes() == written
    path.write_bytes(written + b"\n")
    lines: list[str] = []
    audit(data, audited, **again, limit=1, log=lines.append)
    assert path.read_bytes() == written + b"\n"
    assert f"note: kept {audited / name}, which was edited; move it away to write it again" in lines
    assert len(records(audited)) == 1
    shutil.move(audited / name, audited.parent / "mine")
    lines.clear()
    audit(data, audited, **again, limit=1, log=lines.append)
    assert (audited / name).exists()
    assert not any("kept" in line for line in lines)


def test_rejected_suggestions_stay_rejected_in_a_resumed_audit(
    data: Path, audited: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The guide says to delete from suggestions.json what is rejected."""
    path = audited / "suggestions.json"
    path.write_text(json.dumps(records(audited)[:1]))
    (audited / "report.html").unlink()
    with pytest.raises(SystemExit) as exit:
        main(["audit", str(data), "--out", str(audited), "--resume", "--to", "brat"])
    assert not exit.value.code
    lines = capsys.readouterr().out.splitlines()
    assert f"note: kept {path}, which was edited; move it away to write it again" in lines
    assert lines[-1] == "wrote " + ", ".join(str(audited / name) for name in ("suggestions.csv", "report.html", "to-correct"))
    assert len(records(audited)) == 1
    assert (audited / "report.html").exists()


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"data": 5}, "data: input should be a valid string, found 5"),
        ({"format": ["jsonl"]}, "format: input should be a valid string"),
        ({"folds": None}, "folds: input should be a valid integer, found None"),
        ({"folds": 2.5}, "folds: input should be a valid integer"),
        ({"repeats": 0}, "repeats: input should be greater than or equal to 1, found 0"),
        ({"config": None}, "config: input should be a valid dictionary"),
        ({"written": {"suggestions.json": None}}, "written.suggestions.json: input should be a valid list, found None"),
    ],
)
def test_a_damaged_record_is_reported(
    data: Path, audited: Path, change: dict[str, Any], problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    file = audited / "audit.json"
    damaged = json.dumps(json.loads(file.read_text()) | change)
    file.write_text(damaged)
    for arguments in ((str(data), "--out", str(audited), "--resume"), ("--apply", str(audited / "suggestions.json"))):
        with pytest.raises(SystemExit) as exit:
            main(["audit", *arguments])
        assert (exit.value.code, capsys.readouterr().err.startswith(f"{file}: {problem}")) == (2, True)
    assert file.read_text() == damaged


def test_an_empty_record_is_reported(data: Path, tmp_path: Path) -> None:
    (tmp_path / "audit.json").write_text("{}")
    with pytest.raises(SpanwiseError, match=r"audit\.json: spanwise: field required"):
        audit(data, tmp_path, resume=True, log=quiet)
    assert (tmp_path / "audit.json").exists()


def test_a_resumed_audit_reads_the_data_in_the_same_format(tmp_path: Path) -> None:
    lines = [
        json.dumps({"id": sentence.id, "tokens": ["Ü", *sentence.words]}, ensure_ascii=False)
        for sentence in corpus(30)["train"]
    ]
    (tmp_path / "data.jsonl").write_text("\n".join(lines), encoding="latin-1")
    record = {
        "spanwise": "0", "data": None, "format": ":encoding=latin-1", "split": None, "fingerprint": "", "folds": 2, "repeats": 1,
        "config": {},
    }  # fmt: skip
    (tmp_path / "audit").mkdir()
    (tmp_path / "audit" / "audit.json").write_text(json.dumps(record))
    with pytest.raises(SpanwiseError, match="the data is too small to audit: it has 30 sentences with 0 entities"):
        audit(tmp_path / "data.jsonl", tmp_path / "audit", resume=True, log=quiet)


def test_other_data_or_settings_cannot_be_resumed(data: Path, finished: Path) -> None:
    with pytest.raises(SpanwiseError, match="contains an audit; pass --resume"):
        audit(data, finished, **OPTIONS)
    with pytest.raises(SpanwiseError, match="--folds changed"):
        audit(data, finished, resume=True, folds=3, log=quiet)
    with pytest.raises(SpanwiseError, match="settings of the models changed"):
        audit(data, finished, resume=True, epochs=7, log=quiet)
    with pytest.raises(SpanwiseError, match="the data changed"):
        audit(data, finished, resume=True, split="train", log=quiet)


def test_a_damaged_fold_is_reported(data: Path, finished: Path, tmp_path: Path) -> None:
    out = tmp_path / "audit"
    (out / "folds").mkdir(parents=True)
    (out / "audit.json").write_bytes((finished / "audit.json").read_bytes())
    (out / "folds" / "fold-1.npz").write_bytes(b"PK\x03\x04 not a zip file")
    with pytest.raises(SpanwiseError, match=r"fold-1\.npz: damaged; delete it"):
        audit(data, out, resume=True, device="cpu", log=quiet)


@pytest.mark.parametrize(
    ("sentences", "folds", "problem"),
    [
        ([], 5, "0 sentences with 0 entities"),
        ([Sentence(str(index), ("a",)) for index in range(30)], 5, "30 sentences with 0 entities"),
        ([Sentence(str(index), ("a",) * 9, (Entity("X", ((index, index + 1),)),)) for index in range(9)], 5, "at least 10"),
        (list(corpus(60)["train"]), 1, "--folds 1: expected 2 or more"),
        (list(corpus(60)["train"]), 0, "--folds 0: expected 2 or more"),
    ],
)
def test_data_that_is_too_small_is_refused(sentences: list[Sentence], folds: int, problem: str, tmp_path: Path) -> None:
    with pytest.raises(SpanwiseError, match=problem):
        audit(Corpus({"train": tuple(sentences)}), tmp_path / "out", folds=folds, log=quiet)
    assert not (tmp_path / "out").exists()


def test_a_folder_with_other_files_is_refused(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(SpanwiseError, match="not empty and not an audit"):
        audit(corpus(60), tmp_path, log=quiet)


def test_repetitions_and_splits(data: Path, tmp_path: Path) -> None:
    result = audit(data, tmp_path / "audit", **{**OPTIONS, "epochs": 1}, repeats=2, split="train")
    assert {split for split, _ in result.keys.values()} == {"train"}
    assert len(list((tmp_path / "audit" / "folds").glob("*.npz"))) == 4


def test_a_missing_type_of_a_span_with_several_types_is_suggested_and_applied(tmp_path: Path) -> None:
    """Places are also towns; three of them lack one of the two types."""

    def add_towns(sentence: Sentence) -> Sentence:
        towns = tuple(replace(entity, type="Town") for entity in sentence.entities if entity.type == "Place")
        return replace(sentence, entities=sentence.entities + towns)

    complete = [add_towns(sentence) for sentence in corpus(72, 0, 0)["train"]]
    places = [(index, entity) for index, s in enumerate(complete) for entity in s.entities if entity.type == "Place"]
    damaged, lost = list(complete), set()
    for (index, place), type in zip(places[:60:20], ("Town", "Place", "Town"), strict=True):
        gone = replace(place, type=type)
        damaged[index] = replace(damaged[index], entities=tuple(e for e in damaged[index].entities if e != gone))
        lost.add((complete[index].id, gone))
    write(damaged, tmp_path / "data.jsonl")
    result = audit(tmp_path / "data.jsonl", tmp_path / "audit", **OPTIONS | {"recipe": "grid", "epochs": 8})
    missing = [(item.sentence, item.suggestion) for item in result.suggestions if item.kind == "missing"]
    assert set(missing[:3]) == lost
    confirmed = [record for record in records(tmp_path / "audit") if record["kind"] == "missing"][:3]
    (tmp_path / "audit" / "suggestions.json").write_text(json.dumps(confirmed))
    out, changes, _ = apply_corrections(tmp_path / "audit" / "suggestions.json")
    assert changes.counts == {"added": 3}
    assert [set(sentence.entities) for sentence in read(out)] == [set(sentence.entities) for sentence in complete]


def test_models_are_trained_for_half_of_the_automatic_epochs() -> None:
    config = Choices("biaffine", "static").resolve()
    assert [audit_module._with_epochs(config, count).training.epochs for count in (100, 660, 3900, 10_800)] == [50, 18, 12, 5]
    given = Choices("biaffine", "static", settings={"epochs": 3}).resolve()
    assert audit_module._with_epochs(given, 100) == given


def test_the_default_encoder_is_replaced_if_it_does_not_cover_the_text(
    tiny_bert: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("spanwise.recipes.catalog.default_encoder", lambda: str(tiny_bert))
    monkeypatch.setattr(audit_module, "cross_validate", interrupted := Mock(side_effect=Interrupted))
    oslo = (Entity("Place", ((0, 3),)),)
    data, lines = Corpus({"train": tuple(Sentence(str(n), tuple("奥斯陆是首都"), oslo) for n in range(20))}), list[str]()
    for should_resume in (False, True):
        with pytest.raises(Interrupted):
            audit(data, tmp_path / "audit", resume=should_resume, folds=2, log=lines.append)
        assert interrupted.call_args.args[2].encoder == {"kind": "static"}
    assert lines.count(f"using the static encoder, because {tiny_bert} hardly knows the script or language of this data") == 1


def test_an_audit_that_cannot_start_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(SpanwiseError, match="deep spans need the layers of a transformer"):
        audit(corpus(60), tmp_path / "audit", recipe="deep-span", encoder="static", log=quiet)
    with pytest.raises(SpanwiseError, match="an audit needs models that predict entities"):
        audit(corpus(60), tmp_path / "audit", recipe="sng", encoder="static", overrides=["head.task=typing"], log=quiet)
    assert not (tmp_path / "audit").exists()
