"""Weights that are used from the memory-mapped file instead of a copy."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import tiny
import torch
from safetensors.torch import load_file, save_file

from spanwise.models.model import Model


def test_mapped_weights_are_those_of_the_file(tmp_path: Path) -> None:
    tiny.model("static", "global-pointer").save(tmp_path)
    weights = tmp_path / "model.safetensors"
    # Half-precision files are converted, as without mapping.
    name = next(name for name, tensor in load_file(weights).items() if tensor.dtype == torch.float32)
    save_file({key: tensor.half() if key == name else tensor for key, tensor in load_file(weights).items()}, weights)
    copied, mapped = Model.load(tmp_path), Model.load(tmp_path, maps_weights=True)
    for key, tensor in copied.state_dict().items():
        assert tensor.dtype == mapped.state_dict()[key].dtype, key
        assert torch.equal(tensor, mapped.state_dict()[key]), key


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
def test_processes_share_mapped_weights(tmp_path: Path) -> None:
    tiny.model("static", "global-pointer").save(tmp_path)

    def is_mapped() -> bool:
        return str(tmp_path / "model.safetensors") in Path("/proc/self/maps").read_text()

    model = Model.load(tmp_path)
    assert not is_mapped()
    model = Model.load(tmp_path, maps_weights=True)
    assert is_mapped()
    del model
