"""Detection of entities that end one word too early or too late."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from spanwise.core.types import Entity, Sentence
from spanwise.description.boundaries import EntityEnds, common_words, is_punctuation, is_separator
from spanwise.formats import jsonl
from spanwise.formats.base import Ledger

CORPORA = "ade cluener conll04 genia germeval14 litbank ncbi_disease nerel webnlg webnlg_star weibo".split()


def verdict(sentences: Iterable[Sentence]) -> str | None:
    ends, vocabulary, seen = EntityEnds("train"), Counter[str](), set[tuple[str, ...]]()
    for sentence in sentences:
        vocabulary.update(sentence.words)
        if sentence.words not in seen:
            ends.add(sentence)
            seen.add(sentence.words)
    return ends.verdict(vocabulary)


def shift_ends(sentences: Iterable[Sentence], by: int) -> Iterator[Sentence]:
    """Shift the ends of all entities; drop entities that become empty."""
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


def made_up_sentences(count: int = 400) -> list[Sentence]:
    """Make sentences such as "we saw the north harbour and the Oslo ." with two entities each."""
    generator = random.Random(7)
    sentences = []
    for index in range(count):
        words, entities = [generator.choice(["they", "we", "you"]), f"verb{generator.randrange(300)}", "the"], []
        for after in (generator.choice([", the", "and the", "of the", "before the"]), generator.choice([".", ".", "again ."])):
            name = generator.choice(NAMES)
            entities.append(Entity("Place", ((len(words), len(words) + len(name)),)))
            words += [*name, *after.split()]
        sentences.append(Sentence(f"s{index}", tuple(words), tuple(entities)))
    return sentences


def test_correct_ends() -> None:
    assert verdict(made_up_sentences()) is None


def test_late_ends() -> None:
    assert verdict(shift_ends(made_up_sentences(), +1)) == "late"


def test_early_ends() -> None:
    assert verdict(shift_ends(made_up_sentences(), -1)) == "early"


def test_too_few_entities_give_no_verdict() -> None:
    assert verdict(shift_ends(made_up_sentences(49), +1)) is None
    assert verdict(shift_ends(made_up_sentences(60), +1)) == "late"


def test_entities_at_the_end_of_every_sentence_give_no_verdict() -> None:
    lines = [Sentence(f"s{n}", ("call", "at", f"port{n % 40}", "north"), (Entity("P", ((2, 4),)),)) for n in range(500)]
    assert verdict(lines) is None


def test_only_one_word_entities_give_no_verdict() -> None:
    lines = [Sentence(f"s{n}", ("a", ",", f"w{n}", "kg", f"x{n}", "b"), (Entity("N", ((2, 3),)),)) for n in range(500)]
    assert verdict(lines) is None


def test_examples_show_the_word_after_or_the_final_mark() -> None:
    ends = EntityEnds("dev")
    ends.add(Sentence("s1", tuple("the north harbour , Oslo .".split()), (Entity("P", ((1, 2),)), Entity("P", ((4, 6),)))))
    assert ends.examples["early"] == [{"split": "dev", "id": "s1", "text": "north | harbour"}]
    assert ends.examples["late"] == [{"split": "dev", "id": "s1", "text": "Oslo ."}]


def test_common_words_are_the_most_frequent() -> None:
    assert common_words(Counter()) == set()
    assert common_words(Counter({"a": 5, "b": 4, "c": 1}), share=0.9, min_count=1) == {"a", "b"}
    assert common_words(Counter({"a": 5, "b": 4, "c": 1}), share=0.5, min_count=2) == {"a", "b"}


def test_brackets_and_quotation_marks_are_not_separators() -> None:
    for mark in [")", "》", "”", '"', "-"]:
        assert is_punctuation(mark)
        assert not is_separator(mark)
    for mark in [",", ".", "。", ";", "..."]:
        assert is_punctuation(mark)
        assert is_separator(mark)


@pytest.mark.parametrize("name", CORPORA)
def test_shifted_ends_of_real_corpora_are_detected(shared_data: Path, name: str) -> None:
    """Training splits are tested in test_corpora.py."""
    for path in (shared_data / name / "dev.jsonl", shared_data / name / "test.jsonl"):
        if not path.exists():
            continue
        sentences = list(jsonl.read(path, Ledger()))
        assert verdict(sentences) is None
        assert verdict(shift_ends(sentences, +1)) == "late"
        if name != "webnlg_star":  # all of its entities have one word and become empty
            assert verdict(shift_ends(sentences, -1)) == "early"
