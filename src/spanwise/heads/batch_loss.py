"""The loss of a batch, kept per sentence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import reduce
from operator import add

from torch import Tensor


@dataclass(slots=True)
class Losses:
    """The loss of each sentence of a batch: a sum over its instances, and how many there are.

    Training minimises ``mean``. ``sums`` and ``counts`` of a sentence do not depend on the other
    sentences of its batch.

    A head that averages over something larger than its instances (Biaffine sums over the spans of a
    sentence and averages over sentences) also gives ``instance_counts``. Wrappers that weigh several
    losses against each other use ``mean_per_instance``, which is comparable between heads.

    >>> from torch import tensor
    >>> losses = Losses(tensor([2.0, 4.0]), counts=tensor([1.0, 1.0]), instance_counts=tensor([4.0, 8.0]))
    >>> float(losses.mean), float(losses.mean_per_instance)
    (3.0, 0.5)
    """

    #: [B], the loss of each sentence, summed over its instances (words, spans, pairs).
    sums: Tensor
    #: [B], how many units ``mean`` averages over: instances, or 1 for each sentence that has words.
    counts: Tensor
    #: Mean of each term, by name. For the log only.
    parts: dict[str, Tensor] = field(default_factory=dict)
    #: The mean of the batch, where it is a weighted sum of means instead of ``sums`` / ``counts``.
    weighted_mean: Tensor | None = None
    #: [B], how many instances each sentence has, where ``counts`` counts larger units.
    instance_counts: Tensor | None = None

    @property
    def mean(self) -> Tensor:
        """The loss of the batch, which training minimises."""
        return self.sums.sum() / self.counts.sum().clamp(min=1) if self.weighted_mean is None else self.weighted_mean

    @property
    def mean_per_instance(self) -> Tensor:
        """The loss of the batch as a mean over instances."""
        if self.instance_counts is None:
            return self.mean
        return self.sums.sum() / self.instance_counts.sum().clamp(min=1)

    @property
    def instances(self) -> Tensor:
        """[B], how many instances each sentence has."""
        return self.counts if self.instance_counts is None else self.instance_counts

    @classmethod
    def weighted_sum(cls, terms: Mapping[str, tuple[float, Losses]]) -> Losses:
        """Add the means per instance of several losses, given as ``name: (weight, losses)``.

        ``mean`` is the weighted sum of the means of the batch. The instances are those of the first
        term: the sum of a sentence is the weighted sum of its means, times its number of them.

        >>> from torch import tensor
        >>> words, spans = Losses(tensor([2.0, 0.0]), tensor([4.0, 4.0])), Losses(tensor([1.0, 1.0]), tensor([1.0, 2.0]))
        >>> losses = Losses.weighted_sum({"words": (0.5, words), "spans": (1.0, spans)})
        >>> float(losses.mean), losses.sums.tolist()
        (0.7916666865348816, [5.0, 2.0])
        """
        means = {name: losses.mean_per_instance for name, (_, losses) in terms.items()}
        parts = {f"{name}.{part}": value for name, (_, losses) in terms.items() for part, value in losses.parts.items()}
        sentence_means = [weight * losses.sums / losses.instances.clamp(min=1) for weight, losses in terms.values()]
        total = reduce(add, [weight * means[name] for name, (weight, _) in terms.items()])
        _, first = next(iter(terms.values()))
        return cls(reduce(add, sentence_means) * first.instances, first.instances, means | parts, total)

    def with_terms(self, name: str, terms: Mapping[str, Losses]) -> Losses:
        """Add the sentence means of further terms to this loss, which is logged as ``name``.

        The counts stay the same, so that a bundle weighs the result like this loss alone.

        >>> from torch import tensor
        >>> spans, links = Losses(tensor([2.0, 0.0]), tensor([4.0, 4.0])), Losses(tensor([1.0, 0.0]), tensor([1.0, 1.0]))
        >>> losses = spans.with_terms("spans", {"links": links})
        >>> float(losses.mean), losses.sums.tolist()
        (0.75, [6.0, 0.0])
        """
        sums, total, parts = self.sums, self.weighted_mean, {name: self.mean, **self.parts}
        for term, losses in terms.items():
            sums = sums + losses.sums / losses.counts.clamp(min=1) * self.counts
            total = None if total is None else total + losses.mean
            parts[term] = losses.mean
        return Losses(sums, self.counts, parts, total, self.instance_counts)
