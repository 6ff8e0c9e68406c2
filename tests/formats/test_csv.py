"""CSV and TSV tables: columns, texts in other files, fragments, and clear errors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from cases import in_case

from spanwise import Entity, FormatError, Relation, Sentence, SpanwiseError, convert, read, write
from spanwise.corpora.splits import read_corpus
from spanwise.formats import Ledger, LossError, detect

TEXT = "Zinc helps. Renal and liver pain."
ROWS = "d,0,4,Drug,Zinc,0.5\nd,12;28,17;32,Sym,Renal pain,\n"
HEADER = "document,start,end,type,text,score\n"


def entities_of(sentences: list[Sentence]) -> list[tuple[str, str, float | None]]:
    return [(e.type, s.text_of(e), e.score) for s in sentences for e in s.entities]


EXPECTED = [("Drug", "Zinc", 0.5), ("Sym", "Renal pain", None)]


def test_tables_with_texts_in_all_places(tmp_path: Path) -> None:
    cases: dict[str, dict[str, str]] = {
        "text file": {"a.csv": HEADER + ROWS, "d.txt": TEXT},
        "table of texts": {"a.csv": HEADER + ROWS, "texts.csv": f"document,text\nother,x\nd,{TEXT}\n"},
        "tabs": {"a.csv": (HEADER + ROWS).replace(",", "\t"), "texts.tsv": f"text\tdocument\n{TEXT}\td\n"},
        "column": {"a.csv": f"{HEADER.strip()},document_text\n{ROWS.splitlines()[0]},{TEXT}\nd,12;28,17;32,Sym,,\n"},
        "other order": {"a.csv": "Type;END;start;document\nDrug;4.0;0.0;d\nSym;\"17;32\";\"12;28\";d\n", "d.txt": TEXT},
        "byte-order mark and Windows line ends": {"a.csv": "\ufeff" + (HEADER + ROWS).replace("\n", "\r\n"), "d.txt": TEXT},
    }  # fmt: skip
    for number, (name, files) in enumerate(cases.items()):
        folder = tmp_path / str(number)
        folder.mkdir()
        for file, content in files.items():
            (folder / file).write_bytes(content.encode())
        with in_case(name):
            assert detect(folder / "a.csv").name == "csv"
            ledger = Ledger()
            sentences = list(read(folder / "a.csv", ledger=ledger))
            assert [(type, text) for type, text, _ in entities_of(sentences)] == [(type, text) for type, text, _ in EXPECTED]
            assert "".join(s.text for s in sentences) == TEXT
            assert sentences[1].entities[0].fragments == ((0, 1), (3, 4))
            skipped = "texts of documents without a row in the table, skipped"
            assert dict(ledger.notes) == ({skipped: 1} if name == "table of texts" else {})


def test_texts_elsewhere(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(HEADER + ROWS)
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "d.txt").write_text(TEXT)
    assert entities_of(list(read(tmp_path / "a.csv", f"csv:texts={tmp_path / 'texts'}"))) == EXPECTED
    (tmp_path / "other.tsv").write_text(f"document\ttext\nd\t{TEXT}\n")
    assert entities_of(list(read(tmp_path / "a.csv", f"csv:texts={tmp_path / 'other.tsv'}"))) == EXPECTED
    with pytest.raises(FormatError, match="'nowhere' do not exist"):
        list(read(tmp_path / "a.csv", "csv:texts=nowhere"))


def test_a_written_table_is_read_back(tmp_path: Path) -> None:
    sentence = Sentence(
        "s", ("Zinc", ",", "ok"), (Entity("Drug", ((0, 1), (2, 3)), 0.25),), text='Zinc,\n"ok"', starts=(0, 4, 7)
    )
    for name, spec, separator in (("a.csv", None, ","), ("a.tsv", "csv", "\t"), ("b", "csv:separator=semicolon", ";")):
        write([sentence, Sentence("t", ("No",))], tmp_path / name, spec)
        lines = (tmp_path / name).read_text().splitlines()
        assert lines[0] == separator.join(("document", "start", "end", "type", "text", "score", "document_text"))
        assert detect(tmp_path / name).name == "csv"
        first, second = read(tmp_path / name)
        assert (first.document, first.text, entities_of([first])) == ("s", 'Zinc,\n"ok"', [("Drug", "Zinc ok", 0.25)])
        assert (second.document, second.words, second.entities) == ("t", ("No",), ())


def test_a_table_without_texts(tmp_path: Path) -> None:
    (tmp_path / "s.txt").write_text("Oslo")
    write([Sentence("s", ("Oslo",), (Entity("Loc", ((0, 1),)),))], tmp_path / "a.csv", "csv:texts=no")
    assert (tmp_path / "a.csv").read_text() == "document,start,end,type,text,score\ns,0,4,Loc,Oslo,\n"
    assert entities_of(list(read(tmp_path / "a.csv"))) == [("Loc", "Oslo", None)]


def test_relations_need_lossy(tmp_path: Path) -> None:
    entities = (Entity("Loc", ((0, 1),)), Entity("Loc", ((1, 2),)))
    write([Sentence("s", ("Oslo", "Norway"), entities, (Relation("in", 0, 1),))], tmp_path / "a.jsonl")
    with pytest.raises(LossError, match=r"csv would drop 1 relation \(not supported by the format\); pass --lossy"):
        convert(tmp_path / "a.jsonl", tmp_path / "a.csv")
    assert not (tmp_path / "a.csv").exists()
    convert(tmp_path / "a.jsonl", tmp_path / "a.csv", lossy=True)
    assert len(entities_of(list(read(tmp_path / "a.csv")))) == 2


def test_other_columns_and_wrong_texts_are_kept_and_noted(tmp_path: Path) -> None:
    (tmp_path / "d.txt").write_text(TEXT)
    (tmp_path / "a.csv").write_text("document,start,end,type,text,concept\nd,0,4,Drug,Zink,C1\n")
    ledger = Ledger()
    (entity,) = (e for s in read(tmp_path / "a.csv", ledger=ledger) for e in s.entities)
    assert entity.extra == {"concept": "C1"}
    assert dict(ledger.notes) == {"entities whose text differs from the document at their offsets": 1}


def test_rows_of_a_document_may_be_apart_where_the_texts_are_in_files(tmp_path: Path) -> None:
    for name in ("d", "e"):
        (tmp_path / f"{name}.txt").write_text(TEXT)
    (tmp_path / "a.csv").write_text(HEADER + "d,0,4,Drug,,\ne,0,4,Drug,,\nd,12,17,Sym,,\n")
    assert [(s.document, len(s.entities)) for s in read(tmp_path / "a.csv")] == [("d", 1), ("d", 1), ("e", 1), ("e", 0)]


def test_a_table_of_texts_belongs_to_the_splits_of_a_folder(tmp_path: Path) -> None:
    for name, document in (("train", "d"), ("dev", "e")):
        (tmp_path / f"{name}.csv").write_text(f"document,start,end,type\n{document},0,4,Drug\n")
    (tmp_path / "texts.csv").write_text(f"document,text\nd,{TEXT}\ne,Iron.\n")
    ledger = Ledger()
    corpus = read_corpus(tmp_path, ledger=ledger)
    assert {split: [s.document for s in corpus[split]] for split in corpus} == {"train": ["d", "d"], "dev": ["e"]}
    assert not any("no split" in note for note in ledger.notes)


def test_a_table_of_texts_is_read_for_prediction(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text('document,text\nd,"One. Two."\ne,Three\n')
    assert [(s.document, s.text) for s in read(tmp_path / "a.csv", with_annotations=False)] == [
        ("d", "One. "), ("d", "Two."), ("e", "Three"),
    ]  # fmt: skip
    with pytest.raises(FormatError, match="no columns 'start', 'end', 'type'"):
        list(read(tmp_path / "a.csv"))


WRONG: dict[str, tuple[str, str]] = {
    "no annotation columns": ("id,review\n1,good\n", "no columns 'document', 'start', 'end', 'type' in the first line; "
                              "expected document, start, end, type, found 'id', 'review'; rename 'id' to 'document'"),
    "no document column": ("text,start,end,label\nZinc,0,4,X\n", "rename 'label' to 'type', and add 'document'$"),
    "other names": ("doc,begin,stop,label\nd,0,4,X\n", "rename 'doc' to 'document', 'begin' to 'start', 'stop' to 'end', 'label' to 'type'"),
    "no names": ("d,0,4,Drug\n", "a.csv:1: no column"),
    "a word per row": ("Sentence #,Word,POS,Tag\nSentence: 1,Zinc,NNP,B-Drug\n",
                       "a.csv:1: has a row per word; expected a row per entity with the columns document, start, end, type; or write "
                       "words and tags with tabs between them, an empty line after each sentence and no header"),
    "twice": ("document,start,end,type,type\n", "two columns are named 'type'"),
    "no text": (HEADER + "e,0,4,Drug,,\n", "a.csv:2: no text of document 'e'; expected it in e.txt, in texts.csv"),
    "an empty text": ("document,start,end,type,document_text\nd,0,4,X,\n", "no text of document 'd' in the column 'document_text'"),
    "two texts": ("document,start,end,type,document_text\nd,0,4,X,Zinc\nd,0,4,Y,Iron\n", "a.csv:3: document 'd' has two different texts"),
    "rows apart": ("document,start,end,type,document_text\nd,,,,Zinc\ne,,,,Iron\nd,0,4,X,\n", "a.csv:4: document 'd' occurs again; its rows must"),
    "out of range": (HEADER + "d,0,400,Drug,,\n", r"a.csv:2: Drug \[0, 400\] is outside the text of 33 characters"),
    "no number": (HEADER + "d,zero,4,Drug,,\n", "a.csv:2: start: expected a number of characters, or several as in 0;10, found 'zero'"),
    "missing end": (HEADER + "d,0,,Drug,,\n", "a.csv:2: end: expected a number"),
    "fragments": (HEADER + "d,0;5,4,Drug,,\n", "2 starts, but 1 end"),
    "no type": (HEADER + "d,0,4,,,\n", "the column 'type' is empty"),
    "no document": (HEADER + ",0,4,Drug,,\n", "the column 'document' is empty"),
    "score": (HEADER + "d,0,4,Drug,,nan\n", "score: expected a number, found 'nan'"),
    "too many cells": (HEADER + "d,0,4,Drug,Zinc, oxide,0.5\n", "expected 6 columns, found 7; quote cells with separators"),
    "an open quote": (HEADER + 'd,0,4,Drug,"Zinc,\n', "a.csv:2: invalid quotes or line breaks"),
    "outside the folder": (HEADER + "../d,0,4,Drug,,\n", "'../d' is not the name of a file in the folder of the texts"),
    "an absolute name": (HEADER + "/etc/hosts.txt,0,4,Drug,,\n", "is not the name of a file"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_wrong_tables(name: str, tmp_path: Path) -> None:
    content, problem = WRONG[name]
    (tmp_path / "d.txt").write_text(TEXT)
    (tmp_path / "a.csv").write_text(content)
    with pytest.raises(SpanwiseError, match=problem):
        list(read(tmp_path / "a.csv"))


def test_a_tsv_with_other_names_is_recognised(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("doc\tstart\tend\tlabel\nd\t0\t4\tX\n")
    with pytest.raises(FormatError, match="rename 'doc' to 'document', 'label' to 'type'"):
        list(read(tmp_path / "a.tsv"))


def test_long_texts_are_read(tmp_path: Path) -> None:
    """The csv module of Python refuses cells of more than 128 KiB by default."""
    words: tuple[Any, ...] = ("word",) * 60_000
    write([Sentence("s", words)], tmp_path / "a.csv")
    assert sum(len(s.words) for s in read(tmp_path / "a.csv")) == 60_000
