"""Tiles of the band of spans, compared with all pairs of words."""

from __future__ import annotations

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from spanwise.spans.tiles import MIN_ROWS, Tiles

LENGTHS = st.integers(0, 90)
WIDTHS = st.none() | st.integers(1, 40)


def all_spans(length: int, max_width: int | None) -> list[tuple[int, int]]:
    """Every span [start, end) of a sentence, by two loops."""
    widest = length if max_width is None else max_width
    return [(start, end) for start in range(length) for end in range(start + 1, length + 1) if end - start <= widest]


def cells_inside(tiles: Tiles, length: int) -> Tensor:
    """The flat indices of the cells that are spans of a sentence of ``length`` words."""
    mask = (torch.arange(tiles.length) < length).unsqueeze(0)
    return tiles.inside(mask).flatten().nonzero().squeeze(1)


@settings(deadline=None)
@given(LENGTHS, WIDTHS, st.integers(0, 10))
def test_every_span_has_one_cell(length: int, max_width: int | None, padding: int) -> None:
    tiles = Tiles.cut(length + padding, max_width)
    spans = [column.tolist() for column in tiles.spans(cells_inside(tiles, length))]
    assert sorted(zip(*spans, strict=True)) == all_spans(length, max_width)


@settings(deadline=None)
@given(LENGTHS, WIDTHS)
def test_indices_and_spans_are_inverse(length: int, max_width: int | None) -> None:
    tiles = Tiles.cut(length, max_width)
    indices = cells_inside(tiles, length)
    start, end = tiles.spans(indices)
    assert torch.equal(tiles.index(start, end), indices)
    spans = torch.tensor(all_spans(length, max_width), dtype=torch.long).reshape(-1, 2)
    restored = tiles.spans(tiles.index(*spans.T))
    assert torch.equal(torch.stack(restored, 1), spans)
    assert set(tiles.index(*spans.T).tolist()) == set(indices.tolist())


@settings(deadline=None)
@given(LENGTHS, WIDTHS)
def test_a_cell_belongs_to_its_start_and_end(length: int, max_width: int | None) -> None:
    """Products of ``starts`` and ``ends`` equal those of all pairs of words; offsets are widths minus one."""
    tiles = Tiles.cut(length, max_width)
    generator = torch.Generator().manual_seed(length)
    firsts, lasts = torch.randn(2, 2, length, 3, generator=generator)
    products = tiles.starts(firsts) @ tiles.ends(lasts).transpose(-1, -2)
    assert products.shape == (2, tiles.count, tiles.rows, tiles.columns)
    indices = cells_inside(tiles, length)
    start, end = tiles.spans(indices)
    products_of_pairs = firsts @ lasts.transpose(1, 2)
    torch.testing.assert_close(products.flatten(1)[:, indices], products_of_pairs[:, start, end - 1], rtol=1e-5, atol=1e-5)
    offset = tiles.offset(torch.device("cpu")).expand(tiles.count, -1, -1).flatten()
    assert torch.equal(offset[indices], end - start - 1)


def test_additional_dimensions_are_preserved() -> None:
    tiles = Tiles.cut(50, 3)
    words = torch.arange(2 * 50 * 4 * 5).view(2, 50, 4, 5) + 1
    starts, ends = tiles.starts(words), tiles.ends(words)
    assert starts.shape == (2, 4, 16, 4, 5)
    assert ends.shape == (2, 4, 18, 4, 5)
    for tile in range(4):
        for values, count in ((starts, 16), (ends, 18)):
            expected = words[:, tile * 16 : tile * 16 + count]
            assert torch.equal(values[:, tile, : expected.shape[1]], expected)
            assert not values[:, tile, expected.shape[1] :].any()


def test_the_number_of_cells_is_proportional_to_the_width() -> None:
    for width in (1, 3, 16, 30):
        tiles = Tiles.cut(1000, width)
        assert tiles.cells <= 2 * (1000 + tiles.rows) * max(width, MIN_ROWS)
    assert Tiles.cut(1000, None).cells == Tiles.cut(1000, 600).cells == 1_000_000
    assert Tiles.cut(0, None).cells == Tiles.cut(0, 5).cells == 0


def test_padding_has_no_cells() -> None:
    tiles = Tiles.cut(40, 2)
    mask = torch.zeros(3, 40, dtype=torch.bool)
    mask[1, :7] = mask[2] = True
    assert tiles.count > 1
    assert tiles.inside(mask).flatten(1).sum(1).tolist() == [0, 7 + 6, 40 + 39]
    assert torch.equal(tiles.inside(mask.long()), tiles.inside(mask))  # integer masks work too
