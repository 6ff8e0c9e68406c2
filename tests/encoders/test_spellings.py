"""Words as indices and spellings, against literal code that reads one character at a time."""

from __future__ import annotations

import pickle
import random

import numpy as np
import pytest

from spanwise import Sentence
from spanwise.core.sentence import trusted_sentence
from spanwise.encoders.spellings import Spellings
from spanwise.encoders.vocabulary import UNKNOWN, Vocabulary
from spanwise.encoders.word_indexing import Array, IndexedWords, WordIndexer

WORDS = (
    "colon", "Colon", "cancer", "of", "the", "a", "b", "éclair", "水", "🧬", "🧬s", "a" * 30, "a" * 31, "a" * 5000,
    "a" * 20 + "b" * 10, "a" * 20 + "c" + "b" * 10, "Ω", "Ж", "Ωa", "Жa", "\ud83e", "\uddec", "\ud83e\uddec", "\x00", "\U0010ffff",
    "水" * 40, "",
)  # fmt: skip
VOCABULARY = Vocabulary(
    learned=("colon", "cancer", "of"), given=("the", "Colon"), characters=(*"abcelnorthC", "é", "水", "🧬", "\ud83e", "ab", "")
)


def sentences(seed: int, count: int = 12) -> list[Sentence]:
    """Sentences with unusual words. They are not checked, because only words of other sources can be empty."""
    choose = random.Random(seed)
    texts = [(), *(tuple(choose.choices(WORDS, k=choose.randint(0, 25))) for _ in range(count))]
    return [trusted_sentence(str(n), words, " ".join(words), (), "d", n, 0) for n, words in enumerate(texts)]


def literal_word(word: str) -> int:
    names = (*VOCABULARY.learned, *VOCABULARY.given)
    for name in (word, word.lower()):
        if name in names:
            return names.index(name) + 2
    return UNKNOWN


def literal_spelling(word: str) -> tuple[int, ...]:
    read = word if len(word) <= 30 else word[:20] + word[-10:]
    return tuple(VOCABULARY.characters.index(c) + 2 if c in VOCABULARY.characters else UNKNOWN for c in read)


def literal_batch(batch: list[Sentence]) -> dict[str, list[list[int]]]:
    spellings: list[tuple[int, ...]] = []
    for sentence in batch:
        for word in sentence.words:
            if literal_spelling(word) not in spellings:
                spellings.append(literal_spelling(word))
    spellings.sort(key=len)
    width = max(1, *(len(sentence.words) for sentence in batch))
    splits = range(max(1, len(spellings)))
    tables = [(padded(spellings[:n]), padded(spellings[n:] or [()])) for n in splits]
    short, long = min(tables, key=lambda pair: sum(sum(map(len, table)) for table in pair))
    return {
        "mask": [[column < len(s.words) for column in range(width)] for s in batch],
        "words": [[*map(literal_word, s.words), *[0] * (width - len(s.words))] for s in batch],
        "spelling": [[*(spellings.index(literal_spelling(w)) for w in s.words), *[0] * (width - len(s.words))] for s in batch],
        "short": short, "long": long,
    }  # fmt: skip


def padded(rows: list[tuple[int, ...]]) -> list[list[int]]:
    width = max([1, *map(len, rows)])
    return [[*row, *[0] * (width - len(row))] for row in rows]


def lists(arrays: dict[str, Array]) -> dict[str, list[list[int]]]:
    return {name: array.tolist() for name, array in arrays.items()}


@pytest.fixture
def indexer() -> WordIndexer:
    return WordIndexer(VOCABULARY, characters=True, tags=False)


@pytest.mark.parametrize("seed", range(4))
def test_batches_equal_those_of_literal_code(indexer: WordIndexer, seed: int) -> None:
    texts = sentences(seed)
    prepared = indexer.prepare(texts)
    for indices in ([0], [1], [3, 0, 2], [*range(len(texts))], [*range(len(texts) - 1, 3, -2)]):
        arrays = indexer.collate([prepared[n] for n in indices])
        assert lists(arrays) == literal_batch([texts[n] for n in indices])
        assert {array.dtype for name, array in arrays.items() if name != "mask"} == {np.dtype(np.int64)}


def test_a_batch_of_sentences_that_were_prepared_separately(indexer: WordIndexer) -> None:
    texts = sentences(7)
    separately = [item for text in texts for item in indexer.prepare([text])]
    assert lists(indexer.collate(separately)) == literal_batch(texts)


def test_prepared_sentences_stay_small_when_they_are_sent(indexer: WordIndexer) -> None:
    """The spellings are sent once, and each sentence without the words of the others."""
    texts = [Sentence(str(n), ("colon",) * 20 + (f"cancer{n}",)) for n in range(200)]
    prepared = indexer.prepare(texts)
    received: list[IndexedWords] = pickle.loads(pickle.dumps(prepared, protocol=5))
    assert len({id(item.spellings) for item in received}) == 1
    assert lists(indexer.collate(received)) == lists(indexer.collate(prepared))
    assert len(pickle.dumps(prepared, protocol=5)) < 600 * len(prepared)


def test_words_of_one_spelling_share_a_row() -> None:
    words = ["Ω", "a", "Ж", "aΩ", "a" * 31, "a" * 30, "aЖ", "b", "", "a" * 99]
    rows = Spellings.pack(*VOCABULARY.spell(words)).rows_of_words
    assert rows.tolist() == [0, 1, 0, 3, 4, 4, 3, 7, 8, 4]


def test_parts_that_the_encoder_does_not_have_are_not_prepared() -> None:
    tagged = Sentence("s", ("the", "colon"), pos=("D", "N"))
    (only_tags,) = WordIndexer(VOCABULARY, words=False, characters=False, tags=True).prepare([tagged])
    assert (only_tags.length, only_tags.words, only_tags.rows, only_tags.spellings) == (2, None, None, None)
    indexer = WordIndexer(VOCABULARY, words=False, characters=True, tags=False)
    assert set(indexer.collate(indexer.prepare([tagged]))) == {"mask", "spelling", "short", "long"}
