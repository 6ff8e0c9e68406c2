"""Document context."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import torch
from tiny import FILLERS, WINDOW, encoded, transformer

from spanwise import Entity, Sentence
from spanwise.encoders.subwords import Subwords
from spanwise.encoders.transformer import TransformerEncoder

CAPACITY = WINDOW - 2  # subwords in a window besides [CLS] and [SEP]


def document(lengths: list[int], name: str = "d") -> list[Sentence]:
    choose = random.Random(len(lengths))
    return [
        Sentence(f"{name}-{position}", tuple(choose.choices(FILLERS, k=length)), document=name, position=position)
        for position, length in enumerate(lengths)
    ]


def read_by(encoder: TransformerEncoder, prepared: Subwords) -> list[str]:
    """The words of a row, special tokens left out. (Fillers are a subword each.)"""
    words: list[str] = encoder.tokenizer.convert_ids_to_tokens(prepared.rows[0])[1:-1]
    return words


def test_neighbours_fill_the_window_evenly(tiny_bert: Path) -> None:
    encoder = transformer(tiny_bert, context="document")
    text = document([10] * 12)
    words = [word for sentence in text for word in sentence.words]
    prepared = encoder.prepare(text)
    assert read_by(encoder, prepared[0]) == words[:CAPACITY]
    assert read_by(encoder, prepared[11]) == words[-CAPACITY:]
    assert read_by(encoder, prepared[1]) == words[:CAPACITY]  # what the left side leaves free goes to the right
    assert read_by(encoder, prepared[6]) == words[60 - 26 : 70 + 26]
    for number, item in enumerate(prepared):
        assert len(item.rows) == 1
        own = item.rows[0][item.place]
        assert encoder.tokenizer.convert_ids_to_tokens(own) == list(text[number].words)


def test_only_the_own_words_of_a_sentence_are_scored(tiny_bert: Path) -> None:
    encoder = transformer(tiny_bert, context="document")
    text = document([3, 7, 5])
    states = encoded(encoder, encoder.prepare(text))
    assert states.mask.sum(1).tolist() == [3, 7, 5]
    alone = encoded(transformer(tiny_bert), transformer(tiny_bert).prepare(text))
    assert not torch.allclose(states.words[1], alone.words[1], atol=1e-2)  # but the neighbours are seen


def test_context_may_come_from_another_split(tiny_bert: Path) -> None:
    encoder = transformer(tiny_bert, context="document")
    text = document([6, 8, 4, 9, 5])
    together = encoder.prepare(text)
    for chosen in ([0, 2], [1, 3, 4], [2]):
        some = [text[n] for n in chosen]
        apart = encoder.prepare(some, [*document([5, 5], "other"), *reversed(text)])
        for item, n in zip(apart, chosen, strict=True):
            assert item.rows[0].tolist() == together[n].rows[0].tolist()
            assert item.place.tolist() == together[n].place.tolist()


def test_a_sentence_is_not_its_own_neighbour(tiny_bert: Path) -> None:
    encoder = transformer(tiny_bert, context="document")
    text = document([6, 8, 4])
    copies = [replace(sentence, entities=(Entity("X", ((0, 1),)),)) for sentence in text]
    for one, other in zip(encoder.prepare(text), encoder.prepare(text, [*copies, *text, *copies]), strict=True):
        assert one.rows[0].tolist() == other.rows[0].tolist()


def test_labels_are_no_part_of_the_context(tiny_bert: Path) -> None:
    encoder = transformer(tiny_bert, context="document")
    text = document([6, 8, 4])
    labelled = [replace(sentence, entities=(Entity("X", ((0, 3),)),)) for sentence in text]
    for one, other in zip(encoder.prepare(text), encoder.prepare(labelled), strict=True):
        assert one.rows[0].tolist() == other.rows[0].tolist()


def test_sentences_without_a_place_have_no_neighbours(tiny_bert: Path) -> None:
    encoder = transformer(tiny_bert, context="document")
    text = document([6, 8, 4])
    lost = [replace(text[0], document=None), replace(text[1], position=None), text[2]]
    prepared = encoder.prepare(lost, [replace(text[0], position=None)])
    assert [len(item.rows[0]) - 2 for item in prepared] == [6, 8, 4]


def test_a_long_sentence_of_a_document_is_read_in_windows(tiny_bert: Path) -> None:
    encoder = transformer(tiny_bert, context="document")
    text = document([6, 200, 4])
    prepared = encoder.prepare(text)
    assert [row.tolist() for row in prepared[1].rows] == [row.tolist() for row in transformer(tiny_bert).prepare(text)[1].rows]
    assert len(prepared[0].rows[0]) == WINDOW  # a long neighbour is cut, a sentence never
