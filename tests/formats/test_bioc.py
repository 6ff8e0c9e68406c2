"""BioC XML and JSON: passages, discontinuous annotations, relations, infons."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from cases import limit_cpu
from samples import TEXTS, put

from spanwise import FormatError, Sentence, convert, read
from spanwise.formats import Ledger, detect
from spanwise.formats.shared.documents import CONCEPT_RELATIONS


def entities(sentences: list[Sentence]) -> list[tuple[str, str, Any]]:
    return [(e.type, s.text_of(e), e.extra) for s in sentences for e in s.entities]


def test_bioc_xml_is_read_with_ids_infons_and_relations(tmp_path: Path) -> None:
    path, ledger = put("bioc_xml", tmp_path), Ledger()
    assert detect(path).name == "bioc_xml"
    first, second = read(path, ledger=ledger)
    assert (first.id, first.text, second.text) == ("11-0", "Zinc fume & x\n", "Renal and liver pain.")
    assert entities([first, second]) == [
        ("Chemical", "Zinc", {"MESH": "C1", "id": "a1"}),
        ("Disease", "Renal pain", {"id": "a2"}),
    ]
    assert second.entities[0].fragments == ((0, 1), (3, 4))
    (link,) = first.links
    assert (link.type, link.position, link.extra) == ("CID", 1, {"roles": ["Chemical", "Disease"]})
    assert first.extra == {
        "license": "CC0",
        "passages": [
            {"start": 0, "length": 13, "infons": {"type": "title"}},
            {"start": 14, "length": 21, "infons": {"type": "abstract"}},
        ],
        "concept_relations": [{"id": "R2", "infons": {"relation": "CID", "Chemical": "C1"}}],
        "collection": {"source": "PubMed", "date": "2024", "key": "x.key"},
    }
    assert (ledger.lost, dict(ledger.notes)) == (0, {CONCEPT_RELATIONS: 1})


def test_both_forms_of_bioc_are_converted_without_a_loss(tmp_path: Path) -> None:
    for name in ("bioc_xml", "bioc_json"):
        source = put(name, tmp_path / name)
        before = list(read(source))
        for target, file in (("bioc_json", "out.json"), ("bioc_xml", "out.xml"), ("bioc_json", "again.json")):
            result = convert(source, tmp_path / name / file, target_format=target)
            assert (result.ledger.lost, dict(result.ledger.notes)) == (0, {CONCEPT_RELATIONS: 1})
            source = tmp_path / name / file
            after = list(read(source))
            assert after == before
            assert [s.extra for s in after] == [s.extra for s in before]
            assert entities(after) == entities(before)


def test_documents_of_other_shapes_of_bioc_json_are_read(tmp_path: Path) -> None:
    collection = json.loads(TEXTS["bioc_json"])
    documents = collection["documents"]
    shapes = {
        "indented": json.dumps(collection, indent=2),
        "an array of collections": json.dumps([collection]),
        "an array of documents": json.dumps(documents, indent=1),
        "documents on lines": "".join(json.dumps(document) + "\n" for document in documents),
        "collections on lines": json.dumps(collection) + "\n",
        "PubTator 3": json.dumps({"PubTator3": documents}),
    }
    for number, (name, text) in enumerate(shapes.items()):
        path = tmp_path / f"{number}.json"
        path.write_text(text)
        assert detect(path).name == "bioc_json", name
        assert [s.document for s in read(path)] == ["11", "11", "12"], name


def test_sentences_and_shifted_passages_of_bioc(tmp_path: Path) -> None:
    sentences = [{"offset": 5, "text": "Zinc. Fume", "annotations": [
        {"infons": {}, "locations": [{"offset": 11, "length": 4}], "text": "Fume"}]}, {"offset": 16, "text": "harms."}]  # fmt: skip
    passages = [{"offset": 5, "sentences": sentences}, {"offset": 2, "text": "Iron"}]
    (tmp_path / "a.json").write_text(json.dumps({"documents": [{"id": 1, "passages": passages}]}))
    ledger = Ledger()
    shifted = list(read(tmp_path / "a.json", "bioc_json", ledger))
    assert "".join(s.text for s in shifted).split() == ["Zinc.", "Fume", "harms.", "Iron"]
    assert entities(shifted) == [("Entity", "Fume", None)]
    assert ledger.notes["passages whose offset does not follow the previous passage"] == 1


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("<set/>", "expected the root element <collection>"),
        ("<collection><document><passage><text>a</text></passage></document></collection>", "no <offset>"),
        ("<collection><document><passage><offset>x</offset></passage></document></collection>", "expected a number"),
        ('<!DOCTYPE collection [<!ENTITY a "b">]><collection/>', "entity declarations are not supported"),
        ('<!DOCTYPE collection [<!ATTLIST node refid CDATA "b">]><collection/>', "declarations are not supported"),
        ("<collection>&x;</collection>", "not XML: undefined entity"),
        ("<collection>", "not XML: no element found"),
        ("<!--" + "x" * 8_000_000 + "--><collection/>", "a tag or comment is larger than the limit of 1 MB"),
    ],
)
def test_hostile_bioc_xml_is_refused(text: str, problem: str, tmp_path: Path) -> None:
    path = put("bioc_xml", tmp_path, text.encode())
    with limit_cpu(10, problem), pytest.raises(FormatError, match=problem):
        list(read(path, "bioc_xml"))


def test_documents_of_bioc_are_streamed(tmp_path: Path) -> None:
    """The first document is yielded before an error in a later part of the file is found."""
    document = json.dumps({"id": "1", "passages": [{"offset": 0, "text": "Zinc " * 20_000}]})
    (tmp_path / "a.json").write_text('{"documents": [' + document + ",\n" + document + ", oops")
    assert next(read(tmp_path / "a.json", "bioc_json")).document == "1"
    xml = "<document><id>1</id><passage><offset>0</offset><text>" + "Zinc " * 20_000 + "</text></passage></document>\n"
    (tmp_path / "a.xml").write_text("<collection>" + xml * 2 + "<oops")
    assert next(read(tmp_path / "a.xml", "bioc_xml")).document == "1"


def bioc_file(folder: Path, *passages: dict[str, Any]) -> Path:
    path = folder / "data.json"
    path.write_text(json.dumps({"documents": [{"id": "1", "passages": passages}]}))
    return path


@pytest.mark.parametrize("text", [{}, {"text": "In OsloThen rain."}])
def test_sentences_without_a_space_between_them(tmp_path: Path, text: dict[str, str]) -> None:
    sentences = [{"offset": 0, "text": "In Oslo"}, {"offset": 7, "text": "Then rain."}]
    path = bioc_file(tmp_path, {"offset": 0, **text, "sentences": sentences})
    assert [s.words for s in read(path)] == [("In", "Oslo"), ("Then", "rain", ".")]


def test_annotations_are_located_in_their_passage(tmp_path: Path) -> None:
    """In some files, each passage counts from 0."""

    def passage(text: str) -> dict[str, Any]:
        location = {"offset": 0, "length": len(text.split()[0])}
        return {
            "offset": 0,
            "text": text,
            "annotations": [{"infons": {"type": "X"}, "text": text.split()[0], "locations": [location]}],
        }

    ledger = Ledger()
    first, second = read(bioc_file(tmp_path, passage("Zinc fume"), passage("Renal pain")), ledger=ledger)
    assert entities([first, second]) == [("X", "Zinc", None), ("X", "Renal", None)]
    assert ledger.notes == {"passages whose offset does not follow the previous passage": 1}
