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

from spanwise.core.errors import SpanwiseError
from spanwise.encoders.base import Encoder

MIN_NORM = 1e-12  # a zero gradient moves nothing


def trainable_embeddings(encoder: Encoder) -> list[Tensor]:
    """Return the embedding tables of an encoder that have a gradient.

    Frozen tables are not perturbed: they would need a dense gradient of the table's size in every step, and a vector
    file may have 400,000 rows.
    """
    tables = [table for table in encoder.embeddings() if table.requires_grad]
    if not tables:
        raise SpanwiseError(
            "training.adversarial perturbs the encoder's embeddings, but it has none or all of them are frozen; unfreeze "
            "them (encoder.frozen_embeddings, encoder.frozen_layers) or set training.adversarial=0"
        )
    return tables


@contextmanager
def perturb(tables: Iterable[Tensor], epsilon: float, *, in_place: bool = False) -> Iterator[None]:
    """Move each table by ``epsilon`` along its normalised gradient; restore it bit for bit afterwards.

    A table gets new memory for this time, which needs fewest passes over it. With ``in_place`` its memory changes, so
    that CUDA graphs recorded before, which read the weights at fixed addresses, see the change.

    >>> table = torch.zeros(1, 2, requires_grad=True)
    >>> table.grad = torch.tensor([[3.0, 4.0]])
    >>> with perturb([table], epsilon=1.0):
    ...     print([round(value, 4) for value in table[0].tolist()])
    [0.6, 0.8]
    >>> table.tolist()
    [[0.0, 0.0]]
    """
    originals: list[tuple[Tensor, Tensor]] = []
    try:
        for table in tables:
            if table.grad is None:
                continue
            original = table.detach()
            scale = epsilon / torch.linalg.vector_norm(table.grad).clamp(min=MIN_NORM)
            perturbed = torch.addcmul(original, table.grad, scale)
            if in_place:
                originals.append((table, original.clone()))
                original.copy_(perturbed)
            else:
                originals.append((table, original))
                table.data = perturbed
        yield
    finally:
        for table, original in originals:
            if in_place:
                table.detach().copy_(original)
            else:
                table.data = original
