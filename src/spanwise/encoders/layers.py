"""The layers of a transformer under the same names for every architecture."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from torch import Tensor, nn

from spanwise.core.errors import SpanwiseError

_BERT = {
    "query": "attention.self.query",
    "key": "attention.self.key",
    "value": "attention.self.value",
    "mixing": "attention.output.dense",
    "mixing_norm": "attention.output.LayerNorm",
    "inner": "intermediate.dense",
    "outer": "output.dense",
    "outer_norm": "output.LayerNorm",
}
_MPNET = _BERT | {
    "query": "attention.attn.q",
    "key": "attention.attn.k",
    "value": "attention.attn.v",
    "mixing": "attention.attn.o",
    "mixing_norm": "attention.LayerNorm",
}
# Architectures with post-norm layers of attention and a feed-forward network. MPNet also adds a
# bias for the distance of query and key to its attention; the bias belongs to the whole stack, not
# to a layer.
NAMES = {
    **dict.fromkeys(("bert", "roberta", "xlm-roberta", "camembert", "electra", "ernie", "data2vec-text"), _BERT),
    "mpnet": _MPNET,
}


@dataclass(frozen=True)
class LayerParts:
    """The modules of one layer (the encoder's own modules, unless copied) and its hyperparameters."""

    modules: dict[str, nn.Module]  # linear layers and norms by the names above
    activation: Callable[[Tensor], Tensor]
    heads: int
    dropout: float  # before each residual connection
    attention_dropout: float


def layer_parts(model: Any) -> list[LayerParts]:
    """The layers of a Hugging Face encoder, lowest first.

    >>> from transformers import BertConfig, BertModel
    >>> small = BertConfig(hidden_size=8, num_hidden_layers=2, num_attention_heads=2, intermediate_size=16, vocab_size=9)
    >>> first, second = layer_parts(BertModel(small))
    >>> first.heads, first.modules["inner"]
    (2, Linear(in_features=8, out_features=16, bias=True))
    """
    config = model.config
    names = NAMES.get(config.model_type)
    if names is None:
        raise SpanwiseError(
            f"deep spans cannot copy the layers of a {config.model_type} encoder, only those of {', '.join(NAMES)}; "
            "use the recipe shallow-span, which works with any encoder"
        )
    return [
        LayerParts(
            {name: attrgetter(path)(block) for name, path in names.items()},
            block.intermediate.intermediate_act_fn,
            config.num_attention_heads,
            config.hidden_dropout_prob,
            config.attention_probs_dropout_prob,
        )
        for block in model.encoder.layer
    ]


def layer_stack(model: nn.Module) -> nn.ModuleList:
    """The stack of layers of a transformer of any architecture."""
    stacks = [module for module in model.modules() if isinstance(module, nn.ModuleList)]
    if not stacks or not hasattr(model, "embeddings"):
        raise SpanwiseError(f"cannot freeze layers of {type(model).__name__}: no stack of layers found; use frozen_layers=0")
    return max(stacks, key=len)
