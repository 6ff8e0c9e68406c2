"""A transformer's layers taken apart: their pieces by one set of names, whatever an architecture calls them."""

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
# Architectures whose layers are attention and a feed-forward network, a norm behind the residual of each. MPNet adds a bias by
# the distance of query and key to its attention; it belongs to the whole stack and is no part of a layer.
NAMES = {
    **dict.fromkeys(("bert", "roberta", "xlm-roberta", "camembert", "electra", "ernie", "data2vec-text"), _BERT),
    "mpnet": _MPNET,
}


@dataclass(frozen=True)
class LayerParts:
    """The modules of one layer (the encoder's very own, unless copied) and what else it takes to run it."""

    modules: dict[str, nn.Module]  # linear maps and norms by the names above
    activation: Callable[[Tensor], Tensor]
    heads: int
    dropout: float  # of what is added to a residual
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
            f"the layers of a {config.model_type} encoder cannot be copied for deep spans, only those of {', '.join(NAMES)}; "
            "the recipe shallow-span works with any encoder"
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
