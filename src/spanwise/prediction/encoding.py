"""Encode prepared sentences in batches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch

from spanwise.batching.batches import to_device
from spanwise.batching.plan import Ints, plan
from spanwise.encoders.base import TokenStates
from spanwise.models.model import Model
from spanwise.runtime.progress import advance


def encode_batches(model: Model, prepared: Sequence[Any], batch_size: int) -> Iterator[tuple[Ints, TokenStates, torch.device]]:
    """Yield batches of similar length: sentence indices, encoder states and their device.

    The model is in evaluation mode until the iterator is exhausted.
    """
    is_training = model.training
    model.eval()
    device = next(model.parameters()).device
    costs = np.array([model.encoder.cost(item) for item in prepared], np.int64)
    try:
        with model.encoder.shared_work(prepared):
            for indices in plan(costs, batch_size, None, None):
                inputs = model.encoder.collate([prepared[index] for index in indices])
                yield indices, model.encoder(to_device(inputs, device)), device
                advance(len(indices))
    finally:
        model.train(is_training)
