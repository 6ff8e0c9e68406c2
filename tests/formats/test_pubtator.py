"""PubTator titles and abstracts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from spanwise import Entity, FormatError, Link, Relation, Sentence
from spanwise.formats import Ledger, detect, pubtator, read, write
from spanwise.formats.shared.documents import CONCEPT_RELATIONS
from spanwise.formats.shared.sample import Sample

FILE = """\

11|t|Zinc and iron poisoning
11|a|Zinc oxide fumes harm. Iron does | too.
11\t0\t23\tZinc and iron poisoning\tCompositeMention\tD1|D2\tzinc poisoning|iron poisoning
11\t0\t4\tZinc\tChemical\t C1
11\t24\t34\tZinc oxide\tChemical\tC3
11\t47\t51\tIron\tChemical
11\tCID\tC1\tD1
11\tAssociation\tC3\t7157\tNovel

12|t|Only a title.
12\t0\t4\tOnly\tWord\t
13|t|
13|a|No title here.
13\t1\t9\tNo title\tFinding\tF1
"""


def file(folder: Path, content: str) -> Path:
    path = folder / "data.txt"
    path.write_bytes(content.encode())
    return path


def load(path: Path, **options: Any) -> tuple[list[Sentence], Ledger]:
    ledger = Ledger()
    return list(pubtator.read(path, ledger, **options)), ledger


def written(sentences: list[Sentence], folder: Path) -> tuple[str, Ledger]:
    ledger = Ledger()
    pubtator.write(iter(sentences), folder / "out.pubtator", ledger)
    return (folder / "out.pubtator").read_text(encoding="utf-8"), ledger


def test_documents(tmp_path: Path) -> None:
    sentences, ledger = load(file(tmp_path, FILE))
    assert [(s.id, s.document, s.position) for s in sentences] == [
        ("11-0", "11", 0),
        ("11-1", "11", 1),
        ("11-2", "11", 2),
        ("12", "12", 0),
        ("13", "13", 0),
    ]
    assert [s.text for s in sentences] == [
        "Zinc and iron poisoning\n",
        "Zinc oxide fumes harm. ",
        "Iron does | too.",
        "Only a title.",
        "\nNo title here.",
    ]
    assert [(e.type, s.text_of(e), e.extra) for s in sentences for e in s.entities] == [
        ("CompositeMention", "Zinc and iron poisoning", {"concept": "D1|D2", "columns": ["zinc poisoning|iron poisoning"]}),
        ("Chemical", "Zinc", {"concept": "C1"}),
        ("Chemical", "Zinc oxide", {"concept": "C3"}),
        ("Chemical", "Iron", None),
        ("Word", "Only", {"concept": ""}),
        ("Finding", "No title", {"concept": "F1"}),
    ]
    assert sentences[0].extra == {"concept_relations": [["CID", "C1", "D1"], ["Association", "C3", "7157", "Novel"]]}
    assert [s.relations for s in sentences] == [()] * 5
    assert (ledger.lost, ledger.notes) == (0, {"concept ids with surrounding spaces, trimmed": 1, CONCEPT_RELATIONS: 2})


def test_written_data_equals_the_original(tmp_path: Path) -> None:
    sentences, _ = load(file(tmp_path, FILE))
    text, ledger = written(sentences, tmp_path)
    expected = (
        FILE.removeprefix("\n")
        .replace("\t C1\n", "\tC1\n")
        .replace("Only a title.\n", "Only a title.\n12|a|\n")
        .replace("13|t", "\n13|t")
    )
    assert text == expected + "\n"
    assert (ledger.lost, load(tmp_path / "out.pubtator")[0]) == (0, sentences)


def test_windows_line_breaks_and_missing_blank_lines(tmp_path: Path) -> None:
    sentences, _ = load(file(tmp_path, FILE))
    assert load(file(tmp_path, FILE.replace("\n", "\r\n")))[0] == sentences
    assert load(file(tmp_path, FILE.strip()))[0] == sentences


def test_without_splitting(tmp_path: Path) -> None:
    sentences, _ = load(file(tmp_path, FILE), split=False)
    assert [(s.id, len(s.entities)) for s in sentences] == [("11", 4), ("12", 1), ("13", 1)]
    assert sentences[0].entities[:2] == (Entity("CompositeMention", ((0, 4),)), Entity("Chemical", ((0, 1),)))


def test_a_different_entity_text_is_noted(tmp_path: Path) -> None:
    _, ledger = load(file(tmp_path, "1|t|Zinc oxide\n1\t0\t4\tIron\tC\n1\t0\t10\tZinc  oxide\tC\n"))
    assert ledger.notes == {"entities whose text differs from the document at their offsets": 1}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("1|t|Zinc\n1\t0\t9\tZinc\tC\n", "2: C [0, 9] is outside the text of 4 characters"),
        ("1|t|Zinc\n1\t4\t0\tZinc\tC\n", "2: C [4, 0] is outside the text"),
        ("1|t|Zinc\n\n1\t0\t4\tZinc\tC\n", "3: expected a title (PMID|t|…), found '1\\t0\\t4\\tZinc\\tC'"),
        ("1|a|Zinc\n", "1: expected a title"),
        ("1|t|Zinc\n1|a|Two\n1|a|Two\n", "3: document '1' has two abstracts"),
        ("1|t|Zinc\n2\t0\t4\tZinc\tC\n", "2: a line of document '2' in document '1'"),
        ("1|t|Zinc\n1\t0\tx\tZinc\tC\n", "2: invalid line; expected PMID|t|…"),
        ("1|t|Zinc\n1\t-1\t4\tZinc\tC\n", "2: invalid line; expected PMID"),
        ("1|t|Zinc\n1\t0\t4\tZinc\t\n", "2: invalid line; expected PMID"),
        ("1|t|Zinc\n1\t0\t4\tZinc\n", "2: invalid line; expected PMID"),
        ("1|t|Zinc\n1\tCID\tC1\n", "2: invalid line; expected PMID"),
        ("1|t|Zinc\n1\n", "2: invalid line; expected PMID"),
        (f"1|t|Zinc\n1\t0\t{'9' * 5000}\tZinc\tC\n", "2: invalid line; expected PMID"),
    ],
)
def test_errors_name_the_line(tmp_path: Path, content: str, message: str) -> None:
    path = file(tmp_path, content)
    with pytest.raises(FormatError) as caught:
        load(path)
    assert str(caught.value).startswith(f"{path}:{message}")


def test_empty_files_and_invalid_bytes(tmp_path: Path) -> None:
    assert load(file(tmp_path, "\n\n"))[0] == []
    path = tmp_path / "bytes.txt"
    path.write_bytes(b"1|t|Zinc\n1|a|\xff\n")
    with pytest.raises(FormatError, match="txt:2: not UTF-8 at byte 5"):
        load(path)


def test_losses_are_counted(tmp_path: Path) -> None:
    first = Sentence(
        "s1", ("Zinc", "or", "iron", "dust"),
        (Entity("C", ((0, 1), (3, 4))), Entity("C", ((2, 4),)), Entity("Big\tone", ((0, 1),))),
        (Relation("or", 1, 2), Relation("or", 0, 1)),
        (Link("to", 1, 1, 0),),
        document="a|b", position=0, extra={"concept_relations": [["7", "a", "b"], ["CID", "C1", "C\t2"], ["CID", "C1", "C2"]]},
    )  # fmt: skip
    second = Sentence(
        "s2", ("It\r", "is"), (Entity("C", ((0, 1),), extra={"concept": ["C1"]}),), document="a|b", position=1,
        text="It\r is\nthere", starts=(0, 4),
    )  # fmt: skip
    text, ledger = written([first, second], tmp_path)
    assert text == (
        "a_b|t|Zinc or iron dust\na_b|a|It  is there\na_b\t8\t17\tiron dust\tC\na_b\t0\t4\tZinc\tBig one\na_b\t18\t20\tIt\tC\n"
        "a_b\tCID\tC1\tC2\n\n"
    )
    assert str(ledger) == (
        "1 entity (discontinuous), 1 relation (with a discontinuous entity), 2 relations (between mentions; PubTator relates "
        "concepts), 1 name (with tabs or line breaks, replaced by spaces)"
    )
    assert ledger.notes == {
        "documents renamed because PubTator does not allow their id": 1,
        "line breaks and tabs in the text, replaced by spaces": 2,
        "keys dropped: not in the shape of PubTator data": 3,
    }
    reread, _ = load(tmp_path / "out.pubtator")
    assert [(e.type, s.text_of(e)) for s in reread for e in s.entities] == [
        ("C", "iron dust"),
        ("Big one", "Zinc"),
        ("C", "It"),
    ]


def test_an_entity_that_ends_with_a_line_break(tmp_path: Path) -> None:
    sentence = Sentence("s", ("Zinc\n",), (Entity("C", ((0, 1),)),))
    _, ledger = written([sentence], tmp_path)
    (reread,), _ = load(tmp_path / "out.pubtator")
    assert (reread.entities, reread.text, ledger.lost) == (sentence.entities, "Zinc", 0)


def test_a_column_that_looks_like_a_title_is_not_detected(tmp_path: Path) -> None:
    path = tmp_path / "some.txt"
    for text, is_pubtator in (
        ("7|t|x\tB-Loc\n", False),
        ("7|t|x\nOslo\tO\n", False),
        ("7|t|x\n\n8|t|y\n8|a|\n8\t0\t1\ty\tC\n", True),
    ):
        path.write_text(text)
        assert pubtator.sniff(Sample(path)) is is_pubtator


def test_ncbi_disease(shared_data: Path, tmp_path: Path) -> None:
    path = shared_data / "ncbi_disease/raw_sample/NCBIdevelopset_corpus.PubTator.sample.txt"
    assert detect(path).name == "pubtator"
    sentences, ledger = load(path)
    lines = path.read_text(encoding="utf-8").splitlines()
    rows = [line.split("\t") for line in lines if "\t" in line]
    entities = [
        [s.document, str(s.start + s.characters(e.range).start), str(s.start + s.characters(e.range).end), s.text_of(e), e.type,
         e.extra["concept"]]
        for s in sentences for e in s.entities
        if s.start is not None and e.extra is not None
    ]  # fmt: skip
    assert sorted(entities) == sorted([*row[:5], row[5].strip()] for row in rows)
    assert (len(entities), ledger.lost) == (483, 0)
    titles = [line.partition("|t|") for line in lines if "|t|" in line]
    assert list(dict.fromkeys(s.document for s in sentences)) == [name for name, _, _ in titles]
    ledger = write(sentences, tmp_path / "out.pubtator")
    assert (ledger.lost, list(read(tmp_path / "out.pubtator"))) == (0, sentences)
    once = [line.replace("\t ", "\t") for line in lines]
    assert (tmp_path / "out.pubtator").read_text(encoding="utf-8").split("\n")[:-1] == [*once[1:], ""]


def test_ncbi_disease_agrees_with_the_interchange_file(shared_data: Path, corpus: Any) -> None:
    """That file was built from columns with one type, so characters are counted without whitespace."""
    stream, entities = "", set()
    for record in corpus(shared_data / "ncbi_disease/dev.jsonl"):
        edges = [len(stream)]
        for word in record["tokens"]:
            stream += word
            edges.append(len(stream))
        entities |= {(edges[a], edges[b]) for entity in record["entities"] for a, b in entity["spans"]}
    sentences, _ = load(shared_data / "ncbi_disease/raw_sample/NCBIdevelopset_corpus.PubTator.sample.txt", split=False)
    for s in sentences:
        text = "".join(s.text.split())
        at = stream.index(text)
        edges = [at + len("".join(s.text[:edge].split())) for e in s.entities for edge in s.characters(e.range)]
        theirs = {entity for entity in entities if at <= entity[0] < at + len(text)}
        assert set(zip(edges[::2], edges[1::2], strict=True)) == theirs
    assert len(sentences) == 61
