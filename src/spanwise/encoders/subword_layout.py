"""The rows of subwords that a Hugging Face encoder reads: special tokens, padding and the longest input."""

from __future__ import annotations

from typing import Any

from spanwise.config.validation import validate_settings
from spanwise.core.errors import SpanwiseError
from spanwise.encoders.subword_indexing import SubwordSettings
from spanwise.encoders.transformer_settings import TransformerSettings


def subword_settings(settings: TransformerSettings, model: Any, tokenizer: Any) -> SubwordSettings:
    """The layout of an encoder's rows, as its tokenizer and model define it."""
    marked = tokenizer("a", return_special_tokens_mask=True)
    ids, inner = marked["input_ids"], [i for i, special in enumerate(marked["special_tokens_mask"]) if not special]
    if not inner:
        raise SpanwiseError(f"encoder {settings.name}: the tokenizer returns no subwords for a word")
    layout = {
        "before": ids[: inner[0]],
        "after": ids[inner[-1] + 1 :],
        "padding": tokenizer.pad_token_id or 0,
        "window": min(longest_input(model, tokenizer), settings.window or 1 << 30),
        "pooling": settings.pooling,
        "context": settings.context,
    }
    return validate_settings(SubwordSettings, layout, f"encoder {settings.name}")


def longest_input(model: Any, tokenizer: Any) -> int:
    """The longest input of the model in subwords. RoBERTa models number positions from the padding index on."""
    positions = getattr(model.config, "max_position_embeddings", None) or -1
    table = getattr(getattr(model, "embeddings", None), "position_embeddings", None)
    padding = getattr(table, "padding_idx", None)
    if padding is not None:
        positions -= padding + 1
    return int(min(positions if positions > 0 else 1 << 30, tokenizer.model_max_length))
