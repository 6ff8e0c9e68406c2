"""Splits of corpora, and the bundled corpus."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import pytest

from spanwise import Corpus, Entity, Sentence, SpanwiseError, bundled_corpus, convert
from spanwise.core.nesting import nested_spans
from spanwise.corpora.splits import ensure_dev_split, find_split_files, open_splits, read_corpus
from spanwise.formats import Ledger


def sentences(count: int, per_document: int = 0) -> tuple[Sentence, ...]:
    return tuple(
        Sentence(f"s{n}", ("a", str(n)), document=f"d{n // per_document}" if per_document else None)
        for n in range(count)
    )  # fmt: skip


def test_a_corpus_with_dev_is_unchanged() -> None:
    corpus = Corpus({"train": sentences(3), "dev": sentences(1)}, "c")
    assert ensure_dev_split(corpus) == (corpus, "")


def test_the_dev_split_is_deterministic() -> None:
    corpus = Corpus({"train": sentences(40), "test": sentences(2)}, "c")
    split, message = ensure_dev_split(corpus, share=0.1)
    assert message == "no dev split: using 4 of 40 training sentences as dev (fixed seed 13)"
    assert (len(split["train"]), len(split["dev"]), split["test"], split.name) == (36, 4, corpus["test"], "c")
    assert set(split["train"]) | set(split["dev"]) == set(corpus["train"])
    assert [s.id for s in split["train"]] == sorted((s.id for s in split["train"]), key=lambda name: int(name[1:]))
    assert ensure_dev_split(corpus, share=0.1)[0] == split


def test_training_on_another_split_is_reported() -> None:
    _, message = ensure_dev_split(Corpus({"test": sentences(40)}, "c"), share=0.1)
    assert message == "no train split: training on test; no dev split: using 4 of 40 training sentences as dev (fixed seed 13)"


def test_documents_are_not_divided() -> None:
    split, _ = ensure_dev_split(Corpus({"train": sentences(60, per_document=6)}))
    assert {s.document for s in split["train"]}.isdisjoint({s.document for s in split["dev"]})
    assert len(split["dev"]) == 6


def documents_of_sizes(*sizes: int) -> tuple[Sentence, ...]:
    return tuple(Sentence(f"{name}-{n}", ("a",), document=f"d{name}") for name, size in enumerate(sizes) for n in range(size))


@pytest.mark.parametrize(
    ("sizes", "dev"),
    [
        ((100,), 10),  # only one document
        ((1, 99), 10),  # one is too small for dev, the other leaves too little for train
        ((99, 1), 10),
        ((50, 50), 10),
        ((3, 2), 1),
        ((2,), 1),
    ],
)
def test_documents_are_divided_if_whole_ones_do_not_fit(sizes: tuple[int, ...], dev: int) -> None:
    train = documents_of_sizes(*sizes)
    split, message = ensure_dev_split(Corpus({"train": train}))
    assert (len(split["train"]), len(split["dev"])) == (len(train) - dev, dev)
    assert set(split["train"]) | set(split["dev"]) == set(train)
    assert message == (
        f"no dev split: using {dev} of {len(train)} training sentences as dev (fixed seed 13); "
        "documents were split, because no whole documents have about that many sentences"
    )


@pytest.mark.parametrize("sizes", [(6, 94), (94, 6), (80, 20), (30, 7, 40, 23), (5, 5, 90)])
def test_documents_too_large_for_dev_are_skipped(sizes: tuple[int, ...]) -> None:
    split, message = ensure_dev_split(Corpus({"train": documents_of_sizes(*sizes)}))
    assert {s.document for s in split["train"]}.isdisjoint({s.document for s in split["dev"]})
    assert 5 <= len(split["dev"]) <= 20
    assert message.endswith("(fixed seed 13)")


def test_a_single_sentence_stays_in_train() -> None:
    split, message = ensure_dev_split(Corpus({"train": sentences(1)}))
    assert (len(split["train"]), len(split["dev"])) == (1, 0)
    assert message == "no dev split: a single training sentence cannot be split, so dev is empty"


def test_a_single_split_becomes_train() -> None:
    split, _ = ensure_dev_split(Corpus({"all": sentences(20)}))
    assert (len(split["train"]), len(split["dev"])) == (18, 2)
    with pytest.raises(SpanwiseError, match="no train split; found dev, test"):
        ensure_dev_split(Corpus({"dev": sentences(1), "test": sentences(1)}))
    with pytest.raises(SpanwiseError, match="no train split; found no splits"):
        ensure_dev_split(Corpus({}))


def test_the_bundled_corpus_covers_all_kinds_of_annotations() -> None:
    corpus = bundled_corpus()
    assert list(corpus) == ["train", "dev", "test"]
    all_sentences = [s for split in corpus for s in corpus[split]]
    entities = [e for s in all_sentences for e in s.entities]
    assert len(all_sentences) >= 600
    assert len(corpus.types) >= 8
    assert len(corpus.relation_types) >= 3
    assert sum(e.is_discontinuous for e in entities) >= 50
    assert sum(len(nested_spans(e.range for e in s.entities)) for s in all_sentences) >= 100
    assert sum(len(s.relations) + len(s.links) for s in all_sentences) >= 300


def test_the_bundled_corpus_is_consistent() -> None:
    corpus = bundled_corpus()
    ids = [s.id for split in corpus for s in corpus[split]]
    assert len(ids) == len(set(ids))
    words = {split: {s.words for s in corpus[split]} for split in corpus}
    documents = {split: {s.document for s in corpus[split]} for split in corpus}
    for a, b in combinations(corpus, 2):
        assert words[a].isdisjoint(words[b])
        assert documents[a].isdisjoint(documents[b])
    for split in corpus:
        types = {e.type for s in corpus[split] for e in s.entities}
        assert types == set(corpus.types), split
        for s in corpus[split]:
            assert s.words
            assert len(set(s.entities)) == len(s.entities), s.id
            assert len(set(s.relations)) == len(s.relations), s.id
            assert all(s.text_of(Entity(e.type, e.fragments)).strip() for e in s.entities)


def test_folders_train_dev_and_test_of_several_files_are_a_corpus(tmp_path: Path) -> None:
    for split, count in (("train", 3), ("dev", 1), ("test", 2)):
        (tmp_path / split / "more").mkdir(parents=True)
        for number in range(count):
            folder = tmp_path / split / ("more" if number == 2 else "")
            (folder / f"part{number}.conll").write_text(f"Oslo{number}\tB-LOC\nis\tO\n")
        (tmp_path / split / "README.md").write_text("About this split.\n")
    corpus = read_corpus(tmp_path)
    assert {split: [s.words[0] for s in corpus[split]] for split in corpus} == {
        "train": ["Oslo2", "Oslo0", "Oslo1"],
        "dev": ["Oslo0"],
        "test": ["Oslo0", "Oslo1"],
    }
    assert [path.name for path in find_split_files(tmp_path)["test"]] == ["part0.conll", "part1.conll"]
    assert convert(tmp_path, tmp_path.with_name("out")).written["train"]["sentences"] == 3


def test_runs_of_a_sweep_are_no_splits(tmp_path: Path) -> None:
    """The names of their folders start with training, which is also the name of a split."""
    for name in ("training.seed=1", "training.seed=2"):
        (tmp_path / name).mkdir()
        for file in ("config.yaml", "labels.json"):
            (tmp_path / name / file).touch()
    assert find_split_files(tmp_path) == {}
    with pytest.raises(SpanwiseError, match=r"training\.seed=1: expected data, found a model$"):
        open_splits(tmp_path / "training.seed=1")


def test_files_of_a_split_that_are_not_read_are_noted(tmp_path: Path) -> None:
    """A truncated file among others would otherwise be skipped silently."""
    for split in ("train", "dev"):
        (tmp_path / split).mkdir()
        (tmp_path / split / "a.jsonl").write_text('{"tokens": ["Oslo"], "entities": []}\n')
        (tmp_path / split / ".hidden").touch()
    (tmp_path / "dev" / "b.json").write_text('[{"tokens": ["Oslo"], "entities": [')
    ledger = Ledger()
    assert [len(sentences) for sentences in read_corpus(tmp_path, ledger=ledger).values()] == [1, 1]
    assert ledger.notes == {"files in an unknown format, not read (dev/b.json)": 1}


def test_texts_of_a_table_in_a_split_folder_are_read(tmp_path: Path) -> None:
    (tmp_path / "train").mkdir()
    (tmp_path / "train" / "table.csv").write_text("document,start,end,type\nd1,0,4,Place\n")
    (tmp_path / "train" / "d1.txt").write_text("Oslo lies there.")
    ledger = Ledger()
    assert [s.words[0] for s in read_corpus(tmp_path, ledger=ledger)["train"]] == ["Oslo"]
    assert ledger.notes == {}


def write_brat_document(folder: Path, name: str) -> None:
    (folder / f"{name}.txt").write_text(f"Oslo {name}.")
    (folder / f"{name}.ann").write_text("T1\tPlace 0 4\tOslo\n")


def test_a_brat_document_may_be_named_like_a_split(tmp_path: Path) -> None:
    for name in ("letter", "test"):
        write_brat_document(tmp_path, name)
    assert find_split_files(tmp_path) == {}
    assert [s.id for s in read_corpus(tmp_path)["all"]] == ["letter", "test"]


def test_brat_documents_named_train_and_test_are_splits(tmp_path: Path) -> None:
    for name in ("test", "train"):
        write_brat_document(tmp_path, name)
    corpus = read_corpus(tmp_path)
    assert {split: [s.words[1] for s in corpus[split]] for split in corpus} == {"train": ["train"], "test": ["test"]}
