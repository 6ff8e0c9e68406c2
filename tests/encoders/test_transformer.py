"""The transformer encoder: words from subwords, windows, document context, and what it refuses."""

from __future__ import annotations

import json
import random
import shutil
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from pydantic import ValidationError
from safetensors.torch import load_file, save_file
from tiny import FILLERS, WINDOW, sentences
from torch import Tensor

from spanwise import Entity, Sentence, SpanwiseError
from spanwise.encoders import build_encoder, pretrained
from spanwise.encoders.base import TokenStates
from spanwise.encoders.subwords import DEEP, Subwords
from spanwise.encoders.transformer import TransformerEncoder, TransformerSettings
from spanwise.encoders.windows import windows

CAPACITY = WINDOW - 2  # subwords in a window besides [CLS] and [SEP]
LONG = Sentence("long", tuple(random.Random(1).choices([*FILLERS, "zebra", "gnu"], k=200)))
DEEP_WORD = Sentence("deep", ("the", "x" * 30, "a", "y" * 25))
MIXED = (*sentences(9), Sentence("empty", ()), LONG, DEEP_WORD, Sentence("one", ("quito",)))


def built(folder: Path, **values: Any) -> TransformerEncoder:
    return TransformerEncoder.build(TransformerSettings(name=str(folder), **values)).eval()


@torch.no_grad()
def encoded(encoder: TransformerEncoder, prepared: list[Subwords]) -> TokenStates:
    states: TokenStates = encoder(encoder.collate(prepared))
    return states


def close(one: Tensor, other: Tensor) -> None:
    torch.testing.assert_close(one, other, atol=1e-5, rtol=0)


# --- words from subwords ----------------------------------------------------------------------------------------------


@torch.no_grad()
def by_hand(encoder: TransformerEncoder, prepared: Subwords, pooling: str, layers: int) -> list[Tensor]:
    """A sentence's word states, one row and one word after another."""
    rows = []
    for row in prepared.rows:
        output = encoder.model(input_ids=torch.from_numpy(row)[None], output_hidden_states=True)
        rows.append(sum(output.hidden_states[-layers:])[0] / layers)
    words, at = [], 0
    for count in prepared.counts:
        pieces = torch.stack([rows[prepared.row[n]][prepared.place[n]] for n in range(at, at + count)])
        words.append({"first": pieces[0], "max": pieces.amax(0), "mean": pieces.mean(0)}[pooling])
        at += int(count)
    return words


@pytest.mark.parametrize("layers", [1, 3])
@pytest.mark.parametrize("pooling", ["first", "max", "mean"])
def test_words_are_pooled_from_their_subwords(tiny_bert: Path, pooling: str, layers: int) -> None:
    encoder = built(tiny_bert, pooling=pooling, layers=layers)
    prepared = encoder.prepare(MIXED)
    states = encoded(encoder, prepared)
    assert states.mask.sum(1).tolist() == [len(sentence.words) for sentence in MIXED]
    for row, item in enumerate(prepared):
        for place, state in enumerate(by_hand(encoder, item, pooling, layers)):
            close(states.words[row, place], state)
        assert len(item.counts) == len(MIXED[row].words)


def test_the_sentence_state_is_that_of_the_first_token(tiny_bert: Path) -> None:
    encoder = built(tiny_bert)
    prepared = encoder.prepare(MIXED)
    states = encoded(encoder, prepared)
    for row, item in enumerate(prepared):
        with torch.no_grad():
            close(states.cls[row], encoder.model(input_ids=torch.from_numpy(item.rows[0])[None]).last_hidden_state[0, 0])


def test_a_deep_word_does_not_make_the_whole_table_deep(tiny_bert: Path) -> None:
    encoder = built(tiny_bert)
    inputs = encoder.collate(encoder.prepare(MIXED))
    assert inputs["several"].shape[1] <= DEEP
    assert inputs["deep"].shape == (2, 30)


def test_gradients_reach_every_subword(tiny_bert: Path) -> None:
    encoder = built(tiny_bert, pooling="mean")
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
    encoder = built(tiny_bert, context=context, pooling=pooling, layers=layers)
    prepared = encoder.prepare(MIXED)
    alone = [encoded(encoder, [item]) for item in prepared]
    for size in (2, 5, len(MIXED)):
        order = random.Random(size).sample(range(len(MIXED)), len(MIXED))
        for batch in (order[at : at + size] for at in range(0, len(order), size)):
            states = encoded(encoder, [prepared[n] for n in batch])
            for row, n in enumerate(batch):
                length = len(MIXED[n].words)
                close(states.words[row, :length], alone[n].words[0, :length])
                close(states.cls[row], alone[n].cls[0])
                assert states.mask[row].sum() == length


def test_many_rows_are_read_a_part_at_a_time_with_the_same_result(tiny_bert: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    encoder = built(tiny_bert)
    prepared = encoder.prepare(MIXED)
    whole = encoded(encoder, prepared)
    monkeypatch.setattr("spanwise.encoders.transformer.ROWS", 3)
    parts = encoded(encoder, prepared)
    close(parts.words[whole.mask], whole.words[whole.mask])
    close(parts.cls, whole.cls)


def test_a_batch_of_sentences_without_words(tiny_bert: Path) -> None:
    encoder = built(tiny_bert)
    states = encoded(encoder, encoder.prepare([Sentence("a", ()), Sentence("b", ())]))
    assert not states.mask.any()
    assert states.words.shape[:2] == (2, 1)
    assert torch.isfinite(states.cls).all()
    assert encoder.prepare([]) == []


# --- windows ----------------------------------------------------------------------------------------------------------


def test_a_text_of_four_windows_is_read_without_loss(tiny_bert: Path) -> None:
    text = Sentence("text", tuple(random.Random(4).choices(FILLERS, k=4 * WINDOW)))  # a subword each
    encoder = built(tiny_bert)
    (prepared,) = encoder.prepare([text])
    states = encoded(encoder, [prepared])
    assert states.mask.all()
    assert states.mask.shape == (1, 4 * WINDOW)
    starts, owner, place = windows(4 * WINDOW, CAPACITY, CAPACITY // 4)
    assert len(starts) == len(prepared.rows) == 6
    for number, start in enumerate(starts.tolist()):
        piece = Sentence("piece", text.words[start : start + CAPACITY])
        direct = encoded(encoder, encoder.prepare([piece])).words[0]
        own = np.flatnonzero(owner == number)
        assert len(own)
        close(states.words[0, own], direct[place[own]])
    again = encoded(built(tiny_bert), built(tiny_bert).prepare([text]))
    assert torch.equal(again.words, states.words)


def test_a_word_in_a_window_sees_half_the_overlap_on_either_side() -> None:
    for length in (63, 100, 250, 1000):
        starts, owner, place = windows(length, CAPACITY, CAPACITY // 4)
        assert (starts[owner] + place == np.arange(length)).all()
        margin = CAPACITY // 4 // 2
        inner = (np.arange(length) >= margin) & (np.arange(length) < length - margin)
        assert (place[inner] >= margin).all()
        assert (CAPACITY - 1 - place[inner] >= margin).all()
        assert starts[0] == 0
        assert starts[-1] + CAPACITY == length
        assert (np.diff(starts) > 0).all()


def test_the_window_that_a_user_sets_is_kept(tiny_bert: Path) -> None:
    encoder = built(tiny_bert, window=20)
    rows = [row for item in encoder.prepare(MIXED) for row in item.rows]
    assert max(map(len, rows)) == 20
    assert built(tiny_bert, window=4096).window == WINDOW
    with pytest.raises(ValidationError):
        TransformerSettings(name="x", window=8)


@pytest.mark.parametrize("pooling", ["first", "max", "mean"])
def test_one_word_longer_than_the_window(tiny_bert: Path, pooling: str) -> None:
    encoder = built(tiny_bert, pooling=pooling)
    (prepared,) = encoder.prepare([Sentence("s", ("the", "-" * 300, "a"))])
    assert prepared.counts.tolist() == [1, 300, 1]
    assert len(prepared.rows) > 4
    states = encoded(encoder, [prepared])
    for place, state in enumerate(by_hand(encoder, prepared, pooling, 1)):
        close(states.words[0, place], state)


def test_the_limit_of_models_that_count_positions_from_the_padding(tiny_roberta: Path) -> None:
    encoder = built(tiny_roberta)
    assert encoder.window == WINDOW
    encoder.tokenizer.model_max_length = 10**6
    from spanwise.encoders.transformer import _limit

    assert _limit(encoder.model, encoder.tokenizer) == WINDOW
    encoder.model.config.max_position_embeddings = -1  # how some say that they have no limit
    assert _limit(encoder.model, encoder.tokenizer) == 10**6
    states = encoded(encoder, encoder.prepare([LONG]))
    assert torch.isfinite(states.words).all()


# --- document context -------------------------------------------------------------------------------------------------


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
    encoder = built(tiny_bert, context="document")
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
    encoder = built(tiny_bert, context="document")
    text = document([3, 7, 5])
    states = encoded(encoder, encoder.prepare(text))
    assert states.mask.sum(1).tolist() == [3, 7, 5]
    alone = encoded(built(tiny_bert), built(tiny_bert).prepare(text))
    assert not torch.allclose(states.words[1], alone.words[1], atol=1e-2)  # but the neighbours are seen


def test_context_may_come_from_another_split(tiny_bert: Path) -> None:
    encoder = built(tiny_bert, context="document")
    text = document([6, 8, 4, 9, 5])
    together = encoder.prepare(text)
    for chosen in ([0, 2], [1, 3, 4], [2]):
        some = [text[n] for n in chosen]
        apart = encoder.prepare(some, [*document([5, 5], "other"), *reversed(text)])
        for item, n in zip(apart, chosen, strict=True):
            assert item.rows[0].tolist() == together[n].rows[0].tolist()
            assert item.place.tolist() == together[n].place.tolist()


def test_a_sentence_is_not_its_own_neighbour(tiny_bert: Path) -> None:
    encoder = built(tiny_bert, context="document")
    text = document([6, 8, 4])
    copies = [replace(sentence, entities=(Entity("X", ((0, 1),)),)) for sentence in text]
    for one, other in zip(encoder.prepare(text), encoder.prepare(text, [*copies, *text, *copies]), strict=True):
        assert one.rows[0].tolist() == other.rows[0].tolist()


def test_labels_are_no_part_of_the_context(tiny_bert: Path) -> None:
    encoder = built(tiny_bert, context="document")
    text = document([6, 8, 4])
    labelled = [replace(sentence, entities=(Entity("X", ((0, 3),)),)) for sentence in text]
    for one, other in zip(encoder.prepare(text), encoder.prepare(labelled), strict=True):
        assert one.rows[0].tolist() == other.rows[0].tolist()


def test_sentences_without_a_place_have_no_neighbours(tiny_bert: Path) -> None:
    encoder = built(tiny_bert, context="document")
    text = document([6, 8, 4])
    lost = [replace(text[0], document=None), replace(text[1], position=None), text[2]]
    prepared = encoder.prepare(lost, [replace(text[0], position=None)])
    assert [len(item.rows[0]) - 2 for item in prepared] == [6, 8, 4]


def test_a_long_sentence_of_a_document_is_read_in_windows(tiny_bert: Path) -> None:
    encoder = built(tiny_bert, context="document")
    text = document([6, 200, 4])
    prepared = encoder.prepare(text)
    assert [row.tolist() for row in prepared[1].rows] == [row.tolist() for row in built(tiny_bert).prepare(text)[1].rows]
    assert len(prepared[0].rows[0]) == WINDOW  # a long neighbour is cut, a sentence never


# --- tokenizers -------------------------------------------------------------------------------------------------------


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
    encoder = built(folder)
    for sentence, item in zip(MIXED, encoder.prepare(MIXED), strict=True):
        assert len(item.counts) == len(sentence.words)
        assert (item.counts > 0).all()
        if len(item.rows) == 1:
            assert encoder.tokenizer.decode(item.rows[0][1:-1]) == "".join(f" {word}" for word in sentence.words)
    (item,) = encoder.prepare([Sentence("s", ("oslo", "was", "naïve", "水"))])
    assert encoder.tokenizer.convert_ids_to_tokens(item.rows[0])[1:3] == ["Ġoslo", "Ġwas"]


STRANGE = ("\u200d", "a", "\u200d\u200c", "\u0000", "[SEP]", "水", "\ud800", " ", "🧬" * 3, "\ufeff", "b", "\u00ad")


@pytest.mark.parametrize("model", ["tiny_bert", "tiny_roberta"])
def test_no_word_is_lost_that_a_tokenizer_does_not_see(request: pytest.FixtureRequest, model: str) -> None:
    encoder = built(request.getfixturevalue(model))
    prepared = encoder.prepare([Sentence("s", STRANGE), Sentence("t", ("a",)), Sentence("u", ("\u200d",))])
    assert [len(item.counts) for item in prepared] == [len(STRANGE), 1, 1]
    assert all((item.counts > 0).all() for item in prepared)
    states = encoded(encoder, prepared)
    assert torch.isfinite(states.words).all()
    assert states.mask.sum(1).tolist() == [len(STRANGE), 1, 1]


def test_an_unseen_word_stands_in_its_place(tiny_bert: Path) -> None:
    encoder = built(tiny_bert)
    (item,) = encoder.prepare([Sentence("s", ("\u200d", "oslo", "\u200d", "\u200c", "gnu", "\u200d"))])
    tokens = encoder.tokenizer.convert_ids_to_tokens(item.rows[0])
    assert tokens == ["[CLS]", "[UNK]", "oslo", "[UNK]", "[UNK]", "g", "##n", "##u", "[UNK]", "[SEP]"]
    assert item.counts.tolist() == [1, 1, 1, 1, 3, 1]


def test_truncation_and_padding_of_a_tokenizer_file_are_not_used(tiny_bert: Path, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    shutil.copytree(tiny_bert, folder)
    tokenizer = json.loads((folder / "tokenizer.json").read_text())
    tokenizer["truncation"] = {"direction": "Right", "max_length": 8, "strategy": "LongestFirst", "stride": 0}
    tokenizer["padding"] = {
        "strategy": {"Fixed": 12}, "direction": "Right", "pad_to_multiple_of": None, "pad_id": 0, "pad_type_id": 0,
        "pad_token": "[PAD]",
    }  # fmt: skip
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    for one, other in zip(built(folder).prepare(MIXED), built(tiny_bert).prepare(MIXED), strict=True):
        assert [row.tolist() for row in one.rows] == [row.tolist() for row in other.rows]


@pytest.mark.parametrize("template", [None, "$A [SEP] [CLS]"])
def test_tokenizers_that_put_nothing_before_a_sentence(tiny_bert: Path, tmp_path: Path, template: str | None) -> None:
    from tokenizers.processors import TemplateProcessing

    encoder = built(tiny_bert)
    backend = encoder.tokenizer.backend_tokenizer
    # An empty template adds nothing, as the tokenizers of language models do.
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
            close(states.cls[row], encoder.model(input_ids=torch.from_numpy(item.rows[0])[None]).last_hidden_state[0, -1])


# --- freezing, saving, refusing ---------------------------------------------------------------------------------------


def test_frozen_embeddings_and_layers(tiny_bert: Path) -> None:
    def learning(**values: Any) -> set[str]:
        named = built(tiny_bert, **values).model.named_parameters()
        return {".".join(name.split(".")[:3]) for name, parameter in named if parameter.requires_grad}

    assert learning(frozen_layers=2) == {"encoder.layer.2"}
    assert {f"encoder.layer.{n}" for n in range(3)} == learning(frozen_embeddings=True)
    assert len(learning()) > 3
    with pytest.raises(SpanwiseError, match="frozen_layers=4, but the encoder has 3 layers"):
        built(tiny_bert, frozen_layers=4)
    with pytest.raises(SpanwiseError, match="layers=4, but the encoder has 3 layers"):
        built(tiny_bert, layers=4)


def test_what_is_saved_is_enough_to_build_it_again(tiny_bert: Path, tmp_path: Path) -> None:
    source = tmp_path / "source"
    shutil.copytree(tiny_bert, source)
    encoder = built(source, pooling="mean")
    run = tmp_path / "run"
    run.mkdir()
    encoder.save(run)
    shutil.rmtree(source)
    again = TransformerEncoder.build(encoder.settings, folder=run).eval()
    again.load_state_dict(encoder.state_dict())
    prepared = encoder.prepare(MIXED)
    for one, other in zip(prepared, again.prepare(MIXED), strict=True):
        assert [row.tolist() for row in one.rows] == [row.tolist() for row in other.rows]
    assert torch.equal(encoded(encoder, prepared).words, encoded(again, prepared).words)


def _without_a_tensor(folder: Path) -> None:
    tensors = load_file(folder / "model.safetensors")
    del tensors["encoder.layer.1.output.dense.weight"]
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})


def _with_another_shape(folder: Path) -> None:
    tensors = load_file(folder / "model.safetensors")
    tensors["encoder.layer.1.output.dense.weight"] = torch.zeros(3, 3)
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})


def _without_tokenizer(folder: Path) -> None:
    for name in ("tokenizer.json", "tokenizer_config.json", "vocab.txt"):
        (folder / name).unlink()


BROKEN: dict[str, tuple[Callable[[Path], Any], str]] = {
    "no config": (lambda folder: (folder / "config.json").unlink(), "no config.json in this folder"),
    "config is no JSON": (lambda folder: (folder / "config.json").write_text("{"), "not a valid JSON"),
    "config says nothing": (lambda folder: (folder / "config.json").write_text("{}"), "model_type"),
    "no weights": (lambda folder: (folder / "model.safetensors").unlink(), "no file named model.safetensors"),
    "cut weights": (lambda folder: (folder / "model.safetensors").write_bytes(b"\x10" * 9), "cannot be loaded"),
    "a tensor missing": (_without_a_tensor, "lack 1 of the model's weights, encoder.layer.1.output.dense.weight"),
    "another shape": (_with_another_shape, "lack 1 of the model's weights, encoder.layer.1.output.dense.weight"),
    "no tokenizer": (_without_tokenizer, "no files of a tokenizer"),
    "a translator": (lambda folder: (folder / "config.json").write_text('{"model_type": "t5"}'), "no encoder-only model"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_folder_that_is_not_whole_is_refused_in_one_line(tiny_bert: Path, tmp_path: Path, name: str) -> None:
    folder = tmp_path / "model"
    shutil.copytree(tiny_bert, folder)
    breaking, message = BROKEN[name]
    breaking(folder)
    with pytest.raises(SpanwiseError, match=message) as caught:
        built(folder)
    assert "\n" not in str(caught.value)
    assert str(folder) in str(caught.value)


def test_a_hub_name_without_a_network_is_answered_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", "http://127.0.0.1:9")  # nobody listens there
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    began = time.monotonic()
    with pytest.raises(SpanwiseError, match=r"--encoder static, --encoder minilm .*, or the path of a model folder") as caught:
        build_encoder({"kind": "transformer", "name": "nobody/has-this-model"}, ())
    assert time.monotonic() - began < 10
    assert "nobody/has-this-model" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_names_that_are_no_models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pretrained, "_hub_answers", lambda: False)
    (tmp_path / "file").write_text("x")
    for name, message in {
        str(tmp_path / "nowhere"): "no such folder",
        str(tmp_path / "file"): "no such folder",
        "./nowhere": "no such folder",
        "a name with blanks": "neither a folder nor in the local cache",
    }.items():
        with pytest.raises(SpanwiseError, match=message):
            built(Path(name)) if name.startswith("/") else build_encoder({"kind": "transformer", "name": name}, ())
    monkeypatch.setattr(pretrained, "ALIASES", {"minilm": ("no_such_package", "model")})
    with pytest.raises(SpanwiseError, match=r"pip install 'spanwise\[minilm\]'"):
        build_encoder({"kind": "transformer", "name": "minilm"}, ())
