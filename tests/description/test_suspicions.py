"""Suspicious data, kind by kind."""

from __future__ import annotations

from collections import Counter

import pytest

from spanwise.core.types import Entity, Sentence
from spanwise.description.suspicions import Suspects, Suspicion, has_stray_punctuation


def sentence(text: str, *spans: tuple[int, int], id: str = "s") -> Sentence:
    return Sentence(id, tuple(text.split()), tuple(Entity("T", (span,)) for span in spans))


def found(*sentences: Sentence) -> dict[str, Suspicion]:
    suspects, vocabulary = Suspects("train"), Counter[str]()
    for one in sentences:
        suspects.add(one)
        vocabulary.update(one.words)
    return {suspicion.kind: suspicion for suspicion in suspects.found(vocabulary)}


def test_clean_data_is_not_suspicious() -> None:
    assert found(sentence("Oslo is a port", (0, 1)), sentence("It rains", id="t")) == {}
    assert found() == {}


def test_words_with_white_space() -> None:
    one = Sentence("s1", ("10\u00a0000", "New York", " ", "fine", "\tx"))
    suspicion = found(one)["white space in words"]
    assert (suspicion.count, suspicion.split) == (4, "train")
    assert suspicion.message == "train: 4 words have white space inside"
    assert suspicion.examples[1] == {"split": "train", "id": "s1", "text": "New York"}


def test_empty_and_very_long_sentences() -> None:
    suspicions = found(Sentence("e", ()), Sentence("l", ("w",) * 513), Sentence("m", ("w",) * 512))
    assert suspicions["empty sentences"].message == "train: 1 sentence has no words"
    assert suspicions["empty sentences"].examples == [{"split": "train", "id": "e", "text": ""}]
    assert suspicions["long sentences"].message == "train: 1 sentence has more than 512 words"
    assert suspicions["long sentences"].examples == [{"split": "train", "id": "l", "text": "513 words"}]


def test_sentences_that_share_an_id() -> None:
    suspicion = found(*(sentence(f"Number {number}", id=id) for number, id in enumerate("abaca")))["shared ids"]
    assert suspicion.message == "train: 2 sentences have the id of an earlier one"
    assert suspicion.examples[0] == {"split": "train", "id": "a", "text": "Number 2"}


def test_duplicate_entities() -> None:
    suspicion = found(sentence("Oslo is a port", (0, 1), (0, 1), (0, 2), (0, 1)))["duplicate entities"]
    assert (suspicion.count, suspicion.message) == (2, "train: 2 entities repeat another one of the same type and words")
    assert suspicion.examples[0]["text"] == "Oslo"


def test_whole_sentences_only_when_there_are_more_than_a_few() -> None:
    whole, part = sentence("Port of Oslo", (0, 3)), sentence("Port of Oslo grows", (0, 3))
    assert "whole sentences" not in found(whole, whole)
    assert "whole sentences" not in found(*[whole] * 3, *[part] * 97)
    assert found(*[whole] * 6, *[part] * 94)["whole sentences"].message == "train: 6 entities are a whole sentence"
    assert found(whole, whole, whole)["whole sentences"].count == 3


def test_white_space_at_a_boundary() -> None:
    one = Sentence(
        "s", ("in", " Oslo", "now", "\u3000"), (Entity("T", ((1, 2),)), Entity("T", ((2, 4),)), Entity("T", ((2, 3),)))
    )
    suspicion = found(one)["white space at a boundary"]
    assert suspicion.count == 2
    assert "punctuation at a boundary" not in found(one)


def test_punctuation_at_a_boundary() -> None:
    one = sentence("from Oslo , Norway (", (1, 3), (3, 4), (3, 5), id="s9")
    suspicion = found(one)["punctuation at a boundary"]
    assert suspicion.message == "train: 2 entities begin or end with punctuation"
    assert suspicion.examples == [
        {"split": "train", "id": "s9", "text": "Oslo ,"},
        {"split": "train", "id": "s9", "text": "Norway ("},
    ]


def test_punctuation_in_the_gap_of_a_discontinuous_entity_is_fine() -> None:
    one = Sentence("s", tuple("left , right lung".split()), (Entity("T", ((0, 1), (3, 4))),))
    assert found(one) == {}


@pytest.mark.parametrize("name", ["Oslo ,", ", Oslo", "- Oslo", "( Oslo", "Oslo )", "。", "《 Fram", "harbour .", "'"])
def test_stray_punctuation(name: str) -> None:
    assert has_stray_punctuation(name.split())


@pytest.mark.parametrize(
    "name",
    [
        "Oslo",
        "( Oslo )",
        "( IL-2 ) gene",
        "f ( x )",
        "《 Fram 》",
        '" Fram "',
        "`` Fram ''",
        "Ltd .",
        "5 %",
        "CD4 +",
        "$ 5",
        "U.S.",
    ],
)
def test_punctuation_that_belongs_there(name: str) -> None:
    assert not has_stray_punctuation(name.split())


def test_at_most_five_examples_are_kept_and_long_texts_are_cut() -> None:
    long = sentence("word " * 60 + ",", (0, 61))
    suspicion = found(*[long] * 9, *[sentence("x y")] * 400)["punctuation at a boundary"]
    assert (suspicion.count, len(suspicion.examples)) == (9, 5)
    assert len(suspicion.examples[0]["text"]) <= 80
    assert suspicion.examples[0]["text"].endswith("…")
