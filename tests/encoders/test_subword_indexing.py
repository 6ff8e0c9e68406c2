"""Sentences as rows of subwords, against literal code that reads one word at a time."""

from __future__ import annotations

import random

import pytest
from tokenizers import Tokenizer, models, pre_tokenizers

from spanwise import Sentence
from spanwise.encoders.subword_indexing import SubwordIndexer, SubwordSettings
from spanwise.encoders.subwords import Subwords
from spanwise.encoders.windows import windows
from spanwise.encoders.word_tokenizer import WordTokenizer

PIECES = {"[UNK]": 5, "a": 6, "##a": 7, "##b": 8, "b": 9, "##bb": 10}


def indexer(before: tuple[int, ...], after: tuple[int, ...], window: int) -> SubwordIndexer:
    tokenizer = Tokenizer(models.WordPiece(PIECES, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    settings = SubwordSettings(before=before, after=after, padding=0, window=window, pooling="max", context="sentence")
    return SubwordIndexer(WordTokenizer(tokenizer, PIECES["[UNK]"]), settings)


def sentences() -> list[Sentence]:
    choose = random.Random(3)
    words = ("a", "b", "aab", "abbb", "unknown", "b" * 9, "\ud83d", "\u00a0")
    lengths = (3, 0, 1, 12, 0, 5, 90, 2, 0)
    return [Sentence(str(n), tuple(choose.choices(words, k=length))) for n, length in enumerate(lengths)]


def literal(settings: SubwordSettings, subwords: list[list[int]]) -> tuple[list[list[int]], list[int], list[int], list[int]]:
    """Rows, and the row and column of each subword, and subwords per word."""
    ids, counts = [id for word in subwords for id in word], [len(word) for word in subwords]
    before, after = list(settings.before), list(settings.after)
    starts, row, column = windows(len(ids), settings.capacity, settings.capacity // 4)
    rows = [before + ids[start : start + settings.capacity] + after for start in starts.tolist()]
    return [row or [5] for row in rows], row.tolist(), [c + len(before) for c in column.tolist()], counts


def lists(item: Subwords) -> tuple[list[list[int]], list[int], list[int], list[int]]:
    return [row.tolist() for row in item.rows], item.row.tolist(), item.column.tolist(), item.counts.tolist()


@pytest.mark.parametrize(
    ("before", "after", "window"), [((1,), (2,), 40), ((), (), 16), ((), (3, 4), 17), ((1, 2, 3), (), 9), ((1,), (2,), 5000)]
)
def test_rows_equal_those_of_literal_code(before: tuple[int, ...], after: tuple[int, ...], window: int) -> None:
    tested, texts = indexer(before, after, window), sentences()
    each_word = [[tested.tokenize([[word]])[0][0].tolist() for word in sentence.words] for sentence in texts]
    expected = [literal(tested.settings, subwords) for subwords in each_word]
    assert max(len(rows) for rows, *_ in expected) > 1 or window == 5000
    prepared = tested.prepare(texts)
    assert [lists(item) for item in prepared] == expected
    assert [lists(item) for text in texts for item in tested.prepare([text])] == expected
    assert tested.prepare([]) == []
    assert [tested.cost(item) for item in prepared] == [sum(map(len, rows)) for rows, *_ in expected]
