"""The interface of encoders: words in, one state per word out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel
from torch import Tensor, nn

from spanwise.core.errors import SpanwiseError
from spanwise.core.types import Sentence
from spanwise.encoders.fixed_shapes import SizeTable
from spanwise.encoders.layers import LayerParts


@dataclass(slots=True)
class TokenStates:
    """The states of a batch: ``words [B, T, d]``, ``cls [B, d]`` and ``mask [B, T]``, which is true for words.

    The states of padding are undefined, so every user of them applies the mask. Few heads read ``cls``, so an
    encoder may give a function that computes it.

    >>> import torch
    >>> states = TokenStates(torch.zeros(1, 3, 2), lambda: torch.ones(1, 2), torch.ones(1, 3, dtype=torch.bool))
    >>> states.cls
    tensor([[1., 1.]])
    """

    words: Tensor
    sentence: Tensor | Callable[[], Tensor]
    mask: Tensor
    layers: tuple[Tensor, ...] = ()  # word states of lower layers, lowest first, if a head requested them

    @property
    def cls(self) -> Tensor:
        """The state of each sentence [B, d]."""
        if not isinstance(self.sentence, Tensor):
            self.sentence = self.sentence()
        return self.sentence


class Encoder(nn.Module, ABC):
    """Base of all encoders, which turn prepared sentences into ``TokenStates``.

    The host does its part once per sentence (``prepare``) and once per batch (``collate``), in NumPy
    and plain tensors that worker processes may build. ``forward`` receives tensors only and never
    waits for the device.
    """

    settings_class: ClassVar[type[BaseModel]]  # its field ``kind`` is the name of the encoder
    width: int  # d, the size of a word's state
    is_context_free: bool = False  # true if a word's state depends on the word alone

    @classmethod
    def build(cls, settings: Any, sentences: Sequence[Sentence], log: Callable[[str], None]) -> Encoder:
        """Build a new encoder for training on the sentences; ``log`` reports slow steps."""
        raise NotImplementedError

    @classmethod
    def load(cls, settings: Any, folder: Path) -> Encoder:
        """Rebuild the encoder that ``save`` wrote to a folder; its weights are loaded later."""
        raise NotImplementedError

    @classmethod
    def load_for_prediction(cls, settings: Any, folder: Path) -> Encoder:
        """Like ``load``, for an encoder that is never trained, which may load faster."""
        return cls.load(settings, folder)

    @abstractmethod
    def save(self, folder: Path) -> None:
        """Write everything that ``load`` needs except the weights (tokenizer, configuration, vocabulary)."""

    @abstractmethod
    def prepare(self, sentences: Sequence[Sentence], context: Sequence[Sentence] = ()) -> list[Any]:
        """Convert each sentence, once, to the item that ``collate`` needs. ``context`` has other sentences of the documents."""

    @abstractmethod
    def collate(self, prepared: Sequence[Any]) -> dict[str, Tensor]:
        """The padded tensors of a batch, always with ``mask`` [B, T]."""

    @abstractmethod
    def forward(self, inputs: Mapping[str, Tensor]) -> TokenStates: ...

    @abstractmethod
    def cost(self, prepared: Any) -> int:
        """The length of a prepared sentence in the encoder's units, for batches of similar lengths."""

    @contextmanager
    def shared_work(self, prepared: Sequence[Any]) -> Iterator[None]:
        """Do work within the context that batches of these sentences share. For prediction, in evaluation mode."""
        yield

    def pretrained_parameters(self) -> Iterator[nn.Parameter]:
        """The pretrained parameters, which are trained at the lower learning rate."""
        return iter(())

    def embeddings(self) -> Iterator[Tensor]:
        """The embedding tables of words, subwords and characters, which adversarial training perturbs."""
        return iter(())

    def request_outputs(self, *, layers: int = 0, subwords: bool = False) -> None:
        """Also return the states of this many lower layers, or the states of subwords instead of words.

        A head calls this when it is built.
        """
        if layers or subwords:
            raise SpanwiseError("this encoder does not provide states of layers or subwords; use a transformer encoder")

    def layer_parts(self) -> list[LayerParts]:
        """The layers of the encoder, lowest first, for a head that shares or copies them."""
        raise SpanwiseError(
            "deep spans need the layers of a transformer, but this encoder has none; use the recipe shallow-span or a "
            "transformer encoder"
        )

    def subword_counts(self, sentence: Sentence) -> npt.NDArray[np.int64]:
        """The number of subwords of each word. Called only if states of subwords were requested."""
        raise NotImplementedError

    def enable_cuda_graphs(self) -> None:
        """Record training steps as CUDA graphs, if supported.

        Called before training on one CUDA device without gradient accumulation.
        """

    def size_table(self, prepared: Sequence[Any]) -> SizeTable | None:
        """The sizes of each sentence from which those of a batch follow.

        None if a whole training step with this encoder cannot be recorded as a CUDA graph: its forward
        pass needs sizes on the host.
        """
        return None

    def pad(self, inputs: Mapping[str, Tensor], sizes: Mapping[str, int]) -> dict[str, Tensor]:
        """Pad the tensors of a batch to ``sizes``, named as in ``size_table``, so that the states of words do not change."""
        raise NotImplementedError

    def enable_step_graphs(self) -> None:
        """Prepare for recording whole training steps. Called if ``size_table`` is not None."""
