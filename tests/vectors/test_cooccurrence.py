"""Co-occurrence counts and tiles, compared with reference counts."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from cooccurrence import LETTERS, random_text, reference_counts

from spanwise import SpanwiseError
from spanwise.vectors.cooccurrence import Memory, Pairs, _ranges, count_pairs
from spanwise.vectors.indexing import IndexedText, index_text
from spanwise.vectors.tiles import Tiles, make_tiles

pytest.importorskip("numba")


def count(text: list[list[str]], window: int, folder: Path, min_count: int = 1, memory: Memory | None = None) -> Pairs:
    return count_pairs(index_text(text, min_count, folder), window, folder, memory or Memory())


def as_dict(pairs: Pairs, text: IndexedText) -> dict[tuple[str, str], float]:
    """Return counts in both directions; a word with itself counts twice."""
    counts = {}
    for key, count in zip(pairs.keys.tolist(), pairs.counts.tolist(), strict=True):
        first, second = (text.words[n] for n in divmod(key, len(text.words)))
        counts[first, second] = counts[second, first] = 2 * count if first == second else count
    return counts


@pytest.mark.parametrize("window", [1, 2, 15, 40])
@pytest.mark.parametrize("min_count", [1, 12])
def test_counts_match_reference_counts(tmp_path: Path, window: int, min_count: int) -> None:
    sentences = random_text()
    text = index_text(sentences, min_count, tmp_path)
    counts = as_dict(count_pairs(text, window, tmp_path), text)
    expected = reference_counts(sentences, window, min_count)
    assert counts.keys() == expected.keys()
    assert counts == pytest.approx(expected)
    assert min_count == 1 or len(text.words) < len(LETTERS)


def test_words_are_ranked_by_frequency_then_first_occurrence(tmp_path: Path) -> None:
    text = index_text([["b", "a", "c"], [], ["c", "d", "d"]], 1, tmp_path)
    assert text.words == ("c", "d", "b", "a")
    assert text.counts.tolist() == [2, 2, 1, 1]
    assert text.length == 6


@pytest.mark.parametrize("memory", [Memory(64, 100), Memory(40, 60), Memory(1, 1), Memory(200, 400)])
def test_counts_on_disk_match_counts_in_memory(tmp_path: Path, memory: Memory) -> None:
    sentences = random_text()
    (tmp_path / "disk").mkdir()
    expected = count(sentences, 15, tmp_path)
    counts = count(sentences, 15, tmp_path / "disk", memory=memory)
    assert np.array_equal(counts.keys, expected.keys)
    np.testing.assert_allclose(counts.counts, expected.counts)
    if memory.max_pairs < len(expected.keys):
        assert (tmp_path / "disk" / "keys").exists()


def test_merged_ranges_fit_into_memory() -> None:
    generator = np.random.default_rng(4)
    runs = [Pairs(np.unique(generator.zipf(1.3, size) % 10_000_000), np.zeros(0)) for size in (5000, 300, 9000, 1, 7000)]
    total = sum(len(run.keys) for run in runs)
    for max_pairs in (100, 1000, 50_000):
        ranges = _ranges(runs, max_pairs, total)
        sizes = [sum(np.count_nonzero((run.keys >= lower) & (run.keys < upper)) for run in runs) for lower, upper in ranges]
        assert sum(sizes) == total
        assert max(sizes) < 1.5 * max_pairs
        assert len(sizes) < 2 + 2 * total / max_pairs


def test_texts_without_words_or_pairs(tmp_path: Path) -> None:
    with pytest.raises(SpanwiseError, match="the text has no words"):
        count([], 5, tmp_path)
    with pytest.raises(SpanwiseError, match="the text has no words"):
        count([[], []], 5, tmp_path)
    with pytest.raises(SpanwiseError, match="no word of the text occurs 3 times"):
        count([["a", "a"], ["b"]], 5, tmp_path, min_count=3)
    with pytest.raises(SpanwiseError, match="no two words of the text occur in the same window"):
        count([["a"], ["b"], ["a"]], 5, tmp_path)


# --- tiles --------------------------------------------------------------------------------------------------------------


def tiles_from(text: IndexedText, folder: Path, memory: Memory | None = None) -> Tiles:
    pairs = count_pairs(text, 15, folder)
    return make_tiles(pairs, len(text.words), 10, 64, np.random.default_rng(5), folder, memory or Memory())


@pytest.mark.parametrize("memory", [Memory(), Memory(64, 64)])
def test_tiles_contain_every_ordered_pair_once(tmp_path: Path, memory: Memory) -> None:
    sentences = random_text()
    text = index_text(sentences, 1, tmp_path)
    tiles = tiles_from(text, tmp_path, memory)
    word_at = {int(position): word for position, word in zip(tiles.positions, text.words, strict=True)}
    expected = reference_counts(sentences, 15)
    pairs = {
        (word_at[row], word_at[column]): (target, weight)
        for row, column, target, weight in zip(
            *(a.tolist() for a in (tiles.rows, tiles.columns, tiles.targets, tiles.weights)), strict=True
        )
    }
    assert len(pairs) == len(tiles) == len(expected)
    for pair, count in expected.items():
        assert pairs[pair] == pytest.approx((np.log(count), min(1.0, (count / 10) ** 0.75)), abs=1e-5)
    assert any(weight == 1 for _, weight in pairs.values())


def test_tiles_of_a_round_share_no_rows_or_columns(tmp_path: Path) -> None:
    tiles = tiles_from(index_text(random_text(), 1, tmp_path), tmp_path)
    assert tiles.blocks > 4
    seen: list[int] = []
    for number in range(tiles.blocks):
        rows: set[int] = set()
        columns: set[int] = set()
        for tile in tiles.round(number).tolist():
            part = slice(tiles.starts[tile], tiles.starts[tile + 1])
            tile_rows, tile_columns = set(tiles.rows[part].tolist()), set(tiles.columns[part].tolist())
            assert not rows & tile_rows
            assert not columns & tile_columns
            rows |= tile_rows
            columns |= tile_columns
            seen.append(tile)
    assert sorted(seen) == list(range(tiles.blocks**2))
