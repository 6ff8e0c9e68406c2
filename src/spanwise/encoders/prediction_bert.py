"""BERT and RoBERTa for prediction, without the transformers library, whose import takes seconds.

The modules have the names of the library, so that its weights fit, and compute the same numbers.
Only plain configurations that the library wrote itself are accepted; for all others the caller
uses the library.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, Self

import torch
from pydantic import BaseModel, ConfigDict, PositiveFloat, PositiveInt, ValidationError, model_validator
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention
from torch.overrides import TorchFunctionMode

from spanwise.runtime.cpu_linear import linear_add, linear_gelu

CONFIG = "config.json"
# Keys that do not change what the model computes. Any other key is a reason to use the library.
_UNUSED = frozenset((
    "_name_or_path", "architectures", "bos_token_id", "classifier_dropout", "cls_token_id", "dtype", "eos_token_id",
    "gradient_checkpointing", "initializer_range", "sep_token_id", "tie_word_embeddings", "torch_dtype",
    "transformers_version", "use_cache",
))  # fmt: skip


class BertConfig(BaseModel):
    """The content of ``config.json``."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, defer_build=True)

    model_type: Literal["bert", "roberta"]
    hidden_act: Literal["gelu"]
    hidden_size: PositiveInt
    intermediate_size: PositiveInt
    num_hidden_layers: PositiveInt
    num_attention_heads: PositiveInt
    vocab_size: PositiveInt
    type_vocab_size: PositiveInt
    max_position_embeddings: PositiveInt
    pad_token_id: int
    layer_norm_eps: PositiveFloat
    hidden_dropout_prob: float
    attention_probs_dropout_prob: float
    position_embedding_type: Literal["absolute"] = "absolute"
    is_decoder: Literal[False] = False
    add_cross_attention: Literal[False] = False

    @model_validator(mode="after")
    def _check_sizes(self) -> Self:
        if self.hidden_size % self.num_attention_heads:
            raise ValueError("hidden_size is not a multiple of num_attention_heads")
        if not 0 <= self.pad_token_id < min(self.vocab_size, self.max_position_embeddings):
            raise ValueError("pad_token_id is not a subword")
        return self

    @property
    def counts_padding(self) -> bool:
        """Whether positions start at 0. RoBERTa models number them from the padding index on."""
        return self.model_type == "bert"


def read_bert_config(folder: Path) -> BertConfig | None:
    """The configuration of a folder, or None if only the library can load it."""
    try:
        values = json.loads((folder / CONFIG).read_bytes())
        return BertConfig.model_validate({key: value for key, value in values.items() if key not in _UNUSED})
    except (OSError, ValueError, AttributeError, RecursionError, ValidationError):
        return None


class BertStates(NamedTuple):
    """The states of the last layer, and those of all layers, lowest first."""

    last_hidden_state: Tensor
    hidden_states: tuple[Tensor, ...]


class PredictionBert(nn.Module):
    """A BERT or RoBERTa model without dropout and without pooling layer; its weights are undefined until they are loaded."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.config = config
        with _Uninitialized():
            self.embeddings = _Embeddings(config)
            self.encoder = nn.Module()
            self.encoder.layer = nn.ModuleList(_Layer(config) for _ in range(config.num_hidden_layers))

    def get_input_embeddings(self) -> nn.Embedding:
        return self.embeddings.word_embeddings

    def forward(self, input_ids: Tensor, attention_mask: Tensor, output_hidden_states: bool = False) -> BertStates:
        """``attention_mask`` is [B, L], or [B, 1, L, L] for a full mask."""
        mask: Tensor | None = attention_mask
        if attention_mask.ndim == 2:
            rows, length = input_ids.shape
            is_full = bool(attention_mask.all())  # kernels without a mask are faster
            mask = None if is_full else attention_mask.bool()[:, None, None, :].expand(rows, 1, length, length)
        states = self.embeddings(input_ids)
        all_states = [states]
        for layer in self.encoder.layer:  # type: ignore[union-attr]
            states = layer(states, mask)
            all_states.append(states)
        return BertStates(states, tuple(all_states) if output_hidden_states else ())


class _Embeddings(nn.Module):
    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        width, padding = config.hidden_size, config.pad_token_id
        self.padding = None if config.counts_padding else padding
        self.word_embeddings = nn.Embedding(config.vocab_size, width, padding_idx=padding)
        self.position_embeddings = nn.Embedding(config.max_position_embeddings, width, padding_idx=self.padding)
        self.token_type_embeddings = nn.Embedding(config.type_vocab_size, width)
        self.LayerNorm = nn.LayerNorm(width, eps=config.layer_norm_eps)

    def forward(self, ids: Tensor) -> Tensor:
        if self.padding is None:
            positions = torch.arange(ids.shape[1], device=ids.device)[None]
        else:
            is_subword = ids.ne(self.padding)
            positions = is_subword.cumsum(1) * is_subword + self.padding
        states = self.word_embeddings(ids) + self.token_type_embeddings.weight[0] + self.position_embeddings(positions)
        normalized: Tensor = self.LayerNorm(states)
        return normalized


class _Layer(nn.Module):
    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        width, inner = config.hidden_size, config.intermediate_size
        self.heads = config.num_attention_heads
        self.attention = nn.Module()
        self.attention.self = nn.ModuleDict({name: nn.Linear(width, width) for name in ("query", "key", "value")})
        self.attention.output = _Residual(width, width, config.layer_norm_eps)
        self.intermediate = nn.Module()
        self.intermediate.dense = nn.Linear(width, inner)
        self.intermediate.intermediate_act_fn = nn.GELU()
        self.output = _Residual(inner, width, config.layer_norm_eps)

    def forward(self, states: Tensor, mask: Tensor | None) -> Tensor:
        query, key, value = (
            project(states).unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for project in self.attention.self.children()  # type: ignore[union-attr]
        )
        mixed = scaled_dot_product_attention(query, key, value, attn_mask=mask).transpose(1, 2).flatten(2)
        states = self.attention.output(mixed, states)  # type: ignore[operator]
        inner = linear_gelu(states, self.intermediate.dense)  # type: ignore[arg-type]
        output: Tensor = self.output(inner, states)
        return output


class _Residual(nn.Module):
    """A linear layer, the sum with the input of the block, and a norm."""

    def __init__(self, size: int, width: int, epsilon: float) -> None:
        super().__init__()
        self.dense = nn.Linear(size, width)
        self.LayerNorm = nn.LayerNorm(width, eps=epsilon)

    def forward(self, states: Tensor, before: Tensor) -> Tensor:
        normalized: Tensor = self.LayerNorm(linear_add(states, self.dense, before))
        return normalized


class _Uninitialized(TorchFunctionMode):
    """Inside this context, new weights get no random numbers, which the weights of a file would replace anyway."""

    def __torch_function__(
        self, func: Any, types: Sequence[type], args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        if func in (nn.init.normal_, nn.init.uniform_, nn.init.kaiming_uniform_, Tensor.normal_, Tensor.uniform_):
            return args[0] if args else (kwargs or {})["tensor"]
        return func(*args, **(kwargs or {}))
