"""Reading prepared sentences with a model's encoder, batch by batch, for whatever is then asked of the states."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch

from spanwise.batching.batches import moved
from spanwise.batching.plan import Ints, plan
from spanwise.encoders.base import TokenStates
from spanwise.models.model import Model


def encoded(model: Model, prepared: Sequence[Any], batch_size: int) -> Iterator[tuple[Ints, TokenStates, torch.device]]:
    """Batches of like length: which sentences, their states, and where these are. The model predicts meanwhile."""
    training = model.training
    model.eval()
    device = next(model.parameters()).device
    costs = np.array([model.encoder.cost(item) for item in prepared], np.int64)
    try:
        for numbers in plan(costs, batch_size, None, None):
            yield numbers, model.encoder(moved(model.encoder.collate([prepared[n] for n in numbers]), device)), device
    finally:
        model.train(training)
