"""Tokenizers and architectures: no word is lost, and states do not depend on the batch."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import torch
from tiny import WINDOW, assert_close, encoded, mixed_sentences, sentences, transformer

from spanwise import Sentence
from spanwise.encoders.transformer import TransformerEncoder
from spanwise.encoders.transformer_settings import TransformerSettings

MIXED = mixed_sentences()


@pytest.mark.parametrize("kind", ["published", "prefixed", "unnamed class"])
def test_byte_level_tokenizers_read_words_as_in_running_text(tiny_roberta: Path, tmp_path: Path, kind: str) -> None:
    folder = tmp_path / "model"
    shutil.copytree(tiny_roberta, folder)
    config = json.loads((folder / "tokenizer_config.json").read_text())
    if kind == "prefixed":
        config["add_prefix_space"] = True
    elif kind == "unnamed class":
        config["tokenizer_class"] = "PreTrainedTokenizerFast"
        del config["add_prefix_space"]
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    encoder = transformer(folder)
    for sentence, item in zip(MIXED, encoder.prepare(MIXED), strict=True):
        assert len(item.counts) == len(sentence.words)
        assert (item.counts > 0).all()
        if len(item.rows) == 1:
            assert encoder.tokenizer.decode(item.rows[0][1:-1]) == "".join(f" {word}" for word in sentence.words)
    (item,) = encoder.prepare([Sentence("s", ("oslo", "was", "naïve", "水"))])
    assert encoder.tokenizer.convert_ids_to_tokens(item.rows[0])[1:3] == ["Ġoslo", "Ġwas"]


STRANGE = ("\u200d", "a", "\u200d\u200c", "\u0000", "[SEP]", "水", "\ud800", " ", "🧬" * 3, "\ufeff", "b", "\u00ad")


@pytest.mark.parametrize("model", ["tiny_bert", "tiny_roberta"])
def test_words_without_subwords_are_not_lost(request: pytest.FixtureRequest, model: str) -> None:
    encoder = transformer(request.getfixturevalue(model))
    prepared = encoder.prepare([Sentence("s", STRANGE), Sentence("t", ("a",)), Sentence("u", ("\u200d",))])
    assert [len(item.counts) for item in prepared] == [len(STRANGE), 1, 1]
    assert all((item.counts > 0).all() for item in prepared)
    states = encoded(encoder, prepared)
    assert torch.isfinite(states.words).all()
    assert states.mask.sum(1).tolist() == [len(STRANGE), 1, 1]


def test_a_word_without_subwords_is_unknown(tiny_bert: Path) -> None:
    encoder = transformer(tiny_bert)
    (item,) = encoder.prepare([Sentence("s", ("\u200d", "oslo", "\u200d", "\u200c", "gnu", "\u200d"))])
    tokens = encoder.tokenizer.convert_ids_to_tokens(item.rows[0])
    assert tokens == ["[CLS]", "[UNK]", "oslo", "[UNK]", "[UNK]", "g", "##n", "##u", "[UNK]", "[SEP]"]
    assert item.counts.tolist() == [1, 1, 1, 1, 3, 1]


def test_truncation_and_padding_of_a_tokenizer_file_are_ignored(tiny_bert: Path, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    shutil.copytree(tiny_bert, folder)
    tokenizer = json.loads((folder / "tokenizer.json").read_text())
    tokenizer["truncation"] = {"direction": "Right", "max_length": 8, "strategy": "LongestFirst", "stride": 0}
    tokenizer["padding"] = {
        "strategy": {"Fixed": 12}, "direction": "Right", "pad_to_multiple_of": None, "pad_id": 0, "pad_type_id": 0,
        "pad_token": "[PAD]",
    }  # fmt: skip
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    for one, other in zip(transformer(folder).prepare(MIXED), transformer(tiny_bert).prepare(MIXED), strict=True):
        assert [row.tolist() for row in one.rows] == [row.tolist() for row in other.rows]


@pytest.mark.parametrize("template", [None, "$A [SEP] [CLS]"])
def test_tokenizers_without_a_token_before_the_sentence(tiny_bert: Path, tmp_path: Path, template: str | None) -> None:
    from tokenizers.processors import TemplateProcessing

    encoder = transformer(tiny_bert)
    backend = encoder.tokenizer.backend_tokenizer
    # The template "$A" adds no tokens, like the tokenizers of language models.
    backend.post_processor = TemplateProcessing(
        single=template or "$A", special_tokens=[(name, backend.token_to_id(name)) for name in ("[SEP]", "[CLS]")]
    )
    encoder = TransformerEncoder(encoder.settings, encoder.model, encoder.tokenizer).eval()
    some = [Sentence("empty", ()), *sentences(3)]
    prepared = encoder.prepare(some)
    states = encoded(encoder, prepared)
    with torch.no_grad():
        for row, item in enumerate(prepared):
            assert item.rows[0].size
            assert_close(
                states.cls[row], encoder.model(input_ids=torch.from_numpy(item.rows[0])[None]).last_hidden_state[0, -1]
            )


@pytest.mark.parametrize("name", ["DistilBert", "DebertaV2", "MPNet", "ModernBert", "XLNet", "Albert"])
def test_other_architectures(tiny_bert: Path, name: str) -> None:
    import transformers

    tokenizer = transformer(tiny_bert).tokenizer
    sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64}
    old = {"DistilBert": {"dim": 32, "n_layers": 2, "n_heads": 2, "hidden_dim": 64}}
    old["XLNet"] = {"d_model": 32, "n_layer": 2, "n_head": 2, "d_inner": 64}
    # MPNet numbers its positions from the padding index, 1, on.
    positions = {"max_position_embeddings": WINDOW + 2 * (name == "MPNet")} if name != "XLNet" else {}
    special = {"pad_token_id": 1 if name == "MPNet" else 0, "bos_token_id": 2, "eos_token_id": 3}
    config = getattr(transformers, f"{name}Config")(vocab_size=len(tokenizer), **old.get(name, sizes), **positions, **special)
    settings = TransformerSettings(name=name, layers=2, pooling="mean")
    encoder = TransformerEncoder(settings, transformers.AutoModel.from_config(config), tokenizer).eval()
    assert encoder.indexer.settings.window == WINDOW
    prepared = encoder.prepare(MIXED)
    whole = encoded(encoder, prepared)
    for row, item in enumerate(prepared):
        alone, length = encoded(encoder, [item]), len(MIXED[row].words)
        assert_close(alone.words[0, :length], whole.words[row, :length])
        assert_close(alone.cls[0], whole.cls[row])
