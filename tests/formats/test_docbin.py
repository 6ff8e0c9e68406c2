"""The DocBin format, compared with spaCy."""

from __future__ import annotations

import zlib
from pathlib import Path
from typing import Any

import pytest

from spanwise import Entity, Relation, Sentence, Span
from spanwise.core.errors import FormatError, SpanwiseError
from spanwise.formats import Ledger, docbin
from spanwise.formats.shared.sample import Sample

spacy = pytest.importorskip("spacy", reason="spaCy is not installed")
from spacy.tokens import Doc, DocBin  # noqa: E402
from spacy.tokens import Span as SpacySpan  # noqa: E402


@pytest.fixture
def nlp() -> Any:
    return spacy.blank("en")


def saved(folder: Path, *docs: Any, **options: Any) -> Path:
    path = folder / "data.spacy"
    DocBin(docs=docs, **options).to_disk(path)
    return path


def loaded(path: Path, **options: Any) -> tuple[list[Sentence], Ledger]:
    ledger = Ledger()
    return list(docbin.read(path, ledger, **options)), ledger


def entity_texts(sentence: Sentence) -> list[tuple[str, str]]:
    return [(entity.type, sentence.text_of(entity)) for entity in sentence.entities]


def test_entities_and_spans_are_joined(nlp: Any, tmp_path: Path) -> None:
    doc = nlp("Port of Oslo in Norway")
    place = SpacySpan(doc, 2, 3, "Place")
    doc.spans["sc"] = [SpacySpan(doc, 0, 3, "Org"), place]
    doc.ents = [place, SpacySpan(doc, 4, 5, "Country")]
    (sentence,), ledger = loaded(saved(tmp_path, doc))
    assert entity_texts(sentence) == [("Org", "Port of Oslo"), ("Place", "Oslo"), ("Country", "Norway")]
    assert (sentence.id, sentence.words) == ("data-0", ("Port", "of", "Oslo", "in", "Norway"))
    assert not ledger.lost


def test_tokens_without_an_entity_annotation_are_open(nlp: Any, tmp_path: Path) -> None:
    """spaCy's missing values: a token may be part of an entity that nobody marked."""
    partial, complete, bare = (nlp("Oslo is near Bergen. It rains.") for _ in range(3))
    partial.set_ents([SpacySpan(partial, 0, 1, "Place")], missing=[SpacySpan(partial, 3, 5)], default="outside")
    complete.ents = [SpacySpan(complete, 0, 1, "Place")]
    sentences, _ = loaded(saved(tmp_path, partial, complete, bare))
    assert [s.annotated for s in sentences] == [(Span(0, 3),), None, None, None, None, None]
    partial.spans["sc"] = [SpacySpan(partial, 3, 4, "Place")]  # the group is complete
    assert [s.annotated for s in loaded(saved(tmp_path, partial))[0]] == [None, None]
    assert [s.annotated for s in loaded(saved(tmp_path, partial), with_annotations=False)[0]] == [None, None]


def test_choice_of_the_span_group(nlp: Any, tmp_path: Path) -> None:
    doc = nlp("Oslo and Bergen")
    doc.spans["mine"] = [SpacySpan(doc, 0, 1, "Mine")]
    assert entity_texts(loaded(saved(tmp_path, doc))[0][0]) == [("Mine", "Oslo")]
    doc.spans["yours"] = [SpacySpan(doc, 2, 3, "Yours")]
    path = saved(tmp_path, doc)
    with pytest.raises(FormatError, match=r"several span groups \('mine', 'yours'\); choose one, as in docbin:spans=mine"):
        loaded(path)
    (sentence,), ledger = loaded(path, spans="yours")
    assert entity_texts(sentence) == [("Yours", "Bergen")]
    assert ledger.notes["spans in other groups, not read"] == 1
    assert entity_texts(loaded(path, spans="")[0][0]) == []
    with pytest.raises(SpanwiseError, match="no document has a span group 'ours'; found 'mine', 'yours'"):
        loaded(path, spans="ours")
    doc.spans["sc"] = [SpacySpan(doc, 0, 3, "All")]
    (sentence,), ledger = loaded(saved(tmp_path, doc))
    assert entity_texts(sentence) == [("All", "Oslo and Bergen")]
    assert dict(ledger.losses) == {("entities", "in other span groups; choose one with docbin:spans=KEY"): 2}


def test_spans_without_a_label_are_counted(nlp: Any, tmp_path: Path) -> None:
    doc = nlp("Oslo")
    doc.spans["sc"] = [SpacySpan(doc, 0, 1)]
    (sentence,), ledger = loaded(saved(tmp_path, doc))
    assert sentence.entities == ()
    assert dict(ledger.losses) == {("entities", "spans without a label"): 1}


def test_whitespace_is_kept_in_the_text(nlp: Any, tmp_path: Path) -> None:
    doc = nlp("  Oslo \n\n and\tBergen ")
    doc.ents = [SpacySpan(doc, 1, 3, "Place")]  # including trailing whitespace
    sentences, ledger = loaded(saved(tmp_path, doc))
    assert "".join(s.text for s in sentences) == doc.text
    assert [w for s in sentences for w in s.words] == ["Oslo", "and", "Bergen"]
    assert entity_texts(sentences[0]) == [("Place", "Oslo")]
    assert ledger.notes["entities with leading or trailing whitespace, trimmed"] == 1


def test_sentences_of_the_document(tmp_path: Path) -> None:
    words = ["No", "end", "Here", "it", "is"]
    doc = Doc(spacy.blank("xx").vocab, words=words, sent_starts=[True, False, True, False, False])
    sentences, _ = loaded(saved(tmp_path, doc))
    assert [s.words for s in sentences] == [("No", "end"), ("Here", "it", "is")]
    assert [s.position for s in sentences] == [0, 1]
    doc.spans["sc"] = [SpacySpan(doc, 1, 3, "X")]
    (sentence,), ledger = loaded(saved(tmp_path, doc))
    assert entity_texts(sentence) == [("X", "end Here")]
    assert ledger.notes["sentences joined because an entity crosses their boundary"] == 1


def test_ids_and_user_data(nlp: Any, tmp_path: Path) -> None:
    doc = nlp("Oslo")
    doc.ents = [SpacySpan(doc, 0, 1, "Place", kb_id="Q585", span_id="here")]
    doc.user_data = {"id": "first", "meta": {"pages": (1, 2)}, ("._.", "hidden", None, None): 1, "raw": b"x"}
    (sentence,), ledger = loaded(saved(tmp_path, doc, store_user_data=True))
    assert (sentence.id, sentence.extra) == ("first", {"meta": {"pages": [1, 2]}})
    assert sentence.entities[0].extra == {"kb_id": "Q585", "span_id": "here"}
    assert ledger.notes["custom document attributes, not read"] == 2


EXAMPLE = Sentence(
    "s1", ("Port", "of", "Oslo", ",", "Oslo"),
    (Entity("Place", (Span(2, 3),), extra={"kb_id": "Q585"}), Entity("Org", (Span(0, 3),)), Entity("Port", (Span(2, 3),)),
     Entity("Org", (Span(0, 1), Span(4, 5)))),
    (Relation("in", 1, 0),), text="Port of  Oslo, Oslo\n", extra={"meta": {"page": 3}},
)  # fmt: skip


def test_spacy_reads_the_written_file(tmp_path: Path) -> None:
    path, ledger = tmp_path / "out.spacy", Ledger()
    docbin.write([EXAMPLE], path, ledger)
    assert dict(ledger.losses) == {("relations", "not supported by the format"): 1, ("entities", "discontinuous"): 1}
    (doc,) = DocBin().from_disk(path).get_docs(spacy.blank("xx").vocab)
    assert doc.text == EXAMPLE.text
    assert [token.text for token in doc] == ["Port", "of", " ", "Oslo", ",", "Oslo", "\n"]
    assert [(span.label_, span.text) for span in doc.ents] == [("Org", "Port of  Oslo")]
    assert {(span.label_, span.text) for span in doc.spans["sc"]} == {
        ("Org", "Port of  Oslo"),
        ("Place", "Oslo"),
        ("Port", "Oslo"),
    }
    assert [sent.text for sent in doc.sents] == [EXAMPLE.text]
    (reread,), ledger = loaded(path)
    assert (reread.id, reread.words, reread.text, reread.extra) == ("s1", EXAMPLE.words, EXAMPLE.text, EXAMPLE.extra)
    assert set(reread.entities) == set(EXAMPLE.entities[:3])
    assert {entity.type: entity.extra for entity in reread.entities}["Place"] == {"kb_id": "Q585"}
    assert not ledger.lost


def test_values_that_msgpack_cannot_store_are_noted(tmp_path: Path) -> None:
    ledger = Ledger()
    docbin.write([Sentence("s1", ("Oslo",), extra={"big": 10**30})] * 2, tmp_path / "out.spacy", ledger)
    assert (ledger.lost, dict(ledger.notes)) == (0, {"keys dropped: a DocBin cannot store them": 2})
    sentences, _ = loaded(tmp_path / "out.spacy")
    assert [(s.id, s.words, s.extra) for s in sentences] == [("s1", ("Oslo",), None)] * 2


def test_texts_without_words(nlp: Any, tmp_path: Path) -> None:
    sentences, ledger = loaded(saved(tmp_path, nlp(""), nlp(" \n "), nlp("Oslo")))
    assert [s.words for s in sentences] == [("Oslo",)]
    assert ledger.notes["documents without words, skipped"] == 2


@pytest.mark.parametrize("content", [b"", b"Oslo", zlib.compress(b"Oslo"), zlib.compress(b"\x81\xa5attrs\x90"), b"x\x9c123"])
def test_files_that_are_no_docbin(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "data.spacy"
    path.write_bytes(content)
    with pytest.raises(FormatError, match=r"data.spacy: not a valid spaCy DocBin: "):
        loaded(path)
    assert not docbin.sniff(Sample(path))


def test_missing_spacy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "spacy.tokens", None)
    with pytest.raises(SpanwiseError, match=r"docbin requires spaCy; run pip install 'spanwise\[spacy\]'"):
        loaded(tmp_path)
    with pytest.raises(SpanwiseError, match=r"pip install 'spanwise\[spacy\]'"):
        docbin.write([], tmp_path / "out.spacy", Ledger())
