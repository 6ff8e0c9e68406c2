"""Corrections: suggestions and corrected files to a corrected corpus."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from tiny import quiet

from spanwise.analysis.section import Section
from spanwise.audit.application import apply_corrections
from spanwise.audit.browser import audit_page
from spanwise.audit.correction_files import sentences_to_correct
from spanwise.audit.corrections import apply_suggestions, correct_corpus
from spanwise.audit.folder import AuditFolder, AuditRecord
from spanwise.audit.outputs import write_outputs
from spanwise.audit.result import Audit
from spanwise.audit.suggestions import Suggestion, read_suggestions, sentence_keys, write_json_suggestions
from spanwise.core.errors import SpanwiseError
from spanwise.core.types import Corpus, Entity, Link, Relation, Sentence
from spanwise.drawing import type_colours
from spanwise.formats import read, write

ADA, OSLO, IN_OSLO = Entity("Person", ((0, 1),)), Entity("Place", ((3, 4),)), Entity("Place", ((2, 4),))
LIVES = Sentence(
    "a", ("Ada", "lives", "in", "Oslo"), (ADA, IN_OSLO), (Relation("lives", 0, 1),), text="Ada lives in Oslo. ",
    document="d", position=0,
)  # fmt: skip
RAINS = Sentence(
    "b", ("It", "rains", "there"), (Entity("Place", ((2, 3),)), Entity("Person", ((0, 1),))), links=(Link("same", 0, 0, 1),),
    document="d", position=1,
)  # fmt: skip
CORPUS = Corpus({"all": (LIVES, RAINS, Sentence("a", ("Lima",)))})
MOVED = Suggestion("a", "boundary", IN_OSLO, OSLO, 0.9, {})
RETYPED = Suggestion("b", "type", RAINS.entities[0], Entity("Time", ((2, 3),)), 0.8, {})
SPURIOUS = Suggestion("b", "spurious", RAINS.entities[1], None, 0.7, {})
MISSING = Suggestion("a#2", "missing", None, Entity("Place", ((0, 1),)), 0.6, {})
ALL = [MOVED, RETYPED, SPURIOUS, MISSING]


def corrected(suggestions: list[Suggestion]) -> tuple[dict[str, Sentence], dict[str, int]]:
    keys = sentence_keys(CORPUS)
    corpus, changes = correct_corpus(CORPUS, keys, apply_suggestions(keys, suggestions))
    return {key: sentence for key, (_, sentence) in sentence_keys(corpus).items()}, changes.counts


def test_all_kinds_of_suggestions_are_applied() -> None:
    sentences, counts = corrected(ALL)
    assert sentences["a"].entities == (ADA, OSLO)
    assert sentences["b"].entities == (Entity("Time", ((2, 3),)),)
    assert sentences["a#2"].entities == (Entity("Place", ((0, 1),)),)
    assert counts == {"moved": 1, "retyped": 1, "removed": 1, "added": 1}


def test_relations_and_links_follow_changed_entities() -> None:
    sentences, _ = corrected(ALL)
    assert sentences["a"].relations == LIVES.relations
    assert sentences["b"].links == RAINS.links
    removed, counts = corrected([Suggestion("a", "spurious", ADA, None, 1.0, {})])
    assert (removed["a"].entities, removed["a"].relations) == ((IN_OSLO,), ())
    assert removed["b"].links == (Link("same", 0, 0, 0),)  # the index of its tail changed in the other sentence
    assert counts == {"removed": 1, "relations dropped": 1}
    lost, counts = corrected([Suggestion("a", "spurious", IN_OSLO, None, 1.0, {})])
    assert (lost["a"].relations, lost["b"].links, counts["relations dropped"]) == ((), (), 2)


@pytest.mark.parametrize(
    ("suggestion", "problem"),
    [
        (Suggestion("z", "missing", None, OSLO, 1.0, {}), "no sentence 'z'"),
        (Suggestion("a", "spurious", OSLO, None, 1.0, {}), "already applied"),
        (Suggestion("a#2", "missing", None, OSLO, 1.0, {}), "ends at word 4"),
    ],
)
def test_suggestions_that_do_not_fit_the_data_are_refused(suggestion: Suggestion, problem: str) -> None:
    with pytest.raises(SpanwiseError, match=problem):
        apply_suggestions(sentence_keys(CORPUS), [suggestion])


def test_suggestions_for_other_words_are_refused(tmp_path: Path) -> None:
    """The data was changed after the audit: the words of a sentence are other ones."""
    write_json_suggestions([MISSING], sentence_keys(CORPUS), tmp_path / "suggestions.json")
    write([LIVES, RAINS, Sentence("a", ("In", "Lima"))], tmp_path / "data.jsonl")
    with pytest.raises(SpanwiseError, match="a#2: the suggested 'Place' is “Lima”, but these words of the data are “In”"):
        apply_corrections(tmp_path / "suggestions.json", tmp_path / "data.jsonl", tmp_path / "new.jsonl")
    records = json.loads((tmp_path / "suggestions.json").read_text())
    records[0]["suggestion"] = {"type": "Place", "spans": [[1, 2]]}  # moved by a person
    (tmp_path / "suggestions.json").write_text(json.dumps(records))
    out, _, _ = apply_corrections(tmp_path / "suggestions.json", tmp_path / "data.jsonl", tmp_path / "new.jsonl")
    assert list(read(out))[2].entities == (Entity("Place", ((1, 2),)),)


def test_suggestions_are_written_in_the_documented_shape_and_read(tmp_path: Path) -> None:
    path = tmp_path / "suggestions.json"
    write_json_suggestions(ALL, sentence_keys(CORPUS), path)
    assert json.loads(path.read_text())[0] == {
        "sentence": "a",
        "kind": "boundary",
        "gold": {"type": "Place", "spans": [[2, 4]], "text": "in Oslo"},
        "suggestion": {"type": "Place", "spans": [[3, 4]], "text": "Oslo"},
        "score": 0.9,
    }
    values = [(item.sentence, item.kind, item.gold, item.suggestion) for item in read_suggestions(path)]
    assert values == [(item.sentence, item.kind, item.gold, item.suggestion) for item in ALL]


@pytest.mark.parametrize(
    ("record", "problem"),
    [
        ({"sentence": "a", "kind": "wrong", "gold": None, "suggestion": None}, "kind"),
        ({"sentence": "a", "kind": "missing", "gold": None, "suggestion": None}, "both null"),
        ({"sentence": "a", "kind": "missing", "gold": None, "suggestion": {"type": "X"}}, "spans"),
        ({"sentence": "a", "kind": "missing", "gold": None, "suggestion": {"type": "X", "spans": [[2, 1]]}}, "start < end"),
    ],
)
def test_wrong_records_are_refused(tmp_path: Path, record: object, problem: str) -> None:
    path = tmp_path / "corrections.json"
    path.write_text(json.dumps([record]))
    with pytest.raises(SpanwiseError, match=problem):
        read_suggestions(path)


@pytest.mark.parametrize("format", ["label_studio:kind=predictions", "label_studio", "brat", "doccano", "jsonl"])
def test_a_corrected_file_of_an_annotation_tool_is_applied(tmp_path: Path, format: str) -> None:
    """The tool stores characters: the words of the data stay, and so do relations and other sentences."""
    write(CORPUS["all"], tmp_path / "data.jsonl")
    path = tmp_path / ("to-correct" if format == "brat" else "to-correct.json")
    write(sentences_to_correct(sentence_keys(CORPUS), ALL, format.partition(":")[0]), path, format, lossy=True)
    out, changes, ledger = apply_corrections(path, tmp_path / "data.jsonl", tmp_path / "new.jsonl")
    result = list(read(out))
    if format == "label_studio:kind=predictions":  # nobody has submitted them
        assert result == list(CORPUS["all"])
        assert changes.counts == {}
        assert ledger.notes["tasks without a submitted annotation, not changed"] == 3
        return
    assert [sentence.words for sentence in result] == [sentence.words for sentence in CORPUS["all"]]
    assert (result[0].entities, result[0].relations) == ((ADA, OSLO), LIVES.relations)
    # brat has no predictions: spurious entities stay, with a note, until somebody deletes them
    assert len(result[1].entities) == (2 if format == "brat" else 1)
    assert changes.counts == {"moved": 1, "retyped": 1, "added": 1} | ({} if format == "brat" else {"removed": 1})


def test_notes_in_brat_name_the_suggestions(tmp_path: Path) -> None:
    write(sentences_to_correct(sentence_keys(CORPUS), ALL, "brat"), tmp_path / "brat", "brat")
    notes = (tmp_path / "brat" / "b.ann").read_text()
    assert "spurious (0.70): Person “It”" in notes
    assert "type (0.80): Place “there” → Time “there”" in notes


def test_equal_sentences_are_found_by_their_file_names(tmp_path: Path) -> None:
    """An id that cannot be a file name is changed in brat."""
    corpus = Corpus({"all": tuple(Sentence(id, ("in", "Oslo")) for id in ("d:1", "d:2"))})
    write(corpus["all"], tmp_path / "data.jsonl")
    suggestion = Suggestion("d:2", "missing", None, Entity("Place", ((1, 2),)), 0.9, {})
    write(sentences_to_correct(sentence_keys(corpus), [suggestion], "brat"), tmp_path / "brat", "brat")
    out, _, _ = apply_corrections(tmp_path / "brat", tmp_path / "data.jsonl", tmp_path / "new.jsonl")
    assert [len(sentence.entities) for sentence in read(out)] == [0, 1]


@pytest.mark.parametrize("format", ["brat", "label_studio", "doccano", "conll", "jsonl"])
def test_sentences_are_found_in_all_kinds_of_formats(tmp_path: Path, format: str) -> None:
    """Some formats change ids or drop them, some divide a text into sentences, and some store only words."""
    bob, oslo = Entity("Person", ((3, 4),)), Entity("Place", ((5, 6),))
    words = ("Ada", "came", ".", "Bob", "left", "Oslo", ".")
    corpus = Corpus({"all": (Sentence("d:1", words, (bob,), text=" Ada came. Bob left Oslo."),)})
    write(corpus["all"], tmp_path / "data.jsonl")
    path = tmp_path / ("brat" if format == "brat" else "corrected.json")
    suggestion = Suggestion("d:1", "missing", None, oslo, 0.9, {})
    write(sentences_to_correct(sentence_keys(corpus), [suggestion], format), path, format, lossy=True)
    out, _, _ = apply_corrections(path, tmp_path / "data.jsonl", tmp_path / "new.jsonl")
    assert next(iter(read(out))).entities == (bob, oslo)


def test_unknown_sentences_in_a_corrected_file_are_refused(tmp_path: Path) -> None:
    write(CORPUS["all"], tmp_path / "data.jsonl")
    write([Sentence("x", ("Somewhere", "else"))], tmp_path / "other.jsonl")
    with pytest.raises(SpanwiseError, match="x: the data has no such sentence"):
        apply_corrections(tmp_path / "other.jsonl", tmp_path / "data.jsonl", tmp_path / "new.jsonl")
    assert not (tmp_path / "new.jsonl").exists()


def test_all_splits_of_a_folder_are_written(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    write([LIVES, RAINS], data / "train.jsonl")
    write([Sentence("t", ("Lima",))], data / "test.jsonl")
    write_json_suggestions([MOVED], sentence_keys(CORPUS), tmp_path / "corrections.json")
    out, _, _ = apply_corrections(tmp_path / "corrections.json", data, tmp_path / "new")
    assert sorted(path.name for path in out.iterdir()) == ["test.jsonl", "train.jsonl"]
    assert next(iter(read(out / "train.jsonl"))).entities == (ADA, OSLO)


def test_a_spurious_entity_that_is_annotated_twice_is_removed() -> None:
    oslo = Entity("Place", ((0, 1),))
    corpus = Corpus({"train": (Sentence("s", ("Oslo", "rains"), (oslo, oslo)),)})
    keys = sentence_keys(corpus)
    entities = apply_suggestions(keys, [Suggestion("s", "spurious", oslo, None, 0.9, {})])
    corrected, _ = correct_corpus(corpus, keys, entities)
    assert corrected["train"][0].entities == ()


def test_discontinuous_entities_that_a_tool_cannot_show_stay(tmp_path: Path) -> None:
    pain = Entity("Symptom", ((0, 1), (3, 4)))
    sentence = Sentence("a", ("left", "arm", "and", "leg"), (pain, Entity("Part", ((1, 2),))))
    keys = sentence_keys(Corpus({"all": (sentence,)}))
    write([sentence], tmp_path / "data.jsonl")
    suggestions = [Suggestion("a", "spurious", sentence.entities[1], None, 0.9, {})]
    write(sentences_to_correct(keys, suggestions, "label_studio"), tmp_path / "tasks.json", "label_studio", lossy=True)
    out, changes, _ = apply_corrections(tmp_path / "tasks.json", tmp_path / "data.jsonl", tmp_path / "new.jsonl")
    assert next(iter(read(out))).entities == (pain,)
    assert changes.counts == {"removed": 1}
    # A format that has them shows that they were deleted.
    write([Sentence("a", sentence.words)], tmp_path / "corrected.jsonl")
    out, _, _ = apply_corrections(tmp_path / "corrected.jsonl", tmp_path / "data.jsonl", tmp_path / "new.jsonl")
    assert next(iter(read(out))).entities == ()


def test_types_have_the_colours_of_other_pages() -> None:
    """All pages assign colours in alphabetical order, not by frequency."""
    entities = (Entity("Zone", ((0, 1),)), Entity("Zone", ((1, 2),)), Entity("Area", ((2, 3),)))
    corpus = Corpus({"all": (Sentence("a", ("x", "y", "z"), entities),)})
    audit = Audit(corpus, sentence_keys(corpus), [Suggestion("a", "spurious", entities[0], None, 0.9, {})])
    page = audit_page(audit, Section("consistency", "Consistency", "", {}))
    colours = dict(re.findall(r'style="--c:(#\w+)" title="(\w+): ', page))
    assert colours == {colour: type for type, colour in type_colours(["Area", "Zone"]).items()}


def test_a_format_that_would_lose_entities_is_not_written(tmp_path: Path) -> None:
    """Applied without any edit, such a file would remove the lost entities from the data."""
    bank = Sentence("a", ("Bank", "of", "Oslo"), (Entity("Organization", ((0, 3),)), Entity("Place", ((2, 3),))))
    corpus, folder = Corpus({"all": (bank,)}), AuditFolder(tmp_path)
    write([bank], tmp_path / "data.jsonl")
    data = str(tmp_path / "data.jsonl")
    folder.write_record(
        AuditRecord(spanwise="0", data=data, format=None, split=None, fingerprint="", folds=2, repeats=1, config={})
    )
    audit = Audit(corpus, sentence_keys(corpus), [Suggestion("a", "missing", None, Entity("Word", ((0, 1),)), 0.9, {})])
    with pytest.raises(SpanwiseError, match=r"conll cannot represent .* which --apply would then remove; pass --resume"):
        write_outputs(audit, folder, "conll", quiet)
    assert (tmp_path / "suggestions.json").is_file()
    assert not list(tmp_path.glob("to-correct*"))
    file = write_outputs(audit, folder, "jsonl", quiet)[-1]
    assert apply_corrections(file)[1].counts == {"added": 1}


RECORD = '{"sentence": "a", "kind": "spurious", "gold": {"type": "Person", "spans": [[0, 1]]}, "suggestion": null}'


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (f"[\n{RECORD},\n]", ":3: not JSON: Expecting value"),
        (f"[\n{RECORD},\n{RECORD[:-30]}", ":3: not JSON: "),
        (f"[\n{RECORD.replace('kind', 'type')}]", ":2: kind: field required"),
        (f"[\n{RECORD.replace('[0, 1]', '[0, 1, 2]')}]", r":2: \[0, 1, 2\] is not a half-open range of words"),
        (f"[\n{RECORD.replace('[0, 1]', '[-1, 1]')}]", r":2: \[-1, 1\] is not a half-open range of words; expected 0 <= start"),
        (f"[{RECORD}, {RECORD}]", ": a: the data has no 'Person' from word 0 to 1"),
        ("[" + RECORD.replace('"a"', '"c"') + "]", ": the data has no sentence 'c'"),
    ],
)
def test_mistakes_in_an_edited_list_of_suggestions_are_reported_with_their_place(
    tmp_path: Path, text: str, problem: str
) -> None:
    write(CORPUS["all"], tmp_path / "data.jsonl")
    file = tmp_path / "suggestions.json"
    file.write_text(text)
    with pytest.raises(SpanwiseError, match=f"^{re.escape(str(file))}{problem}"):
        apply_corrections(file, tmp_path / "data.jsonl", tmp_path / "out.jsonl")


@pytest.mark.parametrize("predictions", [[], [7], [{"model_version": "RUN-1", "result": []}]])
def test_tasks_that_nobody_submitted_change_nothing(tmp_path: Path, predictions: list[object]) -> None:
    """Label Studio exports tasks without predictions, with their ids, or with those of a connected model."""
    write(CORPUS["all"], tmp_path / "data.jsonl")
    task = {"id": 1, "data": {"text": "Ada lives in Oslo. ", "sentence": "a"}, "predictions": predictions}
    submitted = {"id": 2, "data": {"text": RAINS.text, "sentence": "b"}, "annotations": [{"id": 3, "result": []}]}
    (tmp_path / "export.json").write_text(json.dumps([{**task, "annotations": []}, submitted]))
    out, changes, ledger = apply_corrections(tmp_path / "export.json", tmp_path / "data.jsonl", tmp_path / "new.jsonl")
    assert [len(sentence.entities) for sentence in read(out)] == [2, 0, 0]
    assert changes.counts == {"removed": 2, "relations dropped": 1}
    assert ledger.notes["tasks without a submitted annotation, not changed"] == 1


def test_tasks_of_json_min_that_nobody_submitted_change_nothing(tmp_path: Path) -> None:
    write(CORPUS["all"], tmp_path / "data.jsonl")
    records = [
        {"text": "Ada lives in Oslo. ", "sentence": "a", "id": 1, "annotator": None, "annotation_id": None},
        {"text": RAINS.text, "sentence": "b", "id": 2, "annotator": 1, "annotation_id": 7,
         "label": [{"start": 9, "end": 14, "text": "there", "labels": ["Place"]}]},
    ]  # fmt: skip
    (tmp_path / "export.json").write_text(json.dumps(records))
    out, changes, _ = apply_corrections(tmp_path / "export.json", tmp_path / "data.jsonl", tmp_path / "new.jsonl")
    assert [len(sentence.entities) for sentence in read(out)] == [2, 1, 0]
    assert changes.counts == {"removed": 1}
