"""Encoders for prediction without the transformers library: the same numbers, and the library for everything else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from tiny import assert_close, encoded, mixed_sentences, model, transformer

from spanwise.encoders.prediction_bert import PredictionBert, read_bert_config
from spanwise.encoders.prediction_tokenizer import PredictionTokenizer, read_prediction_tokenizer
from spanwise.encoders.transformer import TransformerEncoder
from spanwise.prediction.load import load, load_torch
from spanwise.runtime import cpu_linear
from spanwise.runtime.cpu_linear import use_cpu_linear

MIXED = mixed_sentences()


def saved(source: Path, folder: Path) -> TransformerEncoder:
    """Write the files of an encoder as in a run folder."""
    encoder = transformer(source)
    folder.mkdir()
    encoder.save(folder)
    return encoder


def for_prediction(encoder: TransformerEncoder, folder: Path) -> TransformerEncoder:
    loaded = TransformerEncoder.load_for_prediction(encoder.settings, folder)
    loaded.load_state_dict(encoder.state_dict())
    return loaded.eval()


@pytest.fixture
def without_onednn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compute all products with PyTorch, as the library does."""
    monkeypatch.setattr(cpu_linear, "has_onednn", lambda: False)


@pytest.mark.usefixtures("without_onednn")
@pytest.mark.parametrize("source", ["tiny_bert", "tiny_roberta"])
@pytest.mark.parametrize("layers", [0, 2])
def test_states_are_those_of_the_library(request: pytest.FixtureRequest, tmp_path: Path, source: str, layers: int) -> None:
    encoder = saved(request.getfixturevalue(source), tmp_path / "run")
    fast = for_prediction(encoder, tmp_path / "run")
    assert isinstance(fast.model, PredictionBert)
    assert isinstance(fast.tokenizer, PredictionTokenizer)
    assert fast.indexer.settings == encoder.indexer.settings
    assert fast.indexer.tokenize.unknown_id == encoder.indexer.tokenize.unknown_id
    assert (fast._mask_id, fast._special_ids) == (encoder._mask_id, encoder._special_ids)
    for some in (MIXED[:1], MIXED):  # without padding, and with it
        for one in (encoder, fast):
            one.lower_layers = layers
        expected, actual = (encoded(one, one.prepare(some)) for one in (encoder, fast))
        assert torch.equal(actual.words[actual.mask], expected.words[expected.mask])
        assert torch.equal(actual.cls, expected.cls)
        assert len(actual.layers) == layers
        for lower, expected_lower in zip(actual.layers, expected.layers, strict=True):
            assert torch.equal(lower[actual.mask], expected_lower[expected.mask])


@torch.no_grad()
@pytest.mark.parametrize("source", ["tiny_bert", "tiny_roberta"])
def test_states_of_large_batches(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str
) -> None:  # fmt: skip
    """oneDNN computes their products, with other last digits on some processors."""
    encoder = saved(request.getfixturevalue(source), tmp_path / "run")
    fast = for_prediction(encoder, tmp_path / "run")
    use_cpu_linear(fast)
    monkeypatch.setattr(cpu_linear, "MIN_ROWS", 1)
    expected, actual = (encoded(one, one.prepare(MIXED)) for one in (encoder, fast))
    assert_close(actual.words[actual.mask], expected.words[expected.mask])
    assert_close(actual.cls, expected.cls)


@pytest.mark.usefixtures("without_onednn")
def test_full_masks_are_those_of_the_library(tiny_bert: Path, tmp_path: Path) -> None:
    encoder = saved(tiny_bert, tmp_path / "run")
    fast = for_prediction(encoder, tmp_path / "run")
    inputs = encoder.collate(encoder.prepare(MIXED))
    with torch.no_grad():
        expected, actual = (one._read_recordable(inputs["ids"], inputs["seen"]) for one in (encoder, fast))
    assert torch.equal(actual[inputs["seen"]], expected[inputs["seen"]])


def test_saving_again_writes_the_same_files(tiny_bert: Path, tmp_path: Path) -> None:
    fast = for_prediction(saved(tiny_bert, tmp_path / "run"), tmp_path / "run")
    (tmp_path / "copy").mkdir()
    fast.save(tmp_path / "copy")
    for file in (tmp_path / "run").iterdir():
        assert (tmp_path / "copy" / file.name).read_bytes() == file.read_bytes()


def change(path: Path, **values: Any) -> None:
    content = json.loads(path.read_text())
    path.write_text(json.dumps({key: value for key, value in (content | values).items() if value is not None}))


def test_the_library_loads_all_other_configurations(tiny_bert: Path, tmp_path: Path) -> None:
    encoder = saved(tiny_bert, tmp_path / "run")
    file = tmp_path / "run" / "config.json"
    content = file.read_text()
    for values in (
        {"hidden_act": "relu"}, {"model_type": "electra"}, {"auto_map": {"AutoModel": "code.Model"}}, {"is_decoder": True},
        {"attn_implementation": "eager"}, {"chunk_size_feed_forward": 4}, {"num_attention_heads": 5}, {"pad_token_id": None},
        {"type_vocab_size": 0}, {"pad_token_id": 10**6}, {"hidden_size": "32"},
    ):  # fmt: skip
        file.write_text(content)
        assert read_bert_config(file.parent) is not None
        change(file, **values)
        assert read_bert_config(file.parent) is None, values
    file.write_text(content)
    change(file, hidden_act="relu")
    loaded = TransformerEncoder.load_for_prediction(encoder.settings, file.parent)
    assert type(loaded.model).__name__ == "BertModel"


def test_the_library_loads_all_other_tokenizers(tiny_bert: Path, tmp_path: Path) -> None:
    encoder = saved(tiny_bert, tmp_path / "run")
    file = tmp_path / "run" / "tokenizer_config.json"
    content = file.read_text()
    for values in (
        {"auto_map": {"AutoTokenizer": ["code.Tokenizer", None]}}, {"tokenizer_class": "OtherTokenizer"}, {"unk_token": None},
        {"pad_token": "unknown"}, {"model_max_length": -1}, {"model_max_length": None},
    ):  # fmt: skip
        file.write_text(content)
        assert read_prediction_tokenizer(file.parent) is not None
        change(file, **values)
        assert read_prediction_tokenizer(file.parent) is None, values
    file.unlink()
    loaded = TransformerEncoder.load_for_prediction(encoder.settings, file.parent)
    assert type(loaded.model).__name__ == "BertModel"


def test_predictions_are_those_of_the_library(tiny_bert: Path, tmp_path: Path) -> None:
    model(tiny_bert, "global-pointer").save(tmp_path / "run")
    fast, slow = load(tmp_path / "run", "cpu"), load_torch(tmp_path / "run", "cpu")
    assert isinstance(fast.model.encoder.model, PredictionBert)  # type: ignore[attr-defined]
    assert type(slow.model.encoder.model).__name__ == "BertModel"  # type: ignore[attr-defined, union-attr]
    predictions = [list(one.stream(MIXED, threshold=0.01)) for one in (fast, slow)]
    assert predictions[0] == predictions[1]
    assert any(sentence.entities for sentence in predictions[0])
