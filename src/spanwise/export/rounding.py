"""Rounding of weights to 8 bits, and the channel scales and corrections that make it exact enough."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

BLOCK = 32  # weights that share a scale
LEVELS = 64  # largest integer of a weight; with 127, sums of products overflow on processors without VNNI
MAX_OUTLIERS, OUTLIER_RATIO = 8, 1.5  # the ratio is to the ninth largest channel
LIMITS = tuple(0.5**step for step in range(5))  # shares of the largest channel; channels above a limit are divided
EXPONENTS = (0.5, 1.0)
DAMPING = 0.01  # share of the mean square of the inputs that is added to each square
PANEL = 128  # rows of a weight that are corrected one by one; the rows after them are corrected in one product

Floats: TypeAlias = npt.NDArray[np.float32]
Doubles: TypeAlias = npt.NDArray[np.float64]
TINY = float(np.finfo(np.float32).tiny)


def outlier_channels(rows: Floats) -> npt.NDArray[np.int64]:
    """Return the channels of ``rows`` [R, K] to multiply in float32, at most ``MAX_OUTLIERS``.

    An outlier is more than ``OUTLIER_RATIO`` times as large as the channel after ``MAX_OUTLIERS`` larger
    ones. In transformers, one or two channels of a few subwords, such as [CLS], are often several times
    larger than all others (Dettmers et al. 2022, LLM.int8).

    >>> outlier_channels(np.ones((1, 20), np.float32) + np.eye(1, 20, 4, dtype=np.float32) * 100).tolist()
    [4]
    """
    largest = np.abs(rows).max(0)
    order = np.argsort(-largest, kind="stable")[: MAX_OUTLIERS + 1]
    if len(largest) <= MAX_OUTLIERS:
        return order[:0]
    channels: npt.NDArray[np.int64] = np.sort(order[largest[order] > OUTLIER_RATIO * largest[order[-1]]])
    return channels


def channel_divisors(rows: Floats, weights: Sequence[Floats]) -> Floats:
    """Return divisors of the channels of ``rows`` [R, K], which are then rounded with one scale.

    The weights are multiplied by the divisors, so that products stay the same.

    A few channels are often much larger than the others and decide the scale. Channels above a limit are
    divided by their ratio to it, or by its root, which moves a part of the difference to the ``weights``
    [K, N], whose columns have their own scales (after Xiao et al. 2023, SmoothQuant). The limit and the
    exponent with the smallest error on the rows are chosen.

    >>> rows = np.array([[100.0, 1.0], [-90.0, -0.7]], np.float32)
    >>> channel_divisors(rows, [np.eye(2, dtype=np.float32)]).tolist()
    [16.0, 1.0]
    """
    largest = np.abs(rows).max(0)
    ratios: list[Floats] = [np.maximum(largest / max(float(largest.max()) * limit, TINY), 1) for limit in LIMITS]
    candidates = [(ratio**exponent).astype(np.float32) for ratio in ratios for exponent in EXPONENTS]
    return min(candidates, key=lambda divisors: _plain_error(rows, weights, divisors))


def _plain_error(rows: Floats, weights: Sequence[Floats], divisors: Floats) -> float:
    scaled = (weight * divisors[:, None] for weight in weights)
    return sum(relative_error(rows / divisors, weight, *round_columns(weight)) for weight in scaled)


def round_columns(weight: Floats, rows: Floats | None = None) -> tuple[npt.NDArray[np.int8], Floats]:
    """Round a weight [K, N] to integers [K, N] with a scale per column [N].

    With the inputs ``rows`` [R, K], the error of each row of the weight is compensated by the rows after
    it, so that the results on these inputs change little (Frantar et al. 2023, GPTQ).

    >>> values, scales = round_columns(np.array([[1.0, 2.0], [-0.5, 0.5]], np.float32))
    >>> values.tolist(), (scales * 64).tolist()
    ([[64, 64], [-32, 16]], [1.0, 2.0])
    """
    scales: Floats = np.maximum(np.abs(weight).max(0), TINY) / np.float32(LEVELS)
    if rows is None:
        return np.rint(weight / scales).astype(np.int8), scales
    factor = _compensation(rows / _row_norms(rows @ weight))
    rest, values = weight.astype(np.float64), np.empty(weight.shape, np.int8)
    for start in range(0, len(weight), PANEL):
        stop = min(start + PANEL, len(weight))
        errors = np.empty((stop - start, weight.shape[1]))
        for row in range(start, stop):
            values[row] = np.clip(np.rint(rest[row] / scales), -LEVELS, LEVELS)
            errors[row - start] = (rest[row] - values[row] * scales) / factor[row, row]
            rest[row + 1 : stop] -= np.outer(factor[row, row + 1 : stop], errors[row - start])
        rest[stop:] -= factor[start:stop, stop:].T @ errors
    return values, scales


def _compensation(rows: Floats) -> Doubles:
    """The upper Cholesky factor [K, K] of the inverse second moments of the inputs."""
    moments = rows.T.astype(np.float64) @ rows
    moments[np.diag_indices_from(moments)] += DAMPING * max(float(np.trace(moments)) / len(moments), TINY)
    factor: Doubles = np.linalg.cholesky(np.linalg.inv(moments)).T
    return factor


def relative_error(rows: Floats, weight: Floats, values: npt.NDArray[np.int8], scales: Floats) -> float:
    """The squared error of ``rows @ weight`` after rounding both, relative to the median square of a row of the result.

    Rows with larger results are scaled down to the median: a few subwords, such as [CLS], have results so
    large that they would hide the errors of all others.

    >>> rows, eye = np.array([[127.0, -1.0]], np.float32), np.eye(2, dtype=np.float32)
    >>> relative_error(rows, eye, *round_columns(eye)) < 1e-4
    True
    >>> outlier, weight = np.array([[1e4, 1.0]], np.float32), eye * np.array([[0.001], [10]], np.float32)
    >>> relative_error(outlier, weight, *round_columns(weight)) > 1e-4
    True
    """
    low, high = min(float(rows.min()), 0.0), max(float(rows.max()), 0.0)
    scale = np.float32(max(high - low, TINY) / 255)
    exact = rows @ weight
    error = (np.rint(rows / scale) * scale @ (values * scales) - exact) / _row_norms(exact)
    return float(np.square(error).sum(1).mean())


def _row_norms(results: Floats) -> Floats:
    """The norms of rows [R, 1], at least their median."""
    norms = np.linalg.norm(results, axis=1, keepdims=True)
    floored: Floats = np.maximum(norms, max(float(np.median(norms)), TINY))
    return floored


def round_rows(table: Floats) -> tuple[npt.NDArray[np.int8], Floats]:
    """Round a table [V, d] to 8 bits with a scale per row [V, 1].

    >>> values, scales = round_rows(np.array([[1.0, -0.5], [0.0, 0.0]], np.float32))
    >>> values.tolist(), (scales * 127).tolist()
    ([[127, -64], [0, 0]], [[1.0], [127.0]])
    """
    scales = np.abs(table).max(1, keepdims=True) / np.float32(127)
    scales[scales == 0] = 1.0
    return np.rint(table / scales).astype(np.int8), scales


def round_blocks(weight: Floats) -> tuple[npt.NDArray[np.uint8], Floats]:
    """Round a weight [K, N] to 8 bits around 128, in blocks of its rows: values [N, K / 32, 32], and their scales.

    >>> values, scales = round_blocks(np.array([[1.0], [-0.5]], np.float32))
    >>> values[0, 0, :3].tolist(), (scales * 127).tolist()
    ([255, 64, 128], [1.0])
    """
    rows, columns = weight.shape
    padded = np.pad(weight.T, ((0, 0), (0, -rows % BLOCK))).reshape(columns, -1, BLOCK)
    scales = np.abs(padded).max(2) / 127
    scales[scales == 0] = 1.0
    values = np.rint(padded / scales[:, :, None]) + 128
    return values.astype(np.uint8), scales.astype(np.float32).reshape(-1)
