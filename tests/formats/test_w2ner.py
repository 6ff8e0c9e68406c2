"""JSON of W2NER. The corpora have no raw sample of it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from spanwise import Entity, FormatError, Relation, Sentence
from spanwise.formats import w2ner

RECORD = {
    "sentence": ["kidney", "and", "liver", "failure", "today"],
    "ner": [
        {"index": [0, 3], "type": "Disease", "text": "kidney failure"},
        {"index": [2, 3], "type": "Disease"},
        {"index": [2, 3], "type": "Finding", "score": 0.25},
    ],
    "id": 4,
    "word": [[0], [1], [2, 3], [4]],
}


def test_discontinuous_entities_and_kept_keys(workbench: Any) -> None:
    (sentence,), ledger = workbench.load(w2ner, [RECORD])
    assert sentence.entities == (
        Entity("Disease", ((0, 1), (3, 4))),
        Entity("Disease", ((2, 4),)),
        Entity("Finding", ((2, 4),)),
    )
    assert sentence.extra == {"word": [[0], [1], [2, 3], [4]]}
    text, written = workbench.write(w2ner, [sentence])
    assert json.loads(text) == [RECORD]
    assert (ledger.lost, written.lost) == (0, 0)


def test_unsorted_indices_are_sorted_and_noted(workbench: Any) -> None:
    (sentence,), ledger = workbench.load(w2ner, [{"sentence": ["a", "b", "c"], "ner": [{"index": [2, 0, 1], "type": "X"}]}])
    assert sentence.entities == (Entity("X", ((0, 3),)),)
    assert ledger.notes == {"entities with unsorted word indices, sorted": 1}


def test_a_record_without_ner(workbench: Any) -> None:
    (sentence,), _ = workbench.load(w2ner, '{"sentence": ["Oslo"]}\n')
    assert sentence == Sentence("data-0", ("Oslo",))


def test_relations_are_lost(workbench: Any) -> None:
    sentence = Sentence("s", ("a", "b"), (Entity("X", ((0, 1),)), Entity("Y", ((0, 2),))), (Relation("r", 0, 1),))
    (read,), ledger = workbench.round_trip(w2ner, [sentence])
    assert read.entities == sentence.entities
    assert str(ledger) == "1 relation (not supported by the format)"


@pytest.mark.parametrize(
    ("index", "problem"),
    [
        ([], "an entity of type 'X' has no fragments"),
        ([1, 1], "the fragments [[1, 2], [1, 2]] overlap or are out of order"),
        ([-1], "[-1, 0] is not a half-open range"),
        ([9], "entity 'X' ends at word 10, but the sentence has 2 words"),
        ([10**25], "entity 'X' ends at word"),
        (["a"], "ner.0.index.0: input should be a valid integer"),
    ],
)
def test_errors_name_the_line(workbench: Any, index: list[Any], problem: str) -> None:
    with pytest.raises(FormatError) as error:
        workbench.load(w2ner, [RECORD, {"sentence": ["a", "b"], "ner": [{"index": index, "type": "X"}]}])
    assert str(error.value).startswith(f"{workbench.folder / 'data.json'}:3: {problem}")
