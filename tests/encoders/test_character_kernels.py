"""The convolution over characters by kernels, compared with PyTorch.

Without a GPU, Triton interprets them: ``TRITON_INTERPRET=1 python -m pytest tests/encoders/test_character_kernels.py``.
"""

from __future__ import annotations

import warnings

import pytest
import torch
from kernel_device import DEVICE, needs_kernels
from torch import Tensor

from spanwise.core.errors import SpanwiseWarning
from spanwise.encoders import fast_characters
from spanwise.encoders.fast_characters import can_use_character_kernels, maxima_with_kernels
from spanwise.encoders.vocabulary import PADDING
from spanwise.encoders.word_parts import CharacterCNN
from spanwise.runtime import kernel_choice


def make_tables(characters: int) -> list[Tensor]:
    """Short and long words; one is padding only, as in batches of fixed shapes, and one repeats its characters."""
    generator = torch.Generator().manual_seed(1)
    tables = []
    for words, length in ((9, 5), (6, 13)):
        table = torch.randint(1, characters + 2, (words, length), generator=generator)
        lengths = torch.randint(1, length + 1, (words, 1), generator=generator)
        lengths[0], lengths[1] = length, 0
        table[2] = table[2, :1]
        tables.append(table.masked_fill(torch.arange(length) >= lengths, PADDING).to(DEVICE))
    return tables


@needs_kernels
@pytest.mark.parametrize(("characters", "size", "hidden"), [(3, 4, 2), (40, 5, 7), (300, 8, 4)])
def test_kernels_equal_a_convolution(characters: int, size: int, hidden: int) -> None:
    torch.manual_seed(2)
    reader = CharacterCNN(characters, size, hidden).to(DEVICE).eval()  # only training uses kernels
    tables = make_tables(characters)
    parameters = (reader.vectors.weight, reader.convolution.weight, reader.convolution.bias)
    expected, actual = reader(*tables), maxima_with_kernels(*parameters, *tables)
    torch.testing.assert_close(actual, expected, rtol=1e-4, atol=1e-5)
    assert (actual == 0).any()
    assert (actual > 0).any()
    upper = torch.randn(actual.shape, generator=torch.Generator().manual_seed(3)).to(DEVICE)
    results = (torch.autograd.grad(values, parameters, upper) for values in (actual, expected))
    for gradient, other in zip(*results, strict=True):
        torch.testing.assert_close(gradient, other, rtol=1e-4, atol=1e-5)


@needs_kernels
def test_a_table_may_be_empty() -> None:
    reader, (_, table) = CharacterCNN(20, 4, 3).to(DEVICE).eval(), make_tables(20)
    tables = (table[:0, :1], table)
    parameters = (reader.vectors.weight, reader.convolution.weight, reader.convolution.bias)
    torch.testing.assert_close(maxima_with_kernels(*parameters, *tables), reader(*tables), rtol=1e-4, atol=1e-5)


@needs_kernels
def test_kernels_agree_before_they_are_used() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert fast_characters._works(torch.device(DEVICE), 12, 6, 4)


@needs_kernels
def test_wrong_kernels_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel_choice, "_reported", set())  # a reason is reported once
    monkeypatch.setattr(fast_characters, "maxima_with_kernels", lambda *arguments: 1.1 * maxima_with_kernels(*arguments))
    with pytest.warns(SpanwiseWarning, match="training without the character kernels"):
        assert not fast_characters._works(torch.device(DEVICE), 12, 5, 4)


def test_kernels_are_for_training_in_float32_on_a_gpu() -> None:
    table = torch.zeros(1, 2, dtype=torch.int64)
    assert not can_use_character_kernels(torch.zeros(5, 4, requires_grad=True), torch.zeros(6, 4, 3), table)
    if torch.cuda.is_available():
        vectors = torch.zeros(5, 4, dtype=torch.bfloat16, device="cuda", requires_grad=True)
        assert not can_use_character_kernels(vectors, torch.zeros(6, 4, 3, device="cuda"), table.cuda())
