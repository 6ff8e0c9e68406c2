"""Prediction of long sentences in windows."""

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
    """Predict all prefixes of capitalised runs, and relations to those that follow within five words."""
    words, predicted = sentence.words, []
    start = 0
    while start < len(words):
        end = start
        while end < len(words) and words[end][0].isupper():
            end += 1
            predicted.append(Entity("X", (Span(start, end),), 0.5))
        start = max(end, start + 1)
    predicted.sort(key=text_order)
    near = [
        Relation("R", a, b)
        for a, one in enumerate(predicted)
        for b in range(a + 1, min(a + 20, len(predicted)))
        if 0 <= predicted[b].range.start - one.range.end < 5
    ]
    return replace(sentence, entities=tuple(predicted), relations=tuple(near))


def predict(stream: Iterator[Sentence]) -> Iterator[Sentence]:
    return map(capitals, stream)


def text(length: int, seed: int, share: float = 0.3) -> Sentence:
    choose = random.Random(seed)
    return Sentence(
        f"s{seed}", tuple("Up" if choose.random() < share else "down" for _ in range(length)), document="d", position=1
    )


@pytest.mark.parametrize("length", [1, MAX_WORDS, MAX_WORDS + 1, 2 * MAX_WORDS, 5000])
def test_windows_cover_all_words_and_overlap(length: int) -> None:
    ranges = window_ranges(length)
    assert ranges[0].start == 0
    assert ranges[-1].end == length
    assert all(0 < window.width <= MAX_WORDS for window in ranges)
    assert all(one.end - other.start == OVERLAP for one, other in pairwise(ranges))


def test_window_predictions_equal_sentence_predictions() -> None:
    some = [
        text(3, 0),
        text(MAX_WORDS, 1),
        text(MAX_WORDS + 1, 2),
        text(3000, 3),
        text(20_000, 4),
        Sentence("empty", ()),
        text(700, 5),
    ]
    predicted = list(predict_in_windows(some, predict))
    for result, sentence in zip(predicted, some, strict=True):
        expected = capitals(sentence)
        assert result.entities == expected.entities
        assert replace(result, entities=(), relations=()) == sentence
        # Only relations across a boundary between windows are lost; none are added.
        relations = {(r.head, r.tail) for r in result.relations}
        all_relations = {(r.head, r.tail) for r in expected.relations}
        assert relations <= all_relations
        assert len(all_relations - relations) <= 60 * (len(window_ranges(len(sentence.words))) - 1)
        assert len(relations) == len(result.relations)


def test_entity_wider_than_the_overlap_is_not_split() -> None:
    words = ("down",) * 300 + ("Up",) * 400 + ("down",) * 100
    (predicted,) = predict_in_windows([Sentence("s", words)], lambda stream: map(capitalised_range, stream))
    # 400 words are wider than the overlap: both windows see a part, which crosses the boundary and is dropped.
    assert predicted.entities == ()


def capitalised_range(sentence: Sentence) -> Sentence:
    positions = [index for index, word in enumerate(sentence.words) if word == "Up"]
    return replace(sentence, entities=(Entity("X", (Span(positions[0], positions[-1] + 1),)),) if positions else ())


def test_an_improbable_entity_that_covers_the_overlap_removes_no_others() -> None:
    sentence = text(MAX_WORDS + 100, 0)
    ranges = window_ranges(len(sentence.words))
    middle = (ranges[1].start + ranges[0].end) // 2
    small = Entity("X", (Span(middle - 1, middle + 1),), 0.9)
    wide = Entity("X", (Span(ranges[1].start - 20, ranges[0].end + 20),), 0.03)

    def inside(window: Span) -> Sentence:
        """The predictions of a window; the wide entity is cut at its edges."""
        spans = [Span(max(e.range.start, window.start), min(e.range.end, window.end)) for e in (wide, small)]
        entities = (
            Entity("X", (Span(start - window.start, end - window.start),), e.score)
            for (start, end), e in zip(spans, (wide, small), strict=True)
        )
        return Sentence("window", sentence.words[window.start : window.end], tuple(entities))

    joined = join_windows(sentence, ranges, [inside(window) for window in ranges])
    assert joined.entities == (small,)


def test_boundaries_cross_no_entity() -> None:
    ranges = [Span(0, 8), Span(4, 12)]  # the words 4 to 7 are in both

    def window(*entities: tuple[int, int], relations: Sequence[Relation] = ()) -> Sentence:
        return Sentence("p", tuple("abcdefgh"), tuple(Entity("X", (span,)) for span in entities), tuple(relations))

    sentence = Sentence("s", tuple("abcdefghijkl"))
    left = window((0, 2), (5, 8), relations=[Relation("R", 0, 1)])
    right = window((0, 1), (1, 4), (6, 8), relations=[Relation("R", 1, 2)])
    predicted = join_windows(sentence, ranges, [left, right])
    # 6 and 7 are inside [5, 8), an entity of both; 5 is the free position closest to the middle.
    assert [entity.range for entity in predicted.entities] == [Span(0, 2), Span(5, 8), Span(10, 12)]
    assert predicted.relations == (Relation("R", 1, 2),)
    crossing = window((4, 8)), window((0, 1), (0, 4))  # in the sentence [4, 8), and [4, 5) and [4, 8): 4 is free
    assert [entity.range for entity in join_windows(sentence, ranges, crossing).entities] == [Span(4, 5), Span(4, 8)]


def test_long_sentences_are_never_predicted_at_once() -> None:
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


def test_windows_have_parts_of_speech() -> None:
    sentence = replace(text(MAX_WORDS + 50, 3), pos=tuple(str(index) for index in range(MAX_WORDS + 50)))
    assert [window.pos for window in split_into_windows(sentence)] == [
        sentence.pos[a:b] for a, b in window_ranges(MAX_WORDS + 50)
    ]
    assert split_into_windows(text(MAX_WORDS, 3)) == [text(MAX_WORDS, 3)]
