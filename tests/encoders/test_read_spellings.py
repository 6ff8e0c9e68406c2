"""In prediction, each spelling is read once for all batches."""

from __future__ import annotations

import random

import pytest
import torch
from torch import Tensor

from spanwise import Sentence
from spanwise.encoders import read_spellings
from spanwise.encoders.base import TokenStates
from spanwise.encoders.concat import ConcatEncoder, ConcatSettings
from spanwise.encoders.static import StaticEncoder, StaticSettings

WORDS = (*"Colon cancer of the APC gene , adenomatous polyposis coli Ω Ж x".split(), "y" * 40, "🧬")


def sentences(seed: int = 1) -> list[Sentence]:
    choose = random.Random(seed)
    texts = ((), *(tuple(choose.choices(WORDS, k=choose.randint(1, 9))) for _ in range(20)))
    return [Sentence(str(number), words) for number, words in enumerate(texts)]


def built(reader: str) -> StaticEncoder:
    torch.manual_seed(0)
    settings = StaticSettings(word_size=6, char_size=4, char_hidden=3, hidden=5, char_reader=reader)  # type: ignore[arg-type]
    return StaticEncoder.build(settings, sentences()).eval()


def words(states: TokenStates) -> Tensor:
    """The states of words, without those of padding, which are undefined."""
    return states.words * states.mask.unsqueeze(2)


@pytest.mark.parametrize("reader", ["lstm", "cnn"])
@pytest.mark.parametrize("rows", [3, 1024])
@torch.inference_mode()
def test_states_stay_the_same(reader: str, rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read_spellings, "ROWS", rows)
    encoder, texts = built(reader), sentences(2)
    prepared, other = encoder.prepare(texts), encoder.prepare(texts[:4])
    read: list[Tensor] = []
    assert encoder.characters is not None
    encoder.characters.register_forward_pre_hook(lambda module, tables: read.extend(tables))
    for batch in ([0], [0, 1, 2], [*range(len(texts))], [7, 3]):
        items = [prepared[n] for n in batch]
        expected = encoder(encoder.collate(items))
        read.clear()
        with encoder.shared_work(prepared):
            assert sum(map(len, read)) == len({word for text in texts for word in text.words})
            states = encoder(encoder.collate(items))
            assert sum(map(len, read)) == len({word for text in texts for word in text.words})
        assert torch.equal(states.mask, expected.mask)
        torch.testing.assert_close(words(states), words(expected), atol=1e-6, rtol=0)
        torch.testing.assert_close(states.cls, expected.cls, atol=1e-6, rtol=0)
    with encoder.shared_work(prepared):  # sentences of another call are read as usual
        inputs = encoder.collate([*other, *prepared])
        assert "short" in inputs
        expected = encoder(encoder.collate(prepared))
        torch.testing.assert_close(words(encoder(inputs))[4:], words(expected), atol=1e-6, rtol=0)
    assert "short" in encoder.collate(prepared)


@torch.inference_mode()
def test_sentences_without_common_spellings() -> None:
    encoder = built("cnn")
    empty = encoder.prepare([Sentence("a", ()), Sentence("b", ())])
    for prepared in ([], empty, [*encoder.prepare(sentences()), *empty]):
        with encoder.shared_work(prepared):
            assert not prepared or "short" in encoder.collate(prepared)


@torch.inference_mode()
def test_parts_of_a_concatenation() -> None:
    encoder = ConcatEncoder(ConcatSettings(parts=({}, {})), [built("lstm"), built("cnn")]).eval()
    prepared = encoder.prepare(sentences(3))
    expected = words(encoder(encoder.collate(prepared)))
    with encoder.shared_work(prepared):
        inputs = encoder.collate(prepared)
        names = ("mask", "words", "spelling", "spelling_vectors")
        assert set(inputs) == {"mask", *(f"{part}.{name}" for part in (0, 1) for name in names)}
        torch.testing.assert_close(words(encoder(inputs)), expected, atol=1e-6, rtol=0)
    with encoder.shared_work([]):
        pass
    torch.testing.assert_close(words(encoder(inputs)), expected, atol=1e-6, rtol=0)  # independent of the encoder's state
    assert "1.short" in encoder.collate(prepared)
