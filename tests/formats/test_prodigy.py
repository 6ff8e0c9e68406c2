"""JSON lines of Prodigy."""

from __future__ import annotations

import json
from typing import Any

import pytest

from spanwise import Entity, Relation, Sentence, Span
from spanwise.core.errors import FormatError
from spanwise.formats import Ledger, jsonl, prodigy
from spanwise.formats.shared.sample import Sample

TEXT = "Anti-rust zinc  from\nOslo"
TOKENS = [
    {"text": "Anti-rust", "start": 0, "end": 9, "id": 0, "ws": True},
    {"text": "zinc", "start": 10, "end": 14, "id": 1, "ws": True},
    {"text": " ", "start": 15, "end": 16, "id": 2, "ws": False},
    {"text": "from", "start": 16, "end": 20, "id": 3, "ws": False},
    {"text": "\n", "start": 20, "end": 21, "id": 4, "ws": False},
    {"text": "Oslo", "start": 21, "end": 25, "id": 5, "ws": False},
]
PRODUCT = {"start": 0, "end": 14, "token_start": 0, "token_end": 1, "label": "Product"}
METAL = {"start": 10, "end": 14, "token_start": 1, "token_end": 1, "label": "Metal"}
PLACE = {"start": 21, "end": 25, "token_start": 5, "token_end": 5, "label": "Place"}
FROM = {"start": 16, "end": 20, "token_start": 3, "token_end": 3, "label": None}


def record(*spans: dict[str, Any], relations: list[dict[str, Any]] | None = None, **more: Any) -> dict[str, Any]:
    given = {} if relations is None else {"relations": relations}
    return {"text": TEXT, "tokens": TOKENS, "spans": list(spans), **given, "answer": "accept", **more}


def relation(head: dict[str, Any], child: dict[str, Any], label: str | None = "origin", **more: Any) -> dict[str, Any]:
    ends = {"head": head["token_end"], "child": child["token_end"], "head_span": head, "child_span": child}
    return {**ends, "label": label, "color": "#fff", **more}


def lines(*records: dict[str, Any]) -> str:
    return "".join(json.dumps(record) + "\n" for record in records)


def joined(sentences: list[Sentence]) -> Sentence:
    (sentence,) = sentences
    return sentence


def test_tokens_are_the_words_and_spans_may_overlap(workbench: Any) -> None:
    sentences, ledger = workbench.load(prodigy, lines(record(PRODUCT, METAL, PLACE, meta={"source": "a list"}, _input_hash=3)))
    first, second = sentences
    assert (first.words, second.words) == (("Anti-rust", "zinc", "from"), ("Oslo",))
    assert first.entities == (Entity("Product", (Span(0, 2),)), Entity("Metal", (Span(1, 2),)))
    assert second.entities == (Entity("Place", (Span(0, 1),)),)
    assert (first.document, first.extra) == ("data-0", {"meta": {"source": "a list"}, "_input_hash": 3})
    assert first.text + second.text == TEXT
    assert not ledger.lost
    assert not ledger.notes


def test_without_tokens(workbench: Any) -> None:
    content = lines({"text": "Anti-rust zinc", "spans": [{"start": 10, "end": 14, "label": "Metal"}]})
    sentence = joined(workbench.load(prodigy, content)[0])
    assert sentence.words == ("Anti", "-", "rust", "zinc")
    assert sentence.entities == (Entity("Metal", (Span(3, 4),)),)


def test_a_span_may_be_given_by_tokens_alone(workbench: Any) -> None:
    span = {"token_start": 0, "token_end": 1, "label": "Product"}
    sentences, _ = workbench.load(prodigy, lines(record(span)))
    assert sentences[0].entities == (Entity("Product", (Span(0, 2),)),)


def test_tokens_are_split_at_spans_and_gaps_are_filled(workbench: Any) -> None:
    content = {"text": "zinc-free Oslo", "tokens": [{"text": "zinc-free", "start": 0, "end": 9, "id": 0}]}
    content["spans"] = [{"start": 0, "end": 4, "label": "Metal"}, {"start": 10, "end": 14, "label": "Place"}]
    sentences, ledger = workbench.load(prodigy, lines(content))
    assert joined(sentences).words == ("zinc", "-free", "Oslo")
    assert dict(ledger.notes) == {"words split at an entity boundary": 1}


def test_only_accepted_answers(workbench: Any) -> None:
    records = [
        record(METAL, answer="reject"),
        {"answer": "ignore"},
        record(METAL),
        record(METAL, answer=None),
        record(answer="?"),
    ]
    sentences, ledger = workbench.load(prodigy, lines(*records))
    assert {s.document for s in sentences} == {"data-2", "data-3"}
    assert dict(ledger.notes) == {f"records with the answer {answer!r}, not read": 1 for answer in ("reject", "ignore", "?")}
    assert not ledger.lost


def test_relations_between_spans(workbench: Any) -> None:
    relations = [relation(PRODUCT, METAL), relation(METAL, PRODUCT, None), relation(METAL, {**PRODUCT, "label": None}, "any")]
    sentences, ledger = workbench.load(prodigy, lines(record(PRODUCT, METAL, relations=relations)))
    assert sentences[0].relations == (Relation("origin", 0, 1), Relation("related", 1, 0), Relation("any", 1, 0))
    assert sentences[0].relations[0].extra == {"color": "#fff"}
    assert not ledger.lost


def test_relations_by_tokens_alone_name_the_last_token(workbench: Any) -> None:
    sentences, _ = workbench.load(prodigy, lines(record(METAL, PRODUCT, relations=[{"head": 1, "child": 1, "label": "self"}])))
    assert sentences[0].relations == (Relation("self", 1, 1),)  # the widest entity with this end


def test_relations_of_tokens_without_a_label(workbench: Any) -> None:
    content = lines(record(METAL, relations=[relation(METAL, FROM), {"head": 3, "child": 0, "label": "x"}]))
    sentences, ledger = workbench.load(prodigy, content)
    assert sentences[0].relations == ()
    assert dict(ledger.losses) == {("relations", "between tokens without a label; read them with prodigy:unlabelled=TYPE"): 2}
    ledger = Ledger()
    sentences = list(prodigy.read(workbench.file(content), ledger, unlabelled="word"))
    assert [(e.type, sentences[0].text_of(e)) for e in sentences[0].entities] == [
        ("Metal", "zinc"),
        ("word", "from"),
        ("word", "Anti-rust"),
    ]
    assert sentences[0].relations == (Relation("origin", 0, 1), Relation("x", 1, 2))
    assert not ledger.lost


def test_spans_without_a_label(workbench: Any) -> None:
    content = lines(record(FROM))
    _, ledger = workbench.load(prodigy, content)
    assert dict(ledger.losses) == {("entities", "spans without a label; read them with prodigy:unlabelled=TYPE"): 1}
    sentences = list(prodigy.read(workbench.file(content), Ledger(), unlabelled="word"))
    assert sentences[0].entities == (Entity("word", (Span(2, 3),)),)


def test_written(workbench: Any) -> None:
    known = record({**PRODUCT, "source": "rule"}, {**METAL, "score": 0.5}, PLACE, relations=[relation(PRODUCT, PLACE)], id=4)
    sentences, _ = workbench.load(prodigy, lines({**known, "meta": {"page": 2}}))
    text, ledger = workbench.write(prodigy, sentences)
    assert not ledger.lost
    written = json.loads(text)
    assert written == {**known, "meta": {"page": 2}}
    assert [token["text"] + " " * token["ws"] for token in written["tokens"]] == [
        "Anti-rust ",
        "zinc ",
        " ",
        "from",
        "\n",
        "Oslo",
    ]


def test_discontinuous_entities_are_counted(workbench: Any) -> None:
    entities = Entity("A", (Span(0, 1), Span(2, 3))), Entity("B", (Span(1, 2),))
    sentence = Sentence("s1", ("north", "or", "south"), entities, (Relation("r", 0, 1),))
    (reread,), ledger = workbench.round_trip(prodigy, [sentence])
    assert dict(ledger.losses) == {("entities", "discontinuous"): 1, ("relations", "with a discontinuous entity"): 1}
    assert (reread.id, reread.entities, reread.relations) == ("s1", (entities[1],), ())


@pytest.mark.parametrize(
    ("second", "problem"),
    [
        (record({"start": 20, "end": 40, "label": "X"}), r"X \[20, 40\] is outside the text of 25 characters"),
        (record({"token_start": 5, "token_end": 6, "label": "X"}), "token 6 does not exist; the record has 6 tokens"),
        (record({"label": "X"}), "a span needs start and end, or token_start and token_end"),
        (record(METAL, relations=[{"head": 1, "label": "x"}]), "a relation needs child or child_span"),
        (record(METAL, relations=[{"head": -1, "child": 1, "label": "x"}]), "token -1 does not exist"),
        (
            record(tokens=[{"start": 3, "end": 9}, {"start": 0, "end": 2}]),
            r"token 1 \[0, 2\] overlaps another or is outside",
        ),
        (record(tokens=[{"start": 3, "end": 900}]), r"token 0 \[3, 900\] overlaps another or is outside"),
        ({"image": "x.png", "spans": []}, "text: field required"),
    ],
)
def test_invalid_records(workbench: Any, second: dict[str, Any], problem: str) -> None:
    path = workbench.file(lines(record(METAL), second))
    with pytest.raises(FormatError, match=f"data.json:2: {problem}"):
        list(prodigy.read(path, Ledger()))


@pytest.mark.parametrize(
    ("content", "is_prodigy"),
    [
        (record(METAL), True),
        ({"text": "Oslo", "spans": [{"start": 0, "end": 4, "label": "Place"}]}, True),
        ({"text": "Oslo", "tokens": [{"text": "Oslo", "start": 0, "end": 4, "id": 0}], "_task_hash": 1}, True),
        ({"text": "Oslo", "spans": []}, False),
        ({"text": "Oslo", "tokens": ["Oslo"], "entities": [{"type": "X", "spans": [[0, 1]]}]}, False),
        # spaCy's Doc.to_json
        ({"text": "Oslo", "ents": [{"start": 0, "end": 4, "label": "A"}], "tokens": [{"id": 0, "start": 0, "end": 4}]}, False),
        ({"text": "Oslo", "ents": [], "tokens": [{"id": 0, "start": 0, "end": 4}], "spans": {"sc": []}}, False),
    ],
)
def test_detection(workbench: Any, content: dict[str, Any], is_prodigy: bool) -> None:
    sample = Sample(workbench.file(lines(content)))
    assert prodigy.sniff(sample) is is_prodigy
    assert not (is_prodigy and jsonl.sniff(sample))
