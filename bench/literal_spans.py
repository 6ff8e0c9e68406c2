"""DSpERT as in the paper, one span size after the other: the reference for the packed version.

For every size the windows are unfolded, and every layer projects the keys and values of every window
(sections 3 and A of "Deep Span Representations for Named Entity Recognition"). Only the parameters are
shared with the packed version.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor

from spanwise.encoders.base import TokenStates
from spanwise.encoders.layers import LayerParts
from spanwise.heads.deep_span import Candidates, DeepSpan
from spanwise.spans.attention_pooling import AttentionPooling


class LiteralSpan(DeepSpan):
    """The same head, computed size by size."""

    def represent(self, states: TokenStates, targets: Mapping[str, Tensor]) -> tuple[Candidates, Tensor]:
        batch, length = states.mask.shape
        below = states.layers[-self.depth :] if self.depth else (states.words,)
        vectors = []
        for size in range(1, min(self.widest, length) + 1):
            spans = states.words if size == 1 else self._of_size(below, size)
            if self.lstm is not None:
                starts = (states.mask.sum(1) - size + 1).clamp(min=0)
                lstm = self.single_lstm if size == 1 and self.single_lstm is not None else self.lstm
                spans = lstm(self.lstm_dropout(spans), starts)
            hidden_vectors = self.hidden_vectors(spans, torch.full(spans.shape[:2], size, device=spans.device))
            vectors.append(F.pad(hidden_vectors, (0, 0, 0, length - hidden_vectors.shape[1])))
        table = torch.stack(vectors, 2)  # [B, starts, sizes, hidden]
        word = torch.arange(batch * length, device=table.device)
        sentence = torch.cat((word // length, targets["sentence"]))
        start = torch.cat((word % length, targets["start"]))
        end = torch.cat((word % length + 1, targets["end"]))
        real = torch.cat((states.mask.flatten(), torch.ones_like(targets["sentence"], dtype=torch.bool)))
        return Candidates(sentence, start, end, real), table[sentence, start, end - start - 1]

    def _of_size(self, below: tuple[Tensor, ...], size: int) -> Tensor:
        """Compute the top states of all spans of one size: [B, starts, d]."""
        windows = [words.unfold(1, size, 1).transpose(2, 3) for words in below]  # [B, starts, size, d] each
        first = self.transformer.dropout(below[0]).unfold(1, size, 1).transpose(2, 3)
        spans = aggregated(first, self.settings.aggregation, self.transformer.pool)
        for layer, window in zip(self.transformer._layers, windows, strict=bool(self.depth)):
            spans = span_block(layer, spans, window, self.training)
        return spans


def aggregated(windows: Tensor, aggregation: str, pool: object) -> Tensor:
    """Appendix A."""
    if aggregation == "max":
        return windows.amax(2)
    if aggregation == "mean":
        return windows.mean(2)
    assert isinstance(pool, AttentionPooling)
    if pool.extra_state is None:
        inner = windows
    else:
        inner = torch.cat((windows, pool.extra_state.expand_as(windows)), -1)
    weights = (torch.tanh(inner @ pool.inner.weight.T) @ pool.outer.weight.T).softmax(2)
    return (weights * windows).sum(2)


def span_block(layer: LayerParts, spans: Tensor, windows: Tensor, training: bool) -> Tensor:
    """Equation 3: spans [B, n, d] attend to their words [B, n, k, d]."""
    part, heads = layer.modules, layer.heads
    query = part["query"](spans).unflatten(-1, (heads, -1))
    key = part["key"](windows).unflatten(-1, (heads, -1))
    value = part["value"](windows).unflatten(-1, (heads, -1))
    scores = torch.einsum("bnhd,bnkhd->bnhk", query, key) / query.shape[-1] ** 0.5
    weights = F.dropout(scores.softmax(-1), layer.attention_dropout, training)
    attended = part["mixing"](torch.einsum("bnhk,bnkhd->bnhd", weights, value).flatten(2))
    spans = part["mixing_norm"](spans + F.dropout(attended, layer.dropout, training))
    outer = part["outer"](layer.activation(part["inner"](spans)))
    return part["outer_norm"](spans + F.dropout(outer, layer.dropout, training))
