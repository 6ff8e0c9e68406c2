"""XML of the GENIA term corpus."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from spanwise import Entity, FormatError, Sentence, SpanwiseError
from spanwise.formats import Ledger, detect, genia_xml, read, write

HEAD = '<?xml version="1.0" encoding="UTF-8"?>\n<!DOCTYPE set SYSTEM "gpml.dtd">\n'
FILE = f"""{HEAD}<set>
<import resource="GENIAontology.daml" prefix="G"></import>
<article>
<articleinfo>
<bibliomisc>MEDLINE:1</bibliomisc>
</articleinfo>
<title>
<sentence>The <cons lex="x_gene_use" sem="G#other_name"><cons lex="x_gene" sem="G#DNA_domain_or_region"><cons \
lex="x" sem="G#protein_molecule">X</cons> gene</cons> use</cons>-d &gt; 3 <!-- a remark -->x10<?mark here?>.</sentence>
</title>
<abstract>
<sentence>  Red <cons lex="(AND b_cell t_cell)" sem="(AND G#cell_type G#cell_type)"><cons lex="B*">B</cons> and \
<cons lex="t_cell" sem="G#cell_type">T</cons> <cons lex="*cell">cells</cons></cons></sentence>
<sentence></sentence>
<sentence><cons lex="a" sem="G#protein_N/A"><cons lex="a" sem="G#protein_complex">A 1</cons></cons><cons \
lex="b" sem="G#RNA_N/A">B</cons></sentence>
</abstract>
</article>
<article><articleinfo><bibliomisc>MEDLINE:1</bibliomisc></articleinfo><abstract><sentence>Again.</sentence></abstract></article>
<article><abstract><sentence>No name.</sentence></abstract></article>
</set>
"""


def file(folder: Path, content: str | bytes) -> Path:
    path = folder / "genia.xml"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def load(path: Path, **options: Any) -> tuple[list[Sentence], Ledger]:
    ledger = Ledger()
    return list(genia_xml.read(path, ledger, **options)), ledger


def error(path: Path) -> str:
    with pytest.raises(FormatError) as caught:
        load(path)
    return str(caught.value).removeprefix(f"{path}")


def article(content: str) -> str:
    return f"{HEAD}<set>\n<article>\n{content}\n</article>\n</set>"


def test_the_five_types(tmp_path: Path) -> None:
    sentences, ledger = load(file(tmp_path, FILE))
    assert sentences[0] == Sentence(
        "MEDLINE:1-0",
        ("The", "X", "gene", "use", "-d", ">", "3", "x10."),
        (Entity("protein", ((1, 2),)), Entity("DNA", ((1, 3),))),
        text="The X gene use-d > 3 x10.",
        document="MEDLINE:1",
        position=0,
    )
    assert sentences[1].words == ("Red", "B", "and", "T", "cells")
    assert sentences[1].text == "  Red B and T cells"
    assert sentences[1].entities == (Entity("cell_type", ((3, 4),)),)
    assert (sentences[2].id, sentences[2].position) == ("MEDLINE:1-3", 3)
    assert sentences[2].entities == (Entity("protein", ((0, 2),)), Entity("RNA", ((2, 3),)))
    assert sentences[2].entities[0].extra == {"lex": "a", "sem": "G#protein_complex"}
    assert [(s.id, s.document) for s in sentences[3:]] == [("MEDLINE:1-0-dup", "MEDLINE:1-dup"), ("genia-2-0", "genia-2")]
    assert ledger.lost == 0
    assert ledger.notes == {
        "entities of types other than the five, skipped": 1,
        "coordinated terms, skipped": 1,
        "parts of coordinated terms, not read as entities": 2,
        "sentences without words, skipped": 1,
        "duplicate entities, merged": 1,
        "repeated articles, renamed with the suffix -dup": 1,
    }


def test_all_types(tmp_path: Path) -> None:
    sentences, ledger = load(file(tmp_path, FILE), types="all")
    assert [[(e.type, *e.range) for e in s.entities] for s in sentences[:3]] == [
        [("protein_molecule", 1, 2), ("DNA_domain_or_region", 1, 3), ("other_name", 1, 4)],
        [("AND(cell_type,cell_type)", 1, 5), ("cell_type", 3, 4)],
        [("protein_N/A", 0, 2), ("protein_complex", 0, 2), ("RNA_N/A", 2, 3)],
    ]
    assert sentences[1].entities[0].extra == {
        "lex": "(AND b_cell t_cell)",
        "sem": "(AND G#cell_type G#cell_type)",
        "parts": [{"lex": "B*", "spans": [[1, 2]]}, {"lex": "*cell", "spans": [[4, 5]]}],
    }
    assert "coordinated terms, skipped" not in ledger.notes


def test_detection_and_options(tmp_path: Path) -> None:
    path = file(tmp_path, FILE)
    assert detect(path).name == "genia_xml"
    assert len(list(read(path, "genia_xml:types=all"))) == 5
    with pytest.raises(SpanwiseError, match="genia_xml can be read but not written"):
        write([], tmp_path / "out.xml", "genia_xml")
    with pytest.raises(SpanwiseError, match="expected one of five, all, found 'six'"):
        read(path, "genia_xml:types=six")


def test_text_is_split_at_tags_only(tmp_path: Path) -> None:
    """The parser also reports pieces of text at entities, line breaks and ends of chunks."""
    long = "ab" * 50_000
    (sentence,), _ = load(file(tmp_path, article(f"<title><sentence>a&lt;b&#233;c\n{long}&amp;d</sentence></title>")))
    assert sentence.words == ("a<béc", f"{long}&d")


def test_text_outside_sentences_is_lost(tmp_path: Path) -> None:
    content = '<title>Two words <cons sem="G#virus">x</cons><sentence>In. <cons sem="G#virus"> </cons></sentence></title>'
    (sentence,), ledger = load(file(tmp_path, article(content)))
    assert (sentence.words, sentence.entities) == (("In.",), ())
    assert str(ledger) == "3 words (outside a sentence), 1 entity (outside a sentence), 1 entity (without words)"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", ":1: not XML: no element found"),
        ("{}", ":1: not XML: "),
        ("<html>\n</html>", ":1: expected the root element <set>, found <html>"),
        ("<set>\n<article>\n", ":3: not XML: no element found"),
        ("<set>\n<article></set>", ":2: not XML: mismatched tag"),
        ("<set>\n\n<sentence>x</sentence></set>", ":3: a <sentence> must be inside an <article> and outside other"),
        (article("<sentence>x\n<sentence>y</sentence></sentence>"), ":6: a <sentence> must be inside"),
        (article("<cons><sentence>x</sentence></cons>"), ":5: a <sentence> must be inside"),
        (article("<sentence>x &alpha;</sentence>"), ":5: the XML entity &alpha; is not defined"),
        (article("<sentence>\x00</sentence>"), ":5: not XML: not well-formed"),
        (b'<?xml version="1.0" encoding="utf-7"?><set/>', ":1: not XML: "),
        (b"<set>\n\xff</set>", ":2: not XML: not well-formed"),
    ],
)
def test_errors_name_the_file(tmp_path: Path, content: str | bytes, message: str) -> None:
    assert error(file(tmp_path, content)).startswith(message)


def test_entity_declarations_are_refused(tmp_path: Path) -> None:
    laughs = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">\n' for n in range(1, 20))
    bomb = f'<!DOCTYPE set [<!ENTITY l0 "ha">\n{laughs}]>\n<set><article><sentence>&l19;</sentence></article></set>'
    assert error(file(tmp_path, bomb)).startswith(":1: declares the XML entity 'l0'")
    secret = tmp_path / "secret.txt"
    secret.write_text("secret")
    outside = f'<!DOCTYPE set [\n<!ENTITY x SYSTEM "{secret.as_uri()}">]><set><article><sentence>&x;</sentence></article></set>'
    assert error(file(tmp_path, outside)).startswith(":2: declares the XML entity 'x'")


def test_deep_nesting(tmp_path: Path) -> None:
    deep = "<cons>" * 50_000 + "x" + "</cons>" * 50_000
    (sentence,), _ = load(file(tmp_path, article(f'<sentence><cons sem="G#virus">{deep}</cons></sentence>')), types="all")
    assert (sentence.words, sentence.entities) == (("x",), (Entity("virus", ((0, 1),)),))


def test_genia(shared_data: Path, corpus: Any) -> None:
    path = shared_data / "genia/raw_sample/GENIAcorpus3.02.sample.xml"
    assert detect(path).name == "genia_xml"
    sentences, ledger = load(path)
    known = {
        record["id"]: record for split in ("train", "dev", "test") for record in corpus(shared_data / f"genia/{split}.jsonl")
    }
    for s in sentences:
        record = known[s.id]
        assert list(s.words) == record["tokens"]
        assert [{"spans": [list(f) for f in e.fragments], "type": e.type} for e in s.entities] == record["entities"]
        assert (s.document, s.position) == (record["document"], record["position"])
    raw = path.read_text(encoding="utf-8")
    sems = Counter(re.findall(r'<cons [^>]*sem="([^"]*)"', raw))
    five = sum(n for sem, n in sems.items() if re.match(r"G#(DNA|RNA|protein|cell_line|cell_type)", sem))
    composite = sum(n for sem, n in sems.items() if sem.startswith("("))
    assert (len(sentences), sum(len(s.entities) for s in sentences)) == (raw.count("<sentence>"), five) == (275, 961)
    assert ledger.notes["coordinated terms, skipped"] == composite == 25
    assert ledger.notes["entities of types other than the five, skipped"] == sems.total() - five - composite
    assert ledger.lost == 0
    everything, ledger = load(path, types="all")
    assert sum(len(s.entities) for s in everything) + ledger.notes["duplicate entities, merged"] == sems.total() == 1472
    assert [s.words for s in everything] == [s.words for s in sentences]
