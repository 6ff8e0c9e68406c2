"""Encoders, heads and batches for the tests of deep and pruned spans."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
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
from spanwise.encoders.transformer import TransformerEncoder
from spanwise.encoders.transformer_settings import TransformerSettings
from spanwise.heads.base import Head, Labels
from spanwise.heads.deep_settings import DeepSpanSettings, ShallowSpanSettings
from spanwise.heads.deep_span import DeepSpan, ShallowSpan

LABELS = Labels(("Drug", "Place"))
# The longest sentence has two windows.
SENTENCES = tuple(Sentence(s.id, s.words[:75], s.entities) if len(s.words) > 75 else s for s in mixed_sentences())


@cache
def load_tokenizer(folder: Path) -> Any:
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(folder)


def random_encoder(architecture: str, folder: Path, **values: Any) -> TransformerEncoder:
    """Build a random encoder with three layers and the tokenizer in ``folder``."""
    from transformers import AutoConfig, AutoModel

    tokenizer = load_tokenizer(folder)
    config = AutoConfig.for_model(
        architecture, vocab_size=len(tokenizer), hidden_size=32, num_hidden_layers=3, num_attention_heads=2,
        intermediate_size=64, max_position_embeddings=80, pad_token_id=0, relative_attention_num_buckets=32,
    )  # fmt: skip
    torch.manual_seed(5)
    model = AutoModel.from_config(config)
    with torch.no_grad():  # larger weights, so that attention is not uniform
        for parameter in model.parameters():
            if parameter.ndim > 1:
                parameter.mul_(6)
    return TransformerEncoder(TransformerSettings(name=architecture, **values), model, tokenizer).eval()


def build_head(encoder: TransformerEncoder, kind: type[DeepSpan] = DeepSpan, **options: Any) -> DeepSpan:
    torch.manual_seed(7)
    values = {"max_width": 5, "decoding": "nested", "lstm": 6, "hidden": 10, **options}
    settings_class = ShallowSpanSettings if kind is ShallowSpan else DeepSpanSettings
    return kind.build(encoder, LABELS, settings_class(**values)).eval()


def encode_batch(
    encoder: TransformerEncoder, head: Head, gold: bool = False, sentences: Any = SENTENCES
) -> tuple[TokenStates, Any]:
    batch = make_batch(encoder, head, sentences, encoder.prepare(sentences), np.arange(len(sentences)), gold=gold)
    return encoder(batch.inputs), batch.targets


def span_logits(head: DeepSpan, states: TokenStates, targets: Any) -> dict[tuple[int, int, int], Tensor]:
    spans, vectors = head.represent(states, targets)
    logits = head.class_logits(vectors)
    rows = zip(*(column.tolist() for column in spans[:3]), strict=True)
    return {row: logits[n] for n, row in enumerate(rows) if spans.is_span[n]}


def check_batch_invariance(encoder: TransformerEncoder, head: Head) -> None:
    def scores(states: TokenStates, targets: Any) -> dict[int, dict[tuple[int, int, int], float]]:
        scored = head.score(states, targets)
        by_sentence: dict[int, dict[tuple[int, int, int], float]] = {}
        columns = (scored.sentence, scored.start, scored.end, scored.label, scored.score)
        for number, start, end, label, score in zip(*(column.tolist() for column in columns), strict=True):
            by_sentence.setdefault(number, {})[start, end, label] = score
        return by_sentence

    losses = head.loss(*encode_batch(encoder, head, gold=True))
    batch_scores = scores(*encode_batch(encoder, head))
    assert batch_scores
    for number, sentence in enumerate(SENTENCES):
        single_losses = head.loss(*encode_batch(encoder, head, gold=True, sentences=[sentence]))
        torch.testing.assert_close(losses.sums[number], single_losses.sums[0], rtol=1e-4, atol=1e-4)
        assert losses.counts[number] == single_losses.counts[0]
        single_scores = scores(*encode_batch(encoder, head, sentences=[sentence])).get(0, {})
        assert single_scores.keys() == batch_scores.get(number, {}).keys()
        assert list(single_scores.values()) == pytest.approx([batch_scores[number][span] for span in single_scores], abs=1e-4)


def overfits(encoder: TransformerEncoder, head: Head, sentences: Sequence[Sentence], steps: int = 150) -> bool:
    """Train both on a few sentences until they predict exactly the gold entities; return False if they never do."""
    torch.manual_seed(0)
    parameters = [*encoder.parameters(), *head.parameters()]
    optimizer = torch.optim.AdamW(parameters, lr=3e-3)
    expected = {(n, *e.range, LABELS.entities.index(e.type)) for n, sentence in enumerate(sentences) for e in sentence.entities}
    for step in range(1, steps + 1):
        encoder.train(), head.train()
        loss = head.loss(*encode_batch(encoder, head, gold=True, sentences=sentences)).mean
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
        if step % 10 == 0 or step == steps:
            encoder.eval(), head.eval()
            with torch.no_grad():
                scored = head.score(*encode_batch(encoder, head, sentences=sentences))
            columns = (scored.sentence, scored.start, scored.end, scored.label)
            if set(zip(*(column.tolist() for column in columns), strict=True)) == expected:
                return True
    return False
