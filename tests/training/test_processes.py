"""Training in two processes, as ``accelerate launch`` and ``torchrun`` start them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from tiny import STATIC, corpus

from spanwise.core.types import Entity, Sentence
from spanwise.formats import write

NO_DROPOUT = (
    "encoder.dropout=0",
    "encoder.word_dropout=0",
    "head.dropout=0",
    "training.head_rate=0.01",
    "training.batch_size=4",
)
# One thread each. On Linux the processes use the loopback interface, for any host name.
ENVIRONMENT = {"OMP_NUM_THREADS": "1", **({"GLOO_SOCKET_IFNAME": "lo"} if sys.platform == "linux" else {})}
TYPING = ("head.task=typing", "encoder.glove=null", "encoder.word_size=16", "encoder.char_hidden=4")


@pytest.mark.parametrize(
    ("recipe", "settings"),
    [
        ("biaffine", (*STATIC, "head.hidden_dropout=0")),
        ("sng", TYPING),  # a batch of single words gives no gradients to the recurrent weights
    ],
)
def test_two_processes_equal_one_with_two_batches_per_step(recipe: str, settings: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    words = tuple(Sentence(f"w{n}", ("oslo",), (Entity("Place", ((0, 1),)),)) for n in range(8))
    for split, sentences in corpus(46).splits.items():  # with an even number of batches
        write(sentences + words, tmp_path / "data" / f"{split}.jsonl")

    def weights(name: str, launcher: tuple[str, ...], *more: str) -> dict[str, torch.Tensor]:
        options = [word for setting in (*settings, *NO_DROPOUT, *more) for word in ("--set", setting)]
        command = [sys.executable, *launcher, "-m", "spanwise", "train", tmp_path / "data", "--out", tmp_path / name,
                   "--recipe", recipe, "--encoder", "static", "--epochs", "2", "--device", "cpu", *options]  # fmt: skip
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=300, check=False, env={**os.environ, **ENVIRONMENT}
        )
        assert done.returncode == 0, done.stderr
        return load_file(tmp_path / name / "model.safetensors")

    two = weights("two", ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"))
    one = weights("one", (), "training.accumulate=2")
    assert one.keys() == two.keys()
    for name, value in one.items():
        torch.testing.assert_close(two[name], value, atol=1e-5, rtol=1e-4)
