"""``spanwise predict``: inputs and outputs."""

from __future__ import annotations

import json
import re
import signal
from pathlib import Path

import pytest
from cli_runner import Result, Runner
from forked import forked_command
from tiny import FILLERS, sentences

from spanwise.core.types import Sentence
from spanwise.formats import read, write
from spanwise.prediction.load import load

TEXT = "The oslo was seen. Paris <b> aspirin acid!\n\nIt rained in lima.\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "texts"
    (folder / "more").mkdir(parents=True)
    (folder / "a.txt").write_text(TEXT, encoding="utf-8")
    (folder / "more" / "b.txt").write_text("oslo again", encoding="utf-8")
    (folder / ".hidden.txt").write_text("not me", encoding="utf-8")
    write(sentences(3), folder / "c.jsonl")
    return folder


def notes(result: Result) -> str:
    """Standard error without the summary."""
    return re.sub(r"predicted [\d,]+ sentences, [\d,]+ entities, [\d.]+ s\n$", "", result.err)


def predict(model: Path, texts: list[str] | list[Sentence]) -> list[tuple[object, ...]]:
    return [sentence.entities for sentence in load(model, "cpu").predict(texts) if sentence.words]


# --- inputs ---------------------------------------------------------------------------------------------------------------


def test_raw_text_to_standard_output(run: Runner, model: Path, folder: Path) -> None:
    result = run("predict", model, folder / "a.txt")
    assert (result.code, notes(result)) == (0, "")
    rows = [json.loads(line) for line in result.out.splitlines()]
    assert [row["tokens"][0] for row in rows] == ["The", "Paris", "It"]
    shown = [entity for row in rows for entity in row["entities"]]
    assert len(shown) > 2
    for entity in shown:
        ((start, end),) = entity["characters"]
        assert TEXT[start:end] == entity["text"]
        assert 0 < entity["score"] <= 1
    out = folder / "out.jsonl"
    assert run("predict", model, folder / "a.txt", "--output", out).code == 0
    assert [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()] == rows


def test_several_sources_and_folders(run: Runner, model: Path, folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    result = run("predict", model, folder, folder / "more" / "b.txt", "--output", out)
    assert result.code == 0
    assert result.out.startswith(f"wrote {out}: 8 sentences, ")
    predicted = list(read(out))
    assert [sentence.document for sentence in predicted] == ["a", "a", "a", "d0", "d0", "d0", "more/b", "b"]
    given = [TEXT, *sentences(3), "oslo again", "oslo again"]
    assert [sentence.entities for sentence in predicted] == predict(model, given)  # type: ignore[arg-type]


def test_repeated_text_names_get_numbers(run: Runner, model: Path, tmp_path: Path) -> None:
    sources = [tmp_path / name for name in ("a/notes.txt", "b/notes.txt", "b/notes-2.txt", "a/texts.jsonl", "b/texts.jsonl")]
    for source in sources:
        source.parent.mkdir(exist_ok=True)
        source.write_text('{"text": "lima"}\n' if source.suffix == ".jsonl" else "oslo\nlima", encoding="utf-8")
    out = tmp_path / "out.jsonl"
    result = run("predict", model, *sources, "--output", out)
    assert (result.code, result.err) == (0, "note: 3 documents with a duplicate name, numbered\n")
    documents = ["notes", "notes-2", "notes-2-2"]
    assert [(sentence.document, sentence.id) for sentence in read(out)] == [
        *((document, f"{document}-{index}") for document in documents for index in range(2)),
        ("texts-0", "texts-0-0"), ("texts-2-0", "texts-2-0-0"),
    ]  # fmt: skip


def test_record_ids_do_not_change_text_names(run: Runner, model: Path, tmp_path: Path) -> None:
    (tmp_path / "notes.jsonl").write_text('{"id": "r1", "text": "lima"}\n', encoding="utf-8")
    (tmp_path / "notes.txt").write_text("oslo", encoding="utf-8")
    result = run("predict", model, tmp_path / "notes.jsonl", tmp_path / "notes.txt")
    assert (result.code, notes(result)) == (0, "")
    assert [json.loads(line)["document"] for line in result.out.splitlines()] == ["r1", "notes"]


def predicted_ids(run: Runner, model: Path, files: dict[Path, list[Sentence]]) -> tuple[list[tuple[str | None, str]], str]:
    """Predict the files in order; return documents and ids, and standard error."""
    for path, content in files.items():
        path.parent.mkdir(exist_ok=True)
        write(content, path)
    result = run("predict", model, *files)
    assert result.code == 0
    return [(row.get("document"), row["id"]) for row in map(json.loads, result.out.splitlines())], notes(result)


def test_repeated_ids_and_documents_get_numbers(run: Runner, model: Path, tmp_path: Path) -> None:
    a, b, c = (tmp_path / name / "x.jsonl" for name in "abc")
    one, two = Sentence("s1", ("oslo",), document="d"), Sentence("s2", ("lima",))
    taken = Sentence("s1-2", ("oslo",), document="e")
    ids, notes = predicted_ids(run, model, {a: [one, two], b: [one, two, taken], c: [one]})
    assert ids == [("d", "s1"), (None, "s2"), ("d-2", "s1-2"), (None, "s2-2"), ("e", "s1-2-2"), ("d-3", "s1-3")]
    numbered = "note: 4 sentences with an id from an earlier file, numbered\n"
    assert notes == f"{numbered}note: 2 documents with a duplicate name, numbered\n"
    bare = [Sentence("", words) for words in (("oslo",), ("lima", "again"))]  # ids of CoNLL sentences come from the file name
    ids, notes = predicted_ids(run, model, {tmp_path / name / "x.conll": bare for name in "ab"})
    assert ids == [(None, "x-0"), (None, "x-1"), (None, "x-0-2"), (None, "x-1-2")]
    records = [tmp_path / name / "records.jsonl" for name in "ab"]
    for path in records:
        path.write_text('{"id": 7, "text": "It rained. Nobody came."}\n', encoding="utf-8")
    rows = [json.loads(line) for line in run("predict", model, *records).out.splitlines()]
    assert [(row["document"], row["id"]) for row in rows] == [("7", "7-0"), ("7", "7-1"), ("7-2", "7-0-2"), ("7-2", "7-1-2")]


def test_repeated_documents_get_numbers(run: Runner, model: Path, tmp_path: Path) -> None:
    texts = {"a.jsonl": "It rained.", "b.jsonl": "It rained. Nobody came."}  # a single sentence has the id of its document
    for name, text in texts.items():
        (tmp_path / name).write_text(json.dumps({"id": 7, "text": text, "label": []}) + "\n", encoding="utf-8")
    (tmp_path / "7.txt").write_text("Nobody came. It rained.")
    rows = [json.loads(line) for line in run("predict", model, *(tmp_path / n for n in (*texts, "7.txt"))).out.splitlines()]
    assert [(row["document"], row["id"]) for row in rows] == [
        ("7", "7"), ("7-2", "7-0"), ("7-2", "7-1"), ("7-3", "7-0-2"), ("7-3", "7-1-2"),
    ]  # fmt: skip


def test_unique_ids_are_unchanged(run: Runner, model: Path, tmp_path: Path) -> None:
    a, b = (tmp_path / name / "x.jsonl" for name in "ab")
    first = [Sentence(name, ("oslo",), document="d") for name in ("s1", "s1", "s2")]  # one id occurs twice in the file
    rest = [Sentence(name, ("lima",), document="d") for name in ("s3", "s3")]  # the document continues in another file
    ids, notes = predicted_ids(run, model, {a: first, b: rest})
    assert (ids, notes) == ([("d", name) for name in ("s1", "s1", "s2", "s3", "s3")], "")


@pytest.mark.parametrize("arguments", [
    ("texts/c.jsonl", "--output", "texts/c.jsonl"),
    ("texts/a.txt", "texts/c.jsonl", "--output", "link.jsonl"),
    ("link.jsonl", "--output", "texts/more/../c.jsonl"),
    ("texts", "--output", "texts/c.jsonl"),
    ("texts/a.txt", "--output", "texts/a.txt", "--to", "jsonl"),
    ("texts/a.txt", "--output", "texts/a.txt", "--to", "html"),
])  # fmt: skip
def test_output_never_overwrites_an_input(
    run: Runner, model: Path, folder: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...]
) -> None:
    monkeypatch.chdir(folder.parent)
    Path("link.jsonl").symlink_to(folder / "c.jsonl")
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    result = run("predict", model, *arguments)
    output = arguments[arguments.index("--output") + 1]
    message = f"{output}: the output would overwrite an input; choose another output\n"
    assert (result.code, result.out, result.err) == (2, "", message)
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before


def test_output_never_overwrites_an_annotated_text(run: Runner, model: Path, tmp_path: Path) -> None:
    for name in ("a.ann", "a.txt"):
        (tmp_path / name).write_text("")
    result = run("predict", model, tmp_path / "a.ann", "--output", tmp_path / "a.txt", "--to", "jsonl")
    message = f"{tmp_path / 'a.txt'}: the output would overwrite an input; choose another output\n"
    assert (result.code, result.out, result.err) == (2, "", message)


def test_output_never_overwrites_standard_input(model: Path, folder: Path) -> None:
    source = folder / "c.jsonl"
    before = source.read_bytes()
    arguments = ("predict", model, "-", "--from", "jsonl", "--output", source)
    with source.open("rb") as file, forked_command(*arguments, stdin=file) as command:
        result = command.wait()
    assert result.code == 2
    assert "would overwrite an input" in result.err
    assert source.read_bytes() == before


def test_standard_input_as_text_and_in_a_format(model: Path, folder: Path) -> None:
    raw = piped(model, TEXT.encode())
    assert [row["document"] for row in raw] == ["text"] * 3
    assert piped(model, TEXT.encode(), "--from", "text") == raw
    records = piped(model, (folder / "c.jsonl").read_bytes(), "--from", "jsonl")
    assert [row["id"] for row in records] == ["s0", "s1", "s2"]


def piped(model: Path, data: bytes, *options: str) -> list[dict[str, object]]:
    with forked_command("predict", model, "-", *options) as command:
        command.stdin.write(data)
        result = command.wait()
    assert result.code == 0
    return [json.loads(line) for line in result.out.splitlines()]


@pytest.mark.parametrize("name", ["notes.md", "letter", "x.jsonl"])
def test_from_text_reads_any_file(run: Runner, model: Path, tmp_path: Path, name: str) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / name).write_text(TEXT, encoding="utf-8")
    for source in (tmp_path / "in" / name, tmp_path / "in"):
        result = run("predict", model, source, "--from", "text")
        assert (result.code, notes(result)) == (0, "")
        rows = [json.loads(line) for line in result.out.splitlines()]
        assert [row["tokens"][0] for row in rows] == ["The", "Paris", "It"]
        assert {row["document"] for row in rows} == {Path(name).stem}


def test_errors_list_text_as_a_format(run: Runner, model: Path, tmp_path: Path) -> None:
    (tmp_path / "letter").write_text(TEXT, encoding="utf-8")
    result = run("predict", model, tmp_path / "letter")
    assert (result.code, result.out) == (2, "")
    assert result.err.startswith(f"{tmp_path / 'letter'}: cannot detect the format; set the format with --from (text, jsonl, ")
    wrong = run("predict", model, tmp_path / "letter", "--from", "txt")
    assert wrong.err.startswith("unknown format 'txt' (did you mean 'text'?); known: ")
    options = run("predict", model, tmp_path / "letter", "--from", "text:lines=yes")
    assert (options.code, options.err) == (2, "text takes no options here, found 'lines=yes'\n")


def test_texts_in_json_records(run: Runner, model: Path, tmp_path: Path) -> None:
    records = [{"id": "r7", "text": TEXT, "by": "us"}, {"text": "lima"}, {"text": ""}]
    source = tmp_path / "texts.jsonl"
    source.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    out = tmp_path / "out.jsonl"
    assert run("predict", model, source, "--output", out).code == 0
    predicted = [sentence for sentence in read(out) if sentence.words]
    assert [sentence.document for sentence in predicted] == ["r7", "r7", "r7", "texts-1"]
    assert [sentence.extra for sentence in predicted] == [{"by": "us"}, None, None, None]
    assert [sentence.entities for sentence in predicted] == predict(model, [TEXT, "lima"])
    source.write_text('{"text": "lima"}\n{"text": 3}\n', encoding="utf-8")
    failed = run("predict", model, source, "--output", tmp_path / "no.jsonl")
    assert failed.code == 2
    assert failed.err.startswith(str(source))


def test_annotations_in_the_input_are_ignored(run: Runner, model: Path, folder: Path, tmp_path: Path) -> None:
    brat = tmp_path / "brat"
    write(sentences(4), brat, "brat")
    out = tmp_path / "out.jsonl"
    assert run("predict", model, brat, "--output", out).code == 0
    texts = [path.read_text(encoding="utf-8") for path in sorted(brat.glob("*.txt"))]
    assert [sentence.entities for sentence in read(out)] == predict(model, texts)


def test_annotations_cause_no_notes(run: Runner, model: Path, tmp_path: Path) -> None:
    text = "Nontokyoites met. Geneva rose."
    for labels in ([[3, 8, "X"]], [[3, 80, "X"]]):
        (tmp_path / "x.jsonl").write_text(json.dumps({"id": 1, "text": text, "label": labels}), encoding="utf-8")
        result = run("predict", model, tmp_path / "x.jsonl")
        assert (result.code, notes(result)) == (0, "")
        assert [row["tokens"] for row in map(json.loads, result.out.splitlines())] == [
            ["Nontokyoites", "met", "."], ["Geneva", "rose", "."],
        ]  # fmt: skip


def test_partly_annotated_brat_folder(run: Runner, model: Path, tmp_path: Path) -> None:
    brat, out = tmp_path / "brat", tmp_path / "out"
    (brat / "more").mkdir(parents=True)
    for name in ("a", "more/b", "more/c"):
        (brat / f"{name}.txt").write_text(TEXT, encoding="utf-8")
    (brat / "more" / "b.ann").write_text("T1\tPlace 4 8\toslo\n", encoding="utf-8")
    write(sentences(3), brat / "d.jsonl")
    result = run("predict", model, brat, "--output", out, "--to", "brat")
    assert result.code == 0
    notes = result.err.splitlines()
    assert notes[0] == "note: 1 file other than .txt and .ann, not read (d.jsonl)"
    assert all("dropped: not stored by brat" in note for note in notes[1:])
    assert sorted(path.relative_to(out).as_posix() for path in out.rglob("*.txt")) == ["a.txt", "more/b.txt", "more/c.txt"]
    assert {(brat / "a.txt").read_bytes()} == {path.read_bytes() for path in out.rglob("*.txt")}
    assert {path.read_bytes() for path in out.rglob("*.ann")} == {(out / "a.ann").read_bytes()}
    scored = run("evaluate", model, brat, "--json", "-")
    assert (scored.code, json.loads(scored.out)["sentences"]) == (0, 3)  # only annotated texts


@pytest.mark.parametrize("command", ["predict", "suggest"])
def test_a_model_is_no_input(run: Runner, model: Path, tmp_path: Path, command: str) -> None:
    result = run(command, model, model, "--output", tmp_path / "out.jsonl")
    assert (result.code, result.err) == (2, f"{model}: expected data, found a model\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("missing.txt",), "missing.txt: no such file or folder"),
        ((".",), "no files in this folder"),
        (("-", "--to", "conll"), "--to needs --output; pass --output - for standard output"),
        (("-", "--output", "x.conll", "--to", "conl"), "unknown format 'conl' (did you mean 'conll'?)"),
        (("-", "--output", "x.htm", "--to", "htlm"), "unknown format 'htlm' (did you mean 'html'?)"),
        (("-", "--output", "x"), "x: cannot infer the output format from the name; choose it with --to (jsonl, "),
        (("-", "--output", "x"), ", html)"),
        (("-", "--output", "x.html", "--to", "html:dark=yes"), "html takes no options here, found 'dark=yes'"),
        (("-", "--threshold", "2"), "threshold '2': expected a number from 0 to 1, or TYPE=NUMBER"),
        (("-", "--threshold", "=0.9"), "threshold '=0.9': expected a number from 0 to 1, or TYPE=NUMBER"),
        (("-", "--threshold", "Drugs=0.5"), "unknown type with a threshold 'Drugs' (did you mean 'Drug'?)"),
        (
            ("-", "--threshold", "0.5", "--threshold", "Drug=0.5"),
            "pass either one threshold for all types or thresholds by type",
        ),
        (("-", "--overlap", "none"), "unknown overlap policy 'none'"),
    ],
)
def test_errors_are_one_line(
    run: Runner, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    result = run("predict", model, *arguments)
    assert (result.code, result.out, result.err.count("\n")) == (2, "", 1)
    assert message in result.err
    assert list(tmp_path.iterdir()) == []


# --- outputs --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("format", ["jsonl", "brat", "conll", "label_studio"])
def test_output_formats(run: Runner, model: Path, folder: Path, tmp_path: Path, format: str) -> None:
    out = tmp_path / "out"
    assert run("predict", model, folder / "a.txt", "--output", out, "--to", format).code == 0
    written = [{(entity.type, s.text_of(entity)) for entity in s.entities} for s in read(out, format)]
    expected = load(model, "cpu").predict(TEXT)
    assert written == [{(entity.type, s.text_of(entity)) for entity in s.entities} for s in expected]


def test_label_studio_output(run: Runner, model: Path, folder: Path, tmp_path: Path) -> None:
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


def test_html_page(run: Runner, model: Path, folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "page.html"
    assert run("predict", model, folder / "a.txt", "--output", out).code == 0
    page = out.read_text(encoding="utf-8")
    assert "&lt;" in page
    assert "<b> aspirin" not in page
    assert not re.search(r"(?:src|href)=.?https?:|@import|<script", page)
    assert page.count("<em>") == sum(map(len, predict(model, [TEXT])))
    assert all(f">{type}</li>" in page for type in ("Drug", "Place"))
    other = tmp_path / "page.jsonl"
    assert run("predict", model, folder / "a.txt", "--output", other, "--to", "html").code == 0
    assert other.read_text(encoding="utf-8").startswith("<!doctype html>")


def test_thresholds_and_overlap(run: Runner, model: Path, folder: Path, tmp_path: Path) -> None:
    predictor = load(model, "cpu")
    scores = [
        entity.score or 0 for sentence in predictor.predict(TEXT) for entity in sentence.entities if entity.type == "Place"
    ]
    middle = round(sorted(scores)[len(scores) // 2], 3)
    out = tmp_path / "out.jsonl"
    assert run("predict", model, folder / "a.txt", "-o", out, "--threshold", f"Place={middle}", "--overlap", "flat").code == 0
    assert [sentence.entities for sentence in read(out)] == [
        sentence.entities for sentence in predictor.predict(TEXT, threshold={"Place": middle}, overlap="flat") if sentence.words
    ]


def test_interrupt_leaves_no_files(model: Path, tmp_path: Path) -> None:
    """A slow pipe keeps the command busy."""
    out = tmp_path / "out" / "out.jsonl"
    out.parent.mkdir()
    line = (" ".join(FILLERS) + ".\n").encode()

    def is_writing() -> bool:
        command.stdin.write(line * 10)
        return bool(list(out.parent.iterdir()))  # a temporary file

    with forked_command("predict", model, "-", "--output", out) as command:
        command.wait_until(is_writing)
        assert not out.exists()
        command.send_signal(signal.SIGINT)
        result = command.wait()
    assert result.code == 130
    assert "Traceback" not in result.err
    assert list(out.parent.iterdir()) == []
