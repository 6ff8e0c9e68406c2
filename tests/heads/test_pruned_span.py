"""Deep spans of the candidates that the scorer keeps."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from deep_spans import LABELS, SENTENCES, check_alone_and_together, encoder_of, logits, made, overfitted, read
from tiny import assert_close, corpus, fit, sentences, transformer

from spanwise.core.types import Entity, Sentence
from spanwise.encoders.base import TokenStates
from spanwise.encoders.transformer import TransformerEncoder
from spanwise.heads.biaffine import Biaffine
from spanwise.heads.deep_settings import EXTRA_SPANS, PrunedSpanSettings
from spanwise.heads.pruned_span import PrunedSpan
from spanwise.prediction.pruning_recall import pruning_recall
from spanwise.runtime.cuda_graphs import LENGTH_MULTIPLE


def pruned(encoder: TransformerEncoder, **options: Any) -> PrunedSpan:
    torch.manual_seed(7)
    values = {"max_width": 5, "decoding": "nested", "hidden": 10, "budget": 0.3, "lstm": 6, **options}
    return PrunedSpan.build(encoder, LABELS, PrunedSpanSettings(**values)).eval()


def kept_spans(head: PrunedSpan, states: TokenStates, gold: Any = None) -> list[set[tuple[int, int]]]:
    chosen = head._prune(head.scorer.score_cells(states), states.mask, gold)
    rows = zip(chosen.start.tolist(), chosen.end.tolist(), chosen.is_span.tolist(), strict=True)
    return [{(s, e) for s, e, alive in zip(*row, strict=True) if alive} for row in rows]


@pytest.mark.parametrize("options", [{}, {"unit": "subwords"}, {"aggregation": "additive"}, {"aggregation": "mean", "depth": 1},
                                     {"share_weights": True}, {"depth": 0}, {"max_width": 1}, {"max_width": 12}])  # fmt: skip
@pytest.mark.parametrize("architecture", ["bert", "mpnet"])
def test_with_a_large_budget_it_equals_the_unpruned_head_without_lstm(
    tiny_bert: Path, options: dict[str, Any], architecture: str
) -> None:
    encoder = encoder_of(architecture, tiny_bert)
    plain, head = made(encoder, lstm=0, **options), pruned(encoder, budget=1000.0, lstm=0, **options)
    head.load_state_dict({**head.state_dict(), **plain.state_dict()})
    with torch.no_grad():
        states, targets = read(encoder, plain)
        expected = logits(plain, states, targets)
        chosen = head._prune(head.scorer.score_cells(states), states.mask)
        scores = head.class_logits(head._vectors(states, chosen)).view(*chosen.is_span.shape, -1)
        places = [(n, int(chosen.start[n, m]), int(chosen.end[n, m])) for n, m in chosen.is_span.nonzero().tolist()]
        assert len(places) == len(set(places))
        assert set(places) == expected.keys()
        assert_close(scores[chosen.is_span], torch.stack([expected[place] for place in places]))
        # The loss is the sum of the unpruned head's and the scorer's, a biaffine head.
        losses = head.loss(*read(encoder, head, gold=True))
        deep = plain.loss(*read(encoder, plain, gold=True))
        scorer = head.scorer.loss(states, head.targets(SENTENCES, gold=True))
    torch.testing.assert_close(losses.sums, deep.sums + scorer.sums, rtol=1e-5, atol=1e-4)
    torch.testing.assert_close(losses.parts["deep"], deep.mean)
    torch.testing.assert_close(losses.parts["scorer"], scorer.mean)
    assert isinstance(head.scorer, Biaffine)


def test_recorded_steps_are_padded_and_give_the_same_results(tiny_bert: Path) -> None:
    """Run the recorded function without CUDA: numbers of words and spans are padded to few shapes."""
    encoder = encoder_of("bert", tiny_bert)
    head = pruned(encoder)
    shapes = []

    def recorded(*inputs: torch.Tensor) -> torch.Tensor:
        shapes.append([tuple(tensor.shape) for tensor in inputs])
        return head._transform(*inputs)

    with torch.no_grad():
        states, _ = read(encoder, head)
        chosen = head._prune(head.scorer.score_cells(states), states.mask)
        plain = head._vectors(states, chosen)
        head.graphs = recorded  # type: ignore[assignment]
        head.training = True  # of this module only: no dropout
        assert_close(head._vectors(states, chosen), plain)
    ((starts, ends, *words),) = shapes
    assert starts == ends
    assert starts[1] % LENGTH_MULTIPLE == 0 < starts[1] - chosen.start.shape[1] < LENGTH_MULTIPLE
    assert len(words) == head.depth
    assert all(shape[1] % LENGTH_MULTIPLE == 0 for shape in words)


def test_the_best_spans_are_kept_and_their_number_depends_on_the_length(tiny_bert: Path) -> None:
    encoder = encoder_of("bert", tiny_bert)
    head = pruned(encoder)
    with torch.no_grad():
        states, _ = read(encoder, head)
        scored = head.scorer.score_cells(states)
        for number, kept in enumerate(kept_spans(head, states)):
            words = len(SENTENCES[number].words)
            budget = int(np.ceil(np.float32(words) * np.float32(0.3))) + EXTRA_SPANS
            every = {}
            for start in range(words):
                for end in range(start + 1, min(words, start + 5) + 1):
                    place = int(scored.tiles.index(torch.tensor(start), torch.tensor(end)))
                    probabilities = scored.logits[number].movedim(2, 0).flatten(1)[:, place].softmax(0)
                    every[start, end] = float(probabilities[:2].sum())  # the probability of any type
            best = sorted(every, key=lambda span: -every[span])[:budget]
            assert kept == set(best)


@pytest.mark.parametrize("options", [{}, {"unit": "subwords", "max_width": 12}])
def test_gold_spans_are_always_kept_in_training(tiny_bert: Path, options: dict[str, Any]) -> None:
    encoder = encoder_of("bert", tiny_bert)
    head = pruned(encoder, budget=0.01, **options)
    crowded = Sentence(
        "c", ("oslo",) * 9, tuple(Entity("Place", ((s, e),)) for s in range(9) for e in range(s + 1, min(9, s + 4) + 1))
    )
    chosen = [*SENTENCES, crowded, Sentence("twice", ("oslo",), (Entity("Drug", ((0, 1),)), Entity("Place", ((0, 1),))))]
    states, targets = read(encoder, head, gold=True, chosen=chosen)
    with_gold, without = kept_spans(head, states, targets), kept_spans(head, states)
    for sentence, kept in zip(chosen, with_gold, strict=True):
        assert {(s, e) for s, e, _ in head._gold(sentence).tolist()} <= kept
    assert any(one != other for one, other in zip(with_gold, without, strict=True))
    assert len(with_gold[-2]) == len(head._gold(crowded)) > EXTRA_SPANS + 1
    kept = head.count_kept_gold(states, targets)
    spans = [{(s, e) for s, e, _ in head._gold(sentence).tolist()} for sentence in chosen]
    assert kept.tolist() == [len(gold & kept_gold) for gold, kept_gold in zip(spans, without, strict=True)]
    assert 0 < int(kept.sum()) < sum(map(len, spans))


def test_deep_loss_covers_the_kept_spans(tiny_bert: Path) -> None:
    encoder = encoder_of("bert", tiny_bert)
    head = pruned(encoder, budget=0.2, lstm=0)
    plain = made(encoder, lstm=0)
    plain.load_state_dict({name: value for name, value in head.state_dict().items() if not name.startswith("scorer")})
    with torch.no_grad():
        states, targets = read(encoder, head, gold=True)
        every = logits(plain, states, plain.targets(SENTENCES, gold=False))
        losses = head.loss(states, targets)
        rows = list(zip(*(targets[name].tolist() for name in ("sentence", "start", "end", "label", "mass")), strict=True))
        total = torch.zeros(())
        for number, kept in enumerate(kept_spans(head, states, targets)):
            for start, end in kept:
                probabilities = torch.zeros(3)
                for owner, s, e, label, mass in rows:
                    if (owner, s, e) == (number, start, end):
                        probabilities[label] += mass
                probabilities[2] = 1 - probabilities.sum()
                total -= (probabilities * every[number, start, end].log_softmax(0)).sum()
    sentences = sum(bool(sentence.words) for sentence in SENTENCES)
    torch.testing.assert_close(losses.parts["deep"], total / sentences, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(losses.mean, losses.parts["deep"] + losses.parts["scorer"])


@pytest.mark.parametrize("options", [{}, {"unit": "subwords", "max_width": 12}])
def test_kept_spans_are_read_in_text_order(tiny_bert: Path, options: dict[str, Any]) -> None:
    encoder = encoder_of("bert", tiny_bert)
    head, plain = pruned(encoder, **options), pruned(encoder, lstm=0, **options)
    plain.transformer.load_state_dict(head.transformer.state_dict())
    seen: list[torch.Tensor] = []
    plain.hidden_vectors = lambda spans, size: seen.append(spans) or spans  # type: ignore[assignment, func-returns-value, misc]
    with torch.no_grad():
        states, _ = read(encoder, head)
        chosen = head._prune(head.scorer.score_cells(states), states.mask)
        vectors = head._vectors(states, chosen).view(*chosen.is_span.shape, -1)
        plain._vectors(states, chosen)
        assert head.lstm is not None
        checked = 0
        for number, alive in enumerate(chosen.is_span):
            places = [
                (int(chosen.start[number, m]), int(chosen.end[number, m]), m) for m in alive.nonzero().squeeze(1).tolist()
            ]
            order = [m for _, _, m in sorted(places)]
            if order:
                sequence = seen[0][number, order]
                there, _ = head.lstm.forwards[0](sequence)
                back, _ = head.lstm.backwards[0](sequence.flip(0))
                size = (chosen.end - chosen.start)[number, order]
                assert_close(vectors[number, order], head.hidden_vectors(torch.cat((there, back.flip(0)), 1), size))
                checked += order != sorted(order)
    assert checked  # some sentence has spans out of order


def test_probabilities_are_the_mean_of_scorer_and_classifier(tiny_bert: Path) -> None:
    encoder = encoder_of("bert", tiny_bert)
    head = pruned(encoder)
    with torch.no_grad():
        states, targets = read(encoder, head)
        every = head.scorer.span_probabilities(states, {})
        rows = zip(every.sentence.tolist(), every.start.tolist(), every.end.tolist(), every.vectors, strict=True)
        first = {(n, s, e): probabilities for n, s, e, probabilities in rows}
        kept, actual = head.span_vectors(states, targets), head.span_probabilities(states, targets)
        second = head.class_logits(kept.vectors).softmax(-1)
        places = list(zip(kept.sentence.tolist(), kept.start.tolist(), kept.end.tolist(), strict=True))
        assert {(n, s, e) for n, spans in enumerate(kept_spans(head, states)) for s, e in spans} == set(places)
        assert_close(actual.vectors, (torch.stack([first[place] for place in places]) + second) / 2)
        scored = head.score(states, targets)
        best, label = actual.vectors.max(-1)
        assert_close(scored.score, best[label != head.none])


@pytest.mark.parametrize("options", [{}, {"unit": "subwords", "max_width": 6}])
def test_results_do_not_depend_on_the_batch(tiny_bert: Path, options: dict[str, Any]) -> None:
    encoder = encoder_of("bert", tiny_bert)
    head = pruned(encoder, **options)
    with torch.no_grad():
        head.classifier.weight.mul_(5)
        check_alone_and_together(encoder, head)


def test_pruned_spans_are_not_predicted(tiny_bert: Path) -> None:
    encoder = encoder_of("bert", tiny_bert)
    head = pruned(encoder)
    with torch.no_grad():
        head.classifier.bias.copy_(torch.tensor([90.0, 0.0, 0.0]))  # all spans are drugs
        states, targets = read(encoder, head)
        actual = head.score(states, targets)
    spans: list[set[tuple[int, int]]] = [set() for _ in SENTENCES]
    for number, start, end in zip(actual.sentence.tolist(), actual.start.tolist(), actual.end.tolist(), strict=True):
        spans[number].add((start, end))
    assert spans == kept_spans(head, states)


def test_scoring_synchronises_once_and_training_never(tiny_bert: Path, synchronisations: Any) -> None:
    encoder = encoder_of("bert", tiny_bert)
    for options in ({}, {"unit": "subwords"}):
        head = pruned(encoder, **options).train()
        states, targets = read(encoder, head, gold=True)
        with synchronisations() as actual:
            head.loss(states, targets).mean.backward()
        assert not actual
        assert all(parameter.grad is not None for parameter in head.parameters())
        states, targets = read(encoder, head)
        with synchronisations() as actual:
            head.score(states, targets)
        assert sum(actual.values()) == 1


def test_budget_follows_from_training_data() -> None:
    some = [Sentence("a", ("w",) * 10, (Entity("A", ((0, 2),)),)), Sentence("b", ("w",) * 30)]
    assert PrunedSpanSettings().resolve(some).budget == pytest.approx(8 / 40)
    assert PrunedSpanSettings(budget=2.5).resolve(some).budget == 2.5


def test_empty_sentences(tiny_bert: Path) -> None:
    encoder = encoder_of("bert", tiny_bert)
    head = pruned(encoder)
    for chosen in ([Sentence("a", ())], [Sentence("a", ("the",)), Sentence("b", ())]):
        losses = head.loss(*read(encoder, head, gold=True, chosen=chosen))
        assert bool(losses.sums.isfinite().all())
        assert losses.counts.tolist() == [float(bool(s.words)) for s in chosen]
        head.score(*read(encoder, head, chosen=chosen))


def test_overfits_a_few_sentences(tiny_bert: Path) -> None:
    encoder = transformer(tiny_bert)
    nested = Sentence("n", ("new", "york", "later"), (Entity("Place", ((0, 2),)), Entity("Drug", ((1, 2),))))
    assert overfitted(
        encoder, pruned(encoder, max_width=3, hidden=32, dropout=0.1, hidden_dropout=0.0), [*sentences(6), nested]
    )


def test_pruning_recall_is_in_the_metrics(tiny_bert: Path, tmp_path: Path) -> None:
    run = fit(tmp_path / "run", corpus(8), ["head.budget=0.2"], recipe="deep-span-pruned", encoder=str(tiny_bert), epochs=1)
    (row,) = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    dev = corpus(8)["dev"]
    prepared = run.model.encoder.prepare(dev)
    assert row["dev"]["pruning_recall"] == pruning_recall(run.model, dev, prepared)
    head, actual, gold = run.model.head, 0, 0
    for sentence, item in zip(dev, prepared, strict=True):
        with torch.no_grad():
            (kept,) = kept_spans(head, run.model.encoder(run.model.encoder.collate([item])))  # type: ignore[arg-type]
        ranges = {tuple(entity.range) for entity in sentence.entities}
        actual, gold = actual + len(ranges & kept), gold + len(ranges)
    assert row["dev"]["pruning_recall"] == actual / gold
    # Unreachable spans count as pruned, but discontinuous entities are not counted.
    wide, broken = Entity("Place", ((0, 3),)), Entity("Place", ((0, 1), (2, 3)))
    for entities in ((wide,), (wide, broken)):
        unreached = [Sentence("b", ("the", "oslo", "a"), entities)]
        assert pruning_recall(run.model, unreached, run.model.encoder.prepare(unreached)) == 0.0
    with_broken = [replace(one, entities=(*one.entities, broken)) if len(one.words) > 2 else one for one in dev]
    assert pruning_recall(run.model, with_broken, prepared) == actual / gold
