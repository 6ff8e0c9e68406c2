"""Adversarial training: a second pass over each batch with perturbed embeddings (FGM, Miyato et al. 2017).

The gradient of the loss points to the small change of the embeddings that hurts most. A model that resists this
change depends less on single words and scores better on unseen ones. Each step costs a second forward and backward
pass.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor
from torch.nn.functional import normalize

from spanwise.core.errors import SpanwiseError
from spanwise.encoders.base import Encoder


def trainable_embeddings(encoder: Encoder) -> list[Tensor]:
    """Return the embedding tables of an encoder that have a gradient.

    Frozen tables are not perturbed: they would need a dense gradient of the table's size in every step, and a vector
    file may have 400,000 rows.
    """
    tables = [table for table in encoder.embeddings() if table.requires_grad]
    if not tables:
        raise SpanwiseError(
            "training.adversarial perturbs the encoder's embeddings, but it has none or all of them are frozen; unfreeze "
            "them (encoder.frozen_embeddings, encoder.frozen_layers, encoder.freeze_words) or set training.adversarial=0"
        )
    return tables


@contextmanager
def perturb(tables: Iterable[Tensor], epsilon: float) -> Iterator[None]:
    """Move each table by ``epsilon`` along its normalised gradient; restore it bit for bit afterwards.

    Tables change in place, so that recorded CUDA graphs, which read the weights at fixed addresses, see the change.

    >>> table = torch.zeros(1, 2, requires_grad=True)
    >>> table.grad = torch.tensor([[3.0, 4.0]])
    >>> with perturb([table], epsilon=1.0):
    ...     print(table.tolist())
    [[0.6000000238418579, 0.800000011920929]]
    >>> table.tolist()
    [[0.0, 0.0]]
    """
    originals = [(table, table.detach().clone()) for table in tables if table.grad is not None]
    with torch.no_grad():
        for table, _ in originals:
            table.add_(normalize(table.grad.flatten(), dim=0).view_as(table), alpha=epsilon)  # type: ignore[union-attr]
    try:
        yield
    finally:
        with torch.no_grad():
            for table, original in originals:
                table.copy_(original)
