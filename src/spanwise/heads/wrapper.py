"""Base of heads that are built around another head."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping

from torch import Tensor

from spanwise.core.types import Sentence
from spanwise.decoding.decode import Policy, Predictions
from spanwise.encoders.base import TokenStates
from spanwise.heads.base import Head
from spanwise.heads.onnx import OnnxGraph
from spanwise.heads.outputs import ScoredSpans


class HeadWrapper(Head):
    """A head around the head that predicts its (contiguous) entities, ``wrapped``.

    Prediction is delegated to ``wrapped``; a subclass adds its own idea. Abilities are not
    delegated: ``find_ability`` finds them in ``wrapped``.
    """

    #: Targets of ``wrapped`` are named ``"{wrapped_name}.{key}"`` among those of the wrapper. None: ``key``.
    wrapped_name: str | None = None

    @property
    @abstractmethod
    def wrapped(self) -> Head:
        """The head that predicts entities."""

    def wrapped_targets(self, targets: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
        """The targets of ``wrapped`` among those of the wrapper."""
        return targets if self.wrapped_name is None else select_targets(targets, self.wrapped_name)

    def score(self, states: TokenStates, targets: Mapping[str, Tensor]) -> ScoredSpans:
        return self.wrapped.score(states, self.wrapped_targets(targets))

    def decode(self, scored: ScoredSpans, count: int) -> list[Predictions]:
        return self.wrapped.decode(scored, count)

    def count_unreachable(self, sentence: Sentence) -> int:
        return self.wrapped.count_unreachable(sentence)

    @property
    def decoding(self) -> Policy:  # type: ignore[override]  # read-only: it is the wrapped head's
        return self.wrapped.decoding

    @property
    def widest_span(self) -> str | None:
        return self.wrapped.widest_span

    @property
    def discontinuous_types(self) -> tuple[str, ...]:
        return self.wrapped.discontinuous_types

    @property
    def onnx(self) -> OnnxGraph | str:
        return self.wrapped.onnx


def name_targets(name: str, targets: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Prefix the keys of targets with a name; ``select_targets`` is the inverse.

    >>> import torch
    >>> name_targets("span", {"start": torch.zeros(2)})
    {'span.start': tensor([0., 0.])}
    """
    return {f"{name}.{key}": value for key, value in targets.items()}


def select_targets(targets: Mapping[str, Tensor], name: str) -> dict[str, Tensor]:
    """The targets whose key starts with a name, without it.

    >>> import torch
    >>> select_targets({"span.start": torch.zeros(2), "sequence.tags": torch.zeros(3)}, "span")
    {'start': tensor([0., 0.])}
    """
    return {key.removeprefix(f"{name}."): value for key, value in targets.items() if key.startswith(f"{name}.")}
