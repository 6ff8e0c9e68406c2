"""Planning, packing and reproducibility of batches."""

from __future__ import annotations

import pickle
from multiprocessing.reduction import ForkingPickler
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tiny import corpus, model

from spanwise import Sentence
from spanwise.batching.batches import Batch, PackedBatch, TrainingBatches, make_batch
from spanwise.batching.plan import PADDING, POOL, plan

COSTS = np.random.default_rng(0).integers(1, 90, 1000)


def test_every_sentence_is_in_one_batch() -> None:
    for generator in (None, np.random.default_rng(1)):
        for size, budget in ((7, None), (7, 300), (1, None), (5000, None), (7, 1), (7, 10**6)):
            batches = plan(COSTS, size, budget, generator)
            assert sorted(index for batch in batches for index in batch.tolist()) == list(range(1000))


def test_batches_respect_the_size_or_the_budget() -> None:
    for generator in (None, np.random.default_rng(1)):
        assert max(map(len, plan(COSTS, 7, None, generator))) == 7
        for batch in plan(COSTS, 7, 300, generator):
            assert len(batch) * COSTS[batch].max() <= 300
    assert [len(batch) for batch in plan(COSTS, 7, 10, None) if COSTS[batch].max() > 10] == [1] * int((COSTS > 10).sum())


def test_scoring_starts_with_the_longest_sentences() -> None:
    order = np.concatenate(plan(COSTS, 7, None, None))
    assert (np.diff(COSTS[order]) <= 0).all()


def test_scoring_limits_padding() -> None:
    costs = np.array([900, 30, 200, *[40] * 20, 36])
    batches = plan(costs, 8, None, None)
    assert [costs[batch].tolist() for batch in batches] == [[900], [200, 40], [40] * 8, [40] * 8, [40] * 3 + [36, 30]]
    for batch in plan(COSTS * 20, 64, None, None):
        assert (20 * COSTS[batch].max() - 20 * COSTS[batch]).sum() <= PADDING
    assert len(plan(COSTS, 8, None, None)) < 1000 / 8 + 5  # this needs few additional batches


def test_batches_have_sentences_of_similar_length() -> None:
    spread = np.mean([np.ptp(COSTS[batch]) for batch in plan(COSTS, 8, None, np.random.default_rng(1))])
    assert spread < 4
    shuffled = plan(COSTS, 8, None, np.random.default_rng(1))
    assert len({int(COSTS[batch].max()) for batch in shuffled[:10]}) > 5  # but the batches are not ordered by length
    assert 8 * POOL < 1000  # there are several pools


def test_a_plan_depends_only_on_the_generator() -> None:
    def planned(seed: int) -> list[list[int]]:
        return [batch.tolist() for batch in plan(COSTS, 8, None, np.random.default_rng(seed))]

    assert planned(3) == planned(3)
    assert planned(3) != planned(4)


def test_no_sentences() -> None:
    none = np.zeros(0, np.int64)
    for budget in (None, 10):
        assert plan(none, 4, budget, None) == plan(none, 4, budget, np.random.default_rng(0)) == []


def is_equal(first: Batch, second: Batch) -> bool:
    for left, right in ((first.inputs, second.inputs), (first.targets, second.targets)):
        if list(left) != list(right) or not all(
            torch.equal(left[name], right[name]) and left[name].dtype == right[name].dtype for name in left
        ):
            return False
    return first.indices.tolist() == second.indices.tolist()


def test_packing_preserves_the_batch() -> None:
    def random_tensor(shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
        return (torch.rand(shape) * 2).to(dtype)

    kinds = (torch.bool, torch.int64, torch.uint8, torch.float32, torch.float64, torch.int32, torch.bfloat16)
    tensors = {
        f"{kind}-{shape}": random_tensor(shape, dtype=kind) for kind in kinds for shape in ((3, 5), (0, 4), (7,), (1, 1, 1), ())
    }
    tensors["empty"] = torch.from_numpy(np.concatenate([np.zeros((0, 3), np.int64)]).T[0])
    tensors["column of one row"] = torch.from_numpy(np.ascontiguousarray(np.arange(3).reshape(1, 3)[:, 1]))
    tensors["transposed"] = torch.arange(12).view(3, 4).T
    batch = Batch(np.array([4, 2]), tensors, {name: tensor.clone() for name, tensor in tensors.items()})
    packed = PackedBatch.pack(batch)
    assert packed.memory.dtype == torch.uint8
    assert is_equal(packed.to(torch.device("cpu")), batch)
    assert is_equal(pickle.loads(pickle.dumps(packed)).to(torch.device("cpu")), batch)


def training(encoder: Any, recipe: str = "spanner", **values: Any) -> TrainingBatches:
    built, train = model(encoder, recipe, ["head.negatives=3"] if recipe == "spanner" else []), corpus(60)["train"]
    options: dict[str, Any] = {"epochs": 3, "batch_size": 8, "budget": None, "seed": 1, **values}
    return TrainingBatches(built.encoder, built.head, train, built.encoder.prepare(train), **options)


@pytest.mark.parametrize("encoder", ["static", "tiny_bert"])
def test_a_batch_depends_only_on_the_seed_and_the_step(request: pytest.FixtureRequest, encoder: str) -> None:
    name = encoder if encoder == "static" else request.getfixturevalue(encoder)
    first, second = training(name), training(name)
    assert len(first) == 24
    assert first.ends == [8, 16, 24]
    backwards = {step: second.batch(step) for step in reversed(range(24))}
    for step in range(24):
        assert is_equal(first.batch(step), backwards[step])
    copy = pickle.loads(pickle.dumps(first))  # as in worker processes that are not forked
    assert is_equal(copy[5].to(torch.device("cpu")), first.batch(5))
    changed = training(name, seed=2)
    assert not any(is_equal(changed.batch(step), first.batch(step)) for step in range(24))


def test_epochs_contain_every_sentence_once_and_new_negatives() -> None:
    batches = training("static")
    for start, end in zip((0, 8, 16), batches.ends, strict=True):
        indices = np.concatenate([batches.batches[step] for step in range(start, end)])
        assert sorted(indices.tolist()) == list(range(60))
    batches.batches = [np.arange(60)] * 24  # the same sentences at every step
    other = training("static", seed=2)
    other.batches = batches.batches
    spans = [
        {tuple(column.tolist()) for column in source.batch(step).targets.values()}
        for source in (batches, other)
        for step in (0, 8)
    ]
    assert len(set(map(frozenset, spans))) == 4


@pytest.mark.parametrize("world", [2, 3, 5, 20])
def test_processes_share_the_batches_and_take_equal_numbers_of_steps(world: int) -> None:
    whole = training("static")
    shares = [training("static", share=(rank, world)) for rank in range(world)]
    assert {tuple(share.ends) for share in shares} == {tuple(-(-8 // world) * n for n in (1, 2, 3))}
    for epoch in range(3):
        start, end = ([0, *shares[0].ends][epoch], shares[0].ends[epoch])
        indices = {index for share in shares for step in range(start, end) for index in share.batches[step].tolist()}
        assert indices == set(range(60))
    assert len(whole) <= sum(map(len, shares)) < len(whole) + 3 * world


def test_a_batch_for_scoring_needs_no_gold() -> None:
    built = model("static")
    bare = [Sentence("s", ("oslo", "was", "near")), Sentence("empty", ())]
    prepared = built.encoder.prepare(bare)
    batch = make_batch(built.encoder, built.head, bare, prepared, np.array([1, 0]))
    assert "label" not in batch.targets
    assert set(batch.targets["sentence"].tolist()) == {1}
    assert "label" in make_batch(built.encoder, built.head, bare, prepared, np.array([1, 0]), gold=True).targets


def test_batches_are_sent_between_processes_as_bytes(tiny_bert: Path) -> None:
    """Shared memory costs a connection to the other process for each batch."""
    built, sentences = model(tiny_bert, "spanner"), corpus()["train"]
    prepared = built.encoder.prepare(sentences)
    batches = TrainingBatches(built.encoder, built.head, sentences, prepared, epochs=1, batch_size=4, budget=None, seed=1)
    packed = batches[0]
    message = bytes(ForkingPickler.dumps(packed))
    assert len(packed.memory) < len(message) < len(packed.memory) + 5000
    assert b"rebuild_storage" not in message
    received = pickle.loads(message)
    assert received.key == packed.key
    assert received.indices.tolist() == packed.indices.tolist()
    assert torch.equal(received.memory, packed.memory)
    received.memory.zero_()  # it is writable
    assert packed.memory.any()
