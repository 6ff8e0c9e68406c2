"""Kernels for the attention and maxima of spans, compared with blocks and products of all words.

Without a GPU, Triton interprets them: ``TRITON_INTERPRET=1 python -m pytest tests/spans/test_attention_kernels.py``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from kernel_device import DEVICE, needs_kernels
from torch import Tensor, nn

from spanwise.core.errors import SpanwiseWarning
from spanwise.encoders import residual_norm
from spanwise.encoders.layers import LayerParts
from spanwise.spans import deep, kernels
from spanwise.spans.blocks import Blocks, ChosenSpans, TiledSpans
from spanwise.spans.candidates import grid, packed
from spanwise.spans.deep import SpanTransformer
from spanwise.spans.pooling import max_pool

pytestmark = needs_kernels
HEADS, SIZE = 2, 32


def tiled(lengths: list[int], width: int) -> TiledSpans:
    """All spans, and padding after the last word as in recorded steps."""
    cells = grid(np.array(lengths), width)
    cells[:, :, :1] = False
    length = max(lengths) + 1
    padding = (len(lengths) - 1, length - 2, length)
    columns = zip(packed(cells), padding, strict=True)
    spans = (torch.cat((torch.from_numpy(column), torch.full((5,), value))).to(DEVICE) for column, value in columns)
    return TiledSpans(len(lengths), length, *spans, width)


def chosen(lengths: list[int], width: int) -> ChosenSpans:
    rng = np.random.default_rng(sum(lengths))
    length = max(lengths) + 1
    start = torch.from_numpy(rng.integers(0, length, (len(lengths), 7)))
    size = torch.from_numpy(rng.integers(1, width + 1, start.shape))
    return ChosenSpans(length, start.to(DEVICE), (start + size).clamp(max=length).to(DEVICE), width)


BLOCKS = {
    "tiled": lambda: tiled([9, 1, 10], 5),
    "wide": lambda: tiled([37, 20], 12),
    "chosen": lambda: chosen([9, 1, 10], 5),
}


def random_inputs(blocks: Blocks) -> list[Tensor]:
    """Queries, keys, values and the gradient of the result; padding has no gradient."""
    generator = torch.Generator().manual_seed(3)
    shapes = ((len(blocks.start), SIZE), *((*blocks.shape, SIZE),) * 2, (len(blocks.start), SIZE))
    *inputs, gradient = (torch.randn(shape, generator=generator).to(DEVICE) for shape in shapes)
    return [*(tensor.requires_grad_() for tensor in inputs), gradient]


def attend_with_kernels(queries: Tensor, keys: Tensor, values: Tensor, *arguments: Any) -> Tensor:
    return kernels.attend_with_kernels(queries, torch.cat((keys, values), -1), *arguments)


def is_span(blocks: Blocks) -> Tensor:
    return torch.arange(len(blocks.start), device=DEVICE) < len(blocks.start) - 5 * isinstance(blocks, TiledSpans)


@pytest.mark.parametrize("kind", BLOCKS)
def test_kernels_equal_blocks(kind: str) -> None:
    blocks = BLOCKS[kind]()
    queries, keys, values, gradient = random_inputs(blocks)
    gradient = gradient * is_span(blocks).unsqueeze(1)
    with torch.no_grad():
        expected = blocks.attend(queries, keys, values, HEADS, 0.0)
    results = [attend_with_kernels(queries, keys, values, blocks.index, HEADS, blocks.width, 0.0)]
    torch.testing.assert_close(results[0][is_span(blocks)], expected[is_span(blocks)], rtol=1e-5, atol=1e-5)
    # Gradients of the block form, which training on a CPU uses.
    reference = [tensor.detach().cpu().requires_grad_() for tensor in (queries, keys, values)]
    on_cpu = type(blocks).__new__(type(blocks))
    on_cpu.__dict__ = {name: value.cpu() if isinstance(value, Tensor) else value for name, value in blocks.__dict__.items()}
    on_cpu.attend(*reference, HEADS, 0.0).backward(gradient.cpu())
    results[0].backward(gradient)
    for actual, other in zip((queries, keys, values), reference, strict=True):
        torch.testing.assert_close(actual.grad.cpu(), other.grad, rtol=1e-5, atol=1e-5)


def test_dropout_has_the_gradients_of_its_weights() -> None:
    """With one mask, the result is linear in the values and smooth in queries and keys."""
    blocks = chosen([9, 4], 5)
    queries, keys, values, gradient = (tensor.detach().double().float() for tensor in random_inputs(blocks))

    def attend(*inputs: Tensor) -> Tensor:
        torch.manual_seed(5)
        return attend_with_kernels(*inputs, blocks.index, HEADS, blocks.width, 0.4)

    inputs = [tensor.clone().requires_grad_() for tensor in (queries, keys, values)]
    result = attend(*inputs)
    result.backward(gradient)
    assert not torch.allclose(result, attend_with_kernels(*inputs, blocks.index, HEADS, blocks.width, 0.0))
    torch.testing.assert_close((gradient * result).sum(), (values * inputs[2].grad).sum(), rtol=1e-4, atol=1e-4)
    for index in (0, 1):
        direction = torch.randn(inputs[index].shape, generator=torch.Generator().manual_seed(1)).to(DEVICE)
        moved = [[tensor.detach() for tensor in inputs] for _ in range(2)]
        for sign, tensors in zip((1, -1), moved, strict=True):
            tensors[index] = tensors[index] + sign * 1e-2 * direction
        slope = sum(sign * (gradient * attend(*tensors)).sum() for sign, tensors in zip((1, -1), moved, strict=True)) / 2e-2
        torch.testing.assert_close((direction * inputs[index].grad).sum(), slope, rtol=5e-3, atol=5e-3)


def test_dropout_keeps_the_mean() -> None:
    blocks = tiled([30, 30], 12)
    queries, keys, _, _ = random_inputs(blocks)
    ones = torch.ones_like(keys)
    mean = attend_with_kernels(queries, keys, ones, blocks.index, HEADS, blocks.width, 0.3).mean()
    assert mean.item() == pytest.approx(1.0, abs=0.03)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_kernels_pass_their_comparison_with_pytorch(dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch) -> None:
    from spanwise.spans import attention_kernels

    works = kernels._works.__wrapped__
    assert works(torch.device(DEVICE), HEADS, 16, 5, dtype)
    monkeypatch.setattr(attention_kernels, "WORD_BLOCK", 0)
    monkeypatch.setattr("spanwise.runtime.kernel_choice._reported", set())
    with pytest.warns(SpanwiseWarning, match="without the span attention kernels, which is slower: "):
        assert not works(torch.device(DEVICE), HEADS, 16, 5, dtype)


@pytest.mark.parametrize("kind", BLOCKS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_maxima_equal_those_of_the_table(kind: str, dtype: torch.dtype) -> None:
    blocks = BLOCKS[kind]()
    words = (random_inputs(blocks)[1].detach() * 2).round().to(dtype).requires_grad_()  # small integers: many words are equal
    gradient = torch.randn(len(blocks.start), SIZE, generator=torch.Generator().manual_seed(1)).round(decimals=1).to(DEVICE)
    results = []
    for maxima in (
        kernels.max_with_kernels(words, blocks.index, blocks.max_width),
        max_pool(words, blocks.sentence, blocks.start, blocks.end, blocks.width),
    ):
        assert maxima.dtype == dtype
        results.append((maxima, *torch.autograd.grad(maxima, words, gradient.to(dtype))))
    assert torch.equal(results[0][0], results[1][0])
    tolerance = 1e-5 if dtype == torch.float32 else 0.05
    torch.testing.assert_close(results[0][1], results[1][1], rtol=tolerance, atol=tolerance)


def test_maxima_pass_their_comparison_with_pytorch(monkeypatch: pytest.MonkeyPatch) -> None:
    from spanwise.spans import max_kernels

    works = kernels._maxima_work.__wrapped__
    assert works(torch.device(DEVICE), 24, 5, torch.float32)
    monkeypatch.setattr(max_kernels, "SPAN_BLOCK", 0)
    monkeypatch.setattr("spanwise.runtime.kernel_choice._reported", set())
    with pytest.warns(SpanwiseWarning, match="without the span maximum kernels, which is slower: "):
        assert not works(torch.device(DEVICE), 24, 5, torch.float32)


@pytest.mark.parametrize("kind", BLOCKS)
def test_layers_of_spans_learn_the_same(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(1)
    modules = {name: nn.Linear(SIZE, SIZE) for name in ("query", "key", "value", "mixing")}
    modules |= {"inner": nn.Linear(SIZE, 2 * SIZE), "outer": nn.Linear(2 * SIZE, SIZE)}
    modules |= {name: nn.LayerNorm(SIZE) for name in ("mixing_norm", "outer_norm")}
    layer = LayerParts(modules, nn.functional.gelu, HEADS, 0.0, 0.0)
    transformer = SpanTransformer(SIZE, [layer], shared=False, aggregation="max", dropout=0.0).to(DEVICE).train()
    blocks = BLOCKS[kind]()
    words = random_inputs(blocks)[1]
    results = []
    for is_fast in (False, True):
        for module in (deep, residual_norm):
            monkeypatch.setattr(module, "can_use_kernels", lambda *_, is_fast=is_fast: is_fast)
        monkeypatch.setattr(deep, "can_use_max_kernels", lambda *_, is_fast=is_fast: is_fast)
        transformer.zero_grad()
        words.grad = None
        spans = transformer([words], blocks)[is_span(blocks)]
        spans.square().mean().backward()
        results.append(
            {
                "spans": spans.detach(),
                "words": words.grad,
                **{name: p.grad.clone() for name, p in transformer.named_parameters()},
            }
        )
    for name, expected in results[0].items():
        torch.testing.assert_close(
            results[1][name], expected, rtol=1e-3, atol=1e-5, msg=lambda text, name=name: f"{name}: {text}"
        )
