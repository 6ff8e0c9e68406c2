"""Rows of small tables, compared with embeddings of PyTorch."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from spanwise.runtime.fast_embedding import MAX_ROWS, FastEmbedding, _Rows, select_rows, use_fast_embeddings


@pytest.mark.parametrize("shape", [(7,), (3, 4), (2, 3, 5), (0,), (2, 0)])
@pytest.mark.parametrize("padding", [None, 0, 2])
def test_rows_and_gradients_are_those_of_an_embedding(shape: tuple[int, ...], padding: int | None) -> None:
    torch.manual_seed(1)
    layer = nn.Embedding(5, 3, padding).double()
    indices, gradient = torch.randint(5, shape), torch.randn(*shape, 3, dtype=torch.float64)
    results = []
    functions: list[Callable[[Tensor], Tensor]] = [layer, lambda indices: _Rows.apply(layer.weight, indices, padding)]  # type: ignore[no-untyped-call]
    for function in functions:
        rows = function(indices)
        results.append((rows, *torch.autograd.grad(rows, (layer.weight,), gradient)))
    for actual, expected in zip(results[1], results[0], strict=True):
        torch.testing.assert_close(actual, expected)


def test_selected_rows_have_gradients() -> None:
    table = torch.randn(3, 2, requires_grad=True)
    select_rows(table, torch.tensor([[2, 0], [2, 2]])).sum().backward()
    assert table.grad is not None
    assert table.grad.tolist() == [[1, 1], [0, 0], [3, 3]]


def test_small_embeddings_are_replaced_in_place() -> None:
    model = nn.ModuleList([nn.Embedding(MAX_ROWS, 2), nn.Embedding(MAX_ROWS + 1, 2), nn.Embedding(3, 2, max_norm=1.0)])
    first, names = model[0], list(model.state_dict())
    use_fast_embeddings(model)
    assert model[0] is first
    assert [type(module) for module in model] == [FastEmbedding, nn.Embedding, nn.Embedding]
    assert list(model.state_dict()) == names
    assert torch.equal(first(torch.tensor([1])), first.weight[1:2])
