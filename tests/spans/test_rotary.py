"""Rotary positions, compared with a rotation of complex numbers."""

from __future__ import annotations

import cmath

import pytest
import torch
from torch import Tensor

from spanwise.spans.rotary import BASE, Rotary


def reference(vectors: Tensor) -> Tensor:
    """Rotate components 2i and 2i + 1 as a complex number by position / 10000^(2i / d); ``vectors`` [B, T, d]."""
    batch, length, size = vectors.shape
    rotated = torch.zeros_like(vectors)
    for b in range(batch):
        for position in range(length):
            for i in range(size // 2):
                x, y = vectors[b, position, 2 * i : 2 * i + 2].tolist()
                z = complex(x, y) * cmath.exp(1j * position / BASE ** (2 * i / size))
                rotated[b, position, 2 * i], rotated[b, position, 2 * i + 1] = z.real, z.imag
    return rotated


def test_adjacent_components_are_rotated_as_complex_numbers() -> None:
    torch.manual_seed(0)
    vectors = torch.randn(2, 9, 6)
    rotated = Rotary(6)(vectors)
    torch.testing.assert_close(rotated, reference(vectors))
    assert torch.equal(rotated[:, 0], vectors[:, 0])  # position 0 is not rotated
    torch.testing.assert_close(rotated.norm(dim=-1), vectors.norm(dim=-1))


@pytest.mark.parametrize("length", [30, 600])
def test_products_depend_only_on_the_distance(length: int) -> None:
    """With the same query and key at every position, pairs at equal distances have equal products."""
    torch.manual_seed(1)
    query, key = torch.randn(2, 1, 1, 64)
    rotate = Rotary(64)
    products = rotate(query.expand(1, length, -1))[0] @ rotate(key.expand(1, length, -1))[0].T
    for distance in range(-length + 1, length, 7):
        diagonal = products.diagonal(distance)
        torch.testing.assert_close(diagonal, diagonal[:1].expand_as(diagonal), rtol=1e-3, atol=2e-4)
    firsts = products[0]
    assert bool((firsts[1:30] - firsts[0]).abs().min() > 1e-3)  # and products differ between distances


def test_additional_dimensions_are_rotated_equally() -> None:
    torch.manual_seed(2)
    vectors = torch.randn(2, 5, 3, 2, 4)
    rotated = Rotary(4)(vectors)
    for kind in range(3):
        for role in range(2):
            torch.testing.assert_close(rotated[:, :, kind, role], reference(vectors[:, :, kind, role]))


def test_tables_grow_with_the_longest_sentence() -> None:
    torch.manual_seed(3)
    rotate, vectors = Rotary(4), torch.randn(1, 40, 4)
    short = rotate(vectors[:, :3])
    whole = rotate(vectors)
    torch.testing.assert_close(whole[:, :3], short)
    assert torch.equal(rotate(vectors[:, :3]), short)
    torch.testing.assert_close(whole, reference(vectors))
    torch.testing.assert_close(rotate(vectors.repeat(1, 2, 1)), reference(vectors.repeat(1, 2, 1)), rtol=1e-4, atol=1e-5)


def test_tables_from_prediction_work_in_training() -> None:
    rotate = Rotary(4)
    with torch.inference_mode():
        predicted = rotate(torch.ones(1, 5, 4))
    vectors = torch.ones(1, 5, 4, requires_grad=True)
    rotated = rotate(vectors)
    rotated.square().sum().backward()  # squared, so that the gradient needs the table
    assert torch.equal(rotated.detach(), predicted)
    torch.testing.assert_close(vectors.grad, 2 * torch.ones(1, 5, 4))


def test_half_precision_is_rotated_in_float32() -> None:
    vectors = torch.randn(1, 700, 4).to(torch.bfloat16)
    rotated = Rotary(4)(vectors)
    assert rotated.dtype == torch.float32
    torch.testing.assert_close(rotated, reference(vectors.float()), rtol=1e-3, atol=1e-3)


def test_the_table_is_not_saved() -> None:
    rotate = Rotary(4)
    rotate(torch.ones(1, 5, 4))
    assert not rotate.state_dict()


def test_empty_tensors() -> None:
    for shape in ((2, 0, 4), (0, 3, 4), (0, 0, 2, 4)):
        assert Rotary(4)(torch.zeros(shape)).shape == shape


def test_an_odd_size_is_refused() -> None:
    with pytest.raises(ValueError, match="need an even size, found 3"):
        Rotary(3)
