"""Tags of words from their scores, and the entities that they spell: what ``heads/seqner.py`` does in torch, in NumPy."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from spanwise.prediction.onnx.record import Chain

Ints: TypeAlias = npt.NDArray[np.int64]
Floats: TypeAlias = npt.NDArray[np.floating[Any]]
Bools: TypeAlias = npt.NDArray[np.bool_]
Columns: TypeAlias = tuple[Ints, Ints, Ints, Ints, Floats]  # sentence, start, end, label, score


def tagged(scores: Floats, mask: Bools, chain: Chain) -> Columns:
    """The entities of a batch, packed: ``scores`` [B, T, tags], ``mask`` [B, T] where words are, which come first.

    An entity's score is the geometric mean of its words' probabilities.
    """
    scores = scores.astype(np.float64)
    scores -= scores.max(2, keepdims=True)
    chances = np.exp(scores) / np.exp(scores).sum(2, keepdims=True)
    transitions, start, end = (np.array(part) for part in (chain.transitions, chain.start, chain.end))
    if chain.is_crf:
        tags = best_tags(scores, mask, transitions, start, end)
        chances = marginals(scores, mask, transitions, start, end)
    else:
        tags = best_tags(np.log(np.maximum(chances, np.finfo(np.float32).tiny)), mask, transitions, start, end)
    return entities_of(tags, np.take_along_axis(chances, tags[:, :, None], 2)[:, :, 0], mask)


def best_tags(scores: Floats, mask: Bools, transitions: Floats, start: Floats, end: Floats) -> Ints:
    """The best sequence of tags of each sentence (Viterbi), 0 behind its end: [B, T].

    >>> mask, none = np.ones((1, 2), bool), np.zeros(2)
    >>> best_tags(np.array([[[0.0, 1.0], [0.6, 0.0]]]), mask, np.array([[0.0, 0.0], [-5.0, 0.0]]), none, none).tolist()
    [[1, 1]]
    """
    best, before = start + scores[:, 0], []
    for step in range(1, scores.shape[1]):
        ways = best[:, :, None] + transitions
        before.append(ways.argmax(1))
        # Where a sentence is over, what was best stays, and its last tag leads to itself.
        best = np.where(mask[:, step, None], ways.max(1) + scores[:, step], best)
    rows = np.arange(len(scores))
    tags = np.zeros(mask.shape, np.int64)
    tags[:, -1] = (best + end).argmax(1)
    for step in range(len(before) - 1, -1, -1):
        following = tags[:, step + 1]
        tags[:, step] = np.where(mask[:, step + 1], before[step][rows, following], following)
    return tags * mask


def marginals(scores: Floats, mask: Bools, transitions: Floats, start: Floats, end: Floats) -> Floats:
    """The probability of each tag at each word over all sequences (forward-backward): [B, T, tags]."""
    moves, emitted = np.exp(transitions), np.exp(scores)
    length, last = scores.shape[1], np.maximum(mask.sum(1) - 1, 0)
    from_left, from_right = np.empty_like(emitted), np.empty_like(emitted)
    from_left[:, 0] = np.exp(start)
    for step in range(1, length):
        from_left[:, step] = _scaled(from_left[:, step - 1] * emitted[:, step - 1]) @ moves
    from_right[:, -1] = np.exp(end)
    for step in range(length - 2, -1, -1):
        further = _scaled(from_right[:, step + 1] * emitted[:, step + 1]) @ moves.T
        from_right[:, step] = np.where((step < last)[:, None], further, np.exp(end))
    return _scaled(from_left * emitted * from_right)


def _scaled(values: Floats) -> Floats:
    scaled: Floats = values / values.sum(-1, keepdims=True)
    return scaled


def entities_of(tags: Ints, chances: Floats, mask: Bools) -> Columns:
    """The entities that ``tags`` [B, T] spell: 0 is O, 1 + 2c is B and 2 + 2c is I of type c; a stray I begins an entity.

    >>> found = entities_of(np.array([[1, 2, 0, 4]]), np.full((1, 4), 0.5), np.ones((1, 4), bool))
    >>> [column.round(6).tolist() for column in found]
    [[0, 0], [0, 3], [2, 4], [0, 1], [0.5, 0.5]]
    """
    kind = (tags * mask + 1) // 2
    before = np.pad(kind, ((0, 0), (1, 0)))[:, :-1]
    begins = (kind > 0) & ((tags % 2 == 1) | (kind != before))
    goes_on = np.pad((kind > 0) & ~begins, ((0, 0), (0, 1)))[:, 1:]
    sentence, start = np.nonzero(begins)
    end = np.nonzero((kind > 0) & ~goes_on)[1] + 1  # beginnings and ends alternate within a sentence
    sums = np.pad(np.log(np.maximum(chances, np.finfo(np.float32).tiny)).cumsum(1), ((0, 0), (1, 0)))
    score = np.exp((sums[sentence, end] - sums[sentence, start]) / (end - start))
    return sentence, start, end, kind[sentence, start] - 1, score
