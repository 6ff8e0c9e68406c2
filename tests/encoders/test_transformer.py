"""The transformer encoder: words from subwords, batches, windows."""

from __future__ import annotations

import random
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from pydantic import ValidationError
from tiny import DEEP_WORD, FILLERS, LONG, WINDOW, assert_close, encoded, mixed_sentences, sentences, transformer
from torch import Tensor

from spanwise import Sentence, SpanwiseError
from spanwise.encoders.subword_layout import longest_input
from spanwise.encoders.subwords import DEEP, Subwords
from spanwise.encoders.transformer import TransformerEncoder
from spanwise.encoders.transformer_settings import TransformerSettings
from spanwise.encoders.windows import windows

CAPACITY = WINDOW - 2  # subwords in a window without [CLS] and [SEP]
MIXED = mixed_sentences()


# --- words from subwords ----------------------------------------------------------------------------------------------


@torch.no_grad()
def reference_states(encoder: TransformerEncoder, prepared: Subwords, pooling: str, layers: int) -> list[Tensor]:
    """The word states of a sentence, computed row by row and word by word."""
    rows = []
    for row in prepared.rows:
        output = encoder.model(input_ids=torch.from_numpy(row)[None], output_hidden_states=True)
        rows.append(sum(output.hidden_states[-layers:])[0] / layers)
    words, start = [], 0
    for count in prepared.counts:
        subwords = torch.stack([rows[prepared.row[n]][prepared.column[n]] for n in range(start, start + count)])
        words.append({"first": subwords[0], "max": subwords.amax(0), "mean": subwords.mean(0)}[pooling])
        start += int(count)
    return words


@pytest.mark.parametrize("layers", [1, 3])
@pytest.mark.parametrize("pooling", ["first", "max", "mean"])
def test_words_are_pooled_from_their_subwords(tiny_bert: Path, pooling: str, layers: int) -> None:
    encoder = transformer(tiny_bert, pooling=pooling, layers=layers)
    prepared = encoder.prepare(MIXED)
    states = encoded(encoder, prepared)
    assert states.mask.sum(1).tolist() == [len(sentence.words) for sentence in MIXED]
    for row, item in enumerate(prepared):
        for word, state in enumerate(reference_states(encoder, item, pooling, layers)):
            assert_close(states.words[row, word], state)
        assert len(item.counts) == len(MIXED[row].words)


def test_the_sentence_state_is_the_state_of_the_first_token(tiny_bert: Path) -> None:
    encoder = transformer(tiny_bert)
    prepared = encoder.prepare(MIXED)
    states = encoded(encoder, prepared)
    for row, item in enumerate(prepared):
        with torch.no_grad():
            assert_close(states.cls[row], encoder.model(input_ids=torch.from_numpy(item.rows[0])[None]).last_hidden_state[0, 0])


def test_words_of_many_subwords_have_their_own_table(tiny_bert: Path) -> None:
    encoder = transformer(tiny_bert)
    inputs = encoder.collate(encoder.prepare(MIXED))
    assert inputs["several"].shape[1] <= DEEP
    assert inputs["deep"].shape == (2, 30)


def test_gradients_reach_every_subword(tiny_bert: Path) -> None:
    encoder = transformer(tiny_bert, pooling="mean")
    prepared = encoder.prepare([DEEP_WORD, *sentences(2)])
    encoder(encoder.collate(prepared)).words[0, 1].sum().backward()
    table = encoder.model.embeddings.word_embeddings.weight.grad
    assert (table[prepared[0].rows[0]] != 0).any(1).all()


# --- batches ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("context", ["sentence", "document"])
@pytest.mark.parametrize("pooling", ["first", "max", "mean"])
@pytest.mark.parametrize("layers", [1, 3])
def test_a_sentence_has_the_same_states_alone_and_in_any_batch(
    tiny_bert: Path, context: str, pooling: str, layers: int
) -> None:
    encoder = transformer(tiny_bert, context=context, pooling=pooling, layers=layers)
    prepared = encoder.prepare(MIXED)
    alone = [encoded(encoder, [item]) for item in prepared]
    for size in (2, 5, len(MIXED)):
        order = random.Random(size).sample(range(len(MIXED)), len(MIXED))
        for batch in (order[start : start + size] for start in range(0, len(order), size)):
            states = encoded(encoder, [prepared[n] for n in batch])
            for row, n in enumerate(batch):
                length = len(MIXED[n].words)
                assert_close(states.words[row, :length], alone[n].words[0, :length])
                assert_close(states.cls[row], alone[n].cls[0])
                assert states.mask[row].sum() == length


def test_reading_rows_in_parts_gives_the_same_states(tiny_bert: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    encoder = transformer(tiny_bert)
    prepared = encoder.prepare(MIXED)
    whole = encoded(encoder, prepared)
    length = encoder.collate(prepared)["ids"].shape[1]
    for size in (3 * length, 1):  # three rows, or one row that is longer than the limit
        monkeypatch.setattr("spanwise.encoders.transformer.SUBWORDS", size)
        parts = encoded(encoder, prepared)
        assert_close(parts.words[whole.mask], whole.words[whole.mask])
        assert_close(parts.cls, whole.cls)


def test_states_are_the_same_if_the_host_never_waits(tiny_bert: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    encoder = transformer(tiny_bert)
    inputs = encoder.collate(encoder.prepare(MIXED))
    with torch.no_grad():
        expected = encoder(inputs)
        encoder.avoid_waiting()
        with monkeypatch.context() as patch:
            patch.setattr(torch.Tensor, "__bool__", lambda tensor: pytest.fail("the host waits for a value"))
            actual = encoder(inputs)
    assert_close(actual.words[inputs["mask"]], expected.words[inputs["mask"]])
    assert_close(actual.cls, expected.cls)


def test_a_batch_of_sentences_without_words(tiny_bert: Path) -> None:
    encoder = transformer(tiny_bert)
    states = encoded(encoder, encoder.prepare([Sentence("a", ()), Sentence("b", ())]))
    assert not states.mask.any()
    assert states.words.shape[:2] == (2, 1)
    assert torch.isfinite(states.cls).all()
    assert encoder.prepare([]) == []


# --- windows ----------------------------------------------------------------------------------------------------------


def test_a_text_of_four_windows_is_not_truncated(tiny_bert: Path) -> None:
    text = Sentence("text", tuple(random.Random(4).choices(FILLERS, k=4 * WINDOW)))  # a subword each
    encoder = transformer(tiny_bert)
    (prepared,) = encoder.prepare([text])
    states = encoded(encoder, [prepared])
    assert states.mask.all()
    assert states.mask.shape == (1, 4 * WINDOW)
    starts, window, position = windows(4 * WINDOW, CAPACITY, CAPACITY // 4)
    assert len(starts) == len(prepared.rows) == 6
    for index, start in enumerate(starts.tolist()):
        part = Sentence("part", text.words[start : start + CAPACITY])
        expected = encoded(encoder, encoder.prepare([part])).words[0]
        items = np.flatnonzero(window == index)
        assert len(items)
        assert_close(states.words[0, items], expected[position[items]])
    again = encoded(transformer(tiny_bert), transformer(tiny_bert).prepare([text]))
    assert torch.equal(again.words, states.words)


def test_every_item_has_half_the_overlap_as_context() -> None:
    for length in (63, 100, 250, 1000):
        starts, window, position = windows(length, CAPACITY, CAPACITY // 4)
        assert (starts[window] + position == np.arange(length)).all()
        margin = CAPACITY // 4 // 2
        inner = (np.arange(length) >= margin) & (np.arange(length) < length - margin)
        assert (position[inner] >= margin).all()
        assert (CAPACITY - 1 - position[inner] >= margin).all()
        assert starts[0] == 0
        assert starts[-1] + CAPACITY == length
        assert (np.diff(starts) > 0).all()


def test_the_window_setting_limits_rows(tiny_bert: Path) -> None:
    encoder = transformer(tiny_bert, window=20)
    rows = [row for item in encoder.prepare(MIXED) for row in item.rows]
    assert max(map(len, rows)) == 20
    assert transformer(tiny_bert, window=4096).indexer.settings.window == WINDOW
    with pytest.raises(ValidationError):
        TransformerSettings(name="x", window=8)


@pytest.mark.parametrize("pooling", ["first", "max", "mean"])
def test_one_word_longer_than_the_window(tiny_bert: Path, pooling: str) -> None:
    encoder = transformer(tiny_bert, pooling=pooling)
    (prepared,) = encoder.prepare([Sentence("s", ("the", "-" * 300, "a"))])
    assert prepared.counts.tolist() == [1, 300, 1]
    assert len(prepared.rows) > 4
    states = encoded(encoder, [prepared])
    for word, state in enumerate(reference_states(encoder, prepared, pooling, 1)):
        assert_close(states.words[0, word], state)


def test_the_limit_of_models_that_number_positions_from_the_padding_index(tiny_roberta: Path) -> None:
    encoder = transformer(tiny_roberta)
    assert encoder.indexer.settings.window == WINDOW
    encoder.tokenizer.model_max_length = 10**6
    assert longest_input(encoder.model, encoder.tokenizer) == WINDOW
    encoder.model.config.max_position_embeddings = -1  # means no limit in some models
    assert longest_input(encoder.model, encoder.tokenizer) == 10**6
    states = encoded(encoder, encoder.prepare([LONG]))
    assert torch.isfinite(states.words).all()


# --- freezing and saving ----------------------------------------------------------------------------------------------


def test_frozen_embeddings_and_layers(tiny_bert: Path) -> None:
    def trained_modules(**values: Any) -> set[str]:
        named = transformer(tiny_bert, **values).model.named_parameters()
        return {".".join(name.split(".")[:3]) for name, parameter in named if parameter.requires_grad}

    assert trained_modules(frozen_layers=2) == {"encoder.layer.2"}
    assert {f"encoder.layer.{n}" for n in range(3)} == trained_modules(frozen_embeddings=True)
    assert len(trained_modules()) > 3
    with pytest.raises(SpanwiseError, match="frozen_layers=4, but the encoder has 3 layers"):
        transformer(tiny_bert, frozen_layers=4)
    with pytest.raises(SpanwiseError, match="layers=4, but the encoder has 3 layers"):
        transformer(tiny_bert, layers=4)


def test_a_saved_encoder_gives_the_same_states(tiny_bert: Path, tmp_path: Path) -> None:
    source = tmp_path / "source"
    shutil.copytree(tiny_bert, source)
    encoder = transformer(source, pooling="mean")
    run = tmp_path / "run"
    run.mkdir()
    encoder.save(run)
    shutil.rmtree(source)
    again = TransformerEncoder.load(encoder.settings, run).eval()
    again.load_state_dict(encoder.state_dict())
    prepared = encoder.prepare(MIXED)
    for one, other in zip(prepared, again.prepare(MIXED), strict=True):
        assert [row.tolist() for row in one.rows] == [row.tolist() for row in other.rows]
    assert torch.equal(encoded(encoder, prepared).words, encoded(again, prepared).words)


def test_training_masks_a_share_of_the_subwords(tiny_bert: Path) -> None:
    encoder = transformer(tiny_bert, masking=0.3)
    ids = encoder.collate(encoder.prepare(sentences(200)))["ids"]
    assert torch.equal(encoder._mask_subwords(ids), ids)  # only in training
    encoder.train()
    torch.manual_seed(0)
    masked = encoder._mask_subwords(ids)
    changed = masked != ids
    assert set(masked[changed].tolist()) == {encoder.tokenizer.mask_token_id}
    special = torch.isin(ids, torch.tensor(encoder.tokenizer.all_special_ids))
    assert not changed[special].any()
    assert float(changed[~special].float().mean()) == pytest.approx(0.3, abs=0.03)
