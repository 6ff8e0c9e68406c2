"""``spanwise audit --apply``, and refusals of ``spanwise audit``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli_runner import Runner

from spanwise.audit.folder import AuditFolder, AuditRecord
from spanwise.audit.result import Audit
from spanwise.audit.suggestions import Suggestion
from spanwise.core.types import Corpus, Entity, Sentence
from spanwise.formats import read, write

OSLO = Entity("Place", ((1, 2),))
IN_OSLO = Sentence("a", ("in", "Oslo"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder of an audit that suggests an entity of the data."""
    write([IN_OSLO, Sentence("b", ("Lima",))], tmp_path / "data.jsonl")
    folder = tmp_path / "audit"
    folder.mkdir()
    record = AuditRecord(
        spanwise="0", data=str(tmp_path / "data.jsonl"), format=None, split=None, fingerprint="", folds=2, repeats=1, config={}
    )
    AuditFolder(folder).write_record(record)
    entity = {"type": "Place", "spans": [[1, 2]], "text": "Oslo"}
    suggestion = {"sentence": "a", "kind": "missing", "gold": None, "suggestion": entity, "score": 0.9}
    (folder / "suggestions.json").write_text(json.dumps([suggestion]))
    return folder


def test_suggestions_are_counted(run: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    suggestions = [Suggestion("a", "missing", None, OSLO, score, {}) for score in (0.9, 0.5, 0.4)]
    result = Audit(Corpus({"all": (IN_OSLO,)}), {}, suggestions, files=[tmp_path / "report.html"])
    monkeypatch.setattr("spanwise.audit.audit.audit", lambda *arguments, **options: result)
    assert run("audit", tmp_path / "data.jsonl", "--out", tmp_path / "audit").out.splitlines() == [
        "3 suggestions: 3 missing",
        "suggestions with a score of at least 0.5, where gold is probably wrong: 2",
        f"wrote {tmp_path / 'report.html'}",
    ]


def test_corrections_of_an_audit_know_their_data(run: Runner, folder: Path) -> None:
    """Without DATA and --out, the corpus is written next to the corrections."""
    result = run("audit", "--apply", folder / "suggestions.json")
    out = folder / "corrected.jsonl"
    assert result.out == f"a: added Place “Oslo”\nchanged: 1 added\nwrote {out}\n"
    assert (result.code, result.err) == (0, "")
    assert [sentence.entities for sentence in read(out)] == [(OSLO,), ()]


def test_corrections_can_be_applied_to_other_data_and_written_in_other_formats(
    run: Runner, folder: Path, tmp_path: Path
) -> None:
    write([IN_OSLO], tmp_path / "copy.jsonl")
    result = run("audit", tmp_path / "copy.jsonl", "--apply", folder / "suggestions.json", "--out", tmp_path / "new.conll")
    assert (result.code, result.err) == (0, "note: 1 sentence id dropped: not stored by conll\n")
    assert "Oslo\tB-Place" in (tmp_path / "new.conll").read_text()


def test_many_changes_are_counted(run: Runner, tmp_path: Path) -> None:
    write([Sentence(f"s{index}", ("Oslo",)) for index in range(30)], tmp_path / "data.jsonl")
    write([Sentence(f"s{index}", ("Oslo",), (Entity("Place", ((0, 1),)),)) for index in range(30)], tmp_path / "new.jsonl")
    result = run("audit", tmp_path / "data.jsonl", "--apply", tmp_path / "new.jsonl", "--out", tmp_path / "out.jsonl")
    assert result.out.splitlines()[-3:] == ["… and 10 more", "changed: 30 added", f"wrote {tmp_path / 'out.jsonl'}"]


def test_missing_arguments_and_files(run: Runner, folder: Path, tmp_path: Path) -> None:
    assert "expected DATA and --out DIR" in run("audit", tmp_path / "data.jsonl").err
    missing = run("audit", "--apply", tmp_path / "none.json")
    assert (missing.code, missing.err) == (2, f"{tmp_path / 'none.json'}: no such file or folder\n")
    elsewhere = tmp_path / "corrections.json"
    elsewhere.write_text("[]")
    assert "pass the data that was audited as DATA" in run("audit", "--apply", elsewhere).err
    unknown = run("audit", tmp_path / "data.jsonl", "--out", tmp_path / "out", "--to", "paper")
    assert (unknown.code, unknown.err.count("\n")) == (2, 1)
    small = run("audit", tmp_path / "data.jsonl", "--out", tmp_path / "out")
    assert (small.code, small.err.count("\n")) == (2, 1)
    assert "too small to audit: it has 2 sentences with 0 entities" in small.err
    assert not (tmp_path / "out").exists()


def test_corrections_do_not_overwrite_the_data(run: Runner, folder: Path, tmp_path: Path) -> None:
    before = (tmp_path / "data.jsonl").read_bytes()
    for target in (tmp_path / "data.jsonl", folder / "suggestions.json"):
        result = run("audit", "--apply", folder / "suggestions.json", "--out", target)
        assert (result.code, result.err) == (2, f"{target}: the output would overwrite an input; choose another output\n")
    assert (tmp_path / "data.jsonl").read_bytes() == before


def test_options_that_would_have_no_effect_are_refused(run: Runner, folder: Path, tmp_path: Path) -> None:
    result = run("audit", "--apply", folder / "suggestions.json", "--split", "train", "--batch-size", 8, "--resume")
    assert result.code == 2
    assert "--apply corrects DATA without auditing it: omit --split, --batch-size, --resume (see" in result.err
    assert "--lossy needs --apply" in run("audit", tmp_path / "data.jsonl", "--out", tmp_path / "out", "--lossy").err
    assert not (folder / "corrected.jsonl").exists()


def test_the_folder_of_an_audit_is_not_a_correction(run: Runner, folder: Path) -> None:
    result = run("audit", "--apply", folder)
    assert (result.code, result.err) == (
        2,
        f"{folder}: is the folder of an audit; pass a file in it, such as suggestions.json\n",
    )
