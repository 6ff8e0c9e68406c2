"""Deep spans of the candidates that the scorer keeps."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from deep_spans import (
    LABELS,
    SENTENCES,
    build_head,
    check_batch_invariance,
    encode_batch,
    overfits,
    random_encoder,
    span_logits,
)
from tiny import assert_close, corpus, fit, sentences, transformer

from spanwise.core.types import Entity, Sentence
from spanwise.encoders.base import TokenStates
from spanwise.encoders.transformer import TransformerEncoder
from spanwise.heads.biaffine import Biaffine
from spanwise.heads.deep_settings import EXTRA_SPANS, PrunedSpanSettings
from spanwise.heads.pruned_span import PrunedSpan
from spanwise.prediction.pruning_recall import pruning_recall
from spanwise.runtime.cuda_graphs import LENGTH_MULTIPLE


def build_pruned_head(encoder: TransformerEncoder, **options: Any) -> PrunedSpan:
    torch.manual_seed(7)
    values = {"max_width": 5, "decoding": "nested", "hidden": 10, "budget": 0.3, "lstm": 6, **options}
    return PrunedSpan.build(encoder, LABELS, PrunedSpanSettings(**values)).eval()


def kept_spans(head: PrunedSpan, states: TokenStates, gold: Any = None) -> list[set[tuple[int, int]]]:
    kept = head._prune(head.scorer.score_cells(states), states.mask, gold)
    rows = zip(kept.start.tolist(), kept.end.tolist(), kept.is_span.tolist(), strict=True)
    return [{(s, e) for s, e, is_span in zip(*row, strict=True) if is_span} for row in rows]


@pytest.mark.parametrize(("architecture", "options"), [
    *(("bert", options) for options in ({}, {"unit": "subwords"}, {"aggregation": "additive"}, {"depth": 0}, {"max_width": 1},
                                        {"max_width": 12})),
    *((architecture, options) for architecture in ("bert", "mpnet")
      for options in ({"aggregation": "mean", "depth": 1}, {"share_weights": True})),
    ("mpnet", {"unit": "subwords"}),
])  # fmt: skip
def test_with_a_large_budget_it_equals_the_unpruned_head_without_lstm(
    tiny_bert: Path, architecture: str, options: dict[str, Any]
) -> None:
    encoder = random_encoder(architecture, tiny_bert)
    unpruned, head = build_head(encoder, lstm=0, **options), build_pruned_head(encoder, budget=1000.0, lstm=0, **options)
    head.load_state_dict({**head.state_dict(), **unpruned.state_dict()})
    with torch.no_grad():
        states, targets = encode_batch(encoder, unpruned)
        expected = span_logits(unpruned, states, targets)
        kept = head._prune(head.scorer.score_cells(states), states.mask)
        logits = head.class_logits(head._vectors(states, kept)).view(*kept.is_span.shape, -1)
        spans = [(n, int(kept.start[n, m]), int(kept.end[n, m])) for n, m in kept.is_span.nonzero().tolist()]
        assert len(spans) == len(set(spans))
        assert set(spans) == expected.keys()
        assert_close(logits[kept.is_span], torch.stack([expected[span] for span in spans]))
        # The loss is the sum of the losses of the unpruned head and the scorer, a biaffine head.
        losses = head.loss(*encode_batch(encoder, head, gold=True))
        deep_losses = unpruned.loss(*encode_batch(encoder, unpruned, gold=True))
        scorer_losses = head.scorer.loss(states, head.targets(SENTENCES, gold=True))
    torch.testing.assert_close(losses.sums, deep_losses.sums + scorer_losses.sums, rtol=1e-5, atol=1e-4)
    torch.testing.assert_close(losses.parts["deep"], deep_losses.mean)
    torch.testing.assert_close(losses.parts["scorer"], scorer_losses.mean)
    assert isinstance(head.scorer, Biaffine)


def test_recorded_steps_are_padded_and_give_the_same_results(tiny_bert: Path) -> None:
    """Run the recorded function without CUDA; words and spans are padded to few shapes."""
    encoder = random_encoder("bert", tiny_bert)
    head = build_pruned_head(encoder)
    shapes = []

    def record(*inputs: torch.Tensor) -> torch.Tensor:
        shapes.append([tuple(tensor.shape) for tensor in inputs])
        return head._transform(*inputs)

    with torch.no_grad():
        states, _ = encode_batch(encoder, head)
        kept = head._prune(head.scorer.score_cells(states), states.mask)
        expected = head._vectors(states, kept)
        head.graphs = record  # type: ignore[assignment]
        head.training = True  # of this module only: no dropout
        assert_close(head._vectors(states, kept), expected)
    ((starts, ends, *words),) = shapes
    assert starts == ends
    assert starts[1] % LENGTH_MULTIPLE == 0 < starts[1] - kept.start.shape[1] < LENGTH_MULTIPLE
    assert len(words) == head.depth
    assert all(shape[1] % LENGTH_MULTIPLE == 0 for shape in words)


def test_the_best_spans_are_kept_and_their_number_depends_on_the_length(tiny_bert: Path) -> None:
    encoder = random_encoder("bert", tiny_bert)
    head = build_pruned_head(encoder)
    with torch.no_grad():
        states, _ = encode_batch(encoder, head)
        scored = head.scorer.score_cells(states)
        for number, kept in enumerate(kept_spans(head, states)):
            words = len(SENTENCES[number].words)
            budget = int(np.ceil(np.float32(words) * np.float32(0.3))) + EXTRA_SPANS
            type_probabilities = {}
            for start in range(words):
                for end in range(start + 1, min(words, start + 5) + 1):
                    cell = int(scored.tiles.index(torch.tensor(start), torch.tensor(end)))
                    probabilities = scored.logits[number].movedim(2, 0).flatten(1)[:, cell].softmax(0)
                    type_probabilities[start, end] = float(probabilities[:2].sum())  # of any type
            best = sorted(type_probabilities, key=lambda span: -type_probabilities[span])[:budget]
            assert kept == set(best)


@pytest.mark.parametrize("options", [{}, {"unit": "subwords", "max_width": 12}])
def test_gold_spans_are_always_kept_in_training(tiny_bert: Path, options: dict[str, Any]) -> None:
    encoder = random_encoder("bert", tiny_bert)
    head = build_pruned_head(encoder, budget=0.01, **options)
    crowded = Sentence(
        "c", ("oslo",) * 9, tuple(Entity("Place", ((s, e),)) for s in range(9) for e in range(s + 1, min(9, s + 4) + 1))
    )
    examples = [*SENTENCES, crowded, Sentence("two types", ("oslo",), (Entity("Drug", ((0, 1),)), Entity("Place", ((0, 1),))))]
    states, targets = encode_batch(encoder, head, gold=True, sentences=examples)
    with_gold, without_gold = kept_spans(head, states, targets), kept_spans(head, states)
    for sentence, kept in zip(examples, with_gold, strict=True):
        assert {(s, e) for s, e, _ in head._gold(sentence).tolist()} <= kept
    assert with_gold != without_gold
    assert len(with_gold[-2]) == len(head._gold(crowded)) > EXTRA_SPANS + 1
    counts = head.count_kept_gold(states, targets)
    gold_spans = [{(s, e) for s, e, _ in head._gold(sentence).tolist()} for sentence in examples]
    assert counts.tolist() == [len(gold & kept) for gold, kept in zip(gold_spans, without_gold, strict=True)]
    assert 0 < int(counts.sum()) < sum(map(len, gold_spans))


def test_deep_loss_covers_the_kept_spans(tiny_bert: Path) -> None:
    encoder = random_encoder("bert", tiny_bert)
    head = build_pruned_head(encoder, budget=0.2, lstm=0)
    unpruned = build_head(encoder, lstm=0)
    unpruned.load_state_dict({name: value for name, value in head.state_dict().items() if not name.startswith("scorer")})
    with torch.no_grad():
        states, targets = encode_batch(encoder, head, gold=True)
        logits = span_logits(unpruned, states, unpruned.targets(SENTENCES, gold=False))
        losses = head.loss(states, targets)
        rows = list(zip(*(targets[name].tolist() for name in ("sentence", "start", "end", "label", "mass")), strict=True))
        total = torch.zeros(())
        for number, kept in enumerate(kept_spans(head, states, targets)):
            for start, end in kept:
                probabilities = torch.zeros(3)
                for sentence_index, s, e, label, mass in rows:
                    if (sentence_index, s, e) == (number, start, end):
                        probabilities[label] += mass
                probabilities[2] = 1 - probabilities.sum()
                total -= (probabilities * logits[number, start, end].log_softmax(0)).sum()
    count = sum(bool(sentence.words) for sentence in SENTENCES)
    torch.testing.assert_close(losses.parts["deep"], total / count, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(losses.mean, losses.parts["deep"] + losses.parts["scorer"])


@pytest.mark.parametrize("options", [{}, {"unit": "subwords", "max_width": 12}])
def test_kept_spans_are_read_in_text_order(tiny_bert: Path, options: dict[str, Any]) -> None:
    encoder = random_encoder("bert", tiny_bert)
    head, plain = build_pruned_head(encoder, **options), build_pruned_head(encoder, lstm=0, **options)
    plain.transformer.load_state_dict(head.transformer.state_dict())
    inputs: list[torch.Tensor] = []
    plain.hidden_vectors = lambda spans, size: inputs.append(spans) or spans  # type: ignore[assignment, func-returns-value, misc]
    with torch.no_grad():
        states, _ = encode_batch(encoder, head)
        kept = head._prune(head.scorer.score_cells(states), states.mask)
        vectors = head._vectors(states, kept).view(*kept.is_span.shape, -1)
        plain._vectors(states, kept)
        assert head.lstm is not None
        unordered = 0
        for number, is_span in enumerate(kept.is_span):
            spans = [(int(kept.start[number, m]), int(kept.end[number, m]), m) for m in is_span.nonzero().squeeze(1).tolist()]
            order = [m for _, _, m in sorted(spans)]
            if order:
                sequence = inputs[0][number, order]
                forward_states, _ = head.lstm.forwards[0](sequence)
                backward_states, _ = head.lstm.backwards[0](sequence.flip(0))
                size = (kept.end - kept.start)[number, order]
                assert_close(
                    vectors[number, order], head.hidden_vectors(torch.cat((forward_states, backward_states.flip(0)), 1), size)
                )
                unordered += order != sorted(order)
    assert unordered  # some sentence has spans out of order


def test_probabilities_are_the_mean_of_scorer_and_classifier(tiny_bert: Path) -> None:
    encoder = random_encoder("bert", tiny_bert)
    head = build_pruned_head(encoder)
    with torch.no_grad():
        states, targets = encode_batch(encoder, head)
        scored_spans = head.scorer.span_probabilities(states, {})
        rows = zip(
            scored_spans.sentence.tolist(),
            scored_spans.start.tolist(),
            scored_spans.end.tolist(),
            scored_spans.vectors,
            strict=True,
        )
        scorer_probabilities = {(n, s, e): probabilities for n, s, e, probabilities in rows}
        kept, actual = head.span_vectors(states, targets), head.span_probabilities(states, targets)
        classifier_probabilities = head.class_logits(kept.vectors).softmax(-1)
        spans = list(zip(kept.sentence.tolist(), kept.start.tolist(), kept.end.tolist(), strict=True))
        assert {(n, s, e) for n, kept_ranges in enumerate(kept_spans(head, states)) for s, e in kept_ranges} == set(spans)
        assert_close(
            actual.vectors, (torch.stack([scorer_probabilities[span] for span in spans]) + classifier_probabilities) / 2
        )
        scored = head.score(states, targets)
        best, label = actual.vectors.max(-1)
        assert_close(scored.score, best[label != head.none])


@pytest.mark.parametrize("options", [{}, {"unit": "subwords", "max_width": 6}])
def test_results_do_not_depend_on_the_batch(tiny_bert: Path, options: dict[str, Any]) -> None:
    encoder = random_encoder("bert", tiny_bert)
    head = build_pruned_head(encoder, **options)
    with torch.no_grad():
        head.classifier.weight.mul_(5)
        check_batch_invariance(encoder, head)


def test_pruned_spans_are_not_predicted(tiny_bert: Path) -> None:
    encoder = random_encoder("bert", tiny_bert)
    head = build_pruned_head(encoder)
    with torch.no_grad():
        head.classifier.bias.copy_(torch.tensor([90.0, 0.0, 0.0]))  # all spans are drugs
        states, targets = encode_batch(encoder, head)
        scored = head.score(states, targets)
    spans: list[set[tuple[int, int]]] = [set() for _ in SENTENCES]
    for number, start, end in zip(scored.sentence.tolist(), scored.start.tolist(), scored.end.tolist(), strict=True):
        spans[number].add((start, end))
    assert spans == kept_spans(head, states)


def test_scoring_synchronises_once_and_training_never(tiny_bert: Path, synchronisations: Any) -> None:
    encoder = random_encoder("bert", tiny_bert)
    for options in ({}, {"unit": "subwords"}):
        head = build_pruned_head(encoder, **options).train()
        states, targets = encode_batch(encoder, head, gold=True)
        with synchronisations() as counts:
            head.loss(states, targets).mean.backward()
        assert not counts
        assert all(parameter.grad is not None for parameter in head.parameters())
        states, targets = encode_batch(encoder, head)
        with synchronisations() as counts:
            head.score(states, targets)
        assert sum(counts.values()) == 1


def test_budget_follows_from_training_data() -> None:
    train = [Sentence("a", ("w",) * 10, (Entity("A", ((0, 2),)),)), Sentence("b", ("w",) * 30)]
    assert PrunedSpanSettings().resolve(train).budget == pytest.approx(8 / 40)
    assert PrunedSpanSettings(budget=2.5).resolve(train).budget == 2.5


def test_empty_sentences(tiny_bert: Path) -> None:
    encoder = random_encoder("bert", tiny_bert)
    head = build_pruned_head(encoder)
    for examples in ([Sentence("a", ())], [Sentence("a", ("the",)), Sentence("b", ())]):
        losses = head.loss(*encode_batch(encoder, head, gold=True, sentences=examples))
        assert bool(losses.sums.isfinite().all())
        assert losses.counts.tolist() == [float(bool(s.words)) for s in examples]
        head.score(*encode_batch(encoder, head, sentences=examples))


def test_overfits_a_few_sentences(tiny_bert: Path) -> None:
    encoder = transformer(tiny_bert)
    nested = Sentence("n", ("new", "york", "later"), (Entity("Place", ((0, 2),)), Entity("Drug", ((1, 2),))))
    assert overfits(
        encoder, build_pruned_head(encoder, max_width=3, hidden=32, dropout=0.1, hidden_dropout=0.0), [*sentences(6), nested]
    )


def test_pruning_recall_is_in_the_metrics(tiny_bert: Path, tmp_path: Path) -> None:
    run = fit(tmp_path / "run", corpus(8), ["head.budget=0.2"], recipe="deep-span-pruned", encoder=str(tiny_bert), epochs=1)
    (row,) = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    dev = corpus(8)["dev"]
    prepared, head = run.model.encoder.prepare(dev), run.model.head
    assert isinstance(head, PrunedSpan)
    assert row["dev"]["pruning_recall"] == pruning_recall(run.model, head, dev, prepared)
    kept_count, gold_count = 0, 0
    for sentence, item in zip(dev, prepared, strict=True):
        with torch.no_grad():
            (kept,) = kept_spans(head, run.model.encoder(run.model.encoder.collate([item])))
        ranges = {tuple(entity.range) for entity in sentence.entities}
        kept_count, gold_count = kept_count + len(ranges & kept), gold_count + len(ranges)
    assert row["dev"]["pruning_recall"] == kept_count / gold_count
    # Unreachable spans count as pruned, but discontinuous entities are not counted.
    wide, discontinuous = Entity("Place", ((0, 3),)), Entity("Place", ((0, 1), (2, 3)))
    for entities in ((wide,), (wide, discontinuous)):
        unreachable = [Sentence("b", ("the", "oslo", "a"), entities)]
        assert pruning_recall(run.model, head, unreachable, run.model.encoder.prepare(unreachable)) == 0.0
    with_discontinuous = [
        replace(sentence, entities=(*sentence.entities, discontinuous)) if len(sentence.words) > 2 else sentence
        for sentence in dev
    ]
    assert pruning_recall(run.model, head, with_discontinuous, prepared) == kept_count / gold_count
