"""Inputs that are named like raw text, but whose content is in another format."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest
from cases import in_case
from samples import TEXTS

from spanwise.formats import Ledger
from spanwise.formats.registry import possible_formats
from spanwise.formats.shared.sample import Sample
from spanwise.inputs.sources import read_inputs

COLUMNS = "Oslo B-LOC\nis O\nfar O\n. O\n\nYes O\n"
RAW_TEXTS = {
    "a vitamin": "I take vitamin B-12\n",
    "a list of blood groups": "A is common, says O\nB is rare, says O\n",
    "brackets": "[1] is a reference. {2} is not.\n",
    "a mark": "<b>Oslo</b> lies in Norway.\n",
    "bars": "a|t|b\nis not a title\n",
    "numbers": "1\n2\n3\n",
    "nothing": "",
    "a table": "Oslo\tNorway\nParis\tFrance\n",
}


def read_text_file(folder: Path, content: str) -> tuple[list[str], list[str]]:
    """Return the texts of a .txt file and the notes."""
    path, ledger = folder / "notes.txt", Ledger()
    path.write_text(content, encoding="utf-8")
    texts = [sentence.text for sentence in read_inputs([str(path)], ledger=ledger)]
    return texts, list(ledger.notes)


def read_standard_input(monkeypatch: pytest.MonkeyPatch, content: bytes) -> tuple[list[str], list[str]]:
    ledger = Ledger()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    return [sentence.text for sentence in read_inputs(["-"], ledger=ledger)], list(ledger.notes)


def test_a_pubtator_file_named_txt_is_read_as_pubtator_with_a_note(tmp_path: Path) -> None:
    texts, notes = read_text_file(tmp_path, TEXTS["pubtator"])
    assert texts == ["Zinc fume\n", "Zinc oxide harms.", "Iron"]
    assert notes == ["inputs read as pubtator, because of their content (pass --from text for raw text)"]


def test_standard_input_in_another_format_is_recognised(monkeypatch: pytest.MonkeyPatch) -> None:
    texts, notes = read_standard_input(monkeypatch, TEXTS["pubtator"].encode())
    assert texts == ["Zinc fume\n", "Zinc oxide harms.", "Iron"]
    assert notes == ["inputs read as pubtator, because of their content (pass --from text for raw text)"]
    texts, notes = read_standard_input(monkeypatch, b'{"text": "It rained."}\n{"text": "Nobody came."}\n')
    assert texts == ["It rained.", "Nobody came."]
    assert notes == ["inputs read as JSON records with a text, because of their content (pass --from text for raw text)"]


def test_other_formats_named_txt_are_recognised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, text in {**TEXTS, "conll": COLUMNS}.items():
        if name != "brat":  # its annotations are in another file
            with in_case(name):
                for _, notes in (read_text_file(tmp_path, text), read_standard_input(monkeypatch, text.encode())):
                    assert any(note.startswith(f"inputs read as {name}, ") for note in notes)


def test_raw_text_stays_raw_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, text in RAW_TEXTS.items():
        with in_case(name):
            for texts, notes in (read_text_file(tmp_path, text), read_standard_input(monkeypatch, text.encode())):
                assert ("".join(texts), notes) == (text, [])


def test_a_text_with_brat_annotations_next_to_it_stays_raw_text(tmp_path: Path) -> None:
    (tmp_path / "notes.ann").write_text("T1\tPlace 0 4\tOslo\n")
    assert read_text_file(tmp_path, "Oslo waits.") == (["Oslo waits."], [])


def test_from_text_reads_other_formats_as_raw_text(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(TEXTS["pubtator"])
    sentences = list(read_inputs([str(tmp_path / "a.txt")], "text"))
    assert "".join(sentence.text for sentence in sentences) == TEXTS["pubtator"]


def test_formats_that_the_content_excludes_are_not_imported() -> None:
    def possible(content: bytes) -> set[str]:
        return {format.name for format in possible_formats(Sample.from_bytes(content))}

    marked = {"{": {"jsonl", "spert", "label_studio", "bioc_json"}, "<": {"genia_xml", "bioc_xml"}}
    assert not possible(b"A plain text.\n") & set.union(*marked.values())
    assert {"conll", "csv", "brat"} <= possible(b"A plain text.\n")
    for mark, names in marked.items():
        assert names <= possible(f"A text with {mark}\n".encode())


def test_records_without_words_are_noted(tmp_path: Path) -> None:
    path, ledger = tmp_path / "texts.jsonl", Ledger()
    path.write_text('{"id": 1, "text": "Oslo."}\n{"id": 2, "text": ""}\n{"id": 3, "text": " \\n"}\n')
    assert [sentence.document for sentence in read_inputs([str(path)], ledger=ledger)] == ["1"]
    assert ledger.notes == {"documents without words, skipped": 2}
