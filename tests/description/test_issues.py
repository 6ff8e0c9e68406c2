"""Checks of sentences, one kind of issue at a time."""

from __future__ import annotations

from collections import Counter

import pytest

from spanwise.core.types import Entity, Sentence
from spanwise.description.issues import Issue, SentenceChecks, has_stray_punctuation


def sentence(text: str, *spans: tuple[int, int], id: str = "s") -> Sentence:
    return Sentence(id, tuple(text.split()), tuple(Entity("T", (span,)) for span in spans))


def find_issues(*sentences: Sentence) -> dict[str, Issue]:
    checks, vocabulary = SentenceChecks("train"), Counter[str]()
    for sentence in sentences:
        checks.add(sentence)
        vocabulary.update(sentence.words)
    return {issue.kind: issue for issue in checks.issues(vocabulary)}


def test_clean_data_has_no_issues() -> None:
    assert find_issues(sentence("Oslo is a port", (0, 1)), sentence("It rains", id="t")) == {}
    assert find_issues() == {}


def test_words_with_white_space() -> None:
    one = Sentence("s1", ("10\u00a0000", "New York", " ", "fine", "\tx"))
    issue = find_issues(one)["white space in words"]
    assert (issue.count, issue.split) == (4, "train")
    assert issue.message == "train: 4 words have white space inside"
    assert issue.examples[1] == {"split": "train", "id": "s1", "text": "New York"}


def test_empty_and_very_long_sentences() -> None:
    issues = find_issues(Sentence("e", ()), Sentence("l", ("w",) * 513), Sentence("m", ("w",) * 512))
    assert issues["empty sentences"].message == "train: 1 sentence has no words"
    assert issues["empty sentences"].examples == [{"split": "train", "id": "e", "text": ""}]
    assert issues["long sentences"].message == "train: 1 sentence has more than 512 words"
    assert issues["long sentences"].examples == [{"split": "train", "id": "l", "text": "513 words"}]


def test_sentences_that_share_an_id() -> None:
    issue = find_issues(*(sentence(f"Number {number}", id=id) for number, id in enumerate("abaca")))["shared ids"]
    assert issue.message == "train: 2 sentences have the id of an earlier one"
    assert issue.examples[0] == {"split": "train", "id": "a", "text": "Number 2"}


def test_duplicate_entities() -> None:
    issue = find_issues(sentence("Oslo is a port", (0, 1), (0, 1), (0, 2), (0, 1)))["duplicate entities"]
    assert (issue.count, issue.message) == (2, "train: 2 entities repeat another one of the same type and words")
    assert issue.examples[0]["text"] == "Oslo"


def test_whole_sentences_are_reported_if_frequent() -> None:
    whole, part = sentence("Port of Oslo", (0, 3)), sentence("Port of Oslo grows", (0, 3))
    assert "whole sentences" not in find_issues(whole, whole)
    assert "whole sentences" not in find_issues(*[whole] * 3, *[part] * 97)
    assert find_issues(*[whole] * 6, *[part] * 94)["whole sentences"].message == "train: 6 entities are a whole sentence"
    assert find_issues(whole, whole, whole)["whole sentences"].count == 3


def test_white_space_at_a_boundary() -> None:
    one = Sentence(
        "s", ("in", " Oslo", "now", "\u3000"), (Entity("T", ((1, 2),)), Entity("T", ((2, 4),)), Entity("T", ((2, 3),)))
    )
    issue = find_issues(one)["white space at a boundary"]
    assert issue.count == 2
    assert "punctuation at a boundary" not in find_issues(one)


def test_punctuation_at_a_boundary() -> None:
    one = sentence("from Oslo , Norway (", (1, 3), (3, 4), (3, 5), id="s9")
    issue = find_issues(one)["punctuation at a boundary"]
    assert issue.message == "train: 2 entities start or end with punctuation"
    assert issue.examples == [
        {"split": "train", "id": "s9", "text": "Oslo ,"},
        {"split": "train", "id": "s9", "text": "Norway ("},
    ]


def test_punctuation_in_the_gap_of_a_discontinuous_entity_is_fine() -> None:
    one = Sentence("s", tuple("left , right lung".split()), (Entity("T", ((0, 1), (3, 4))),))
    assert find_issues(one) == {}


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
def test_punctuation_that_is_part_of_an_entity(name: str) -> None:
    assert not has_stray_punctuation(name.split())


def test_examples_are_limited_and_shortened() -> None:
    long = sentence("word " * 60 + ",", (0, 61))
    issue = find_issues(*[long] * 9, *[sentence("x y")] * 400)["punctuation at a boundary"]
    assert (issue.count, len(issue.examples)) == (9, 5)
    assert len(issue.examples[0]["text"]) <= 80
    assert issue.examples[0]["text"].endswith("…")
