"""Words, characters and tags as numbers."""

from __future__ import annotations

import json

import numpy as np
import pytest

from spanwise import Sentence
from spanwise.encoders.vocabulary import UNKNOWN, Vocabulary

SENTENCES = [
    Sentence("s1", ("Colon", "cancer", "of", "the", "colon"), pos=("N", "N", "P", "D", "N")),
    Sentence("s2", ("The", "the", "APC", "gene")),
    Sentence("s3", ()),
]


def spelled(vocabulary: Vocabulary, word: str) -> list[int]:
    return np.frombuffer(vocabulary.spelling(word), np.int32).tolist()


def test_words_are_learned_in_lower_case_most_frequent_first() -> None:
    vocabulary = Vocabulary.build(SENTENCES)
    assert vocabulary.learned == ("the", "colon", "apc", "cancer", "gene", "of")
    assert vocabulary.word_numbers(("The", "THE", "the", "Apc", "liver")).tolist() == [2, 2, 2, 4, UNKNOWN]


def test_words_are_learned_as_they_stand_when_case_counts() -> None:
    vocabulary = Vocabulary.build(SENTENCES, lowercase=False)
    assert set(vocabulary.learned) == {"Colon", "cancer", "of", "the", "colon", "The", "APC", "gene"}
    exact, lower, unknown = vocabulary.word_numbers(("Colon", "COLON", "apc"))
    assert vocabulary.learned[exact - 2] == "Colon"
    assert vocabulary.learned[lower - 2] == "colon"
    assert unknown == UNKNOWN


def test_rare_words_are_unknown() -> None:
    vocabulary = Vocabulary.build(SENTENCES, min_count=2)
    assert vocabulary.learned == ("the", "colon")
    assert vocabulary.word_numbers(("gene", "Colon")).tolist() == [UNKNOWN, 3]


def test_words_of_a_file_stay_given_and_are_found_by_case() -> None:
    vocabulary = Vocabulary.build(SENTENCES, ("Paris", "the", "Colon", "apc"), freeze=True)
    assert vocabulary.given == ("Paris", "the", "Colon", "apc")
    assert vocabulary.learned == ("cancer", "colon", "gene", "of")
    numbers = vocabulary.word_numbers(("Colon", "colon", "The", "APC", "Paris", "paris"))
    names = ("", "", *vocabulary.learned, *vocabulary.given)
    assert [names[n] for n in numbers] == ["Colon", "colon", "the", "apc", "Paris", ""]


def test_words_of_a_file_that_occur_in_training_are_learned_when_not_frozen() -> None:
    vocabulary = Vocabulary.build(SENTENCES, ("Paris", "the", "gene"), freeze=False, min_count=2)
    assert vocabulary.learned == ("the", "colon")
    assert vocabulary.given == ("Paris", "gene")


def test_a_character_seen_once_trains_the_unknown_one() -> None:
    vocabulary = Vocabulary.build([Sentence("s", ("aab", "bc", "bc", "d"))])
    assert vocabulary.characters == ("a", "b", "c")
    assert spelled(vocabulary, "adc😀") == [2, UNKNOWN, 4, UNKNOWN]


def test_a_long_word_is_spelled_by_its_beginning_and_its_end() -> None:
    vocabulary = Vocabulary.build([Sentence("s", ("abc", "abc"))])
    assert spelled(vocabulary, "a" * 20 + "b" * 10) == [2] * 20 + [3] * 10
    assert spelled(vocabulary, "a" * 20 + "c" * 4970 + "b" * 10) == [2] * 20 + [3] * 10
    assert spelled(vocabulary, "a" * 20 + "c" + "b" * 10) == [2] * 20 + [3] * 10


def test_tags() -> None:
    vocabulary = Vocabulary.build(SENTENCES)
    assert vocabulary.tags == ("D", "N", "P")
    assert vocabulary.tag_numbers(SENTENCES[0]).tolist() == [3, 3, 4, 2, 3]
    assert vocabulary.tag_numbers(SENTENCES[1]).tolist() == [UNKNOWN] * 4
    assert vocabulary.tag_numbers(Sentence("s", ("a",), pos=("X",))).tolist() == [UNKNOWN]


@pytest.mark.parametrize("word", ["\u2028", "\ud800", '"', "É", " ", "𝛼"])
def test_json_keeps_every_kind_of_word(word: str) -> None:
    vocabulary = Vocabulary.build([Sentence("s", (word, word), pos=(word, word))], (word + "x",), lowercase=False)
    back = Vocabulary.from_json(json.loads(json.dumps(vocabulary.to_json())))
    assert back == vocabulary
    assert back.word_numbers((word, word + "x")).tolist() == [2, 3]
    assert spelled(back, word) == [2]
