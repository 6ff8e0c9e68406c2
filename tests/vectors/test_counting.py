"""Co-occurrence counts and their order, against literal ones."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from cooccurrence import LETTERS, literal_counts, some_text

from spanwise import SpanwiseError
from spanwise.vectors.counting import Memory, Pairs, _ranges, count_pairs
from spanwise.vectors.numbering import NumberedText, number_text
from spanwise.vectors.tiles import Tiles, make_tiles

pytest.importorskip("numba")


def counted(text: list[list[str]], window: int, folder: Path, min_count: int = 1, memory: Memory | None = None) -> Pairs:
    return count_pairs(number_text(text, min_count, folder), window, folder, memory or Memory())


def as_dict(pairs: Pairs, text: NumberedText) -> dict[tuple[str, str], float]:
    """In both directions; a pair of a word with itself is met from either side."""
    found = {}
    for key, count in zip(pairs.keys.tolist(), pairs.counts.tolist(), strict=True):
        first, second = (text.words[n] for n in divmod(key, len(text.words)))
        found[first, second] = found[second, first] = 2 * count if first == second else count
    return found


@pytest.mark.parametrize("window", [1, 2, 15, 40])
@pytest.mark.parametrize("min_count", [1, 12])
def test_counts_are_those_of_a_literal_count(tmp_path: Path, window: int, min_count: int) -> None:
    sentences = some_text()
    text = number_text(sentences, min_count, tmp_path)
    found = as_dict(count_pairs(text, window, tmp_path), text)
    expected = literal_counts(sentences, window, min_count)
    assert found.keys() == expected.keys()
    assert found == pytest.approx(expected)
    assert min_count == 1 or len(text.words) < len(LETTERS)


def test_words_are_numbered_by_frequency_and_the_first_wins_ties(tmp_path: Path) -> None:
    text = number_text([["b", "a", "c"], [], ["c", "d", "d"]], 1, tmp_path)
    assert text.words == ("c", "d", "b", "a")
    assert text.counts.tolist() == [2, 2, 1, 1]
    assert text.length == 6


@pytest.mark.parametrize("memory", [Memory(64, 100), Memory(40, 60), Memory(1, 1), Memory(200, 400)])
def test_counting_on_disk_is_counting_in_memory(tmp_path: Path, memory: Memory) -> None:
    sentences = some_text()
    (tmp_path / "disk").mkdir()
    expected = counted(sentences, 15, tmp_path)
    found = counted(sentences, 15, tmp_path / "disk", memory=memory)
    assert np.array_equal(found.keys, expected.keys)
    np.testing.assert_allclose(found.counts, expected.counts)
    if memory.held < len(expected.keys):
        assert (tmp_path / "disk" / "keys").exists()


def test_runs_are_merged_in_ranges_that_fit_into_memory() -> None:
    draw = np.random.default_rng(4)
    runs = [Pairs(np.unique(draw.zipf(1.3, size) % 10_000_000), np.zeros(0)) for size in (5000, 300, 9000, 1, 7000)]
    total = sum(len(run.keys) for run in runs)
    for held in (100, 1000, 50_000):
        ranges = _ranges(runs, held, total)
        sizes = [sum(np.count_nonzero((run.keys >= lower) & (run.keys < upper)) for run in runs) for lower, upper in ranges]
        assert sum(sizes) == total
        assert max(sizes) < 1.5 * held
        assert len(sizes) < 2 + 2 * total / held


def test_a_text_without_pairs_or_words(tmp_path: Path) -> None:
    with pytest.raises(SpanwiseError, match="the text has no words"):
        counted([], 5, tmp_path)
    with pytest.raises(SpanwiseError, match="the text has no words"):
        counted([[], []], 5, tmp_path)
    with pytest.raises(SpanwiseError, match="no word of the text occurs 3 times"):
        counted([["a", "a"], ["b"]], 5, tmp_path, min_count=3)
    with pytest.raises(SpanwiseError, match="no two words of the text stand near each other"):
        counted([["a"], ["b"], ["a"]], 5, tmp_path)


# --- tiles --------------------------------------------------------------------------------------------------------------


def tiles_of(text: NumberedText, folder: Path, memory: Memory | None = None) -> Tiles:
    pairs = count_pairs(text, 15, folder)
    return make_tiles(pairs, len(text.words), 10, 64, np.random.default_rng(5), folder, memory or Memory())


@pytest.mark.parametrize("memory", [Memory(), Memory(64, 64)])
def test_tiles_hold_every_ordered_pair_once(tmp_path: Path, memory: Memory) -> None:
    sentences = some_text()
    text = number_text(sentences, 1, tmp_path)
    tiles = tiles_of(text, tmp_path, memory)
    word_at = {int(place): word for place, word in zip(tiles.places, text.words, strict=True)}
    expected = literal_counts(sentences, 15)
    found = {
        (word_at[row], word_at[column]): (target, weight)
        for row, column, target, weight in zip(
            *(a.tolist() for a in (tiles.rows, tiles.columns, tiles.targets, tiles.weights)), strict=True
        )
    }
    assert len(found) == len(tiles) == len(expected)
    for pair, count in expected.items():
        assert found[pair] == pytest.approx((np.log(count), min(1.0, (count / 10) ** 0.75)), abs=1e-5)
    assert any(weight == 1 for _, weight in found.values())


def test_tiles_of_a_round_share_no_row_and_no_column_and_rounds_cover_all(tmp_path: Path) -> None:
    tiles = tiles_of(number_text(some_text(), 1, tmp_path), tmp_path)
    assert tiles.blocks > 4
    seen: list[int] = []
    for number in range(tiles.blocks):
        rows: set[int] = set()
        columns: set[int] = set()
        for tile in tiles.round(number).tolist():
            part = slice(tiles.starts[tile], tiles.starts[tile + 1])
            ours, theirs = set(tiles.rows[part].tolist()), set(tiles.columns[part].tolist())
            assert not rows & ours
            assert not columns & theirs
            rows |= ours
            columns |= theirs
            seen.append(tile)
    assert sorted(seen) == list(range(tiles.blocks**2))
