"""JSON lines of DyGIE++. Without a raw sample, CoNLL04 is written and read back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from spanwise import Entity, FormatError, Link, Relation, Sentence
from spanwise.formats import dygie, spert
from spanwise.formats.shared.sample import SAMPLE_BYTES, Sample

RECORD = {
    "doc_key": "paper-1",
    "sentences": [["Zinc", "oxide", "binds", "water", "."], [], ["It", "is", "white", "."]],
    "ner": [[[0, 1, "Chemical"], [0, 0, "Element"], [3, 3, "Chemical", 4.5, 0.75]], [], [[5, 5, "Generic"]]],
    "relations": [[[0, 1, 3, 3, "binds"], [0, 0, 0, 1, "part", 2.0, 0.5]], [], [[5, 5, 0, 1, "coref", 1.5, 0.9]]],
    "clusters": [[[0, 1], [5, 5]]],
    "weight": 2.0,
    "dataset": "minerals",
    "predicted_ner": [[], [], []],
}


def line(**changes: Any) -> str:
    return json.dumps(RECORD | changes) + "\n"


def test_a_document(workbench: Any) -> None:
    (first, second, third), ledger = workbench.load(dygie, line())
    assert first == Sentence(
        "paper-1-0",
        ("Zinc", "oxide", "binds", "water", "."),
        (Entity("Chemical", ((0, 2),)), Entity("Element", ((0, 1),)), Entity("Chemical", ((3, 4),))),
        (Relation("binds", 0, 2), Relation("part", 1, 0)),
        document="paper-1",
        position=0,
    )
    assert (first.entities[2].score, first.relations[1].score) == (0.75, 0.5)
    assert first.extra == {key: RECORD[key] for key in ("clusters", "weight", "dataset", "predicted_ner")}
    assert (second.words, second.position, second.extra) == ((), 1, None)
    assert (third.entities, third.links) == ((Entity("Generic", ((0, 1),)),), (Link("coref", 0, 0, 0),))
    assert (ledger.lost, ledger.notes) == (0, {})


def test_written_data_equals_the_original(workbench: Any) -> None:
    sentences, _ = workbench.load(dygie, line() + line(doc_key="paper-2"))
    text, ledger = workbench.write(dygie, sentences)
    assert [json.loads(item) for item in text.splitlines()] == [RECORD, RECORD | {"doc_key": "paper-2"}]
    assert ledger.lost == 0


def test_relations_with_unknown_arguments_are_lost(workbench: Any) -> None:
    sentences, ledger = workbench.load(dygie, line(relations=[[[0, 1, 2, 2, "does"], [0, 1, 3, 3, "binds"]], [], []]))
    assert sentences[0].relations == (Relation("binds", 0, 2),)
    assert str(ledger) == "1 relation (with an argument that is not in the ner layer)"


def test_a_relation_is_listed_with_any_sentence(workbench: Any) -> None:
    sentences, _ = workbench.load(dygie, line(relations=[[], [[0, 1, 3, 3, "binds"]], []]))
    assert sentences[0].relations == (Relation("binds", 0, 2),)


def test_two_types_on_a_span(workbench: Any) -> None:
    ner = [[[0, 0, "Element"], [0, 0, "Metal"], [3, 3, "Chemical"]], [], []]
    sentences, ledger = workbench.load(dygie, line(ner=ner, relations=[[[0, 0, 3, 3, "binds"]], [], []]))
    assert sentences[0].relations == (Relation("binds", 0, 2),)
    assert ledger.notes == {"relations of a span with several entities, assigned to the first": 1}
    entities = (Entity("A", ((0, 1),)), Entity("B", ((0, 1),)), Entity("C", ((1, 2),)))
    sentence = Sentence("s", ("a", "b"), entities, (Relation("first", 0, 2), Relation("second", 2, 1)))
    (read,), written = workbench.round_trip(dygie, [sentence])
    assert (read.entities, read.relations) == (entities, (Relation("first", 0, 2),))
    assert str(written) == "1 relation (with the second entity on a span)"


def test_documents_without_annotations(workbench: Any) -> None:
    (sentence,), ledger = workbench.load(dygie, '{"doc_key": "d", "sentences": [["Oslo"]]}\n')
    assert sentence == Sentence("d", ("Oslo",), document="d", position=0)
    assert ledger.notes == {"documents without ner annotations": 1}
    assert str(workbench.load(dygie, '{"doc_key": "d", "sentences": []}\n')[1]) == "1 document (without sentences)"


def test_losses_are_counted(workbench: Any) -> None:
    words, place = ("a", "b", "c"), {"document": "d"}
    entities = (Entity("X", ((0, 1), (2, 3))), Entity("Y", ((1, 2),)))
    sentences = [
        Sentence(
            "s1", words, entities, (Relation("r", 0, 1),), (Link("here", 1, 6, 1), Link("away", 1, 9, 0)), position=4, **place
        ),
        Sentence("s2", words, entities[1:], position=6, extra={"source": "map"}, **place),
        Sentence("s3", words, entities[1:], extra={"source": "map"}),
    ]
    (first, second, third), ledger = workbench.round_trip(dygie, sentences)
    assert first.entities == second.entities == (Entity("Y", ((1, 2),)),)
    assert first.links == ()
    assert first.extra == {"source": "map"}  # keys of sentences become keys of their document
    assert (third.id, third.document, third.extra) == ("s3", "s3", {"source": "map"})
    assert ledger.losses == {
        ("entities", "discontinuous"): 1,
        ("relations", "with a discontinuous entity"): 1,
        ("relations", "with an entity that is not in the data"): 2,
    }


def test_links_are_written_by_the_position_of_the_other_sentence(workbench: Any) -> None:
    entity = (Entity("X", ((0, 1),)),)
    sentences = [
        Sentence("s1", ("a",), entity, document="d", position=4),
        Sentence("s2", ("b",), entity, links=(Link("back", 0, 4, 0),), document="d", position=6),
    ]
    (_, second), ledger = workbench.round_trip(dygie, sentences)
    assert (second.links, ledger.lost) == ((Link("back", 0, 0, 0),), 0)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"sentences": "x"}, "sentences: input should be a valid list"),
        ({"ner": [[]]}, "ner has 1 list for 3 sentences"),
        ({"ner": [[[4, 5, "X"]], [], []]}, "ner: [4, 5] is outside sentence 0, which covers words 0 to 4 of the document"),
        ({"ner": [[], [[4, 4, "X"]], []]}, "ner: [4, 4] is outside sentence 1, which is empty"),
        ({"ner": [[[1, 0, "X"]], [], []]}, "found [1, 0, 'X']: the start of a span must not exceed its inclusive end"),
        ({"ner": [[[0, "X"]], [], []]}, "found [0, 'X'], expected a start and an end, then a type"),
        ({"ner": [[[0, 1.5, "X"]], [], []]}, "found [0, 1.5, 'X'], expected a start and an end, then a type"),
        ({"ner": [[[0, 0, ""]], [], []]}, "an entity's type must be a non-empty string"),
        ({"relations": [[[0, 0, "r"]], [], []]}, "found [0, 0, 'r'], expected the start and end of two spans, then a type"),
        ({"sentences": [[""], [], []]}, "ner: [0, 1] is outside sentence 0"),
    ],
)
def test_errors_name_the_line(workbench: Any, changes: dict[str, Any], problem: str) -> None:
    with pytest.raises(FormatError) as error:
        workbench.load(dygie, line() + "\n" + line(**changes))
    assert str(error.value).startswith(f"{workbench.folder / 'data.json'}:3: {problem}")


def test_real_sentences_are_read_back(workbench: Any, shared_data: Path) -> None:
    sentences, _ = workbench.load(spert, shared_data / "conll04/raw_sample/conll04_dev.sample.json")
    reread, ledger = workbench.round_trip(dygie, sentences)
    assert ledger.lost == 0
    assert sum(len(s.relations) for s in reread) > 100
    assert [(s.id, s.words, s.entities, s.relations) for s in reread] == [
        (s.id, s.words, s.entities, s.relations) for s in sentences
    ]


def test_a_document_larger_than_the_sample_is_detected(workbench: Any) -> None:
    path = workbench.file(line(sentences=[["word"] * SAMPLE_BYTES]))
    assert dygie.sniff(Sample(path))
    assert not dygie.sniff(Sample(workbench.file('{"tokens": "' + "x" * SAMPLE_BYTES)))
