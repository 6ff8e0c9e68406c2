"""Embeddings that add the gradients of a second pass to those of the first."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from steps import gradients, make_trainer
from torch import nn

from spanwise.training.embedding_sums import SummingEmbedding, add_to_gradients, find_embeddings


@pytest.mark.parametrize("padding", [None, 0])
def test_gradients_are_added_to_the_total(padding: int | None) -> None:
    torch.manual_seed(1)
    plain = nn.Embedding(9, 4, padding)
    model = nn.Sequential(plain)
    indices, upper = torch.randint(0, 9, (3, 7)), torch.randn(3, 7, 4)
    indices[0, :3] = 0
    (plain(indices) * upper).sum().backward()
    expected = plain.weight.grad
    assert expected is not None
    (embedding,) = find_embeddings(model, [plain.weight])
    assert embedding is plain
    for start in (torch.zeros(9, 4), torch.randn(9, 4)):
        embedding.weight.grad, total = None, start.clone()
        with add_to_gradients([embedding], {embedding.weight: total}):
            for _ in range(2):
                (embedding(indices) * upper).sum().backward()
        assert embedding.weight.grad is None
        torch.testing.assert_close(total, start + 2 * expected)
    (embedding(indices) * upper).sum().backward()  # outside of the block
    torch.testing.assert_close(embedding.weight.grad, expected)


def test_only_plain_embeddings_with_a_table_change() -> None:
    model = nn.ModuleList([nn.Embedding(4, 2), nn.Embedding(4, 2), nn.Embedding(4, 2, max_norm=1.0)])
    names = list(model.state_dict())
    tables = [model[0].weight, model[2].weight]
    for _ in range(2):
        assert find_embeddings(model, tables) == [model[0]]
    assert [type(module) for module in model] == [SummingEmbedding, nn.Embedding, nn.Embedding]
    assert list(model.state_dict()) == names


def test_the_gradient_is_none_after_an_error() -> None:
    embedding = SummingEmbedding(3, 1)

    def fail() -> None:
        with add_to_gradients([embedding], {embedding.weight: torch.ones(3, 1)}):
            raise ValueError

    with pytest.raises(ValueError):  # noqa: PT011
        fail()
    assert embedding.total is None


def test_a_step_has_the_gradients_of_separate_passes(tmp_path: Path) -> None:
    overrides = ("training.clip=1e9", "training.adversarial=1", "training.accumulate=2")
    parts = [[0, 1, 2], [3, 4]]
    summed = gradients(trainer := make_trainer(tmp_path, overrides=overrides), parts)
    assert trainer.steps.summing_embeddings
    separate_trainer = make_trainer(tmp_path, overrides=overrides)
    separate_trainer.steps.summing_embeddings = []
    separate = gradients(separate_trainer, parts)
    assert summed.keys() == separate.keys()
    for name, gradient in summed.items():
        torch.testing.assert_close(gradient, separate[name], atol=1e-6, rtol=1e-5, msg=name)
