"""Training in two processes, as ``accelerate launch`` and ``torchrun`` start them."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from cases import in_case
from forked import Forked
from interruptions import Interrupted, interrupt
from safetensors.torch import load_file
from tiny import STATIC, corpus, digest

from spanwise.cli import main
from spanwise.core.types import Entity, Sentence
from spanwise.formats import write
from spanwise.training.steps import TrainingSteps

NO_DROPOUT = (
    "encoder.dropout=0",
    "encoder.word_dropout=0",
    "head.dropout=0",
    "training.head_rate=0.01",
    "training.batch_size=4",
)
TYPING = ("head.task=typing", "encoder.glove=null", "encoder.word_size=16", "encoder.char_hidden=4")
RECIPES = {
    "biaffine": (*STATIC, "head.hidden_dropout=0"),
    "sng": TYPING,  # a batch of single words gives no gradients to the recurrent weights
}


def run_commands(commands: Sequence[Sequence[str]], interrupted: Sequence[str] = ()) -> None:
    """Run commands; the ``interrupted`` one comes first and is interrupted in its second epoch, and then resumed."""
    if interrupted:
        with pytest.MonkeyPatch.context() as patch:
            interrupt(patch, TrainingSteps, "_backward", 10)
            with pytest.raises(Interrupted):
                main(interrupted)
    for arguments in [*([[*interrupted, "--resume"]] if interrupted else []), *commands]:
        with pytest.raises(SystemExit) as end:
            main(arguments)
        assert not end.value.code


def launch(commands: Sequence[Sequence[str]], interrupted: Sequence[str]) -> None:
    """Run commands in two processes, as ``torchrun`` does, but in forks, which need no time for imports."""
    from torch.distributed.launcher.api import LaunchConfig, elastic_launch

    config = LaunchConfig(
        min_nodes=1, max_nodes=1, nproc_per_node=2, start_method="fork", rdzv_backend="c10d", rdzv_endpoint="localhost:0",
        max_restarts=0,
    )  # fmt: skip
    elastic_launch(config, run_commands)(commands, interrupted)


def test_two_processes_equal_one_with_two_batches_per_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All runs are trained by the same processes, because starting them takes most of the time."""
    (tmp_path / "data").mkdir()
    words = tuple(Sentence(f"w{n}", ("oslo",), (Entity("Place", ((0, 1),)),)) for n in range(8))
    for split, sentences in corpus(46).splits.items():  # with an even number of batches
        gaps = [replace(s, annotated=()) if split == "train" and n % 3 == 0 else s for n, s in enumerate(sentences)]
        write([*gaps, *words], tmp_path / "data" / f"{split}.jsonl")  # biaffine trains in two rounds

    def arguments(recipe: str, folder: str, *more: str) -> list[str]:
        options = [word for setting in (*RECIPES[recipe], *NO_DROPOUT, *more) for word in ("--set", setting)]
        return ["train", str(tmp_path / "data"), "--out", str(tmp_path / folder / recipe),
                "--recipe", recipe, "--encoder", "static", "--epochs", "2", "--device", "cpu", *options]  # fmt: skip

    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    if sys.platform == "linux":
        monkeypatch.setenv("GLOO_SOCKET_IFNAME", "lo")  # for any host name
    commands, interrupted = [arguments(recipe, "two") for recipe in RECIPES], arguments("biaffine", "parts")
    with Forked(lambda: launch(commands, interrupted)) as processes:
        ended = processes.wait()
    assert ended.code == 0, ended.err
    assert digest(tmp_path / "parts" / "biaffine") == digest(tmp_path / "two" / "biaffine")
    run_commands([arguments(recipe, "one", "training.accumulate=2") for recipe in RECIPES])
    for recipe in RECIPES:
        one, two = (load_file(tmp_path / folder / recipe / "model.safetensors") for folder in ("one", "two"))
        assert one.keys() == two.keys()
        for name, value in one.items():
            with in_case(f"{recipe}: {name}"):
                torch.testing.assert_close(two[name], value, atol=1e-5, rtol=1e-4)
        one_scores, two_scores = (
            json.loads((tmp_path / folder / recipe / "run.json").read_text())["scores"] for folder in ("one", "two")
        )
        assert flatten(two_scores) == pytest.approx(flatten(one_scores), abs=1e-4), recipe


def flatten(value: object, name: str = "") -> dict[str, object]:
    """All numbers of nested records, by path."""
    if isinstance(value, dict):
        return {key: number for part, item in value.items() for key, number in flatten(item, f"{name}.{part}").items()}
    return {name: value} if isinstance(value, int | float) else {}
