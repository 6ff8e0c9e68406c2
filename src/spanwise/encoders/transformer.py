"""Any Hugging Face encoder: subwords to words, context, and windows over what is too long for it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import torch
from pydantic import BaseModel, ConfigDict, Field
from torch import Tensor, nn

from spanwise.core.errors import SpanwiseError
from spanwise.core.types import Sentence
from spanwise.encoders.base import Encoder, TokenStates
from spanwise.encoders.layers import LayerParts, layer_parts
from spanwise.encoders.pretrained import load_pretrained
from spanwise.encoders.rows import Context, Pooling, Rows, RowSettings
from spanwise.encoders.subwords import Ints, Subwords
from spanwise.encoders.tokenizing import WordTokenizer
from spanwise.runtime.cuda_graphs import GRAIN, Graphs
from spanwise.runtime.device import is_traced

# Architectures whose forward takes a complete mask and never waits for the device: their training steps can be recorded.
RECORDABLE = frozenset(("bert", "roberta", "xlm-roberta", "camembert", "electra"))
ROWS = 256  # read at once where no gradient is asked for: a text of many windows needs no more memory than a large batch


class TransformerSettings(BaseModel):
    """``pooling`` makes a word of its subwords; ``layers`` are averaged from the top; ``context`` is what fills the window."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    kind: Literal["transformer"] = "transformer"
    name: str
    pooling: Pooling = "max"
    layers: int = Field(default=1, ge=1)
    context: Context = "sentence"
    window: int | None = Field(default=None, ge=16, description="subwords read at once; the encoder's own limit when not given")
    frozen_embeddings: bool = Field(False, description="the embeddings do not learn")
    frozen_layers: int = Field(0, ge=0, description="the embeddings and so many lowest layers do not learn")


class TransformerEncoder(Encoder):
    """Words from a pretrained transformer; ``rows`` is what it does on the host."""

    def __init__(self, settings: TransformerSettings, model: Any, tokenizer: Any) -> None:
        super().__init__()
        self.model: Any = model
        self.settings, self.tokenizer = settings, tokenizer
        self.width = model.config.hidden_size
        depth = getattr(model.config, "num_hidden_layers", settings.layers)
        if settings.layers > depth:
            raise SpanwiseError(f"layers={settings.layers}, but the encoder has {depth} layers")
        self.rows = Rows(WordTokenizer.of(tokenizer), _row_settings(settings, model, tokenizer))
        self._is_recordable = model.config.model_type in RECORDABLE
        self._mask_type = torch.bool if self._is_recordable else torch.long  # some architectures count with it
        self._freeze()
        self.graphs: Graphs | None = None
        self.below = 0  # layers below the top whose states are handed out
        self._subwords = False  # whether states of subwords are, in place of words

    @classmethod
    def build(cls, settings: TransformerSettings, folder: Path | None = None) -> TransformerEncoder:
        """Load from a folder, a weight package or the hub. A run's ``folder`` gives the architecture, to be filled later."""
        return cls(settings, *load_pretrained(settings.name, folder))

    def save(self, folder: Path) -> None:
        self.model.config.save_pretrained(folder)
        self.tokenizer.save_pretrained(folder)

    def record_steps(self) -> None:
        if self._is_recordable:
            self.graphs = Graphs(self.model, self._read_recordable)

    def hand_out(self, *, layers: int = 0, subwords: bool = False) -> None:
        depth = self.model.config.num_hidden_layers
        if layers > depth:
            raise SpanwiseError(f"{layers} layers are asked for, but the encoder has {depth}")
        self.below, self._subwords = max(layers, self.below), subwords or self._subwords

    def layer_parts(self) -> list[LayerParts]:
        return layer_parts(self.model)

    def subword_counts(self, sentence: Sentence) -> Ints:
        return self.rows.tokenize([sentence.words])[0][1]

    def pretrained_parameters(self) -> Iterator[nn.Parameter]:
        parameters: Iterator[nn.Parameter] = self.model.parameters()
        return parameters

    def _freeze(self) -> None:
        layers = self.settings.frozen_layers
        if not layers and not self.settings.frozen_embeddings:
            return
        blocks = _blocks(self.model)
        if layers > len(blocks):
            raise SpanwiseError(f"frozen_layers={layers}, but the encoder has {len(blocks)} layers")
        for module in (self.model.embeddings, *blocks[:layers]):
            module.requires_grad_(False)

    # --- the host's part -------------------------------------------------------------------------------------------

    @property
    def window(self) -> int:
        """How many subwords are read at once."""
        return self.rows.settings.window

    def prepare(self, sentences: Sequence[Sentence], context: Sequence[Sentence] = ()) -> list[Subwords]:
        return self.rows.prepare(sentences, context)

    def cost(self, prepared: Subwords) -> int:
        return self.rows.cost(prepared)

    def collate(self, prepared: Sequence[Subwords]) -> dict[str, Tensor]:
        arrays = self.rows.collate(prepared, grain=1 if self.graphs is None else GRAIN, subwords=self._subwords)
        return {name: torch.from_numpy(array) for name, array in arrays.items()}

    # --- the device's part -----------------------------------------------------------------------------------------

    def forward(self, inputs: Mapping[str, Tensor]) -> TokenStates:
        return self.words(self.subwords(inputs["ids"], inputs["seen"]), inputs)

    def words(self, states: Tensor, inputs: Mapping[str, Tensor]) -> TokenStates:
        """What a head reads, from the states of all ``subwords``."""
        flat = states.flatten(0, 1)
        *below, words = torch.split(self._words(flat, inputs), self.width, -1)
        return TokenStates(words, flat[:, -self.width :].index_select(0, inputs["cls"]), inputs["mask"], tuple(below))

    def subwords(self, ids: Tensor, seen: Tensor) -> Tensor:
        """The states of all subwords; those of several layers are side by side, so that they are pooled together."""
        if is_traced() and self._is_recordable:
            return self._read_recordable(ids, seen)
        if self.graphs is not None and self.training and self.settings.layers == 1:
            recorded = self.graphs(ids, seen)
            if recorded is not None:
                return recorded
        if len(ids) > ROWS and not torch.is_grad_enabled():
            return torch.cat(
                [self.subwords(*part) for part in zip(torch.split(ids, ROWS), torch.split(seen, ROWS), strict=True)]
            )
        return self._read(ids, seen.to(self._mask_type))

    def _read_recordable(self, ids: Tensor, seen: Tensor) -> Tensor:
        rows, length = ids.shape
        # A mask that is complete already: building one from a padding mask makes the host wait for the device.
        return self._read(ids, seen[:, None, None, :].expand(rows, 1, length, length))

    def _read(self, ids: Tensor, mask: Tensor) -> Tensor:
        mixed, below = self.settings.layers, self.below
        output = self.model(input_ids=ids, attention_mask=mask, output_hidden_states=mixed > 1 or below > 0)
        top: Tensor = output.last_hidden_state
        if mixed > 1:
            top = torch.stack(output.hidden_states[-mixed:]).mean(0)
        return torch.cat([*output.hidden_states[-1 - below : -1], top], -1) if below else top

    def _words(self, flat: Tensor, inputs: Mapping[str, Tensor]) -> Tensor:
        """The states of words from those of their subwords."""
        first = inputs["first"]
        words = flat.index_select(0, first.flatten())
        for name in ("several", "deep"):
            if name in inputs:
                pooled = self._pool(flat, inputs[name], inputs[f"{name}_counts"])
                words = words.index_copy(0, inputs[f"{name}_words"], pooled)
        return words.view(*first.shape, -1)

    def _pool(self, flat: Tensor, index: Tensor, counts: Tensor) -> Tensor:
        """The states of words of several subwords, which ``index`` [n, depth] names."""
        pieces = flat.index_select(0, index.flatten()).view(*index.shape, flat.shape[1])  # there may be none
        if self.settings.pooling == "max":
            return pieces.amax(1)
        weight = (torch.arange(index.shape[1], device=flat.device) < counts.unsqueeze(1)) / counts.unsqueeze(1)
        return (pieces * weight.to(flat.dtype).unsqueeze(-1)).sum(1)


def _row_settings(settings: TransformerSettings, model: Any, tokenizer: Any) -> RowSettings:
    marked = tokenizer("a", return_special_tokens_mask=True)
    ids, inner = marked["input_ids"], [i for i, special in enumerate(marked["special_tokens_mask"]) if not special]
    return RowSettings(
        before=ids[: inner[0]],
        after=ids[inner[-1] + 1 :],
        padding=tokenizer.pad_token_id or 0,
        window=min(_limit(model, tokenizer), settings.window or 1 << 30),
        pooling=settings.pooling,
        context=settings.context,
    )


def _limit(model: Any, tokenizer: Any) -> int:
    """How many subwords the model reads at once. RoBERTa and its kin count positions from behind the padding's number."""
    positions = getattr(model.config, "max_position_embeddings", None) or -1
    table = getattr(getattr(model, "embeddings", None), "position_embeddings", None)
    padding = getattr(table, "padding_idx", None)
    if padding is not None:
        positions -= padding + 1
    return int(min(positions if positions > 0 else 1 << 30, tokenizer.model_max_length))


def _blocks(model: nn.Module) -> nn.ModuleList:
    """The stack of layers of a transformer, wherever its architecture keeps it."""
    stacks = [module for module in model.modules() if isinstance(module, nn.ModuleList)]
    if not stacks or not hasattr(model, "embeddings"):
        raise SpanwiseError(f"layers of {type(model).__name__} cannot be frozen: its stack of layers was not found")
    return max(stacks, key=len)
