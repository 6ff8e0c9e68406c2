"""Entities that end one word too early or too late: the smell must be there when they do, and only then."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from spanwise.core.types import Entity, Sentence
from spanwise.description.ends import Ends, common_words, is_punctuation, is_separator
from spanwise.formats import jsonl
from spanwise.formats.base import Ledger

CORPORA = "ade cluener conll04 genia germeval14 litbank ncbi_disease nerel webnlg webnlg_star weibo".split()


def verdict(sentences: Iterable[Sentence]) -> str | None:
    ends, vocabulary, seen = Ends("train"), Counter[str](), set[tuple[str, ...]]()
    for sentence in sentences:
        vocabulary.update(sentence.words)
        if sentence.words not in seen:
            ends.add(sentence)
            seen.add(sentence.words)
    return ends.verdict(vocabulary)


def moved(sentences: Iterable[Sentence], by: int) -> Iterator[Sentence]:
    """The sentences with the ends of all entities moved; those that vanish are dropped."""
    for sentence in sentences:
        entities = []
        for entity in sentence.entities:
            *rest, (start, end) = entity.fragments
            end = min(end + by, len(sentence.words))
            if end > start:
                entities.append(Entity(entity.type, (*rest, (start, end))))
        yield Sentence(sentence.id, sentence.words, tuple(entities))


NAMES = [name.split() for name in (
    "Oslo;Bergen;Turku;Malmö;Tartu;Narvik;north harbour;old royal bridge;south canal;long market hall;river tower;"
    "small island ferry;east gate;Narvik ore railway;west pier;Turku castle yard"
).split(";")]  # fmt: skip


def invented(number: int = 400) -> list[Sentence]:
    """Sentences such as "we saw the north harbour and the Oslo ." with their two entities."""
    chance = random.Random(7)
    sentences = []
    for index in range(number):
        words, entities = [chance.choice(["they", "we", "you"]), f"verb{chance.randrange(300)}", "the"], []
        for behind in (chance.choice([", the", "and the", "of the", "before the"]), chance.choice([".", ".", "again ."])):
            name = chance.choice(NAMES)
            entities.append(Entity("Place", ((len(words), len(words) + len(name)),)))
            words += [*name, *behind.split()]
        sentences.append(Sentence(f"s{index}", tuple(words), tuple(entities)))
    return sentences


def test_right_ends_have_no_smell() -> None:
    assert verdict(invented()) is None


def test_late_ends() -> None:
    assert verdict(moved(invented(), +1)) == "late"


def test_early_ends() -> None:
    assert verdict(moved(invented(), -1)) == "early"


def test_too_few_entities_say_nothing() -> None:
    assert verdict(moved(invented(49), +1)) is None
    assert verdict(moved(invented(60), +1)) == "late"


def test_entities_that_end_every_sentence_have_no_smell() -> None:
    lines = [Sentence(f"s{n}", ("call", "at", f"port{n % 40}", "north"), (Entity("P", ((2, 4),)),)) for n in range(500)]
    assert verdict(lines) is None


def test_one_word_entities_alone_have_no_smell() -> None:
    lines = [Sentence(f"s{n}", ("a", ",", f"w{n}", "kg", f"x{n}", "b"), (Entity("N", ((2, 3),)),)) for n in range(500)]
    assert verdict(lines) is None


def test_examples_show_the_word_behind_or_the_mark_at_the_end() -> None:
    ends = Ends("dev")
    ends.add(Sentence("s1", tuple("the north harbour , Oslo .".split()), (Entity("P", ((1, 2),)), Entity("P", ((4, 6),)))))
    assert ends.examples["early"] == [{"split": "dev", "id": "s1", "text": "north | harbour"}]
    assert ends.examples["late"] == [{"split": "dev", "id": "s1", "text": "Oslo ."}]


def test_common_words_are_few_and_frequent() -> None:
    assert common_words(Counter()) == set()
    assert common_words(Counter({"a": 5, "b": 4, "c": 1}), share=0.9, min_count=1) == {"a", "b"}
    assert common_words(Counter({"a": 5, "b": 4, "c": 1}), share=0.5, min_count=2) == {"a", "b"}


def test_brackets_and_quotation_marks_are_punctuation_and_no_separators() -> None:
    for mark in [")", "》", "”", '"', "-"]:
        assert is_punctuation(mark)
        assert not is_separator(mark)
    for mark in [",", ".", "。", ";", "..."]:
        assert is_punctuation(mark)
        assert is_separator(mark)


@pytest.mark.parametrize("name", CORPORA)
def test_real_corpora_smell_when_their_ends_are_moved(shared_data: Path, name: str) -> None:
    """The training splits, which take longer, are tested for silence with the other figures."""
    for path in (shared_data / name / "dev.jsonl", shared_data / name / "test.jsonl"):
        if not path.exists():
            continue
        sentences = list(jsonl.read(path, Ledger()))
        assert verdict(sentences) is None
        assert verdict(moved(sentences, +1)) == "late"
        if name != "webnlg_star":  # all of its entities are one word long and vanish
            assert verdict(moved(sentences, -1)) == "early"
