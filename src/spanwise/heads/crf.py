"""A linear-chain conditional random field over the tags of a sentence.

The score of a sequence of tags is the sum of an emission per word, a transition per pair of neighbours, and a transition at
either end; its probability is exp(score) / Z. log Z comes from the forward algorithm in log space, its gradient (the
marginals) from the forward-backward algorithm, the best sequence from Viterbi's: one loop over the words each, all sentences
and tags at once.

**Speed.** Forward and backward messages do not depend on each other, so one loop computes both: the batch and the batch
reversed are one batch of twice the size. All that remains of the backward pass of training is then a few products without a
loop.

**Safety.** A step's log-sum-exp over pairs of tags is a matrix product of exponentials of shifted scores. Transitions are
held within ±20: with that bound the messages of a word differ by a factor of at most e^40, whatever the emissions, and
neither overflow nor vanish in float32, in which everything is computed. A transition beyond the bound would mean odds of
10^17; training does not get there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from spanwise.runtime.device import exact_products

BOUND = 20.0


class Crf(nn.Module):
    """A CRF over ``tags`` tags.

    Every method takes ``emissions`` [B, T, tags], T at least 1, in any floating type, and ``mask`` [B, T], true for a
    sentence's words, which come first in their row (none is fine too). What stands behind them may be anything.

    >>> crf = Crf(2)
    >>> for transitions in crf.parameters():
    ...     _ = nn.init.zeros_(transitions)
    >>> emissions, mask = torch.tensor([[[0.0, 1.0], [2.0, 0.0]]]), torch.ones(1, 2, dtype=torch.bool)
    >>> crf.decode(emissions, mask)
    tensor([[1, 0]])
    >>> crf.marginals(emissions, mask).round(decimals=2)
    tensor([[[0.2700, 0.7300],
             [0.8800, 0.1200]]])
    """

    def __init__(self, tags: int) -> None:
        super().__init__()
        self.transitions = nn.Parameter(torch.empty(tags, tags))  # from the row's tag to the column's
        self.start = nn.Parameter(torch.empty(tags))
        self.end = nn.Parameter(torch.empty(tags))
        for parameter in self.parameters():
            nn.init.uniform_(parameter, -0.1, 0.1)

    def loss(self, emissions: Tensor, tags: Tensor, mask: Tensor) -> Tensor:
        """The negative log-likelihood of each sentence's ``tags`` [B, T]: [B], 0 for a sentence without words."""
        emissions = _lowered(emissions)
        return self.partition(emissions, mask) - self._path(emissions, tags, mask)

    def partition(self, emissions: Tensor, mask: Tensor) -> Tensor:
        """log Z of each sentence: [B]. Differentiable once."""
        emissions = emissions.float().masked_fill(~mask.unsqueeze(-1), 0.0)
        result: Tensor = _Partition.apply(emissions, mask, *self.bounded())  # type: ignore[no-untyped-call]
        return result

    @torch.no_grad()
    def marginals(self, emissions: Tensor, mask: Tensor) -> Tensor:
        """The probability of each tag at each word, over all sequences: [B, T, tags], 0 behind a sentence's end."""
        emissions = emissions.float().masked_fill(~mask.unsqueeze(-1), 0.0)
        return _forward_backward(emissions, mask, *self.bounded()).marginals

    @torch.no_grad()
    def decode(self, emissions: Tensor, mask: Tensor) -> Tensor:
        """The most probable sequence of each sentence: [B, T], 0 behind its end."""
        return viterbi(emissions, mask, *self.bounded())

    def bounded(self) -> tuple[Tensor, Tensor, Tensor]:
        """The transitions and those at the start and the end, as they are used."""
        transitions, start, end = (p.float().clamp(-BOUND, BOUND) for p in (self.transitions, self.start, self.end))
        return transitions, start, end

    def _path(self, emissions: Tensor, tags: Tensor, mask: Tensor) -> Tensor:
        """The score of a given sequence of tags."""
        transitions, start, end = self.bounded()
        emitted = emissions.gather(2, tags.unsqueeze(-1)).squeeze(-1)
        # index_select, for its backward pass needs no sorting on a GPU.
        pairs = (tags[:, :-1] * len(start) + tags[:, 1:]).reshape(-1)
        moved = transitions.reshape(-1).index_select(0, pairs).view(len(tags), -1)
        last = tags.gather(1, (mask.sum(1, keepdim=True) - 1).clamp(min=0)).squeeze(1)
        ends = start.index_select(0, tags[:, 0]) + end.index_select(0, last)
        inner = emitted.masked_fill(~mask, 0.0).sum(1) + moved.masked_fill(~mask[:, 1:], 0.0).sum(1)
        return inner + ends.masked_fill(~mask[:, 0], 0.0)


def viterbi(emissions: Tensor, mask: Tensor, transitions: Tensor, start: Tensor, end: Tensor) -> Tensor:
    """The best sequence of tags of each sentence: [B, T], 0 behind its end. Transitions may be as low as forbids them.

    It runs from the last word to the first, so that all sentences, aligned at their ends, begin in the same step and none
    has to wait; the best sequence is then read off from the first word on.
    """
    batch, length, tags = emissions.shape
    lengths = mask.sum(1)
    emissions = _lowered(emissions).masked_fill(~mask.unsqueeze(-1), 0.0)
    flipped = _reversed(emissions, lengths).transpose(0, 1).contiguous()
    best = end.expand(batch, tags)  # the best score of what follows a word, by the word's tag
    ahead = [best]
    followers = []
    for word in flipped[:-1]:
        best, follower = ((best + word).unsqueeze(1) + transitions).max(-1)
        ahead.append(best)
        followers.append(follower)
    last = (lengths - 1).clamp(min=0)
    first = torch.stack(ahead)[last, torch.arange(batch, device=mask.device)]
    tag = (start + emissions[:, 0] + first).argmax(-1, keepdim=True)
    path = [tag]
    if followers:
        # followers[s] leads from the word at s + 1 in reversed order to the one at s.
        place = (last.unsqueeze(1) - 1 - torch.arange(length - 1, device=mask.device)).clamp(min=0)
        onwards = torch.stack(followers, 1).gather(1, place.unsqueeze(-1).expand(-1, -1, tags))
        for step in onwards.unbind(1):
            tag = step.gather(1, tag)
            path.append(tag)
    return torch.cat(path, 1) * mask


@dataclass(slots=True)
class _Messages:
    partition: Tensor  # [B]
    marginals: Tensor  # [B, T, K]
    # What the words up to one say of its tag and what the words from the next on say of the next one's, largest entry 1.
    left: Tensor  # [B, T, K], emission included
    right: Tensor  # [B, T, K], emission included
    moves: Tensor  # [K, K], exp of the transitions, largest entry 1


def _forward_backward(emissions: Tensor, mask: Tensor, transitions: Tensor, start: Tensor, end: Tensor) -> _Messages:
    """Both directions in one loop over the words."""
    batch, length = mask.shape
    device = emissions.device
    lengths = mask.sum(1)
    top = emissions.amax(-1, keepdim=True)
    emitted = (emissions - top).exp()
    highest = transitions.amax()
    moves = (transitions - highest).exp()
    both = torch.stack((moves, moves.T))
    # [T, 2, B, K]: what reaches a word from its left (0) and, in reversed order, from its right (1); its own emission left out.
    steps = torch.stack((emitted, _reversed(emitted, lengths))).permute(2, 0, 1, 3).contiguous()
    messages = torch.empty_like(steps)
    messages[0] = torch.stack((start, end)).exp().unsqueeze(1)
    with torch.autocast(device.type, enabled=False), exact_products():
        for step in range(1, length):
            # The first tag's message is the scale: the others lie within e^40 of it.
            before = messages[step - 1]
            torch.bmm((before / before[..., :1]).mul_(steps[step - 1]), both, out=messages[step])
    scales = messages[..., :1].log()
    messages = messages / messages[..., :1]
    forward = messages[:, 0].transpose(0, 1)
    backward = _reversed(messages[:, 1].transpose(0, 1), lengths)
    left, right = emitted * forward, emitted * backward
    marginals = left * backward
    marginals = (marginals / marginals.sum(-1, keepdim=True)).masked_fill(~mask.unsqueeze(-1), 0.0)
    # log Z, at the last word: the scales up to it, its emission and the way out, and what was shifted away before.
    last = (lengths - 1).clamp(min=0)
    closing = (left[torch.arange(batch, device=device), last] * end.exp()).sum(-1).log()
    shifts = (scales[:, 0, :, 0].T + top.squeeze(-1)).masked_fill(~mask, 0.0).sum(1)
    partition = (closing + shifts + last * highest).masked_fill(lengths == 0, 0.0)
    left, right = left / left.amax(-1, keepdim=True), right / right.amax(-1, keepdim=True)
    return _Messages(partition, marginals, left, right, moves)


def _lowered(emissions: Tensor) -> Tensor:
    """In float32, each word's highest emission 0: no probability changes by that, and sums stay small and exact."""
    emissions = emissions.float()
    return emissions - emissions.detach().amax(-1, keepdim=True)


def _reversed(values: Tensor, lengths: Tensor) -> Tensor:
    """The rows [B, T, K] with each sentence's words in reversed order, still at the beginning."""
    batch, length, size = values.shape
    place = (lengths.unsqueeze(1) - 1 - torch.arange(length, device=values.device)).clamp(min=0)
    place = place + torch.arange(batch, device=values.device).unsqueeze(1) * length
    return values.reshape(-1, size).index_select(0, place.view(-1)).view(batch, length, size)


class _Partition(torch.autograd.Function):
    """log Z; its gradient is the expected number of times each emission and transition is used."""

    @staticmethod
    def forward(ctx: Any, emissions: Tensor, mask: Tensor, transitions: Tensor, start: Tensor, end: Tensor) -> Tensor:
        found = _forward_backward(emissions, mask, transitions, start, end)
        ctx.save_for_backward(mask, found.marginals, found.left, found.right, found.moves)
        return found.partition

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        mask, marginals, left, right, moves = ctx.saved_tensors
        unary = marginals * gradient.view(-1, 1, 1)
        with torch.autocast(gradient.device.type, enabled=False), exact_products():
            left, right = left[:, :-1], right[:, 1:]
            weight = gradient.view(-1, 1, 1) * mask[:, 1:].unsqueeze(-1) / (left * (right @ moves.T)).sum(-1, keepdim=True)
            pairs = moves * ((left * weight).flatten(0, 1).T @ right.flatten(0, 1))
        final = mask & ~torch.cat((mask[:, 1:], torch.zeros_like(mask[:, :1])), 1)
        return unary, None, pairs, unary[:, 0].sum(0), (unary * final.unsqueeze(-1)).sum((0, 1))
