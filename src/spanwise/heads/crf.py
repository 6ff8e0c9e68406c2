"""A linear-chain conditional random field over the tags of a sentence.

The score of a tag sequence is the sum of an emission per word, a transition per pair of neighbours
and a transition at each end; its probability is exp(score) / Z. log Z is computed by the forward
algorithm, its gradient (the marginals) by the forward-backward algorithm, and the best sequence by
Viterbi: one loop over the words each, for all sentences and tags at once.

**Speed.** Forward and backward messages do not depend on each other, so one loop computes both: the
batch and the reversed batch form one batch of twice the size. The backward pass of training then
consists of a few products without a loop.

**Numerical stability.** The log-sum-exp of a step over pairs of tags is a matrix product of
exponentials of shifted scores. Transitions are clamped to ±20. With this bound the messages of a
word differ by a factor of at most e^40 for any emissions, and neither overflow nor vanish in
float32, in which everything is computed. A transition beyond the bound would mean odds of 10^17,
which training does not reach.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from spanwise.runtime.device import full_precision

MAX_TRANSITION = 20.0


class Crf(nn.Module):
    """A CRF over ``tags`` tags.

    All methods take ``emissions`` [B, T, tags] of any floating type, with T at least 1, and ``mask``
    [B, T], True for the words of a sentence. Words come first in their row and may be absent; values
    after them are ignored.

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
        self.transitions = nn.Parameter(torch.empty(tags, tags))  # from the row's tag to the column's tag
        self.start = nn.Parameter(torch.empty(tags))
        self.end = nn.Parameter(torch.empty(tags))
        for parameter in self.parameters():
            nn.init.uniform_(parameter, -0.1, 0.1)

    def loss(self, emissions: Tensor, tags: Tensor, mask: Tensor) -> Tensor:
        """The negative log-likelihood of each sentence's ``tags`` [B, T]: [B], 0 for a sentence without words."""
        emissions = _shift(emissions)
        return self.partition(emissions, mask) - self._sequence_score(emissions, tags, mask)

    def partial_loss(
        self, emissions: Tensor, masses: Tensor, mask: Tensor, pair_masses: Tensor, has_pair_masses: Tensor
    ) -> Tensor:  # fmt: skip
        """The negative log-likelihood of a set of tag sequences: [B].

        ``masses`` [B, T, tags] are the log-probabilities with which tags are allowed. Each word allows one.
        In sentences that ``has_pair_masses`` [B] selects, ``pair_masses`` [tags, tags] are those of pairs of
        neighbouring tags; row 0 also applies to the first word.
        """
        emissions = _shift(emissions)
        allowed = self.partition(emissions + masses, mask)
        allowed = torch.where(has_pair_masses, self.partition(emissions + masses, mask, pair_masses), allowed)
        return self.partition(emissions, mask) - allowed

    def partition(self, emissions: Tensor, mask: Tensor, pair_masses: Tensor | None = None) -> Tensor:
        """log Z of each sentence: [B]. Differentiable once."""
        emissions = emissions.float().masked_fill(~mask.unsqueeze(-1), 0.0)
        transitions, start, end = self.clamped()
        if pair_masses is not None:
            transitions, start = transitions + pair_masses, start + pair_masses[0]
        result: Tensor = _Partition.apply(emissions, mask, transitions, start, end)  # type: ignore[no-untyped-call]
        return result

    @torch.no_grad()
    def marginals(self, emissions: Tensor, mask: Tensor) -> Tensor:
        """The probability of each tag at each word, over all sequences: [B, T, tags], 0 after a sentence's end."""
        emissions = emissions.float().masked_fill(~mask.unsqueeze(-1), 0.0)
        return _forward_backward(emissions, mask, *self.clamped()).marginals

    @torch.no_grad()
    def decode(self, emissions: Tensor, mask: Tensor) -> Tensor:
        """The most probable sequence of each sentence: [B, T], 0 after its end."""
        return viterbi(emissions, mask, *self.clamped())

    def clamped(self) -> tuple[Tensor, Tensor, Tensor]:
        """The transitions and those at the start and the end, in float32 and clamped."""
        parameters = (self.transitions, self.start, self.end)
        transitions, start, end = (scores.float().clamp(-MAX_TRANSITION, MAX_TRANSITION) for scores in parameters)
        return transitions, start, end

    def _sequence_score(self, emissions: Tensor, tags: Tensor, mask: Tensor) -> Tensor:
        """The score of a given tag sequence."""
        transitions, start, end = self.clamped()
        emitted = emissions.gather(2, tags.unsqueeze(-1)).squeeze(-1)
        # The backward pass of index_select needs no sorting on a GPU.
        pairs = (tags[:, :-1] * len(start) + tags[:, 1:]).reshape(-1)
        transition = transitions.reshape(-1).index_select(0, pairs).view(len(tags), -1)
        last = tags.gather(1, (mask.sum(1, keepdim=True) - 1).clamp(min=0)).squeeze(1)
        ends = start.index_select(0, tags[:, 0]) + end.index_select(0, last)
        score = emitted.masked_fill(~mask, 0.0).sum(1) + transition.masked_fill(~mask[:, 1:], 0.0).sum(1)
        return score + ends.masked_fill(~mask[:, 0], 0.0)


def viterbi(emissions: Tensor, mask: Tensor, transitions: Tensor, start: Tensor, end: Tensor) -> Tensor:
    """The best tag sequence of each sentence: [B, T], 0 after its end. Very low transitions forbid a pair of tags.

    The recursion runs from the last word to the first: aligned at their ends, all sentences start in
    the same step. The best sequence is then followed from the first word on.
    """
    batch, length, tags = emissions.shape
    lengths = mask.sum(1)
    emissions = _shift(emissions).masked_fill(~mask.unsqueeze(-1), 0.0)
    reversed_emissions = _reverse(emissions, lengths).transpose(0, 1).contiguous()
    best = end.expand(batch, tags)  # the best score of the words after a word, for each tag of the word
    best_scores = [best]
    next_tags = []
    for word in reversed_emissions[:-1]:
        best, next_tag = ((best + word).unsqueeze(1) + transitions).max(-1)
        best_scores.append(best)
        next_tags.append(next_tag)
    last = (lengths - 1).clamp(min=0)
    first = torch.stack(best_scores)[last, torch.arange(batch, device=mask.device)]
    tag = (start + emissions[:, 0] + first).argmax(-1, keepdim=True)
    path = [tag]
    if next_tags:
        # next_tags[s] leads from the word at s + 1 in reversed order to the one at s.
        step = (last.unsqueeze(1) - 1 - torch.arange(length - 1, device=mask.device)).clamp(min=0)
        ordered = torch.stack(next_tags, 1).gather(1, step.unsqueeze(-1).expand(-1, -1, tags))
        for following in ordered.unbind(1):
            tag = following.gather(1, tag)
            path.append(tag)
    return torch.cat(path, 1) * mask


@dataclass(slots=True)
class _Messages:
    partition: Tensor  # [B]
    marginals: Tensor  # [B, T, K]
    # Messages from the words up to a word, and from a word to the last, its emission included; largest entry 1.
    left: Tensor  # [B, T, K]
    right: Tensor  # [B, T, K]
    weights: Tensor  # [K, K], exp of the transitions, largest entry 1


def _forward_backward(emissions: Tensor, mask: Tensor, transitions: Tensor, start: Tensor, end: Tensor) -> _Messages:
    """Compute both directions in one loop over the words."""
    batch, length = mask.shape
    device = emissions.device
    lengths = mask.sum(1)
    top = emissions.amax(-1, keepdim=True)
    emitted = (emissions - top).exp()
    highest = transitions.amax()
    weights = (transitions - highest).exp()
    both = torch.stack((weights, weights.T))
    # [T, 2, B, K]: messages to a word from its left (0) and, in reversed order, from its right (1), without its emission.
    steps = torch.stack((emitted, _reverse(emitted, lengths))).permute(2, 0, 1, 3).contiguous()
    messages = torch.empty_like(steps)
    messages[0] = torch.stack((start, end)).exp().unsqueeze(1)
    with torch.autocast(device.type, enabled=False), full_precision():
        for step in range(1, length):
            # Scaled by the first tag's message; the others are within e^40 of it.
            previous = messages[step - 1]
            torch.bmm((previous / previous[..., :1]).mul_(steps[step - 1]), both, out=messages[step])
    scales = messages[..., :1].log()
    messages = messages / messages[..., :1]
    forward = messages[:, 0].transpose(0, 1)
    backward = _reverse(messages[:, 1].transpose(0, 1), lengths)
    left, right = emitted * forward, emitted * backward
    marginals = left * backward
    marginals = (marginals / marginals.sum(-1, keepdim=True)).masked_fill(~mask.unsqueeze(-1), 0.0)
    # log Z at the last word: the scales up to it, its emission, the end transition, and the shifts.
    last = (lengths - 1).clamp(min=0)
    closing = (left[torch.arange(batch, device=device), last] * end.exp()).sum(-1).log()
    shifts = (scales[:, 0, :, 0].T + top.squeeze(-1)).masked_fill(~mask, 0.0).sum(1)
    partition = (closing + shifts + last * highest).masked_fill(lengths == 0, 0.0)
    left, right = left / left.amax(-1, keepdim=True), right / right.amax(-1, keepdim=True)
    return _Messages(partition, marginals, left, right, weights)


def _shift(emissions: Tensor) -> Tensor:
    """Shift each word's highest emission to 0, in float32: probabilities stay the same, and sums stay small and exact."""
    emissions = emissions.float()
    return emissions - emissions.detach().amax(-1, keepdim=True)


def _reverse(values: Tensor, lengths: Tensor) -> Tensor:
    """Reverse the words of each sentence in its row [B, T, K]; padding stays at the end."""
    batch, length, size = values.shape
    index = (lengths.unsqueeze(1) - 1 - torch.arange(length, device=values.device)).clamp(min=0)
    index = index + torch.arange(batch, device=values.device).unsqueeze(1) * length
    return values.reshape(-1, size).index_select(0, index.view(-1)).view(batch, length, size)


class _Partition(torch.autograd.Function):
    """log Z; its gradient is the expected number of uses of each emission and transition."""

    @staticmethod
    def forward(ctx: Any, emissions: Tensor, mask: Tensor, transitions: Tensor, start: Tensor, end: Tensor) -> Tensor:
        messages = _forward_backward(emissions, mask, transitions, start, end)
        ctx.save_for_backward(mask, messages.marginals, messages.left, messages.right, messages.weights)
        return messages.partition

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        mask, marginals, left, right, weights = ctx.saved_tensors
        unary = marginals * gradient.view(-1, 1, 1)
        with torch.autocast(gradient.device.type, enabled=False), full_precision():
            left, right = left[:, :-1], right[:, 1:]
            scale = gradient.view(-1, 1, 1) * mask[:, 1:].unsqueeze(-1) / (left * (right @ weights.T)).sum(-1, keepdim=True)
            pairs = weights * ((left * scale).flatten(0, 1).T @ right.flatten(0, 1))
        is_last = mask & ~torch.cat((mask[:, 1:], torch.zeros_like(mask[:, :1])), 1)
        return unary, None, pairs, unary[:, 0].sum(0), (unary * is_last.unsqueeze(-1)).sum((0, 1))
