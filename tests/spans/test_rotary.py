"""Rotary positions against a rotation of complex numbers."""

from __future__ import annotations

import cmath

import pytest
import torch
from torch import Tensor

from spanwise.spans.rotary import BASE, Rotary


def literal(vectors: Tensor) -> Tensor:
    """Components 2i and 2i + 1 as one complex number, turned by position / 10000^(2i / d); ``vectors`` [B, T, d]."""
    batch, length, size = vectors.shape
    turned = torch.zeros_like(vectors)
    for b in range(batch):
        for position in range(length):
            for i in range(size // 2):
                x, y = vectors[b, position, 2 * i : 2 * i + 2].tolist()
                z = complex(x, y) * cmath.exp(1j * position / BASE ** (2 * i / size))
                turned[b, position, 2 * i], turned[b, position, 2 * i + 1] = z.real, z.imag
    return turned


def test_pairs_of_neighbours_are_turned_as_complex_numbers() -> None:
    torch.manual_seed(0)
    vectors = torch.randn(2, 9, 6)
    turned = Rotary(6)(vectors)
    torch.testing.assert_close(turned, literal(vectors))
    assert torch.equal(turned[:, 0], vectors[:, 0])  # position 0 is not turned
    torch.testing.assert_close(turned.norm(dim=-1), vectors.norm(dim=-1))


@pytest.mark.parametrize("length", [30, 600])
def test_products_depend_on_the_distance_alone(length: int) -> None:
    """The same query and key at every place: the product of i and j is that of any other pair as far apart."""
    torch.manual_seed(1)
    query, key = torch.randn(2, 1, 1, 64)
    turn = Rotary(64)
    products = turn(query.expand(1, length, -1))[0] @ turn(key.expand(1, length, -1))[0].T
    for distance in range(-length + 1, length, 7):
        diagonal = products.diagonal(distance)
        torch.testing.assert_close(diagonal, diagonal[:1].expand_as(diagonal), rtol=1e-3, atol=2e-4)
    firsts = products[0]
    assert bool((firsts[1:30] - firsts[0]).abs().min() > 1e-3)  # and other distances have other products


def test_further_dimensions_turn_alike() -> None:
    torch.manual_seed(2)
    vectors = torch.randn(2, 5, 3, 2, 4)
    turned = Rotary(4)(vectors)
    for kind in range(3):
        for role in range(2):
            torch.testing.assert_close(turned[:, :, kind, role], literal(vectors[:, :, kind, role]))


def test_tables_grow_with_the_longest_sentence() -> None:
    torch.manual_seed(3)
    turn, vectors = Rotary(4), torch.randn(1, 40, 4)
    short = turn(vectors[:, :3])
    whole = turn(vectors)
    torch.testing.assert_close(whole[:, :3], short)
    assert torch.equal(turn(vectors[:, :3]), short)
    torch.testing.assert_close(whole, literal(vectors))
    torch.testing.assert_close(turn(vectors.repeat(1, 2, 1)), literal(vectors.repeat(1, 2, 1)), rtol=1e-4, atol=1e-5)


def test_tables_made_in_prediction_serve_training() -> None:
    turn = Rotary(4)
    with torch.inference_mode():
        predicted = turn(torch.ones(1, 5, 4))
    vectors = torch.ones(1, 5, 4, requires_grad=True)
    turned = turn(vectors)
    turned.square().sum().backward()  # squared: the tables are needed for the gradient
    assert torch.equal(turned.detach(), predicted)
    torch.testing.assert_close(vectors.grad, 2 * torch.ones(1, 5, 4))


def test_half_precision_is_turned_in_single() -> None:
    vectors = torch.randn(1, 700, 4).to(torch.bfloat16)
    turned = Rotary(4)(vectors)
    assert turned.dtype == torch.float32
    torch.testing.assert_close(turned, literal(vectors.float()), rtol=1e-3, atol=1e-3)


def test_it_has_no_state_to_be_saved() -> None:
    turn = Rotary(4)
    turn(torch.ones(1, 5, 4))
    assert not turn.state_dict()


def test_nothing_is_turned_to_nothing() -> None:
    for shape in ((2, 0, 4), (0, 3, 4), (0, 0, 2, 4)):
        assert Rotary(4)(torch.zeros(shape)).shape == shape


def test_an_odd_size_is_refused() -> None:
    with pytest.raises(ValueError, match="3 is odd"):
        Rotary(3)
