"""Sentences of any length, read in windows."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

import pytest

from spanwise.core.types import Entity, Relation, Sentence, Span
from spanwise.decoding.decode import text_order
from spanwise.prediction.streaming import stream_in_chunks
from spanwise.prediction.windows import (
    MAX_WORDS,
    OVERLAP,
    join_windows,
    predict_in_windows,
    split_into_windows,
    window_ranges,
)


def capitals(sentence: Sentence) -> Sentence:
    """Every run of capitalised words, all prefixes of it, and relations from each to some behind it that begin within five words."""
    words, found = sentence.words, []
    start = 0
    while start < len(words):
        end = start
        while end < len(words) and words[end][0].isupper():
            end += 1
            found.append(Entity("X", (Span(start, end),), 0.5))
        start = max(end, start + 1)
    found.sort(key=text_order)
    near = [
        Relation("R", a, b)
        for a, one in enumerate(found)
        for b in range(a + 1, min(a + 20, len(found)))
        if 0 <= found[b].range.start - one.range.end < 5
    ]
    return replace(sentence, entities=tuple(found), relations=tuple(near))


def predict(stream: Iterator[Sentence]) -> Iterator[Sentence]:
    return map(capitals, stream)


def text(length: int, seed: int, share: float = 0.3) -> Sentence:
    choose = random.Random(seed)
    return Sentence(
        f"s{seed}", tuple("Up" if choose.random() < share else "down" for _ in range(length)), document="d", position=1
    )


@pytest.mark.parametrize("length", [1, MAX_WORDS, MAX_WORDS + 1, 2 * MAX_WORDS, 5000])
def test_windows_cover_all_words_and_share_some(length: int) -> None:
    found = window_ranges(length)
    assert found[0].start == 0
    assert found[-1].end == length
    assert all(0 < window.width <= MAX_WORDS for window in found)
    assert all(one.end - other.start == OVERLAP for one, other in pairwise(found))


def test_what_windows_find_is_what_the_whole_has() -> None:
    some = [
        text(3, 0),
        text(MAX_WORDS, 1),
        text(MAX_WORDS + 1, 2),
        text(3000, 3),
        text(20_000, 4),
        Sentence("empty", ()),
        text(700, 5),
    ]
    found = list(predict_in_windows(some, predict))
    for one, sentence in zip(found, some, strict=True):
        whole = capitals(sentence)
        assert one.entities == whole.entities
        assert replace(one, entities=(), relations=()) == sentence
        # A relation over a border between windows is lost, and nothing else is; none is made up.
        relations = {(r.head, r.tail) for r in one.relations}
        every = {(r.head, r.tail) for r in whole.relations}
        assert relations <= every
        assert len(every - relations) <= 60 * (len(window_ranges(len(sentence.words))) - 1)
        assert len(relations) == len(one.relations)


def test_an_entity_wider_than_what_two_windows_share_is_not_found_in_parts() -> None:
    words = ("down",) * 300 + ("Up",) * 400 + ("down",) * 100
    (found,) = predict_in_windows([Sentence("s", words)], lambda stream: (runs(one) for one in stream))
    # 400 words do not fit into what is shared: what each window saw of them is cut at the border, and dropped there.
    assert found.entities == ()


def runs(sentence: Sentence) -> Sentence:
    places = [number for number, word in enumerate(sentence.words) if word == "Up"]
    return replace(sentence, entities=(Entity("X", (Span(places[0], places[-1] + 1),)),) if places else ())


def test_the_border_lies_where_no_entity_is() -> None:
    ranges = [Span(0, 8), Span(4, 12)]  # both have read the words 4 to 7

    def piece(*entities: tuple[int, int], relations: Sequence[Relation] = ()) -> Sentence:
        return Sentence("p", tuple("abcdefgh"), tuple(Entity("X", (span,)) for span in entities), tuple(relations))

    sentence = Sentence("s", tuple("abcdefghijkl"))
    left = piece((0, 2), (5, 8), relations=[Relation("R", 0, 1)])
    right = piece((0, 1), (1, 4), (6, 8), relations=[Relation("R", 1, 2)])
    found = join_windows(sentence, ranges, [left, right])
    # 6 and 7 are inside [5, 8), which both have; 5 is the nearest place to the middle that is free.
    assert [entity.range for entity in found.entities] == [Span(0, 2), Span(5, 8), Span(10, 12)]
    assert found.relations == (Relation("R", 1, 2),)
    crossing = piece((4, 8)), piece((0, 1), (0, 4))  # [4, 8) and, in words of the sentence, [4, 5) and [4, 8): 4 is free
    assert [entity.range for entity in join_windows(sentence, ranges, crossing).entities] == [Span(4, 5), Span(4, 8)]


def test_memory_for_a_long_sentence_is_that_of_its_windows() -> None:
    seen: list[int] = []

    def predict_chunk(sentences: Sequence[Sentence], context: Sequence[Sentence]) -> list[Sentence]:
        seen.extend(len(sentence.words) for sentence in sentences)
        return [capitals(sentence) for sentence in sentences]

    long = text(9000, 7)
    assert next(stream_in_chunks(predict_chunk, [long])).entities == capitals(long).entities
    assert max(seen) == MAX_WORDS
    seen.clear()
    list(stream_in_chunks(predict_chunk, [long], uses_windows=False))
    assert seen == [9000]


def test_windows_keep_the_parts_of_speech() -> None:
    sentence = replace(text(MAX_WORDS + 50, 3), pos=tuple(str(place) for place in range(MAX_WORDS + 50)))
    assert [piece.pos for piece in split_into_windows(sentence)] == [
        sentence.pos[a:b] for a, b in window_ranges(MAX_WORDS + 50)
    ]
    assert split_into_windows(text(MAX_WORDS, 3)) == [text(MAX_WORDS, 3)]
