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
from spanwise.encoders.transformer_settings import TransformerSettings

CAPACITY = WINDOW - 2  # subwords in a window without [CLS] and [SEP]


def document(lengths: list[int], name: str = "d") -> list[Sentence]:
    choose = random.Random(len(lengths))
    return [
        Sentence(f"{name}-{position}", tuple(choose.choices(FILLERS, k=length)), document=name, position=position)
        for position, length in enumerate(lengths)
    ]


def row_words(encoder: TransformerEncoder, prepared: Subwords) -> list[str]:
    """The words of a row without special tokens. Every filler is one subword."""
    words: list[str] = encoder.tokenizer.convert_ids_to_tokens(prepared.rows[0])[1:-1]
    return words


def test_context_fills_the_window_evenly(tiny_bert: Path) -> None:
    encoder = transformer(tiny_bert, context="document")
    text = document([10] * 12)
    words = [word for sentence in text for word in sentence.words]
    prepared = encoder.prepare(text)
    assert row_words(encoder, prepared[0]) == words[:CAPACITY]
    assert row_words(encoder, prepared[11]) == words[-CAPACITY:]
    assert row_words(encoder, prepared[1]) == words[:CAPACITY]  # space that is free on the left is used on the right
    assert row_words(encoder, prepared[6]) == words[60 - 26 : 70 + 26]
    for index, item in enumerate(prepared):
        assert len(item.rows) == 1
        ids = item.rows[0][item.column]
        assert encoder.tokenizer.convert_ids_to_tokens(ids) == list(text[index].words)


def test_states_cover_only_the_words_of_the_sentence(tiny_bert: Path) -> None:
    encoder = transformer(tiny_bert, context="document")
    text = document([3, 7, 5])
    states = encoded(encoder, encoder.prepare(text))
    assert states.mask.sum(1).tolist() == [3, 7, 5]
    alone = encoded(transformer(tiny_bert), transformer(tiny_bert).prepare(text))
    assert not torch.allclose(states.words[1], alone.words[1], atol=1e-2)  # but the context is used


def test_context_from_another_split(tiny_bert: Path) -> None:
    encoder = transformer(tiny_bert, context="document")
    text = document([6, 8, 4, 9, 5])
    together = encoder.prepare(text)
    for chosen in ([0, 2], [1, 3, 4], [2]):
        some = [text[n] for n in chosen]
        separate = encoder.prepare(some, [*document([5, 5], "other"), *reversed(text)])
        for item, n in zip(separate, chosen, strict=True):
            assert item.rows[0].tolist() == together[n].rows[0].tolist()
            assert item.column.tolist() == together[n].column.tolist()


def test_a_sentence_is_not_its_own_context(tiny_bert: Path) -> None:
    encoder = transformer(tiny_bert, context="document")
    text = document([6, 8, 4])
    copies = [replace(sentence, entities=(Entity("X", ((0, 1),)),)) for sentence in text]
    for one, other in zip(encoder.prepare(text), encoder.prepare(text, [*copies, *text, *copies]), strict=True):
        assert one.rows[0].tolist() == other.rows[0].tolist()


def test_documents_of_the_same_name_are_separate(tiny_bert: Path) -> None:
    encoder = transformer(tiny_bert, context="document")
    text, other = document([6, 8, 4]), document([5, 7, 3, 9, 6])
    expected = [[row_words(encoder, item) for item in encoder.prepare(sentences)] for sentences in (text, other)]
    assert [row_words(encoder, item) for item in encoder.prepare(text, [*text, *other])] == expected[0]
    assert [row_words(encoder, item) for item in encoder.prepare(other, [*text, *other])] == expected[1]
    assert [row_words(encoder, item) for item in encoder.prepare([*text, *other])] == [*expected[0], *expected[1]]
    assert [row_words(encoder, item) for item in encoder.prepare([*text, *text])] == [*expected[0], *expected[0]]


def test_context_of_a_document_with_words_that_were_split_differently(tiny_bert: Path) -> None:
    encoder = transformer(tiny_bert, context="document")
    text = document([6, 8, 4, 9])
    again = [*text[:2], Sentence("d-2", text[2].words[1:], document="d", position=2), text[3]]
    expected = [row_words(encoder, item) for item in encoder.prepare(text)[:3]]
    assert [row_words(encoder, item) for item in encoder.prepare(text[:3], again)] == expected


def test_labels_do_not_change_the_context(tiny_bert: Path) -> None:
    encoder = transformer(tiny_bert, context="document")
    text = document([6, 8, 4])
    labelled = [replace(sentence, entities=(Entity("X", ((0, 3),)),)) for sentence in text]
    for one, other in zip(encoder.prepare(text), encoder.prepare(labelled), strict=True):
        assert one.rows[0].tolist() == other.rows[0].tolist()


def test_sentences_without_a_position_have_no_context(tiny_bert: Path) -> None:
    encoder = transformer(tiny_bert, context="document")
    text = document([6, 8, 4])
    unplaced = [replace(text[0], document=None), replace(text[1], position=None), text[2]]
    prepared = encoder.prepare(unplaced, [replace(text[0], position=None)])
    assert [len(item.rows[0]) - 2 for item in prepared] == [6, 8, 4]


def test_training_data_without_documents_is_reported(tiny_bert: Path) -> None:
    text = document([6, 8])
    for sentences, count in ((text, 0), ([replace(sentence, position=None) for sentence in text], 1), ([], 0)):
        for context, expected in (("document", count), ("sentence", 0)):
            lines: list[str] = []
            TransformerEncoder.build(TransformerSettings(name=str(tiny_bert), context=context), sentences, lines.append)
            assert len(lines) == expected
            assert all(line.startswith("note: encoder.context=document has no effect") for line in lines)


def test_a_long_sentence_of_a_document_is_split_into_windows(tiny_bert: Path) -> None:
    encoder = transformer(tiny_bert, context="document")
    text = document([6, 200, 4])
    prepared = encoder.prepare(text)
    assert [row.tolist() for row in prepared[1].rows] == [row.tolist() for row in transformer(tiny_bert).prepare(text)[1].rows]
    assert len(prepared[0].rows[0]) == WINDOW  # long context is truncated, a sentence never is
