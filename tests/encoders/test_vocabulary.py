"""Indices of words, characters and tags."""

from __future__ import annotations

import json

import pytest

from spanwise import Sentence
from spanwise.encoders.vocabulary import UNKNOWN, Vocabulary
from spanwise.encoders.word_indexing import VocabularyRecord

SENTENCES = [
    Sentence("s1", ("Colon", "cancer", "of", "the", "colon"), pos=("N", "N", "P", "D", "N")),
    Sentence("s2", ("The", "the", "APC", "gene")),
    Sentence("s3", ()),
]


def characters(vocabulary: Vocabulary, word: str) -> list[int]:
    return vocabulary.spell([word])[0].tolist()


def test_words_are_learned_in_lower_case_most_frequent_first() -> None:
    vocabulary = Vocabulary.build(SENTENCES)
    assert vocabulary.learned == ("the", "colon", "apc", "cancer", "gene", "of")
    assert vocabulary.word_indices(("The", "THE", "the", "Apc", "liver")).tolist() == [2, 2, 2, 4, UNKNOWN]


def test_words_are_learned_as_written_without_lowercase() -> None:
    vocabulary = Vocabulary.build(SENTENCES, lowercase=False)
    assert set(vocabulary.learned) == {"Colon", "cancer", "of", "the", "colon", "The", "APC", "gene"}
    exact, lower, unknown = vocabulary.word_indices(("Colon", "COLON", "apc"))
    assert vocabulary.learned[exact - 2] == "Colon"
    assert vocabulary.learned[lower - 2] == "colon"
    assert unknown == UNKNOWN


def test_rare_words_are_unknown() -> None:
    vocabulary = Vocabulary.build(SENTENCES, min_count=2)
    assert vocabulary.learned == ("the", "colon")
    assert vocabulary.word_indices(("gene", "Colon")).tolist() == [UNKNOWN, 3]


def test_words_of_a_file_are_fixed_and_looked_up_by_case() -> None:
    vocabulary = Vocabulary.build(SENTENCES, ("Paris", "the", "Colon", "apc"), freeze=True)
    assert vocabulary.given == ("Paris", "the", "Colon", "apc")
    assert vocabulary.learned == ("cancer", "colon", "gene", "of")
    indices = vocabulary.word_indices(("Colon", "colon", "The", "APC", "Paris", "paris"))
    names = ("", "", *vocabulary.learned, *vocabulary.given)
    assert [names[n] for n in indices] == ["Colon", "colon", "the", "apc", "Paris", ""]


def test_words_of_a_file_are_learned_with_freeze_false() -> None:
    vocabulary = Vocabulary.build(SENTENCES, ("Paris", "the", "gene"), freeze=False, min_count=2)
    assert vocabulary.learned == ("the", "colon")
    assert vocabulary.given == ("Paris", "gene")


def test_a_character_that_occurs_once_is_unknown() -> None:
    vocabulary = Vocabulary.build([Sentence("s", ("aab", "bc", "bc", "d"))])
    assert vocabulary.characters == ("a", "b", "c")
    assert characters(vocabulary, "adc😀") == [2, UNKNOWN, 4, UNKNOWN]


def test_a_long_word_is_spelled_by_its_start_and_end() -> None:
    vocabulary = Vocabulary.build([Sentence("s", ("abc", "abc"))])
    assert characters(vocabulary, "a" * 20 + "b" * 10) == [2] * 20 + [3] * 10
    assert characters(vocabulary, "a" * 20 + "c" * 4970 + "b" * 10) == [2] * 20 + [3] * 10
    assert characters(vocabulary, "a" * 20 + "c" + "b" * 10) == [2] * 20 + [3] * 10


def test_tags() -> None:
    vocabulary = Vocabulary.build(SENTENCES)
    assert vocabulary.tags == ("D", "N", "P")
    assert vocabulary.tag_indices(SENTENCES[0]).tolist() == [3, 3, 4, 2, 3]
    assert vocabulary.tag_indices(SENTENCES[1]).tolist() == [UNKNOWN] * 4
    assert vocabulary.tag_indices(Sentence("s", ("a",), pos=("X",))).tolist() == [UNKNOWN]


@pytest.mark.parametrize("word", ["\u2028", "\ud800", '"', "É", " ", "𝛼"])
def test_json_round_trip_of_unusual_words(word: str) -> None:
    vocabulary = Vocabulary.build([Sentence("s", (word, word), pos=(word, word))], (word + "x",), lowercase=False)
    loaded = VocabularyRecord(**json.loads(json.dumps(vocabulary.to_json()))).build()
    assert loaded == vocabulary
    assert loaded.word_indices((word, word + "x")).tolist() == [2, 3]
    assert characters(loaded, word) == [2]
