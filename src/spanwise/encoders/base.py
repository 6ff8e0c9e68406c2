"""What an encoder is: words in, one state per word out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from torch import Tensor, nn

from spanwise.core.errors import SpanwiseError
from spanwise.core.types import Sentence
from spanwise.encoders.layers import LayerParts


@dataclass(slots=True)
class TokenStates:
    """States of a batch: ``words [B, T, d]``, ``cls [B, d]``, ``mask [B, T]`` (true where a word is).

    States behind a sentence's last word are whatever the encoder left there; every reader masks them.
    """

    words: Tensor
    cls: Tensor
    mask: Tensor
    layers: tuple[Tensor, ...] = ()  # the word states of the layers below the top, lowest first, where a head asks for them


class Encoder(nn.Module, ABC):
    """Turns prepared sentences into ``TokenStates``.

    The host does its part once per sentence (``prepare``) and once per batch (``collate``), in NumPy and plain tensors that
    worker processes may build; ``forward`` sees tensors only and never waits for the device.
    """

    width: int  # d, the size of a word's state
    is_context_free: bool = False  # whether a word's state depends on nothing but the word

    @abstractmethod
    def prepare(self, sentences: Sequence[Sentence], context: Sequence[Sentence] = ()) -> list[Any]:
        """What ``collate`` needs of each sentence; made once and kept. ``context`` holds other sentences of their documents."""

    @abstractmethod
    def collate(self, prepared: Sequence[Any]) -> dict[str, Tensor]:
        """The tensors of a batch, padded; ``mask`` [B, T] is always among them."""

    @abstractmethod
    def forward(self, inputs: Mapping[str, Tensor]) -> TokenStates: ...

    @abstractmethod
    def cost(self, prepared: Any) -> int:
        """How much work a prepared sentence is (its length as the encoder sees it), for batches of like lengths."""

    def pretrained_parameters(self) -> Iterator[nn.Parameter]:
        """The parameters that come from pretraining and learn at the lower rate."""
        return iter(())

    def hand_out(self, *, layers: int = 0, subwords: bool = False) -> None:
        """A head asks, when it is built, for the states of so many layers below the top, or of subwords in place of words."""
        if layers or subwords:
            raise SpanwiseError("this encoder has neither layers nor subwords to hand out: only a transformer has")

    def layer_parts(self) -> list[LayerParts]:
        """The encoder's own layers, lowest first, for a head that works with them or with copies."""
        raise SpanwiseError(
            "deep spans are made by a transformer's layers, and this encoder has none: take the recipe shallow-span, or a "
            "transformer as the encoder"
        )

    def subword_counts(self, sentence: Sentence) -> npt.NDArray[np.int64]:
        """Into how many subwords each word is split, where ``hand_out`` was asked for them."""
        raise NotImplementedError

    def record_steps(self) -> None:
        """Called before training on one CUDA device, where each batch's gradients are used before the next batch comes."""

    @abstractmethod
    def save(self, folder: Path) -> None:
        """Write what, besides the weights, is needed to build this encoder again (tokenizer, configuration, vocabulary)."""
