"""Reading without annotations: word boundaries must not reveal entities."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from spanwise import Entity, Sentence, SpanwiseError, read, write
from spanwise.formats import Ledger, formats


@pytest.fixture
def brat(tmp_path: Path) -> Path:
    (tmp_path / "d.txt").write_text("Anti-IL2R helps. Yahoo! Inc. grew.\n", encoding="utf-8")
    (tmp_path / "d.ann").write_text("T1\tGene 5 8\tIL2\nT2\tOrg 17 28\tYahoo! Inc.\n", encoding="utf-8")
    return tmp_path / "d.ann"


def test_words_and_sentences_are_not_split_at_entities(brat: Path) -> None:
    with_annotations, bare = list(read(brat)), list(read(brat, with_annotations=False))
    assert [s.words for s in with_annotations] == [
        ("Anti", "-", "IL2", "R", "helps", "."), ("Yahoo", "!", "Inc", ".", "grew", "."),
    ]  # fmt: skip
    assert [s.words for s in bare] == [
        ("Anti", "-", "IL2R", "helps", "."), ("Yahoo", "!"), ("Inc", ".", "grew", "."),
    ]  # fmt: skip
    assert not any(s.entities for s in bare)
    assert "".join(s.text for s in with_annotations) == "".join(s.text for s in bare)


def test_words_of_the_file_are_kept(tmp_path: Path) -> None:
    sentence = Sentence(
        "s", ("Anti", "-", "IL2", "R"), (Entity("Gene", ((2, 3),)),), text="Anti-IL2R", document="d", position=0
    )
    write([sentence], tmp_path / "x.jsonl")
    (bare,) = read(tmp_path / "x.jsonl", with_annotations=False)
    assert (bare.id, bare.words, bare.entities) == ("s", sentence.words, ())


def test_formats_with_character_offsets() -> None:
    assert {name for name, format in formats().items() if format.has_character_offsets} == {
        "ade_rel", "bioc_json", "bioc_xml", "brat", "csv", "docbin", "doccano", "label_studio", "prodigy", "pubtator",
    }  # fmt: skip


# One text with an annotation inside a word, one with trailing whitespace, and one outside the text.
INVALID_ANNOTATIONS = {
    "doccano": '{"id": "d", "text": "Nontokyoites met. Geneva rose.", "label": [[3, 8, "X"], [17, 24, "X"], [3, 80, "X"]]}',
    "label_studio": '{"id": "d", "data": {"text": "Nontokyoites met. Geneva rose."}, "annotations": [{"lead_time": 3, "result": ['
    '{"type": "labels", "value": {"start": 3, "end": 8, "labels": ["X"]}}, '
    '{"type": "labels", "value": {"start": 3, "end": 80, "labels": ["X"]}}]}, {"was_cancelled": true, "result": []}]}',
    "prodigy": '{"id": "d", "text": "Nontokyoites met. Geneva rose.", "spans": [{"start": 3, "end": 8, "label": "X"}, '
    '{"start": 17, "end": 24, "label": "X"}, {"token_start": 3, "token_end": 80, "label": "X"}], "answer": "accept"}',
    "bioc_json": '{"documents": [{"id": "d", "passages": [{"offset": 0, "text": "Nontokyoites met. Geneva rose.", "annotations": ['
    '{"infons": {"type": "X"}, "locations": [{"offset": 3, "length": 80}]}, {"locations": 3}]}]}]}',
    "csv": "document,start,end,type,document_text\nd,3,8,X,Nontokyoites met. Geneva rose.\nd,3,80,X,\nd,x,,,\n",
    "pubtator": "d|t|Nontokyoites met. Geneva rose.\nd\t3\t8\ttokyo\tX\t ID\nd\t3\t80\tx\tX\nd\tno such line\n",
}  # fmt: skip


@pytest.mark.parametrize("name", INVALID_ANNOTATIONS)
def test_invalid_annotations_are_ignored(tmp_path: Path, name: str) -> None:
    (tmp_path / "x").write_text(INVALID_ANNOTATIONS[name], encoding="utf-8")
    with pytest.raises(SpanwiseError):
        list(read(tmp_path / "x", name))
    ledger = Ledger()
    sentences = list(read(tmp_path / "x", name, ledger, with_annotations=False))
    assert [(s.id, s.words, s.entities, s.extra) for s in sentences] == [
        ("d-0", ("Nontokyoites", "met", "."), (), None), ("d-1", ("Geneva", "rose", "."), (), None),
    ]  # fmt: skip
    assert (ledger.notes, ledger.lost) == ({}, 0)


def test_skipped_tasks_are_still_noted(tmp_path: Path) -> None:
    tasks = [
        {"id": 1, "data": {"text": "Oslo."}, "annotations": [{"was_cancelled": True, "result": []}]},
        {"id": 2, "data": {"text": "Lima."}},
    ]
    (tmp_path / "x.json").write_text(json.dumps(tasks), encoding="utf-8")
    ledger = Ledger()
    assert [s.id for s in read(tmp_path / "x.json", "label_studio", ledger, with_annotations=False)] == ["2"]
    assert ledger.notes == {"tasks skipped by their annotators": 1}


def test_sentences_of_ade_are_unchanged(tmp_path: Path) -> None:
    row = "7|Anti-IL2R helps. Rash came.|Rash|17|22|IL2|40|43"  # offsets that match neither mention
    (tmp_path / "x.rel").write_text(f"{row}\n{row.replace('Rash', 'Fever')}\n", encoding="utf-8")
    ledger = Ledger()
    sentences = list(read(tmp_path / "x.rel", "ade_rel", ledger, with_annotations=False))
    assert [(s.id, s.text, s.entities) for s in sentences] == [
        ("7-0", "Anti-IL2R helps. Rash came.", ()), ("7-1", "Anti-IL2R helps. Fever came.", ()),
    ]  # fmt: skip
    assert sentences[0].words[2] == "IL2R"
    assert (ledger.notes, ledger.lost) == ({}, 0)


def test_spans_of_a_docbin_do_not_split_its_words(tmp_path: Path) -> None:
    spacy = pytest.importorskip("spacy")
    from spacy.tokens import Doc, DocBin, Span

    doc = Doc(spacy.blank("en").vocab, words=["Geneva", "rose", "."], sent_starts=[True, True, False])
    doc.spans["a"], doc.spans["b"] = [Span(doc, 0, 2, "X")], [Span(doc, 0, 1, "Y")]
    DocBin(docs=[doc], store_user_data=True).to_disk(tmp_path / "x.spacy")
    with pytest.raises(SpanwiseError, match="choose one"):
        list(read(tmp_path / "x.spacy"))
    ledger = Ledger()
    sentences = list(read(tmp_path / "x.spacy", None, ledger, with_annotations=False))
    assert [s.words for s in sentences] == [("Geneva",), ("rose", ".")]
    assert (ledger.notes, ledger.lost) == ({}, 0)


@pytest.mark.parametrize(
    ("name", "record"),
    [
        ("doccano", {"text": "Oslo grew.", "label": [[0, 5, None]]}),
        ("prodigy", {"text": "Oslo grew.", "spans": [{"start": "x"}]}),
    ],
)
def test_annotations_with_the_wrong_shape_are_ignored(name: str, record: dict[str, object], tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_text(json.dumps(record) + "\n", encoding="utf-8")
    assert [s.words for s in read(tmp_path / "x.jsonl", name, with_annotations=False)] == [("Oslo", "grew", ".")]
    with pytest.raises(SpanwiseError):
        list(read(tmp_path / "x.jsonl", name))


def test_windows_line_breaks_with_invalid_annotations(tmp_path: Path) -> None:
    (tmp_path / "d.txt").write_bytes(b"Oslo grew.\r\nNobody came.")
    (tmp_path / "d.ann").write_bytes(b"T1\tPlace 0 4\t\xff\n")
    assert [s.words for s in read(tmp_path, "brat", with_annotations=False)] == [("Oslo", "grew", "."), ("Nobody", "came", ".")]
    with pytest.raises(SpanwiseError, match="not UTF-8"):
        list(read(tmp_path, "brat"))


def test_text_lines_are_not_ignored(tmp_path: Path) -> None:
    (tmp_path / "x.pubtator").write_text("1|t|Oslo grew.\n1|a|The first half,\nthe second half.\n1\t0\t4\tOslo\tPlace\n")
    with pytest.raises(SpanwiseError, match="a line of document 'the second half"):
        list(read(tmp_path / "x.pubtator", "pubtator", with_annotations=False))
