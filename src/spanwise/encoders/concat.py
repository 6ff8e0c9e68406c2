"""Several encoders side by side: the states of a word are concatenated, and may pass a BiLSTM."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, Literal, Self

import torch
from pydantic import BaseModel, ConfigDict, Field
from torch import Tensor, nn

from spanwise.core.types import Sentence
from spanwise.encoders.base import Encoder, TokenStates
from spanwise.encoders.recurrent import BiLSTM, VariationalDropout, strongest


class ConcatSettings(BaseModel):
    """``parts`` are the settings of the encoders, each with its ``kind``; ``hidden`` 0 leaves the BiLSTM out."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    kind: Literal["concat"] = "concat"
    parts: tuple[dict[str, Any], ...] = Field(min_length=1)
    hidden: int = Field(0, ge=0, description="LSTM over the concatenated states, per direction; 0: none")
    layers: int = Field(1, ge=1, description="of that LSTM")
    dropout: float = Field(0.5, ge=0, lt=1, description="before, between and behind its layers, one mask per sentence")


class ConcatEncoder(Encoder):
    """A word's state is its states in all parts (a transformer and word vectors, say), side by side or under a BiLSTM.

    Locate and Label (Shen et al. 2021, section 2.1) is a transformer beside a ``StaticEncoder`` with ``layers=0, dropout=0``,
    under a BiLSTM of ``hidden=512``. Without a BiLSTM the sentence's state is those of the parts side by side, with one
    the maximum over its words' states.
    """

    def __init__(self, settings: ConcatSettings, parts: Sequence[Encoder]) -> None:
        super().__init__()
        self.settings = settings
        self.parts = nn.ModuleList(parts)
        self.width = sum(part.width for part in parts)
        self.dropout = VariationalDropout(settings.dropout)
        self.context: BiLSTM | None = None
        if settings.hidden:
            self.context = BiLSTM(self.width, settings.hidden, settings.layers, settings.dropout)
            self.width = self.context.width

    @classmethod
    def build(
        cls,
        settings: ConcatSettings,
        sentences: Sequence[Sentence],
        build_part: Callable[[Mapping[str, Any], Sequence[Sentence]], Encoder],
    ) -> Self:
        """A fresh encoder, each part made by ``build_part`` of its settings and the training sentences."""
        return cls(settings, [build_part(values, sentences) for values in settings.parts])

    @classmethod
    def load(cls, settings: ConcatSettings, folder: Path, load_part: Callable[[Mapping[str, Any], Path], Encoder]) -> Self:
        """The encoder that was saved there, its weights still to be filled, each part made by ``load_part``."""
        return cls(settings, [load_part(values, folder / _name(n)) for n, values in enumerate(settings.parts)])

    def save(self, folder: Path) -> None:
        """Each part into a folder of its own."""
        for number, part in enumerate(self._encoders):
            inner = folder / _name(number)
            inner.mkdir(parents=True, exist_ok=True)
            part.save(inner)

    @property
    def _encoders(self) -> list[Encoder]:
        return [part for part in self.parts if isinstance(part, Encoder)]

    def pretrained_parameters(self) -> Iterator[nn.Parameter]:
        return chain.from_iterable(part.pretrained_parameters() for part in self._encoders)

    def prepare(self, sentences: Sequence[Sentence], context: Sequence[Sentence] = ()) -> list[tuple[Any, ...]]:
        return list(zip(*(part.prepare(sentences, context) for part in self._encoders), strict=True))

    def cost(self, prepared: tuple[Any, ...]) -> int:
        return max(part.cost(item) for part, item in zip(self._encoders, prepared, strict=True))

    def collate(self, prepared: Sequence[tuple[Any, ...]]) -> dict[str, Tensor]:
        tensors: dict[str, Tensor] = {}
        for number, (part, items) in enumerate(zip(self._encoders, zip(*prepared, strict=True), strict=True)):
            tensors |= {f"{number}.{name}": tensor for name, tensor in part.collate(items).items()}
        # A part may pad further than another, but each has room for the longest sentence.
        masks = [tensors[f"{number}.mask"] for number in range(len(self.parts))]
        tensors["mask"] = min(masks, key=lambda mask: mask.shape[1])
        return tensors

    def forward(self, inputs: Mapping[str, Tensor]) -> TokenStates:
        mask = inputs["mask"]
        states = [part(_of_part(inputs, number)) for number, part in enumerate(self.parts)]
        words = torch.cat([state.words[:, : mask.shape[1]] for state in states], dim=2)
        if not self.context:
            return TokenStates(words, torch.cat([state.cls for state in states], dim=1), mask)
        words = self.dropout(self.context(self.dropout(words), mask.sum(1)))
        return TokenStates(words, strongest(words, mask), mask)


def _name(number: int) -> str:
    return f"part-{number}"


def _of_part(inputs: Mapping[str, Tensor], number: int) -> dict[str, Tensor]:
    prefix = f"{number}."
    return {name.removeprefix(prefix): tensor for name, tensor in inputs.items() if name.startswith(prefix)}
