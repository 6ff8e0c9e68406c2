"""Conversion of files and corpus folders."""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path

import pytest
from samples import TEXTS

from spanwise import SpanwiseError, convert, read, read_corpus
from spanwise.core.types import Entity, Sentence
from spanwise.data import FOLDER
from spanwise.formats import Ledger, LossError, detect, write

NESTED = Sentence("s1", ("Bank", "of", "Japan"), (Entity("ORG", ((0, 3),)), Entity("LOC", ((2, 3),))))
ONE = Sentence("s1", ("Oslo", "waits"), (Entity("LOC", ((0, 1),)),))


@pytest.fixture
def nested(tmp_path: Path) -> Path:
    path = tmp_path / "in.jsonl"
    write([NESTED, NESTED], path)
    return path


def test_losses_are_counted_and_nothing_is_written(nested: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.conll"
    with pytest.raises(
        LossError, match=r"not written because conll would drop 2 entities \(overlapping another\); pass --lossy"
    ):
        convert(nested, out)
    assert not out.exists()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["in.jsonl"]


def test_an_existing_output_survives_a_failed_conversion(nested: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.conll"
    out.write_text("old content")
    with pytest.raises(LossError):
        convert(nested, out)
    assert out.read_text() == "old content"


def test_lossy_writes_the_rest_and_reports_losses(nested: Path, tmp_path: Path) -> None:
    result = convert(nested, tmp_path / "out.conll", lossy=True)
    assert str(result.ledger) == "2 entities (overlapping another)"
    assert result.read["all"] == {"sentences": 2, "entities": 4, "relations": 0}
    assert [e.type for s in read(tmp_path / "out.conll") for e in s.entities] == ["ORG", "ORG"]


def test_format_options_follow_the_format_name(nested: Path, tmp_path: Path) -> None:
    convert(nested, tmp_path / "out.txt", target_format="conll:levels=2,scheme=bioes")
    assert (tmp_path / "out.txt").read_text() == 2 * "Bank\tB-ORG\tO\nof\tI-ORG\tO\nJapan\tE-ORG\tS-LOC\n\n"


@pytest.mark.parametrize(
    ("format", "message"),
    [
        ("conl", "unknown format 'conl' (did you mean 'conll'?)"),
        ("conll:level=2", "unknown option of conll 'level' (did you mean 'levels'?)"),
        ("conll:levels=two", "option 'levels' of conll: expected an integer, found 'two'"),
        ("conll:levels=0", "expected 1 or more"),
        ("conll:levels", "needs a value"),
        ("conll:scheme=iobes", "expected one of bio, bioes"),
        ("genia_xml", "genia_xml can be read but not written"),
    ],
)
def test_wrong_formats_and_options(nested: Path, tmp_path: Path, format: str, message: str) -> None:
    with pytest.raises(SpanwiseError) as caught:
        convert(nested, tmp_path / "out", target_format=format)
    assert message in str(caught.value)


def test_an_ambiguous_name_needs_a_format(nested: Path, tmp_path: Path) -> None:
    with pytest.raises(SpanwiseError, match=r"choose it with --to .*spert"):
        convert(nested, tmp_path / "out.json")
    with pytest.raises(SpanwiseError, match="cannot infer the output format from the name"):
        convert(nested, tmp_path / "out.xyz")


def test_an_invalid_line_leaves_no_output(tmp_path: Path) -> None:
    source = tmp_path / "in.jsonl"
    source.write_text('{"tokens": ["a"]}\n' * 100 + "oops\n")
    with pytest.raises(SpanwiseError, match=r"in.jsonl:101: not JSON"):
        convert(source, tmp_path / "out.jsonl")
    assert [p.name for p in tmp_path.iterdir()] == ["in.jsonl"]


@pytest.mark.parametrize("target", ["in.jsonl", "other/../in.jsonl", "link.jsonl", "linked/in.jsonl"])
def test_the_source_is_never_overwritten(nested: Path, monkeypatch: pytest.MonkeyPatch, target: str) -> None:
    monkeypatch.chdir(nested.parent)
    Path("other").mkdir()
    Path("link.jsonl").symlink_to(nested)
    Path("linked").symlink_to(nested.parent)
    before = nested.read_bytes()
    for format in ("conll", "jsonl"):
        with pytest.raises(SpanwiseError, match=f"^{re.escape(target)}: the output would overwrite an input"):
            convert(nested, target, target_format=format, lossy=True)
    assert nested.read_bytes() == before


def test_a_source_folder_and_its_files_are_never_overwritten(tmp_path: Path) -> None:
    write([NESTED], tmp_path / "brat", "brat")
    before = {path.name: path.read_bytes() for path in (tmp_path / "brat").iterdir()}
    assert len(before) > 1
    for target in ("brat", *(f"brat/{name}" for name in before)):
        with pytest.raises(SpanwiseError, match="would overwrite an input"):
            convert(tmp_path / "brat", tmp_path / target, target_format="jsonl")
    assert {path.name: path.read_bytes() for path in (tmp_path / "brat").iterdir()} == before
    convert(tmp_path / "brat", tmp_path / "brat" / "new.jsonl")
    assert [s.entities for s in read(tmp_path / "brat" / "new.jsonl")]


@pytest.mark.parametrize(("source", "target"), [("a.ann", "a.txt"), ("a.txt", "a.ann"), ("link.ann", "a.txt")])
def test_a_brat_text_and_its_annotations_are_never_overwritten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str, target: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.txt").write_text("Oslo.")
    Path("a.ann").write_text("T1\tPlace 0 4\tOslo\n")
    Path("link.txt").symlink_to("a.txt")
    Path("link.ann").symlink_to("a.ann")
    with pytest.raises(SpanwiseError, match=f"^{target}: the output would overwrite an input"):
        convert(source, target, target_format="conll", lossy=True)
    assert (Path("a.txt").read_text(), Path("a.ann").read_text()) == ("Oslo.", "T1\tPlace 0 4\tOslo\n")
    Path("b.txt").write_text("another text")
    convert(source, "b.txt", target_format="conll", lossy=True)
    assert Path("b.txt").read_text().startswith("Oslo\t")


def test_a_device_may_be_source_and_target() -> None:
    assert convert("/dev/null", "/dev/null", "jsonl", "jsonl").read["all"]["sentences"] == 0


def test_a_corpus_folder_becomes_a_folder(tmp_path: Path) -> None:
    result = convert(FOLDER, tmp_path / "out", target_format="brat")
    assert result.format == "brat"
    before, after = read_corpus(FOLDER), read_corpus(tmp_path / "out")
    for split in ("train", "dev", "test"):
        entities = [sorted((e.type, s.text_of(e)) for s in c[split] for e in s.entities) for c in (before, after)]
        assert entities[0] == entities[1]
        relations = [sum(len(s.relations) + len(s.links) for s in c[split]) for c in (before, after)]
        assert relations[0] == relations[1]
        assert result.read[split]["entities"] == len(entities[0])


def test_a_corpus_folder_is_written_completely_or_not_at_all(tmp_path: Path) -> None:
    with pytest.raises(LossError, match="discontinuous"):
        convert(FOLDER, tmp_path / "out", target_format="spert")
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(SpanwiseError, match="the target must be a folder"):
        convert(FOLDER, tmp_path / "out.jsonl")


def test_splits_are_recognised_by_file_name(tmp_path: Path) -> None:
    for name in ("training.jsonl", "valid.jsonl", "x.test", "test_unlabelled.jsonl", "notes.md"):
        write([NESTED], tmp_path / "w.jsonl")
        (tmp_path / "w.jsonl").rename(tmp_path / name)
    assert list(read_corpus(tmp_path)) == ["train", "dev", "test"]
    write([NESTED], tmp_path / "train.jsonl")
    with pytest.raises(SpanwiseError, match=r"train.jsonl and training.jsonl all look like the train split"):
        read_corpus(tmp_path)


def test_missing_and_empty_inputs(tmp_path: Path) -> None:
    with pytest.raises(SpanwiseError, match="no such file or folder"):
        convert(tmp_path / "missing.jsonl", tmp_path / "out.jsonl")
    (tmp_path / "empty.jsonl").touch()
    assert convert(tmp_path / "empty.jsonl", tmp_path / "out.jsonl").read["all"]["sentences"] == 0
    (tmp_path / "empty.xyz").touch()
    with pytest.raises(SpanwiseError, match="the file is empty"):
        detect(tmp_path / "empty.xyz")
    (tmp_path / "folder").mkdir()
    with pytest.raises(SpanwiseError, match="no files named train, dev or test"):
        read_corpus(tmp_path / "folder")
    (tmp_path / "prose.txt").write_text("Only prose here.\nAnd more of it.\n")
    with pytest.raises(SpanwiseError, match="cannot detect the format; pass the format \\(jsonl, "):
        detect(tmp_path / "prose.txt")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("x.jsonl.gz", b"\x1f\x8b\x08\x00", "is compressed (gzip); decompress it first"),
        ("x.conll", "Oslo\tB-LOC\n".encode("utf-16"), "is UTF-16 text; pass --encoding utf-16, or convert it to UTF-8"),
        ("x.conll", "Oslo\tB-LOC\n".encode("utf-32"), "is UTF-32 text; pass --encoding utf-32, or convert it to UTF-8"),
        ("x.json", b'[{"words": [], "marks": []}]', "; its records have the keys 'words', 'marks'"),
        ("x.json", b'{\n"tokens": []}', "; it starts like JSON, but is neither an array of records nor one record per line"),
        ("x.jsonl", b'{"tokens": [}\n', ":1: not JSON"),
        ("x.xml", b"<html></html>", "it starts with <html>, but genia_xml has <set> and bioc_xml has <collection>"),
    ],
)
def test_errors_for_unknown_formats_describe_the_content(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(SpanwiseError, match=re.escape(message)):
        list(read(tmp_path / name))


def test_spelling_variants_of_format_names(tmp_path: Path) -> None:
    write([ONE], tmp_path / "x.conll", "CoNLL:scheme=BIOES")
    assert "S-" in (tmp_path / "x.conll").read_text()
    write([ONE], tmp_path / "x.json", "label-studio")
    assert detect(tmp_path / "x.json").name == "label_studio"


def test_losses_while_reading_are_not_attributed_to_the_writer(tmp_path: Path) -> None:
    record = {"doc_key": "d", "sentences": [["a", "b"]], "ner": [[[0, 0, "X"]]], "relations": [[[0, 0, 1, 1, "R"]]]}
    (tmp_path / "x.json").write_text(json.dumps(record))
    with pytest.raises(LossError) as caught:
        convert(tmp_path / "x.json", tmp_path / "out.jsonl")
    assert str(caught.value).endswith(
        "not written because reading dropped 1 relation (with an argument that is not in the ner layer); pass --lossy to write the rest"
    )


def test_files_without_a_split_are_noted(tmp_path: Path) -> None:
    for name in ("eng.train", "eng.testa", "eng.testb", "extra.train", "eng.train~"):
        (tmp_path / name).write_text("Oslo B-LOC\n")
    (tmp_path / "extra.train").rename(tmp_path / "old.testb")
    with pytest.raises(SpanwiseError, match=r"eng.testb and old.testb all look like the test split"):
        read_corpus(tmp_path)
    (tmp_path / "old.testb").unlink()
    assert list(read_corpus(tmp_path)) == ["train", "dev", "test"]
    folder = tmp_path / "other"
    folder.mkdir()
    for name in ("train.conll", "train_2.conll", "notes.md"):
        (folder / name).write_text("Oslo B-LOC\n")
    ledger = Ledger()
    read_corpus(folder, ledger=ledger)
    assert ledger.notes == {"files that are named after no split, not read (train_2.conll)": 1}


def test_json_data_without_a_split_is_noted(tmp_path: Path) -> None:
    """An export of an annotation tool next to train.jsonl; statistics are no data."""
    (tmp_path / "train.jsonl").write_text('{"id": "1", "tokens": ["Oslo"], "entities": []}\n')
    (tmp_path / "round-2.json").write_text('[{"data": {"text": "in Oslo"}, "annotations": []}]')
    (tmp_path / "stats.json").write_text('{"sentences": 1}')
    ledger = Ledger()
    read_corpus(tmp_path, ledger=ledger)
    assert ledger.notes == {"files that are named after no split, not read (round-2.json)": 1}


def test_a_folder_may_have_a_dot_in_its_name(tmp_path: Path) -> None:
    convert(FOLDER, tmp_path / "out-1.0")
    assert sorted(path.name for path in (tmp_path / "out-1.0").iterdir()) == ["dev.jsonl", "test.jsonl", "train.jsonl"]


def test_sentences_read_and_written_are_counted(nested: Path, tmp_path: Path) -> None:
    result = convert(nested, tmp_path / "out.conll", lossy=True)
    assert result.read["all"] == {"sentences": 2, "entities": 4, "relations": 0}
    assert result.written["all"] == {"sentences": 2, "entities": 2, "relations": 0}


def test_a_brat_folder_named_train_is_one_split(tmp_path: Path) -> None:
    write([ONE], tmp_path / "train", "brat")
    convert(tmp_path / "train", tmp_path / "out.jsonl")
    assert [s.entities for s in read(tmp_path / "out.jsonl")] == [ONE.entities]


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux allows file names that are not UTF-8")
@pytest.mark.parametrize("format", [name for name in TEXTS if name != "brat"])
def test_a_file_name_that_is_not_utf8(tmp_path: Path, format: str) -> None:
    path = tmp_path / os.fsdecode(b"caf\xe9.data")
    path.write_text(TEXTS[format], encoding="utf-8")
    convert(path, tmp_path / "out.jsonl", format, lossy=True)
    assert all("\udce9" not in s.id for s in read(tmp_path / "out.jsonl"))
