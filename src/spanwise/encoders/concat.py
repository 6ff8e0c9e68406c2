"""An encoder of several encoders: concatenated word states, optionally followed by a BiLSTM."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial, reduce
from itertools import chain
from pathlib import Path
from typing import Any, Literal, Self

import torch
from pydantic import BaseModel, ConfigDict, Field
from torch import Tensor, nn

from spanwise.core.types import Sentence
from spanwise.encoders import build_encoder, load_encoder, resolve_encoder
from spanwise.encoders.base import Encoder, TokenStates
from spanwise.encoders.fixed_shapes import SizeTable
from spanwise.encoders.joint_indexing import JointIndexer, common_mask, name_arrays, part_folder, select_arrays
from spanwise.encoders.recurrent import BiLSTM, VariationalDropout, masked_max


class ConcatSettings(BaseModel):
    """``parts`` are the settings of the encoders, each with its ``kind``. With ``hidden`` 0 there is no BiLSTM."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    kind: Literal["concat"] = Field(default="concat", description="kind of encoder")
    parts: tuple[dict[str, Any], ...] = Field(
        min_length=1, description="the encoders whose states are concatenated, each with its kind and settings"
    )
    hidden: int = Field(0, ge=0, description="size of the LSTM over the concatenated states, per direction; 0: no LSTM")
    layers: int = Field(1, ge=1, description="layers of that LSTM")
    dropout: float = Field(0.5, ge=0, lt=1, description="dropout around and between its layers, one mask per sentence")

    def resolve(self, sentence_count: int) -> Self:
        """Set the automatic settings of the parts."""
        return self.model_copy(update={"parts": tuple(resolve_encoder(part, sentence_count) for part in self.parts)})


class ConcatEncoder(Encoder):
    """The concatenated states of several encoders, for example of a transformer and of word vectors.

    Use it to give an encoder what it lacks: the default recipe adds characters, and with them case
    and spelling, to an uncased transformer.

    Locate and Label (Shen et al. 2021, section 2.1) uses a transformer and a ``StaticEncoder`` with
    ``layers=0, dropout=0``, followed by a BiLSTM with ``hidden=512``. The state of the sentence is
    the concatenation of the parts' sentence states or, with a BiLSTM, the maximum over the states
    of its words.

    >>> parts = [{"kind": "static", "hidden": 8}, {"kind": "static", "hidden": 4}]
    >>> sentences = [Sentence("s1", ("aspirin", "helps"))]
    >>> encoder = ConcatEncoder.build(ConcatSettings(parts=parts), sentences)
    >>> encoder(encoder.collate(encoder.prepare(sentences))).words.shape  # 2 * 8 + 2 * 4 values for each word
    torch.Size([1, 2, 24])
    """

    settings_class = ConcatSettings

    def __init__(self, settings: ConcatSettings, parts: Sequence[Encoder]) -> None:
        super().__init__()
        self.settings = settings
        self.parts = nn.ModuleList(parts)
        self.indexer = JointIndexer(parts)  # the host part of all encoders
        self.width = sum(part.width for part in parts)
        self.dropout = VariationalDropout(settings.dropout)
        self.context: BiLSTM | None = None
        if settings.hidden:
            self.context = BiLSTM(self.width, settings.hidden, settings.layers, settings.dropout)
            self.width = self.context.width

    @classmethod
    def build(
        cls, settings: ConcatSettings, sentences: Sequence[Sentence], log: Callable[[str], None] = lambda line: None
    ) -> Self:
        return cls(settings, [build_encoder(values, sentences, log) for values in settings.parts])

    @classmethod
    def load(cls, settings: ConcatSettings, folder: Path) -> Self:
        return cls._load(settings, folder, only_predicts=False)

    @classmethod
    def load_for_prediction(cls, settings: ConcatSettings, folder: Path) -> Self:
        return cls._load(settings, folder, only_predicts=True)

    @classmethod
    def _load(cls, settings: ConcatSettings, folder: Path, *, only_predicts: bool) -> Self:
        folders = [(values, folder / part_folder(index)) for index, values in enumerate(settings.parts)]
        return cls(settings, [load_encoder(values, part, only_predicts=only_predicts) for values, part in folders])

    def save(self, folder: Path) -> None:
        """Save each part in its own folder."""
        for index, part in enumerate(self._encoders):
            target = folder / part_folder(index)
            target.mkdir(parents=True, exist_ok=True)
            part.save(target)

    @property
    def _encoders(self) -> list[Encoder]:
        return [part for part in self.parts if isinstance(part, Encoder)]

    def pretrained_parameters(self) -> Iterator[nn.Parameter]:
        return chain.from_iterable(part.pretrained_parameters() for part in self._encoders)

    def embeddings(self) -> Iterator[Tensor]:
        return chain.from_iterable(part.embeddings() for part in self._encoders)

    def enable_cuda_graphs(self) -> None:
        for part in self._encoders:
            part.enable_cuda_graphs()

    def prepare(self, sentences: Sequence[Sentence], context: Sequence[Sentence] = ()) -> list[tuple[Any, ...]]:
        return self.indexer.prepare(sentences, context)

    def cost(self, prepared: tuple[Any, ...]) -> int:
        return self.indexer.cost(prepared)

    def collate(self, prepared: Sequence[tuple[Any, ...]]) -> dict[str, Tensor]:
        return self.indexer.collate(prepared)

    @contextmanager
    def shared_work(self, prepared: Sequence[tuple[Any, ...]]) -> Iterator[None]:
        with ExitStack() as stack:
            for part, items in zip(self._encoders, zip(*prepared, strict=True), strict=False):  # no items without sentences
                stack.enter_context(part.shared_work(items))
            yield

    def size_table(self, prepared: Sequence[tuple[Any, ...]]) -> SizeTable | None:
        columns = zip(*prepared, strict=True)
        tables = [part.size_table(items) for part, items in zip(self._encoders, columns, strict=True)]
        if self.context or not tables or None in tables:
            return None
        named = [table.prefixed(f"{index}.") for index, table in enumerate(tables) if table]
        return reduce(SizeTable.join, named)

    def pad(self, inputs: Mapping[str, Tensor], sizes: Mapping[str, int]) -> dict[str, Tensor]:
        padded: dict[str, Tensor] = {}
        for index, part in enumerate(self._encoders):
            arrays = part.pad(select_arrays(inputs, index), select_arrays(sizes, index))
            padded |= name_arrays(arrays, index)
        masks = [padded[f"{index}.mask"] for index in range(len(self.parts))]
        return padded | {"mask": common_mask(masks)}

    def enable_step_graphs(self) -> None:
        for part in self._encoders:
            part.enable_step_graphs()

    def forward(self, inputs: Mapping[str, Tensor]) -> TokenStates:
        states = [part(select_arrays(inputs, index)) for index, part in enumerate(self.parts)]
        return self.join(states, inputs["mask"])

    def join(self, states: Sequence[TokenStates], mask: Tensor) -> TokenStates:
        """The states of all parts together: concatenated, and read by the BiLSTM."""
        words = torch.cat([state.words[:, : mask.shape[1]] for state in states], dim=2)
        if not self.context:
            return TokenStates(words, lambda: torch.cat([state.cls for state in states], dim=1), mask)
        words = self.dropout(self.context(self.dropout(words), mask.sum(1)))
        return TokenStates(words, partial(masked_max, words, mask), mask)
