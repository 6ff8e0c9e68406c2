"""Files in other encodings than UTF-8: suggested in errors, and read with an option."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest
from samples import TEXTS

from spanwise import SpanwiseError, read
from spanwise.cli import main
from spanwise.corpora.splits import read_corpus
from spanwise.formats import detect
from spanwise.inputs.sources import read_inputs
from spanwise.inputs.vector_text import corpus_text

COLUMNS = "Müller\tB-PER\nsagt\tO\n“naïve”\tO\n"


def test_latin_1_is_detected_and_suggested(tmp_path: Path) -> None:
    path = tmp_path / "a.conll"
    for encoding, text in (("latin-1", "Müller\tB-PER\n"), ("windows-1252", COLUMNS)):
        path.write_bytes(text.encode(encoding))
        with pytest.raises(SpanwiseError, match=rf"a\.conll:\d: not UTF-8 at byte \d of the line; pass --encoding {encoding}$"):
            list(read(path))
    (tmp_path / "b.ann").write_text("")
    (tmp_path / "b.txt").write_bytes("Müller".encode("latin-1"))
    with pytest.raises(SpanwiseError, match=r"b\.txt:1: not UTF-8; pass --encoding latin-1$"):
        list(read(tmp_path / "b.ann"))
    (tmp_path / "c.conll").write_bytes(COLUMNS.encode("utf-16"))
    with pytest.raises(SpanwiseError, match="pass --encoding utf-16"):
        detect(tmp_path / "c.conll")


def test_latin_1_is_not_suggested_for_binary_files(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR")
    problem = r"a\.txt:1: not UTF-8 at byte 1 of the line; it is a binary file, or UTF-16 \(then pass --encoding utf-16-le\)$"
    with pytest.raises(SpanwiseError, match=problem):
        list(read_inputs([str(tmp_path / "a.txt")]))


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32"])
def test_byte_order_marks_of_other_encodings_are_recognised(encoding: str, tmp_path: Path) -> None:
    """With Latin-1, their bytes would be read as characters."""
    for name in ("notes.txt", "brat.ann", "brat.txt", "data.json"):
        (tmp_path / name).write_bytes("[Müller]\nsagt".encode(encoding))
    advice = f"pass --encoding {encoding}$"
    for name in ("notes.txt", "data.json"):
        with pytest.raises(SpanwiseError, match=rf"{name}:1: not UTF-8 .*; {advice}"):
            list(read_inputs([str(tmp_path / name)], "spert" if name == "data.json" else None))
    with pytest.raises(SpanwiseError, match=rf"brat\.txt:1: not UTF-8; {advice}"):
        list(read(tmp_path / "brat.ann", "brat"))


def test_the_encoding_of_texts_next_to_a_file(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes("Müller sagt".encode("latin-1"))
    (tmp_path / "a.ann").write_bytes("T1\tPER 0 6\tMüller\n".encode("latin-1"))
    (tmp_path / "b.csv").write_text("document,start,end,type\na,0,6,PER\n")
    for name in ("a.ann", "b.csv"):
        (sentence,) = read(tmp_path / name, ":encoding=latin-1")
        assert sentence.text_of(sentence.entities[0]) == "Müller", name
    (tmp_path / "c.txt").write_bytes(b"\x81")  # of no document, and not in this encoding
    assert len(list(read(tmp_path / "b.csv", ":encoding=windows-1252"))) == 1


def test_the_encoding_of_texts_that_an_option_names(tmp_path: Path) -> None:
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "a.txt").write_bytes("Müller sagt".encode("latin-1"))
    (tmp_path / "other.csv").write_bytes("document,text\na,Müller sagt\n".encode("latin-1"))
    (tmp_path / "b.csv").write_text("document,start,end,type\na,0,6,PER\n")
    for name in ("texts", "other.csv"):
        format = f"csv:texts={tmp_path / name},encoding=latin-1"
        for sentences in (read(tmp_path / "b.csv", format), read_inputs([str(tmp_path / "b.csv")], format)):
            assert [sentence.words for sentence in sentences] == [("Müller", "sagt")], name
    (tmp_path / "texts" / "a.txt").unlink()
    for name, problem in (
        ("texts", r"/b\.csv:2: no text of document 'a'"),
        ("none", "/b\\.csv: the texts '.*/none' do not exist"),
    ):
        with pytest.raises(SpanwiseError, match=f"^{tmp_path}{problem}"):
            list(read(tmp_path / "b.csv", f"csv:texts={tmp_path / name},encoding=latin-1"))
    (tmp_path / "texts" / "a.txt").write_bytes(b"\x81")
    with pytest.raises(SpanwiseError, match=f"^{tmp_path}/texts/a.txt: not windows-1252"):
        list(read(tmp_path / "b.csv", f"csv:texts={tmp_path / 'texts'},encoding=windows-1252"))


@pytest.mark.parametrize("encoding", ["windows-1252", "utf-16"])
def test_the_encoding_option_reads_files_and_folders(encoding: str, tmp_path: Path) -> None:
    for name in ("train.conll", "notes.txt"):
        (tmp_path / name).write_bytes((COLUMNS if name == "train.conll" else "Müller says. “naïve”").encode(encoding))
    (tmp_path / "brat").mkdir()
    (tmp_path / "brat" / "a.txt").write_bytes("Müller".encode(encoding))
    (tmp_path / "brat" / "a.ann").write_bytes("T1\tP 0 6\tMüller\n".encode(encoding))
    for format in (f":encoding={encoding}", f"conll:encoding={encoding}", f"conll:labels=1,encoding={encoding}"):
        (sentence,) = read(tmp_path / "train.conll", format)
        assert (sentence.id, sentence.words) == ("train-0", ("Müller", "sagt", "“naïve”"))
    assert [s.words for s in read_corpus(tmp_path, f":encoding={encoding}")["train"]] == [sentence.words]
    assert [s.text_of(e) for s in read(tmp_path / "brat", f":encoding={encoding}") for e in s.entities] == ["Müller"]
    inputs = read_inputs([str(tmp_path / "notes.txt")], f":encoding={encoding}")
    assert [s.text for s in inputs] == ["Müller says. ", "“naïve”"]
    words = [word for words in corpus_text(tmp_path / "notes.txt", f"text:encoding={encoding}") for word in words]
    assert words[:2] == ["Müller", "says"]


@pytest.mark.parametrize("encoding", ["utf-16", "latin-1"])
def test_xml_that_declares_its_encoding(encoding: str, tmp_path: Path) -> None:
    declaration, text = f"<?xml version='1.0' encoding='{encoding}' standalone='yes'?>", TEXTS["bioc_xml"]
    xml = declaration + text[text.index("?>") + 2 :].replace("fume", "fumé")
    (tmp_path / "a.xml").write_bytes(xml.encode(encoding))
    first, *_ = read(tmp_path / "a.xml", f":encoding={encoding}")
    assert first.text == "Zinc fumé & x\n"


def test_hidden_files_of_a_folder_may_have_another_encoding(tmp_path: Path) -> None:
    """File managers leave binary files in folders, and editors copies."""
    (tmp_path / "a.txt").write_bytes("Café Oslo".encode("windows-1252"))
    (tmp_path / "a.ann").write_text("T1\tPlace 5 9\tOslo\n")
    (tmp_path / ".cache").mkdir()
    for name in (".DS_Store", ".cache/index", "a.ann~"):
        (tmp_path / name).write_bytes(b"\x81\x8d\x00")
    (sentence,) = read(tmp_path, "brat:encoding=windows-1252")
    assert sentence.words == ("Café", "Oslo")


def test_the_encoding_of_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO("Müller\nnaïve".encode("latin-1"))))
    assert [s.text for s in read_inputs(["-"], ":encoding=latin-1")] == ["Müller\n", "naïve"]


def test_wrong_encodings_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.conll").write_bytes(b"\xff\tO\n")
    with pytest.raises(SpanwiseError, match="unknown encoding 'latin-99'; expected a name such as latin-1"):
        list(read(tmp_path / "a.conll", ":encoding=latin-99"))
    with pytest.raises(SpanwiseError, match=r"a\.conll: not ascii \(.*\); pass another --encoding"):
        list(read(tmp_path / "a.conll", ":encoding=ascii"))


def test_commands_take_an_encoding(tmp_path: Path) -> None:
    (tmp_path / "a.conll").write_bytes(COLUMNS.encode("windows-1252"))
    with pytest.raises(SystemExit) as done:
        main(["convert", str(tmp_path / "a.conll"), str(tmp_path / "a.jsonl"), "--encoding", "windows-1252"])
    assert done.value.code == 0
    assert next(read(tmp_path / "a.jsonl")).words == ("Müller", "sagt", "“naïve”")
