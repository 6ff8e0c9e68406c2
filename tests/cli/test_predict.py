"""``spanwise predict``: what may come in, and what comes out."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import tiny
from running import Runner
from tiny import FILLERS, sentences

from spanwise.core.types import Sentence
from spanwise.formats import read, write
from spanwise.prediction.load import load

TEXT = "The oslo was seen. Paris <b> aspirin acid!\n\nIt rained in lima.\n"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that is sure of something everywhere."""
    folder = tmp_path_factory.mktemp("model") / "run"
    tiny.model("static", "spanner").save(folder)
    return folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    inside = tmp_path / "texts"
    (inside / "more").mkdir(parents=True)
    (inside / "a.txt").write_text(TEXT, encoding="utf-8")
    (inside / "more" / "b.txt").write_text("oslo again", encoding="utf-8")
    (inside / ".hidden.txt").write_text("not me", encoding="utf-8")
    write(sentences(3), inside / "c.jsonl")
    return inside


def found_by(model: Path, some: list[str] | list[Sentence]) -> list[tuple[object, ...]]:
    return [one.entities for one in load(model, "cpu").predict(some) if one.words]


# --- what comes in --------------------------------------------------------------------------------------------------------


def test_raw_text_line_by_line_on_standard_output(run: Runner, model: Path, folder: Path) -> None:
    result = run("predict", model, folder / "a.txt")
    assert (result.code, result.err) == (0, "")
    rows = [json.loads(line) for line in result.out.splitlines()]
    assert [row["tokens"][0] for row in rows] == ["The", "Paris", "It"]
    shown = [entity for row in rows for entity in row["entities"]]
    assert len(shown) > 2
    for entity in shown:
        ((start, end),) = entity["characters"]
        assert TEXT[start:end] == entity["text"]
        assert 0 < entity["score"] <= 1
    out = folder / "found.jsonl"
    assert run("predict", model, folder / "a.txt", "--output", out).code == 0
    assert [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()] == rows


def test_several_sources_and_folders(run: Runner, model: Path, folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "found.jsonl"
    result = run("predict", model, folder, folder / "more" / "b.txt", "--output", out)
    assert (result.code, result.out) == (0, f"wrote {out}\n")
    found = list(read(out))
    assert [one.document for one in found] == ["a", "a", "a", "d0", "d0", "d0", "more/b", "b"]
    given = [TEXT, *sentences(3), "oslo again", "oslo again"]
    assert [one.entities for one in found] == found_by(model, given)  # type: ignore[arg-type]


def test_texts_with_the_name_of_another_are_numbered(run: Runner, model: Path, tmp_path: Path) -> None:
    sources = [tmp_path / name for name in ("a/notes.txt", "b/notes.txt", "b/notes-2.txt", "a/texts.jsonl", "b/texts.jsonl")]
    for source in sources:
        source.parent.mkdir(exist_ok=True)
        source.write_text('{"text": "lima"}\n' if source.suffix == ".jsonl" else "oslo\nlima", encoding="utf-8")
    out = tmp_path / "found.jsonl"
    result = run("predict", model, *sources, "--output", out)
    assert (result.code, result.err) == (0, "note: 3 documents with a duplicate name, numbered\n")
    documents = ["notes", "notes-2", "notes-2-2"]
    assert [(one.document, one.id) for one in read(out)] == [
        *((document, f"{document}-{number}") for document in documents for number in range(2)),
        ("texts-0", "texts-0-0"), ("texts-2-0", "texts-2-0-0"),
    ]  # fmt: skip


def test_own_ids_of_records_are_no_reason_to_number(run: Runner, model: Path, tmp_path: Path) -> None:
    (tmp_path / "notes.jsonl").write_text('{"id": "r1", "text": "lima"}\n', encoding="utf-8")
    (tmp_path / "notes.txt").write_text("oslo", encoding="utf-8")
    result = run("predict", model, tmp_path / "notes.jsonl", tmp_path / "notes.txt")
    assert (result.code, result.err) == (0, "")
    assert [json.loads(line)["document"] for line in result.out.splitlines()] == ["r1", "notes"]


def predicted_ids(run: Runner, model: Path, files: dict[Path, list[Sentence]]) -> tuple[list[tuple[str | None, str]], str]:
    """Documents and ids of what is predicted for files, in this order, and what is said."""
    for path, inside in files.items():
        path.parent.mkdir(exist_ok=True)
        write(inside, path)
    result = run("predict", model, *files)
    assert result.code == 0
    return [(row.get("document"), row["id"]) for row in map(json.loads, result.out.splitlines())], result.err


def test_ids_that_another_file_has_are_numbered_with_their_documents(run: Runner, model: Path, tmp_path: Path) -> None:
    a, b, c = (tmp_path / name / "x.jsonl" for name in "abc")
    one, two = Sentence("s1", ("oslo",), document="d"), Sentence("s2", ("lima",))
    own = Sentence("s1-2", ("oslo",), document="e")
    found, said = predicted_ids(run, model, {a: [one, two], b: [one, two, own], c: [one]})
    assert found == [("d", "s1"), (None, "s2"), ("d-2", "s1-2"), (None, "s2-2"), ("e", "s1-2-2"), ("d-3", "s1-3")]
    numbered = "note: 4 sentences with an id from an earlier file, numbered\n"
    assert said == f"{numbered}note: 2 documents with a duplicate name, numbered\n"
    bare = [Sentence("", words) for words in (("oslo",), ("lima", "again"))]  # CoNLL's are called after the file
    found, said = predicted_ids(run, model, {tmp_path / name / "x.conll": bare for name in "ab"})
    assert found == [(None, "x-0"), (None, "x-1"), (None, "x-0-2"), (None, "x-1-2")]
    records = [tmp_path / name / "records.jsonl" for name in "ab"]
    for path in records:
        path.write_text('{"id": 7, "text": "It rained. Nobody came."}\n', encoding="utf-8")
    rows = [json.loads(line) for line in run("predict", model, *records).out.splitlines()]
    assert [(row["document"], row["id"]) for row in rows] == [("7", "7-0"), ("7", "7-1"), ("7-2", "7-0-2"), ("7-2", "7-1-2")]


def test_documents_of_one_name_are_told_apart_whatever_their_sentences_are_called(
    run: Runner, model: Path, tmp_path: Path
) -> None:
    texts = {"a.jsonl": "It rained.", "b.jsonl": "It rained. Nobody came."}  # an only sentence is called after its document
    for name, text in texts.items():
        (tmp_path / name).write_text(json.dumps({"id": 7, "text": text, "label": []}) + "\n", encoding="utf-8")
    (tmp_path / "7.txt").write_text("Nobody came. It rained.")
    rows = [json.loads(line) for line in run("predict", model, *(tmp_path / n for n in (*texts, "7.txt"))).out.splitlines()]
    assert [(row["document"], row["id"]) for row in rows] == [
        ("7", "7"), ("7-2", "7-0"), ("7-2", "7-1"), ("7-3", "7-0-2"), ("7-3", "7-1-2"),
    ]  # fmt: skip


def test_ids_that_no_other_file_has_are_left_alone(run: Runner, model: Path, tmp_path: Path) -> None:
    a, b = (tmp_path / name / "x.jsonl" for name in "ab")
    first = [Sentence(name, ("oslo",), document="d") for name in ("s1", "s1", "s2")]  # one comes twice in its own file
    rest = [Sentence(name, ("lima",), document="d") for name in ("s3", "s3")]  # the document goes on in another file
    found, said = predicted_ids(run, model, {a: first, b: rest})
    assert (found, said) == ([("d", name) for name in ("s1", "s1", "s2", "s3", "s3")], "")


@pytest.mark.parametrize("arguments", [
    ("texts/c.jsonl", "--output", "texts/c.jsonl"),
    ("texts/a.txt", "texts/c.jsonl", "--output", "link.jsonl"),
    ("link.jsonl", "--output", "texts/more/../c.jsonl"),
    ("texts", "--output", "texts/c.jsonl"),
    ("texts/a.txt", "--output", "texts/a.txt", "--to", "jsonl"),
    ("texts/a.txt", "--output", "texts/a.txt", "--to", "html"),
])  # fmt: skip
def test_an_input_is_never_replaced(
    run: Runner, model: Path, folder: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...]
) -> None:
    monkeypatch.chdir(folder.parent)
    Path("link.jsonl").symlink_to(folder / "c.jsonl")
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    result = run("predict", model, *arguments)
    output = arguments[arguments.index("--output") + 1]
    said = f"{output}: the output would overwrite an input; choose another output\n"
    assert (result.code, result.out, result.err) == (2, "", said)
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before


def test_nor_is_the_text_of_annotations(run: Runner, model: Path, tmp_path: Path) -> None:
    for name in ("a.ann", "a.txt"):
        (tmp_path / name).write_text("")
    result = run("predict", model, tmp_path / "a.ann", "--output", tmp_path / "a.txt", "--to", "jsonl")
    said = f"{tmp_path / 'a.txt'}: the output would overwrite an input; choose another output\n"
    assert (result.code, result.out, result.err) == (2, "", said)


def test_nor_is_what_standard_input_comes_from(model: Path, folder: Path) -> None:
    source = folder / "c.jsonl"
    before = source.read_bytes()
    command = [sys.executable, "-m", "spanwise", "predict", str(model), "-", "--from", "jsonl", "--output", str(source)]
    with source.open("rb") as file:
        done = subprocess.run(command, stdin=file, capture_output=True, check=False)
    assert done.returncode == 2
    assert b"would overwrite an input" in done.stderr
    assert source.read_bytes() == before


def test_standard_input_as_text_and_in_a_format(model: Path, folder: Path) -> None:
    raw = piped(model, TEXT.encode())
    assert [row["document"] for row in raw] == ["text"] * 3
    assert piped(model, TEXT.encode(), "--from", "text") == raw
    records = piped(model, (folder / "c.jsonl").read_bytes(), "--from", "jsonl")
    assert [row["id"] for row in records] == ["s0", "s1", "s2"]


def piped(model: Path, data: bytes, *options: str) -> list[dict[str, object]]:
    command = [sys.executable, "-m", "spanwise", "predict", str(model), "-", *options]
    done = subprocess.run(command, input=data, capture_output=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.parametrize("name", ["notes.md", "letter", "x.jsonl"])
def test_any_file_may_be_said_to_be_text(run: Runner, model: Path, tmp_path: Path, name: str) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / name).write_text(TEXT, encoding="utf-8")
    for source in (tmp_path / "in" / name, tmp_path / "in"):
        result = run("predict", model, source, "--from", "text")
        assert (result.code, result.err) == (0, "")
        rows = [json.loads(line) for line in result.out.splitlines()]
        assert [row["tokens"][0] for row in rows] == ["The", "Paris", "It"]
        assert {row["document"] for row in rows} == {Path(name).stem}


def test_text_is_among_what_can_be_said(run: Runner, model: Path, tmp_path: Path) -> None:
    (tmp_path / "letter").write_text(TEXT, encoding="utf-8")
    told = run("predict", model, tmp_path / "letter")
    assert (told.code, told.out) == (2, "")
    assert told.err.startswith(f"{tmp_path / 'letter'}: cannot tell the format; set the format with --from (text, jsonl, ")
    wrong = run("predict", model, tmp_path / "letter", "--from", "txt")
    assert wrong.err.startswith("unknown format 'txt' (did you mean 'text'?); known: ")
    options = run("predict", model, tmp_path / "letter", "--from", "text:lines=yes")
    assert (options.code, options.err) == (2, "text takes no options here, found 'lines=yes'\n")


def test_texts_in_json_records(run: Runner, model: Path, tmp_path: Path) -> None:
    records = [{"id": "r7", "text": TEXT, "by": "us"}, {"text": "lima"}, {"text": ""}]
    source = tmp_path / "texts.jsonl"
    source.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    out = tmp_path / "found.jsonl"
    assert run("predict", model, source, "--output", out).code == 0
    found = [one for one in read(out) if one.words]
    assert [one.document for one in found] == ["r7", "r7", "r7", "texts-1"]
    assert [one.extra for one in found] == [{"by": "us"}, None, None, None]
    assert [one.entities for one in found] == found_by(model, [TEXT, "lima"])
    source.write_text('{"text": "lima"}\n{"text": 3}\n', encoding="utf-8")
    failed = run("predict", model, source, "--output", tmp_path / "no.jsonl")
    assert failed.code == 2
    assert failed.err.startswith(str(source))


def test_annotations_are_not_looked_at(run: Runner, model: Path, folder: Path, tmp_path: Path) -> None:
    brat = tmp_path / "brat"
    write(sentences(4), brat, "brat")
    out = tmp_path / "found.jsonl"
    assert run("predict", model, brat, "--output", out).code == 0
    texts = [path.read_text(encoding="utf-8") for path in sorted(brat.glob("*.txt"))]
    assert [one.entities for one in read(out)] == found_by(model, texts)


def test_nor_is_anything_said_of_them(run: Runner, model: Path, tmp_path: Path) -> None:
    text = "Nontokyoites met. Geneva rose."
    for labels in ([[3, 8, "X"]], [[3, 80, "X"]]):
        (tmp_path / "x.jsonl").write_text(json.dumps({"id": 1, "text": text, "label": labels}), encoding="utf-8")
        result = run("predict", model, tmp_path / "x.jsonl")
        assert (result.code, result.err) == (0, "")
        assert [row["tokens"] for row in map(json.loads, result.out.splitlines())] == [
            ["Nontokyoites", "met", "."], ["Geneva", "rose", "."],
        ]  # fmt: skip


def test_all_texts_of_a_folder_that_is_annotated_in_part(run: Runner, model: Path, tmp_path: Path) -> None:
    brat, out = tmp_path / "brat", tmp_path / "found"
    (brat / "more").mkdir(parents=True)
    for name in ("a", "more/b", "more/c"):
        (brat / f"{name}.txt").write_text(TEXT, encoding="utf-8")
    (brat / "more" / "b.ann").write_text("T1\tPlace 4 8\toslo\n", encoding="utf-8")
    write(sentences(3), brat / "d.jsonl")
    result = run("predict", model, brat, "--output", out, "--to", "brat")
    assert result.code == 0
    notes = result.err.splitlines()
    assert notes[0] == "note: 1 files other than .txt and .ann, not read (d.jsonl)"
    assert all("left out: brat has no place" in note for note in notes[1:])
    assert sorted(path.relative_to(out).as_posix() for path in out.rglob("*.txt")) == ["a.txt", "more/b.txt", "more/c.txt"]
    assert {(brat / "a.txt").read_bytes()} == {path.read_bytes() for path in out.rglob("*.txt")}
    assert {path.read_bytes() for path in out.rglob("*.ann")} == {(out / "a.ann").read_bytes()}
    scored = run("evaluate", model, brat, "--json", "-")
    assert (scored.code, json.loads(scored.out)["sentences"]) == (0, 3)  # of what is annotated


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("nowhere.txt",), "nowhere.txt: no such file or folder"),
        ((".",), "no files in this folder"),
        (("-", "--to", "conll"), "--to needs --output; standard output is jsonl"),
        (("-", "--output", "x.conll", "--to", "conl"), "unknown format 'conl' (did you mean 'conll'?)"),
        (("-", "--output", "x.htm", "--to", "htlm"), "unknown format 'htlm' (did you mean 'html'?)"),
        (("-", "--output", "x"), "x: the name does not tell which format to write; say it with --to (jsonl, "),
        (("-", "--output", "x"), ", html)"),
        (("-", "--output", "x.html", "--to", "html:dark=yes"), "html takes no options here, found 'dark=yes'"),
        (("-", "--threshold", "2"), "threshold '2': expected a number from 0 to 1, or TYPE=NUMBER"),
        (("-", "--threshold", "Drugs=0.5"), "unknown type with a threshold 'Drugs' (did you mean 'Drug'?)"),
        (("-", "--threshold", "0.5", "--threshold", "Drug=0.5"), "give one threshold for all types or one for each"),
        (("-", "--overlap", "none"), "unknown overlap policy 'none'"),
    ],
)
def test_mistakes_are_one_line(
    run: Runner, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    result = run("predict", model, *arguments)
    assert (result.code, result.out, result.err.count("\n")) == (2, "", 1)
    assert said in result.err
    assert list(tmp_path.iterdir()) == []


# --- what comes out -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["jsonl", "brat", "conll", "label_studio"])
def test_formats_hold_what_was_found(run: Runner, model: Path, folder: Path, tmp_path: Path, form: str) -> None:
    out = tmp_path / "found"
    assert run("predict", model, folder / "a.txt", "--output", out, "--to", form).code == 0
    got = [{(entity.type, one.text_of(entity)) for entity in one.entities} for one in read(out, form)]
    made = load(model, "cpu").predict(TEXT)
    assert got == [{(entity.type, one.text_of(entity)) for entity in one.entities} for one in made]


def test_label_studio_gets_predictions_with_scores(run: Runner, model: Path, folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "tasks.json"
    assert run("predict", model, folder / "a.txt", "--output", out, "--to", "label_studio").code == 0
    (task,) = json.loads(out.read_text(encoding="utf-8"))
    assert task["data"]["text"] == TEXT
    assert "annotations" not in task
    (prediction,) = task["predictions"]
    assert prediction["model_version"] == "run"
    for region in prediction["result"]:
        value = region["value"]
        assert TEXT[value["start"] : value["end"]] == value["text"]
        assert 0 < region["score"] <= 1
    assert run("predict", model, folder / "a.txt", "-o", out, "--to", "label_studio:kind=annotations").code == 0
    assert "annotations" in json.loads(out.read_text(encoding="utf-8"))[0]


def test_a_page_with_everything_in_it(run: Runner, model: Path, folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "page.html"
    assert run("predict", model, folder / "a.txt", "--output", out).code == 0
    page = out.read_text(encoding="utf-8")
    assert "&lt;" in page
    assert "<b> aspirin" not in page
    assert not re.search(r"(?:src|href)=.?https?:|@import|<script", page)
    assert page.count("<em>") == sum(map(len, found_by(model, [TEXT])))
    assert all(f">{type}</li>" in page for type in ("Drug", "Place"))
    other = tmp_path / "page.jsonl"
    assert run("predict", model, folder / "a.txt", "--output", other, "--to", "html").code == 0
    assert other.read_text(encoding="utf-8").startswith("<!doctype html>")


def test_thresholds_and_overlap(run: Runner, model: Path, folder: Path, tmp_path: Path) -> None:
    predictor = load(model, "cpu")
    scores = [entity.score or 0 for one in predictor.predict(TEXT) for entity in one.entities if entity.type == "Place"]
    middle = round(sorted(scores)[len(scores) // 2], 3)
    out = tmp_path / "found.jsonl"
    assert run("predict", model, folder / "a.txt", "-o", out, "--threshold", f"Place={middle}", "--overlap", "flat").code == 0
    assert [one.entities for one in read(out)] == [
        one.entities for one in predictor.predict(TEXT, threshold={"Place": middle}, overlap="flat") if one.words
    ]


def test_an_interrupt_leaves_nothing_behind(model: Path, tmp_path: Path) -> None:
    """Fed slowly through a pipe, so that it is certainly still at work."""
    out = tmp_path / "out" / "found.jsonl"
    out.parent.mkdir()
    command = [sys.executable, "-m", "spanwise", "predict", str(model), "-", "--output", str(out)]
    line = (" ".join(FILLERS) + ".\n").encode()
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdin is not None
        try:
            for _ in range(600):  # until it has begun to write beside the target
                process.stdin.write(line * 10)
                process.stdin.flush()
                if list(out.parent.iterdir()):
                    break
                time.sleep(0.05)
            assert list(out.parent.iterdir())
            assert not out.exists()
            os.kill(process.pid, signal.SIGINT)
            _, err = process.communicate(timeout=30)
        finally:
            process.kill()
    assert process.returncode == 130
    assert b"Traceback" not in err
    assert list(out.parent.iterdir()) == []
