"""JSON of Label Studio."""

from __future__ import annotations

import json
from typing import Any

import pytest

from spanwise import Entity, Relation, Sentence, Span
from spanwise.core.errors import FormatError
from spanwise.formats import Ledger, label_studio
from spanwise.formats.shared.sample import Sample

TEXT = "The harbour master of Oslo met the mayor of Bergen."


def region(start: int, end: int, *labels: str, id: str = "", text: str | None = TEXT, **more: Any) -> dict[str, Any]:
    mention = {} if text is None else {"text": text[start:end]}
    value = {"start": start, "end": end, **mention, "labels": list(labels)}
    return {"id": id or f"r{start}-{end}", "from_name": "ner", "to_name": "text", "type": "labels", "value": value, **more}


def relation(head: str, tail: str, *labels: str, direction: str = "right") -> dict[str, Any]:
    named = {"labels": list(labels)} if labels else {}
    return {"type": "relation", "from_id": head, "to_id": tail, "direction": direction, **named}


def task(*results: dict[str, Any], text: str = TEXT, **more: Any) -> dict[str, Any]:
    return {"id": 7, "data": {"text": text}, "annotations": [{"id": 1, "result": list(results)}], **more}


MASTER, OSLO, BERGEN = region(4, 26, "Role"), region(22, 26, "Place"), region(44, 50, "Place")


def entity_texts(sentence: Sentence) -> list[tuple[str, str]]:
    return [(entity.type, sentence.text_of(entity)) for entity in sentence.entities]


def test_nested_regions_and_relations(workbench: Any) -> None:
    (sentence,), ledger = workbench.load(label_studio, [task(MASTER, OSLO, BERGEN, relation("r4-26", "r22-26", "works in"))])
    assert (sentence.id, sentence.document, sentence.text) == ("7", "7", TEXT)
    assert sentence.entities == (
        Entity("Role", (Span(1, 5),)),
        Entity("Place", (Span(4, 5),)),
        Entity("Place", (Span(9, 10),)),
    )
    assert sentence.relations == (Relation("works in", 0, 1),)
    assert not ledger.lost
    assert not ledger.notes


def test_several_labels_are_several_entities(workbench: Any) -> None:
    (sentence,), _ = workbench.load(label_studio, [task(region(22, 26, "City", "Port", score=0.5))])
    assert entity_texts(sentence) == [("City", "Oslo"), ("Port", "Oslo")]
    assert [entity.score for entity in sentence.entities] == [0.5, 0.5]


@pytest.mark.parametrize(
    ("direction", "pairs"), [("right", [(0, 1)]), ("left", [(1, 0)]), ("bi", [(0, 1), (1, 0)]), ("", [(0, 1)])]
)
def test_directions(workbench: Any, direction: str, pairs: list[tuple[int, int]]) -> None:
    (sentence,), _ = workbench.load(
        label_studio, [task(OSLO, BERGEN, relation("r22-26", "r44-50", "near", direction=direction))]
    )
    assert [(r.head, r.tail) for r in sentence.relations] == pairs


def test_relation_without_a_label_and_with_two(workbench: Any) -> None:
    results = OSLO, BERGEN, relation("r22-26", "r44-50"), relation("r22-26", "r44-50", "near", "larger")
    (sentence,), _ = workbench.load(label_studio, [task(*results)])
    assert [r.type for r in sentence.relations] == ["related", "near", "larger"]


def test_other_results_are_counted(workbench: Any) -> None:
    choice = {"type": "choices", "id": "c", "from_name": "tone", "to_name": "text", "value": {"choices": ["formal"]}}
    bare = region(44, 50, id="bare")
    _, ledger = workbench.load(label_studio, [task(OSLO, bare, choice, relation("r22-26", "bare", "near"))])
    assert dict(ledger.losses) == {
        ("results", "of type choices"): 1,
        ("entities", "regions without a label"): 1,
        ("relations", "with a region that is not in the result"): 1,
    }


def annotation(label: str, **more: Any) -> dict[str, Any]:
    return {"result": [region(22, 26, label)], **more}


@pytest.mark.parametrize(
    ("annotations", "label", "note"),
    [
        ([annotation("a", created_at="2024-01-02"), annotation("b", created_at="2024-01-01")], "a", "additional annotations"),
        ([annotation("a"), annotation("b")], "b", "additional annotations"),
        ([annotation("a", ground_truth=True), annotation("b", created_at="2024-01-01")], "a", "additional annotations"),
        ([annotation("a"), annotation("b", was_cancelled=True)], "a", "cancelled annotations"),
    ],
)
def test_choice_of_the_annotation(workbench: Any, annotations: list[Any], label: str, note: str) -> None:
    (sentence,), ledger = workbench.load(label_studio, [{"data": {"text": TEXT}, "annotations": annotations}])
    assert entity_texts(sentence) == [(label, "Oslo")]
    assert [name for name in ledger.notes if name.startswith(note)]
    assert not ledger.lost


def test_skipped_tasks_and_tasks_without_annotations(workbench: Any) -> None:
    skipped = {"data": {"text": TEXT}, "annotations": [annotation("a", was_cancelled=True)], "predictions": [annotation("b")]}
    bare = {"data": {"text": "Nothing yet"}, "annotations": []}
    (sentence,), ledger = workbench.load(label_studio, [skipped, bare])
    assert (sentence.text, sentence.entities) == ("Nothing yet", ())
    assert ledger.notes["tasks skipped by their annotators"] == 1
    assert ledger.notes["tasks without annotations"] == 1


def test_predictions_of_tasks_without_annotations(workbench: Any) -> None:
    tasks = [
        {"data": {"text": TEXT}, "predictions": [{"model_version": "m1", "score": 0.7, "result": [OSLO]}]},
        {"data": {"text": TEXT}, "predictions": [annotation("b"), 12], "annotations": [annotation("a")]},
        {"data": {"text": TEXT}, "completions": [annotation("old")]},
    ]
    sentences, ledger = workbench.load(label_studio, tasks)
    assert [entity_texts(s)[0][0] for s in sentences] == ["Place", "a", "old"]
    assert [s.id for s in sentences] == ["data-0", "data-1", "data-2"]
    assert sentences[0].extra == {"prediction": {"model_version": "m1", "score": 0.7}}
    assert ledger.notes["predictions of annotated tasks, not read"] == 1
    assert ledger.notes["tasks without annotations, read with a prediction"] == 1


def test_json_min_joins_the_annotations_of_a_task(workbench: Any) -> None:
    def record(label: str, day: int, text: str = TEXT) -> dict[str, Any]:
        metadata = {"annotator": 1, "annotation_id": day, "created_at": f"2024-01-0{day}", "lead_time": 2.5}
        return {"id": 3, "text": text, "tone": "formal", "label": [region(22, 26, label)["value"]], **metadata}

    sentences, ledger = workbench.load(label_studio, [record("new", 2), record("old", 1), {**record("x", 1), "id": 4}])
    assert [(s.id, entity_texts(s)) for s in sentences] == [("3", [("new", "Oslo")]), ("4", [("x", "Oslo")])]
    assert ledger.notes["additional annotations of a task, not read"] == 1
    assert sentences[0].extra is not None
    assert sentences[0].extra["data"] == {"tone": "formal"}
    assert sentences[0].extra["annotation"]["completed_by"] == 1


def test_json_min_of_a_task_that_nobody_annotated(workbench: Any) -> None:
    """An export of all tasks has the keys of an annotation, without values."""
    empty = dict.fromkeys(("annotator", "annotation_id", "created_at", "updated_at", "lead_time"))
    done = {"text": TEXT, "id": 2, "annotator": 1, "annotation_id": 3, "label": [{"start": 0, "end": 3, "labels": ["Word"]}]}
    sentences, ledger = workbench.load(label_studio, [{"text": TEXT, "id": 1, **empty}, done])
    assert [len(sentence.entities) for sentence in sentences] == [0, 1]
    assert ledger.notes["tasks without annotations"] == 1
    assert "annotation" not in (sentences[0].extra or {})


def test_one_task_per_line(workbench: Any) -> None:
    content = "\n".join(json.dumps(task(OSLO, id=number)) for number in (1, 2))
    sentences, _ = workbench.load(label_studio, content)
    assert [s.id for s in sentences] == ["1", "2"]


@pytest.mark.parametrize(
    ("data", "to_name"),
    [
        ({"body": TEXT}, "txt"),
        ({"title": "A meeting", "body": TEXT}, "body"),
        ({"text": TEXT, "source": "a newspaper"}, "txt"),
        ({"title": "A meeting", "body": TEXT}, "txt"),
    ],
)
def test_detection_of_the_text_key(workbench: Any, data: dict[str, str], to_name: str) -> None:
    (sentence,), _ = workbench.load(label_studio, [{"data": data, "annotations": [{"result": [{**OSLO, "to_name": to_name}]}]}])
    assert sentence.text == TEXT
    rest = {key: value for key, value in data.items() if value != TEXT}
    assert (sentence.extra or {}).get("data", {}) == rest


def test_the_text_key_can_be_given(workbench: Any) -> None:
    path = workbench.file([{"data": {"a": "Oslo", "b": "Bergen"}, "annotations": []}])
    with pytest.raises(
        FormatError, match=r"data.json:2: cannot tell which text is annotated \('a' or 'b'\); use label_studio:text=KEY"
    ):
        list(label_studio.read(path, Ledger()))
    assert [s.text for s in label_studio.read(path, Ledger(), text="b")] == ["Bergen"]
    with pytest.raises(FormatError, match="data has no text 'c'; its texts are 'a', 'b'"):
        list(label_studio.read(path, Ledger(), text="c"))


def test_regions_of_another_text_are_counted(workbench: Any) -> None:
    title = {**region(0, 4, "Place", text="Oslo"), "to_name": "title"}
    results = [OSLO, title]
    (sentence,), ledger = workbench.load(
        label_studio, [{"data": {"text": TEXT, "title": "Oslo"}, "annotations": [{"result": results}]}]
    )
    assert entity_texts(sentence) == [("Place", "Oslo")]
    assert ledger.losses["entities", "in another text field of the task"] == 1


WIDE = "🌊🌊 the sea at Oslo, and Oslo"


@pytest.mark.parametrize(
    ("start", "end", "text", "expected_start", "note"),
    [
        (14, 18, "Oslo", 14, None),
        (16, 20, "Oslo", 14, "regions with UTF-16 offsets, converted"),
        (26, 30, "Oslo", 24, "regions with UTF-16 offsets, converted"),
        (22, 26, "Oslo", 24, "regions whose offsets do not match their text, moved to the nearest match"),
        (3, 10, "he se", 3, None),  # selected by words: the text is shorter than the offsets
        (14, 18, "Rome", 14, "regions whose text is not in the document, placed by their offsets"),
    ],
)
def test_wrong_offsets_are_corrected_by_the_text_of_the_region(
    workbench: Any, start: int, end: int, text: str, expected_start: int, note: str | None
) -> None:
    value = {"start": start, "end": end, "text": text, "labels": ["X"]}
    (sentence,), ledger = workbench.load(label_studio, [task({"id": "r", "type": "labels", "value": value}, text=WIDE)])
    assert sentence.characters(sentence.entities[0].fragments[0]).start == expected_start
    assert list(ledger.notes) == ([note] if note else [])


def test_whitespace_in_the_text_of_a_region_may_differ(workbench: Any) -> None:
    text = "Oslo,  a\nport"
    for written in ("Oslo, a port", "Oslo,  a\\nport"):
        result = {"id": "r", "type": "labels", "value": {"start": 0, "end": 13, "text": written, "labels": ["X"]}}
        (sentence,), ledger = workbench.load(label_studio, [task(result, text=text)])
        assert entity_texts(sentence) == [("X", text)]
        assert not ledger.notes


def test_html_and_paragraphs(workbench: Any) -> None:
    def html(text: str, **offsets: Any) -> dict[str, Any]:
        value = {"start": "/div[1]/text()[1]", "end": "/div[1]/text()[1]", "startOffset": 0, "endOffset": 4, "text": text}
        return {"id": text, "type": "hypertextlabels", "value": {**value, **offsets, "hypertextlabels": ["X"]}}

    source = "<b>Oslo</b> and Bergen, Bergen"
    plain = html("Bergen", globalOffsets={"start": 16, "end": 22})  # as in a text without markup
    marked = html("Oslo", globalOffsets={"start": 0, "end": 4})  # counted without markup, but the text occurs once
    unclear = html("Bergen", globalOffsets={"start": 9, "end": 15})
    unknown = html("Oslo")
    (sentence,), ledger = workbench.load(label_studio, [task(plain, marked, unclear, unknown, text=source)])
    assert [sentence.characters(e.fragments[0]) for e in sentence.entities] == [(16, 22), (3, 7)]
    assert dict(ledger.losses) == {("entities", "regions without text offsets (HTML, paragraphs, images)"): 2}


def test_written_tasks(workbench: Any) -> None:
    original = task(
        MASTER, {**OSLO, "meta": {"text": ["sure"]}}, relation("r4-26", "r22-26", "in"), meta={"page": 2}, project=5
    )
    original["data"]["source"] = "a newspaper"
    sentences, _ = workbench.load(label_studio, [original])
    text, ledger = workbench.write(label_studio, sentences)
    assert not ledger.lost
    (written,) = json.loads(text)
    assert {key: written[key] for key in ("id", "meta", "project", "data")} == {
        "id": 7,
        "meta": {"page": 2},
        "project": 5,
        "data": {"text": TEXT, "source": "a newspaper"},
    }
    (annotation,) = written["annotations"]
    assert annotation["id"] == 1
    assert annotation["result"] == [
        {"id": "T1", "from_name": "label", "to_name": "text", "type": "labels",
         "value": {"start": 4, "end": 26, "text": "harbour master of Oslo", "labels": ["Role"]}},
        {"id": "T2", "from_name": "label", "to_name": "text", "type": "labels",
         "value": {"start": 22, "end": 26, "text": "Oslo", "labels": ["Place"]}, "meta": {"text": ["sure"]}},
        {"type": "relation", "from_id": "T1", "to_id": "T2", "direction": "right", "labels": ["in"]},
    ]  # fmt: skip


def test_written_as_predictions(workbench: Any) -> None:
    sentence = Sentence("s1", ("Oslo",), (Entity("Place", (Span(0, 1),), 0.75),))
    path = workbench.folder / "out.json"
    label_studio.write([sentence], path, Ledger(), kind="predictions")
    (written,) = json.loads(path.read_text())
    assert written.keys() == {"data", "predictions"}
    assert written["data"] == {"text": "Oslo", "id": "s1"}
    assert written["predictions"][0]["result"][0]["score"] == 0.75
    (reread,), _ = workbench.load(label_studio, path)
    assert (reread.id, reread.entities[0].score, reread.extra) == ("s1", 0.75, None)


def test_discontinuous_entities_are_counted(workbench: Any) -> None:
    entities = Entity("A", (Span(0, 1), Span(2, 3))), Entity("B", (Span(1, 2),))
    sentence = Sentence("s1", ("north", "or", "south"), entities, (Relation("r", 0, 1), Relation("s", 1, 1)))
    (reread,), ledger = workbench.round_trip(label_studio, [sentence])
    assert dict(ledger.losses) == {("entities", "discontinuous"): 1, ("relations", "with a discontinuous entity"): 1}
    assert (reread.entities, reread.relations) == ((entities[1],), (Relation("s", 0, 0),))


def test_a_data_key_named_text_is_dropped_with_a_note(workbench: Any) -> None:
    content = [
        {"data": {"body": "Oslo", "text": "other"}, "annotations": [{"result": [{**region(0, 4, "X"), "to_name": "body"}]}]}
    ]
    content[0]["annotations"][0]["result"][0]["value"]["text"] = "Oslo"
    sentences, _ = workbench.load(label_studio, content)
    assert sentences[0].text == "Oslo"
    _, ledger = workbench.write(label_studio, sentences)
    assert (ledger.lost, dict(ledger.notes)) == (0, {"keys dropped: 'text' has another meaning in this format": 1})


@pytest.mark.parametrize(
    ("second", "problem"),
    [
        (task(region(22, 99, "X", text=None)), r"X \[22, 99\] is outside the text of 51 characters"),
        (task(region(5, 5, "X", text=None)), r"X \[5, 5\] is outside"),
        ({"data": {"image": 5}, "annotations": []}, "data has no text; its keys are 'image'"),
        ({"data": {"text": "a"}, "annotations": {}}, "annotations: input should be a valid list"),
        (
            task({"type": "labels", "value": {"start": 1.5, "end": 2, "labels": ["X"]}}),
            "value: expected start and end as integers",
        ),
        (task({"type": "labels", "value": {"start": 1, "end": 2, "labels": "X"}}), "value.labels: expected a list of names"),
        (17, "the record: input should be a valid dictionary"),
    ],
)
def test_invalid_tasks(workbench: Any, second: Any, problem: str) -> None:
    path = workbench.file([task(OSLO), second])
    with pytest.raises(FormatError, match=rf"data.json:3: .*{problem}"):
        list(label_studio.read(path, Ledger()))


def test_a_first_task_longer_than_the_sample_is_detected(workbench: Any) -> None:
    long = task(*(region(22, 26, "Place", id=str(n)) for n in range(2000)))
    assert label_studio.sniff(Sample(workbench.file([long])))
    assert not label_studio.sniff(Sample(workbench.file([{"data": "Oslo", "label": [[0, 4, "Place"]]}])))
