"""Checks that losses and predictions depend only on the sentence."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from spanwise.batching.batches import make_batch
from spanwise.core.types import Sentence
from spanwise.decoding.decode import Predictions
from spanwise.encoders.base import TokenStates
from spanwise.heads.base import Head
from spanwise.models.model import Model
from spanwise.testing.sentences import EMPTY, ONE_WORD, TEST_SENTENCES

TOLERANCE = 1e-5


@dataclass(frozen=True)
class Result:
    """The word states, the loss and the predictions of a sentence."""

    states: Tensor  # [T, d]
    loss: float
    count: float
    predictions: Predictions


def check_batch_invariance(model: Model) -> None:
    """A sentence has the same loss and predictions alone and in every batch."""
    indices = range(len(TEST_SENTENCES))
    alone = [_results(model, TEST_SENTENCES, [index])[0] for index in indices]
    assert any(result.predictions.entities for result in alone), "a model that overfits its data must predict entities"
    for size in (2, 4, len(TEST_SENTENCES)):
        order = random.Random(size).sample(indices, len(TEST_SENTENCES))
        for start in range(0, len(order), size):
            batch = order[start : start + size]
            for index, result in zip(batch, _results(model, TEST_SENTENCES, batch), strict=True):
                _assert_close(result, alone[index], f"sentence {TEST_SENTENCES[index].id!r} in a batch of {len(batch)}")


def check_padding_invariance(model: Model) -> None:
    """The states of padding change neither losses nor predictions."""
    batch = list(range(len(TEST_SENTENCES)))
    expected = _results(model, TEST_SENTENCES, batch)
    actual = _results(model, TEST_SENTENCES, batch, has_random_padding=True)
    for sentence, before, after in zip(TEST_SENTENCES, expected, actual, strict=True):
        _assert_close(after, before, f"sentence {sentence.id!r} with random states of padding")


def check_short_sentences(model: Model) -> None:
    """Empty sentences and sentences of one word have finite losses and gradients, and valid predictions."""
    for sentences in ((EMPTY,), (ONE_WORD,), (EMPTY, EMPTY), (EMPTY, ONE_WORD)):
        names = " and ".join(sentence.id for sentence in sentences)
        for result, sentence in zip(_results(model, sentences, list(range(len(sentences)))), sentences, strict=True):
            assert np.isfinite(result.loss), f"the loss of {sentence.id!r} is not finite in a batch of {names}"
            _assert_valid(result.predictions, sentence, model.labels.entities)
        model.zero_grad()
        prepared = model.encoder.prepare(sentences)
        losses = model.losses(make_batch(model.encoder, model.head, sentences, prepared, np.arange(len(sentences)), gold=True))
        if losses.mean.requires_grad:
            losses.mean.backward()  # type: ignore[no-untyped-call]
        for name, parameter in model.named_parameters():
            is_finite = parameter.grad is None or bool(parameter.grad.isfinite().all())
            assert is_finite, f"the gradient of {name} is not finite in a batch of {names}"
    model.zero_grad()


@torch.no_grad()
def _results(
    model: Model, sentences: Sequence[Sentence], indices: Sequence[int], *, has_random_padding: bool = False
) -> list[Result]:
    """The results of one batch."""
    prepared = model.encoder.prepare(sentences)
    gold = make_batch(model.encoder, model.head, sentences, prepared, np.array(indices), gold=True)
    states: TokenStates = model.encoder(gold.inputs)
    if has_random_padding:
        states = _with_random_padding(states)
    head: Head = model.head
    losses = head.loss(states, gold.targets)
    batch = [sentences[index] for index in indices]
    predictions = head.decode(head.score(states, head.targets(batch, gold=False)), len(batch))
    for sentence, predicted in zip(batch, predictions, strict=True):
        _assert_valid(predicted, sentence, model.labels.entities)
    rows = zip(states.words, states.mask, losses.sums.tolist(), losses.counts.tolist(), predictions, strict=True)
    return [Result(words[mask], loss, count, predicted) for words, mask, loss, count, predicted in rows]


def _with_random_padding(states: TokenStates) -> TokenStates:
    generator = torch.Generator().manual_seed(0)

    def fill(words: Tensor) -> Tensor:
        noise = 100 * torch.randn(words.shape, generator=generator)
        return torch.where(states.mask[:, : words.shape[1], None], words, noise)

    if states.mask.shape[1] != states.words.shape[1]:  # states of subwords, whose mask is in the targets
        return states
    return replace(states, words=fill(states.words), layers=tuple(map(fill, states.layers)))


def _assert_close(actual: Result, expected: Result, place: str) -> None:
    torch.testing.assert_close(actual.states, expected.states, rtol=0, atol=TOLERANCE, msg=f"{place}: the word states differ")
    assert actual.count == expected.count, f"{place}: the number of instances differs"
    scale = max(expected.count, 1)
    assert np.isclose(actual.loss / scale, expected.loss / scale, rtol=1e-5, atol=TOLERANCE), f"{place}: the loss differs"
    assert actual.predictions == expected.predictions, f"{place}: the predictions differ"
    scores = [[entity.score or 0.0 for entity in result.predictions.entities] for result in (actual, expected)]
    assert np.allclose(scores[0], scores[1], rtol=0, atol=TOLERANCE), f"{place}: the scores differ"


def _assert_valid(predictions: Predictions, sentence: Sentence, types: Sequence[str]) -> None:
    """The predicted entities are valid annotations of the sentence."""
    for entity in predictions.entities:
        assert entity.type in types, f"{sentence.id!r}: unknown type {entity.type!r} predicted"
        assert entity.range.end <= len(sentence.words), f"{sentence.id!r}: predicted entity outside the sentence: {entity}"
        assert 0 <= (entity.score or 0.0) <= 1, f"{sentence.id!r}: score outside [0, 1]: {entity.score}"
    assert len(set(predictions.entities)) == len(predictions.entities), f"{sentence.id!r}: an entity is predicted twice"
