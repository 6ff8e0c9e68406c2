"""Encoders, heads and batches for the tests of deep spans, pruned or not."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tiny import mixed_sentences
from torch import Tensor

from spanwise.batching.batches import make_batch
from spanwise.core.types import Sentence
from spanwise.encoders.base import TokenStates
from spanwise.encoders.transformer import TransformerEncoder, TransformerSettings
from spanwise.heads.base import Head, Labels
from spanwise.heads.deep_settings import DeepSpanSettings, ShallowSpanSettings
from spanwise.heads.deep_span import DeepSpan, ShallowSpan

LABELS = Labels(("Drug", "Place"))
SENTENCES = mixed_sentences()


def encoder_of(architecture: str, folder: Path, **values: Any) -> TransformerEncoder:
    """A random encoder of an architecture, three layers, with the tokenizer of the folder's BERT."""
    from transformers import AutoConfig, AutoModel, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    config = AutoConfig.for_model(
        architecture, vocab_size=len(tokenizer), hidden_size=32, num_hidden_layers=3, num_attention_heads=2,
        intermediate_size=64, max_position_embeddings=80, pad_token_id=0, relative_attention_num_buckets=32,
    )  # fmt: skip
    torch.manual_seed(5)
    model = AutoModel.from_config(config)
    with torch.no_grad():  # larger weights than a fresh model's, so that attention is not even
        for parameter in model.parameters():
            if parameter.ndim > 1:
                parameter.mul_(6)
    return TransformerEncoder(TransformerSettings(name=architecture, **values), model, tokenizer).eval()


def made(encoder: TransformerEncoder, kind: type[DeepSpan] = DeepSpan, **options: Any) -> DeepSpan:
    torch.manual_seed(7)
    values = {"max_width": 5, "decoding": "nested", "lstm": 6, "hidden": 10, **options}
    settings_class = ShallowSpanSettings if kind is ShallowSpan else DeepSpanSettings
    return kind.build(encoder, LABELS, settings_class(**values)).eval()


def read(encoder: TransformerEncoder, head: Head, gold: bool = False, chosen: Any = SENTENCES) -> tuple[TokenStates, Any]:
    batch = make_batch(encoder, head, chosen, encoder.prepare(chosen), np.arange(len(chosen)), gold=gold)
    return encoder(batch.inputs), batch.targets


def logits(head: DeepSpan, states: TokenStates, targets: Any) -> dict[tuple[int, int, int], Tensor]:
    places, vectors = head.represent(states, targets)
    actual = head.class_logits(vectors)
    rows = zip(*(column.tolist() for column in places[:3]), strict=True)
    return {row: actual[n] for n, row in enumerate(rows) if places.is_span[n]}


def check_alone_and_together(encoder: TransformerEncoder, head: Head) -> None:
    def actual(states: TokenStates, targets: Any) -> dict[int, dict[tuple[int, int, int], float]]:
        scored = head.score(states, targets)
        result: dict[int, dict[tuple[int, int, int], float]] = {}
        columns = (scored.sentence, scored.start, scored.end, scored.label, scored.score)
        for number, start, end, label, score in zip(*(column.tolist() for column in columns), strict=True):
            result.setdefault(number, {})[start, end, label] = score
        return result

    losses = head.loss(*read(encoder, head, gold=True))
    together = actual(*read(encoder, head))
    assert together
    for number, sentence in enumerate(SENTENCES):
        alone = head.loss(*read(encoder, head, gold=True, chosen=[sentence]))
        torch.testing.assert_close(losses.sums[number], alone.sums[0], rtol=1e-4, atol=1e-4)
        assert losses.counts[number] == alone.counts[0]
        own = actual(*read(encoder, head, chosen=[sentence])).get(0, {})
        assert own.keys() == together.get(number, {}).keys()
        assert list(own.values()) == pytest.approx([together[number][place] for place in own], abs=1e-4)


def overfitted(encoder: TransformerEncoder, head: Head, chosen: Sequence[Sentence], steps: int = 150) -> bool:
    """Trains both on a few sentences; true when every entity and nothing else is found."""
    torch.manual_seed(0)
    parameters = [*encoder.parameters(), *head.parameters()]
    optimizer = torch.optim.AdamW(parameters, lr=3e-3)
    encoder.train(), head.train()
    for _ in range(steps):
        loss = head.loss(*read(encoder, head, gold=True, chosen=chosen)).mean
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
    encoder.eval(), head.eval()
    with torch.no_grad():
        scored = head.score(*read(encoder, head, chosen=chosen))
    rows = zip(*(column.tolist() for column in (scored.sentence, scored.start, scored.end, scored.label)), strict=True)
    expected = {(n, *e.range, LABELS.entities.index(e.type)) for n, sentence in enumerate(chosen) for e in sentence.entities}
    return set(rows) == expected
