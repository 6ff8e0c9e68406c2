"""Decode tag scores into entities in NumPy, as ``heads/seqner.py`` does in torch."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from spanwise.prediction.onnx.record import Transitions

Ints: TypeAlias = npt.NDArray[np.int64]
Floats: TypeAlias = npt.NDArray[np.floating[Any]]
Bools: TypeAlias = npt.NDArray[np.bool_]
Columns: TypeAlias = tuple[Ints, Ints, Ints, Ints, Floats]  # sentence, start, end, label, score


def decode_tags(scores: Floats, mask: Bools, transitions: Transitions) -> Columns:
    """Decode ``scores`` [B, T, tags] into packed entities; ``mask`` [B, T] is right-padded.

    An entity's score is the geometric mean of its words' probabilities.
    """
    scores = scores.astype(np.float64)
    scores -= scores.max(2, keepdims=True)
    probabilities = np.exp(scores) / np.exp(scores).sum(2, keepdims=True)
    between, start, end = (np.array(part) for part in (transitions.transitions, transitions.start, transitions.end))
    if transitions.is_crf:
        tags = best_tags(scores, mask, between, start, end)
        probabilities = marginals(scores, mask, between, start, end)
    else:
        tags = best_tags(np.log(np.maximum(probabilities, np.finfo(np.float32).tiny)), mask, between, start, end)
    return entities_from_tags(tags, np.take_along_axis(probabilities, tags[:, :, None], 2)[:, :, 0], mask)


def best_tags(scores: Floats, mask: Bools, transitions: Floats, start: Floats, end: Floats) -> Ints:
    """The best tag sequence of each sentence (Viterbi), 0 on padding: [B, T].

    >>> mask, none = np.ones((1, 2), bool), np.zeros(2)
    >>> best_tags(np.array([[[0.0, 1.0], [0.6, 0.0]]]), mask, np.array([[0.0, 0.0], [-5.0, 0.0]]), none, none).tolist()
    [[1, 1]]
    """
    best, backpointers = start + scores[:, 0], []
    for step in range(1, scores.shape[1]):
        paths = best[:, :, None] + transitions
        backpointers.append(paths.argmax(1))
        # On padding the scores stay, and the last tag points to itself.
        best = np.where(mask[:, step, None], paths.max(1) + scores[:, step], best)
    rows = np.arange(len(scores))
    tags = np.zeros(mask.shape, np.int64)
    tags[:, -1] = (best + end).argmax(1)
    for step in range(len(backpointers) - 1, -1, -1):
        following = tags[:, step + 1]
        tags[:, step] = np.where(mask[:, step + 1], backpointers[step][rows, following], following)
    return tags * mask


def marginals(scores: Floats, mask: Bools, transitions: Floats, start: Floats, end: Floats) -> Floats:
    """Marginal probability of each tag at each word (forward-backward): [B, T, tags]."""
    exp_transitions, exp_scores = np.exp(transitions), np.exp(scores)
    length, last = scores.shape[1], np.maximum(mask.sum(1) - 1, 0)
    forward, backward = np.empty_like(exp_scores), np.empty_like(exp_scores)
    forward[:, 0] = np.exp(start)
    for step in range(1, length):
        forward[:, step] = _normalise(forward[:, step - 1] * exp_scores[:, step - 1]) @ exp_transitions
    backward[:, -1] = np.exp(end)
    for step in range(length - 2, -1, -1):
        previous = _normalise(backward[:, step + 1] * exp_scores[:, step + 1]) @ exp_transitions.T
        backward[:, step] = np.where((step < last)[:, None], previous, np.exp(end))
    return _normalise(forward * exp_scores * backward)


def _normalise(values: Floats) -> Floats:
    normalised: Floats = values / values.sum(-1, keepdims=True)
    return normalised


def entities_from_tags(tags: Ints, probabilities: Floats, mask: Bools) -> Columns:
    """Pack the entities of ``tags`` [B, T].

    0 is O, 1 + 2c is B and 2 + 2c is I of type c. A stray I starts an entity.

    >>> columns = entities_from_tags(np.array([[1, 2, 0, 4]]), np.full((1, 4), 0.5), np.ones((1, 4), bool))
    >>> [column.round(6).tolist() for column in columns]
    [[0, 0], [0, 3], [2, 4], [0, 1], [0.5, 0.5]]
    """
    label = (tags * mask + 1) // 2
    previous = np.pad(label, ((0, 0), (1, 0)))[:, :-1]
    is_start = (label > 0) & ((tags % 2 == 1) | (label != previous))
    is_continued = np.pad((label > 0) & ~is_start, ((0, 0), (0, 1)))[:, 1:]
    sentence, start = np.nonzero(is_start)
    end = np.nonzero((label > 0) & ~is_continued)[1] + 1  # starts and ends alternate within a sentence
    sums = np.pad(np.log(np.maximum(probabilities, np.finfo(np.float32).tiny)).cumsum(1), ((0, 0), (1, 0)))
    score = np.exp((sums[sentence, end] - sums[sentence, start]) / (end - start))
    return sentence, start, end, label[sentence, start] - 1, score
