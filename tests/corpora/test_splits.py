"""Corpora on disk: a dev split where there is none, and the corpus that comes with the package."""

from __future__ import annotations

from itertools import combinations

import pytest

from spanwise import Corpus, Entity, Sentence, SpanwiseError, bundled_corpus
from spanwise.core.nesting import inside_others
from spanwise.corpora.splits import with_dev


def sentences(count: int, per_document: int = 0) -> tuple[Sentence, ...]:
    return tuple(
        Sentence(f"s{n}", ("a", str(n)), document=f"d{n // per_document}" if per_document else None)
        for n in range(count)
    )  # fmt: skip


def test_a_corpus_that_has_dev_is_left_alone() -> None:
    corpus = Corpus({"train": sentences(3), "dev": sentences(1)}, "c")
    assert with_dev(corpus) == (corpus, "")


def test_dev_is_cut_off_the_same_way_each_time() -> None:
    corpus = Corpus({"train": sentences(40), "test": sentences(2)}, "c")
    cut, said = with_dev(corpus, share=0.1)
    assert said == "no dev split: 4 of 40 training sentences were cut off as dev (fixed seed 13)"
    assert (len(cut["train"]), len(cut["dev"]), cut["test"], cut.name) == (36, 4, corpus["test"], "c")
    assert set(cut["train"]) | set(cut["dev"]) == set(corpus["train"])
    assert [s.id for s in cut["train"]] == sorted((s.id for s in cut["train"]), key=lambda name: int(name[1:]))
    assert with_dev(corpus, share=0.1)[0] == cut


def test_whole_documents_go_to_one_side() -> None:
    cut, _ = with_dev(Corpus({"train": sentences(60, per_document=6)}))
    assert {s.document for s in cut["train"]}.isdisjoint({s.document for s in cut["dev"]})
    assert len(cut["dev"]) == 6


def of_sizes(*sizes: int) -> tuple[Sentence, ...]:
    return tuple(Sentence(f"{name}-{n}", ("a",), document=f"d{name}") for name, size in enumerate(sizes) for n in range(size))


@pytest.mark.parametrize(
    ("sizes", "dev"),
    [
        ((100,), 10),  # there is but one
        ((1, 99), 10),  # one makes no dev, the other leaves no train
        ((99, 1), 10),
        ((50, 50), 10),
        ((3, 2), 1),
        ((2,), 1),
    ],
)
def test_documents_are_cut_through_where_whole_ones_leave_too_few_sentences_on_a_side(sizes: tuple[int, ...], dev: int) -> None:
    train = of_sizes(*sizes)
    cut, said = with_dev(Corpus({"train": train}))
    assert (len(cut["train"]), len(cut["dev"])) == (len(train) - dev, dev)
    assert set(cut["train"]) | set(cut["dev"]) == set(train)
    assert said == (
        f"no dev split: {dev} of {len(train)} training sentences were cut off as dev (fixed seed 13), "
        "whatever their documents: no whole ones are about that many"
    )


@pytest.mark.parametrize("sizes", [(6, 94), (94, 6), (80, 20), (30, 7, 40, 23), (5, 5, 90)])
def test_a_document_that_is_too_large_for_dev_is_passed_over(sizes: tuple[int, ...]) -> None:
    cut, said = with_dev(Corpus({"train": of_sizes(*sizes)}))
    assert {s.document for s in cut["train"]}.isdisjoint({s.document for s in cut["dev"]})
    assert 5 <= len(cut["dev"]) <= 20
    assert said.endswith("(fixed seed 13)")


def test_a_single_sentence_is_learned_from() -> None:
    cut, said = with_dev(Corpus({"train": sentences(1)}))
    assert (len(cut["train"]), len(cut["dev"])) == (1, 0)
    assert said == "no dev split: 0 of 1 training sentences were cut off as dev (fixed seed 13)"


def test_the_only_split_is_taken_for_train() -> None:
    cut, _ = with_dev(Corpus({"all": sentences(20)}))
    assert (len(cut["train"]), len(cut["dev"])) == (18, 2)
    with pytest.raises(SpanwiseError, match="there is no train split, only dev, test"):
        with_dev(Corpus({"dev": sentences(1), "test": sentences(1)}))
    with pytest.raises(SpanwiseError, match="there is no train split, only nothing"):
        with_dev(Corpus({}))


def test_the_bundled_corpus_has_something_of_everything() -> None:
    corpus = bundled_corpus()
    assert list(corpus) == ["train", "dev", "test"]
    everything = [s for split in corpus for s in corpus[split]]
    entities = [e for s in everything for e in s.entities]
    assert len(everything) >= 600
    assert len(corpus.types) >= 8
    assert len(corpus.relation_types) >= 3
    assert sum(e.is_discontinuous for e in entities) >= 50
    assert sum(len(inside_others(e.range for e in s.entities)) for s in everything) >= 100
    assert sum(len(s.relations) + len(s.links) for s in everything) >= 300


def test_the_bundled_corpus_is_sound() -> None:
    corpus = bundled_corpus()
    ids = [s.id for split in corpus for s in corpus[split]]
    assert len(ids) == len(set(ids))
    words = {split: {s.words for s in corpus[split]} for split in corpus}
    documents = {split: {s.document for s in corpus[split]} for split in corpus}
    for one, other in combinations(corpus, 2):
        assert words[one].isdisjoint(words[other])
        assert documents[one].isdisjoint(documents[other])
    for split in corpus:
        types = {e.type for s in corpus[split] for e in s.entities}
        assert types == set(corpus.types), split
        for s in corpus[split]:
            assert s.words
            assert len(set(s.entities)) == len(s.entities), s.id
            assert len(set(s.relations)) == len(s.relations), s.id
            assert all(s.text_of(Entity(e.type, e.fragments)).strip() for e in s.entities)
