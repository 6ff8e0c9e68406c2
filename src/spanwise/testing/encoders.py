"""Tiny encoders for tests; none needs a download."""

from __future__ import annotations

from pathlib import Path
from string import ascii_lowercase

import torch

from spanwise.testing.corpus import DRUGS, FILLERS, PLACES

#: Overrides that make the static encoder small.
STATIC = ("encoder.word_size=16", "encoder.char_hidden=4", "encoder.hidden=16", "encoder.dropout=0.2")
WINDOW = 64


def tiny_bert(folder: Path, *, window: int = WINDOW, layers: int = 3) -> Path:
    """Write a random BERT of width 32 to a folder; unknown words are split into letters."""
    from transformers import BertConfig, BertModel, BertTokenizerFast  # type: ignore[attr-defined]

    folder.mkdir(parents=True, exist_ok=True)
    letters = [*ascii_lowercase, *"0123456789.,-"]
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *FILLERS, *PLACES, *DRUGS, *letters, *(f"##{x}" for x in letters)]
    vocabulary = folder / "vocab.txt"
    vocabulary.write_text("\n".join(dict.fromkeys(words)) + "\n", encoding="utf-8")
    tokenizer = BertTokenizerFast(vocab=str(vocabulary), model_max_length=window)
    tokenizer.save_pretrained(folder)
    torch.manual_seed(3)
    config = BertConfig(
        vocab_size=len(tokenizer), hidden_size=32, num_hidden_layers=layers, num_attention_heads=2, intermediate_size=64,
        max_position_embeddings=window,
    )  # fmt: skip
    model = BertModel(config, add_pooling_layer=False)  # type: ignore[no-untyped-call]
    with torch.no_grad():  # larger weights than the initial ones, so that the context of a word matters
        for parameter in model.parameters():
            if parameter.ndim > 1:
                parameter.mul_(8)
    model.save_pretrained(folder)
    return folder
