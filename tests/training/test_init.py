"""Initial weights from a trained model, and frozen layers."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from tiny import corpus, fit, model

from spanwise import Corpus, Sentence, SpanwiseError
from spanwise.models.model import Model
from spanwise.recipes.catalog import configure
from spanwise.training.init_weights import initialize_from


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "run"
    fit(folder, epochs=2)
    return folder


def test_init_copies_encoder_and_head(run: Path, tmp_path: Path) -> None:
    lines: list[str] = []
    fit(tmp_path / "next", epochs=1, head_rate=0.0, init=run, log=lines.append)
    assert (tmp_path / "next" / "model.safetensors").read_bytes() == (run / "model.safetensors").read_bytes()
    assert f"initialised from {run}: the encoder, and 2 of 2 weight tensors of the head" in lines


def test_init_with_other_labels_copies_only_the_encoder(run: Path, tmp_path: Path) -> None:
    def renamed(sentence: Sentence) -> Sentence:
        return replace(sentence, entities=tuple(replace(entity, type=f"New{entity.type}") for entity in sentence.entities))

    data = Corpus({split: tuple(map(renamed, sentences)) for split, sentences in corpus(60).splits.items()})
    lines: list[str] = []
    fit(tmp_path / "next", data, epochs=1, head_rate=0.0, init=run, log=lines.append)
    one, other = load_file(run / "model.safetensors"), load_file(tmp_path / "next" / "model.safetensors")
    assert {name for name in one if not torch.equal(one[name], other[name])} == {
        "head.classifier.weight",
        "head.classifier.bias",
    }
    assert any("the encoder only, because the head is of another kind or has other labels" in line for line in lines)


def test_words_of_a_static_encoder_are_matched_by_name(run: Path, tmp_path: Path) -> None:
    swapped = {"oslo": "lagos", "the": "zzz"}  # the same number of words
    data = Corpus({
        split: tuple(replace(s, text="", starts=(), words=tuple(swapped.get(word, word) for word in s.words)) for s in sentences)
        for split, sentences in corpus(60).splits.items()
    })  # fmt: skip
    fit(tmp_path / "next", data, epochs=1, head_rate=0.0, init=run)
    before, after = Model.load(run).encoder, Model.load(tmp_path / "next").encoder

    def vectors(encoder: Any) -> dict[str, list[float]]:
        table = encoder.words.learned.weight[2:].tolist()
        return dict(zip(encoder.vocabulary.learned, table, strict=True))

    one, other = vectors(before), vectors(after)
    assert one.keys() - other.keys() == {"oslo", "the"}
    assert other.keys() - one.keys() == {"lagos", "zzz"}
    assert all(one[word] == other[word] for word in one.keys() & other.keys())
    assert torch.equal(before.words.learned.weight[:2], after.words.learned.weight[:2])  # type: ignore[union-attr, index, operator]


def test_init_refuses_another_encoder(run: Path, tiny_bert: Path, tmp_path: Path) -> None:
    for encoder, overrides in ((str(tiny_bert), ()), ("static", ["encoder.hidden=5"])):
        why = (
            "different kinds of encoders"
            if encoder != "static"
            else r"context.backwards.0.bias_hh_l0 is \[\d+\] there and \[20\] here"
        )
        with pytest.raises(SpanwiseError, match=rf"the encoder does not match this configuration \(.*{why}\); pass the same"):
            fit(tmp_path / "next", corpus(), overrides, encoder=encoder, epochs=1, init=run)
        assert not (tmp_path / "next").exists()
    with pytest.raises(SpanwiseError, match=r"nowhere: no such folder$"):
        fit(tmp_path / "next", corpus(), init=tmp_path / "nowhere")


def test_span_layers_are_copied_from_the_initial_encoder(tiny_bert: Path, tmp_path: Path) -> None:
    fit(tmp_path / "run", recipe="biaffine", encoder=str(tiny_bert), encoder_rate=1e-2, epochs=1)
    model = Model.build(configure("deep-span", encoder=str(tiny_bert)), corpus())
    original = [copy.state_dict() for copy in deepcopy(model.head.transformer.copies)]
    initialize_from(model, tmp_path / "run")
    for copy, layer, before in zip(model.head.transformer.copies, model.encoder.layer_parts(), original, strict=True):
        for name, module in layer.modules.items():
            assert all(torch.equal(value, module.state_dict()[key]) for key, value in copy[name].state_dict().items())
        assert any(not torch.equal(value, before[name]) for name, value in copy.state_dict().items())


def test_frozen_layers_do_not_change(tiny_bert: Path, tmp_path: Path) -> None:
    values = ["encoder.frozen_layers=2"]
    fit(tmp_path / "run", corpus(), values, encoder=str(tiny_bert), encoder_rate=1e-2, epochs=1)
    before, after = load_file(tiny_bert / "model.safetensors"), load_file(tmp_path / "run" / "model.safetensors")
    changed = {name for name in before if not torch.equal(before[name], after[f"encoder.model.{name}"])}
    assert changed
    assert all(name.startswith("encoder.layer.2.") for name in changed)


@pytest.mark.parametrize(("depth", "other"), [(1, 3), (3, 1)])
def test_span_layers_of_another_depth_are_copied_from_the_top(depth: int, other: int, tiny_bert: Path, tmp_path: Path) -> None:
    source = model(tiny_bert, "deep-span", [f"head.depth={depth}"])
    with torch.no_grad():
        for parameter in source.parameters():
            parameter.add_(torch.rand_like(parameter))
    source.save(tmp_path / "run")
    initialized = model(tiny_bert, "deep-span", [f"head.depth={other}"])
    initialize_from(initialized, tmp_path / "run")
    for copy, taken in zip(
        reversed(initialized.head.transformer.copies), reversed(source.head.transformer.copies), strict=False
    ):
        assert all(torch.equal(value, taken.state_dict()[name]) for name, value in copy.state_dict().items())
    for copy, layer in zip(initialized.head.transformer.copies[:-depth], initialized.encoder.layer_parts(), strict=False):
        assert all(torch.equal(copy[name].weight, module.weight) for name, module in layer.modules.items())
