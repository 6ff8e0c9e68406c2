"""JSON of CasRel."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spanwise import Entity, FormatError, Relation, Sentence
from spanwise.formats import casrel
from spanwise.formats.shared.phrases import find_phrases

TEXT = "Oslo , the capital of Norway , is near Oslo Fjord in Norway ."


def test_mentions_are_placed_at_the_first_occurrence(workbench: Any) -> None:
    triples = [["Oslo", "country", "Norway"], ["Oslo Fjord", "country", "Norway"], ["Oslo", "country", "Norway"]]
    (sentence,), ledger = workbench.load(casrel, [{"text": TEXT, "triple_list": triples, "source": "map"}])
    assert sentence.words == tuple(TEXT.split())
    assert sentence.entities == (Entity("Entity", ((0, 1),)), Entity("Entity", ((5, 6),)), Entity("Entity", ((9, 11),)))
    assert sentence.relations == (Relation("country", 0, 1), Relation("country", 2, 1))
    assert sentence.extra == {"source": "map"}
    assert ledger.notes == {
        "mentions that occur several times, placed at the first occurrence": 2,
        "duplicate triples, merged": 1,
    }
    text, written = workbench.write(casrel, [sentence])
    assert json.loads(text) == [{"text": TEXT, "triple_list": triples[:2], "id": "data-0", "source": "map"}]
    assert (ledger.lost, written.lost) == (0, 0)


def test_missing_mentions(workbench: Any) -> None:
    triples = [["Bergen", "country", "Norway"], ["Bergen", "near", "Oslo"], ["Oslo", "country", ""]]
    (sentence,), ledger = workbench.load(casrel, [{"text": TEXT, "triple_list": triples}])
    assert [sentence.text_of(e) for e in sentence.entities] == ["Norway", "Oslo"]
    assert ledger.losses == {
        ("relations", "with a subject or object that is not in the text"): 3,
        ("entities", "not in the text"): 2,
    }


def test_mentions_match_whole_words(workbench: Any) -> None:
    _, ledger = workbench.load(casrel, [{"text": "Osloer Norway", "triple_list": [["Oslo", "country", "Norway"]]}])
    assert ledger.lost == 2


def test_the_text_keeps_its_spaces(workbench: Any) -> None:
    (sentence,), _ = workbench.load(casrel, [{"text": " Oslo  is\there ", "triple_list": []}])
    assert (sentence.text, sentence.words, sentence.starts) == (" Oslo  is\there ", ("Oslo", "is", "here"), (1, 7, 10))
    assert workbench.round_trip(casrel, [sentence])[0] == [sentence]


def test_losses_are_counted(workbench: Any) -> None:
    words = ("Oslo", "and", "Oslo", "in", "Norway")
    entities = (
        Entity("City", ((0, 1),)),  # the same words as the last entity
        Entity("Entity", ((4, 5),)),
        Entity("Entity", ((2, 3),)),  # occurs earlier
        Entity("Entity", ((0, 1), (4, 5))),
        Entity("Entity", ((1, 2),)),  # without a relation
        Entity("Word", ((3, 4),)),  # related: its type is lost
        Entity("Entity", ((0, 1),)),
    )
    relations = (
        Relation("in", 0, 1), Relation("in", 2, 1), Relation("in", 6, 1), Relation("like", 3, 1), Relation("by", 5, 1),
    )  # fmt: skip
    (read,), ledger = workbench.round_trip(casrel, [Sentence("s1", words, entities, relations)])
    assert read.entities == tuple(Entity("Entity", ((start, start + 1),)) for start in (0, 4, 3))
    assert read.relations == (Relation("in", 0, 1), Relation("by", 2, 1))
    assert ledger.losses == {
        ("entities", "with the same words earlier in the sentence"): 1,
        ("entities", "discontinuous"): 1,
        ("entities", "without a relation"): 1,
        ("entities", "with the same words as another"): 1,
        ("types", "other than Entity"): 1,
        ("relations", "with a dropped entity"): 2,
        ("relations", "duplicate"): 1,
    }


def test_a_sentence_with_whitespace_in_a_word_is_lost(workbench: Any) -> None:
    entities = (Entity("Entity", ((0, 1),)), Entity("Entity", ((1, 2),)))
    broken = Sentence("s1", ("New York", "lies"), entities, (Relation("r", 0, 1),))
    (read,), ledger = workbench.round_trip(casrel, [broken, Sentence("s2", ("Oslo",))])
    assert read.id == "s2"
    assert str(ledger) == (
        "1 sentence (with whitespace in a word), 2 entities (in a dropped sentence), 1 relation (in a dropped sentence)"
    )


def test_sentences_that_cannot_be_written(workbench: Any) -> None:
    read, ledger = workbench.round_trip(casrel, [Sentence("s1", ("New York", "is")), Sentence("s2", ("is", "here"))])
    assert [s.id for s in read] == ["s2"]
    assert str(ledger) == "1 sentence (with whitespace in a word)"


@pytest.mark.parametrize(
    ("record", "problem"),
    [
        ({"text": "Oslo"}, "triple_list: field required"),
        ({"text": "Oslo", "triple_list": [["Oslo", "x"]]}, "triple_list.0.2: field required"),
        ({"text": "Oslo", "triple_list": [["Oslo", "", "Oslo"]]}, "a relation's type must be a non-empty string"),
    ],
)
def test_errors_name_the_line(workbench: Any, record: dict[str, Any], problem: str) -> None:
    with pytest.raises(FormatError) as error:
        workbench.load(casrel, [{"text": "", "triple_list": []}, record])
    assert str(error.value).startswith(f"{workbench.folder / 'data.json'}:3: {problem}")


@pytest.mark.parametrize("name", ["webnlg", "webnlg_star"])
def test_real_samples(workbench: Any, corpus: Any, shared_data: Path, name: str) -> None:
    path = shared_data / name / "raw_sample/test_triples.sample.json"
    sentences, ledger = workbench.load(casrel, path)
    raw = json.loads(path.read_text(encoding="utf-8"))
    assert len(sentences) == len(raw) > 100
    assert sum(len(s.relations) for s in sentences) == sum(len({tuple(t) for t in r["triple_list"]}) for r in raw)
    assert sum(len(s.entities) for s in sentences) == sum(len({m for t in r["triple_list"] for m in t[::2]}) for r in raw)
    for sentence, record in zip(sentences, corpus(shared_data / name / "test.jsonl"), strict=False):
        assert list(sentence.words) == record["tokens"]
        assert [(e.type, [list(e.range)]) for e in sentence.entities] == [(e["type"], e["spans"]) for e in record["entities"]]
        assert [(r.type, r.head, r.tail) for r in sentence.relations] == [
            (r["type"], r["head"], r["tail"]) for r in record["relations"]
        ]
    reread, written = workbench.round_trip(casrel, sentences)
    assert reread == sentences
    assert (ledger.lost, written.lost) == (0, 0)


phrases = st.lists(st.sampled_from("abcd"), max_size=4).map(tuple)


@given(st.lists(st.sampled_from("abc"), max_size=14), st.lists(phrases, max_size=8), st.integers(1, 2))
def test_phrases_are_found_as_by_a_plain_search(words: list[str], phrases: list[tuple[str, ...]], count: int) -> None:
    expected = {}
    for phrase in phrases:
        size = len(phrase)
        starts = [start for start in range(len(words) - size + 1) if phrase and tuple(words[start : start + size]) == phrase]
        if starts:
            expected[phrase] = starts[:count]
    assert find_phrases(words, phrases, count) == expected
