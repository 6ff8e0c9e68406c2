"""Relation heads: all kinds of overlap, reference computations, batch invariance and learning."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import product
from math import exp, isfinite, log
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from largest_tensor import LargestTensor
from torch import Tensor

from spanwise.core.errors import SpanwiseError
from spanwise.core.types import Entity, Relation, Sentence
from spanwise.decoding.decode import Predictions
from spanwise.encoders.base import TokenStates
from spanwise.heads import head_settings, head_values, make_head, span_relations
from spanwise.heads import relations as relations_module
from spanwise.heads.base import Labels
from spanwise.heads.gp_relations import PointerRelations
from spanwise.heads.pair_pointer import PairPointer
from spanwise.heads.relations import RelationHead
from spanwise.heads.span_relations import SpanRelations
from spanwise.heads.wrapper import select_targets

LABELS = Labels(("A", "B"), ("likes", "made", "near"))
POINTER = {"kind": "global-pointer", "decoding": "overlapping", "size": 4}
KINDS: dict[str, dict[str, Any]] = {
    "full": {"kind": "gp-relations", "entities": POINTER, "size": 4},
    "shared": {"kind": "gp-relations", "entities": POINTER, "size": 4, "form": "shared"},
    "spans": {"kind": "span-relations", "entities": {"kind": "biaffine", "decoding": "nested", "size": 5, "width_size": 3}},
    "spans of pointers": {"kind": "span-relations", "entities": POINTER, "wrong": 0},
}


def make(encoder: Any, kind: str, labels: Labels = LABELS, **options: Any) -> Any:
    torch.manual_seed(3)
    head = make_head(encoder, labels, {**KINDS[kind], **options})
    assert isinstance(head, RelationHead)
    with torch.no_grad():  # for scores far from the threshold
        for parameter in head.parameters():
            parameter.mul_(3)
        if isinstance(head, PointerRelations):
            head.pointer.prior.normal_()
    return head


def triples(annotated: Predictions | Sentence) -> set[tuple[str, Entity, Entity]]:
    return {(r.type, annotated.entities[r.head], annotated.entities[r.tail]) for r in annotated.relations}


def training_sentences() -> list[Sentence]:
    """All kinds of overlap, entities without relations, and sentences without entities."""
    a, b = Entity("A", ((0, 2),)), Entity("B", ((3, 4),))
    inner, last = Entity("B", ((1, 2),)), Entity("A", ((5, 8),))
    words = ("tall", "smith", "sold", "iron", "to", "old", "red", "mill", ".")
    return [
        Sentence("normal", words, (a, b, last), (Relation("made", 0, 1), Relation("likes", 2, 1))),
        Sentence("same pair", ("big", "baker", "ate", "bread"), (a, b), (Relation("made", 0, 1), Relation("likes", 0, 1))),
        Sentence("both ways", ("wet", "otter", "met", "heron"), (a, b), (Relation("near", 0, 1), Relation("near", 1, 0))),
        Sentence("shared", ("blue", "ship", "left", "port", "and", "new", "grey", "quay"), (a, b, last),
                 (Relation("near", 0, 1), Relation("near", 0, 2), Relation("made", 1, 2))),
        Sentence("nested", ("lime", "works", "near", "hill"), (a, inner, b),
                 (Relation("made", 0, 1), Relation("near", 0, 2), Relation("near", 1, 2))),
        Sentence("itself", ("dark", "owl", "sleeps", "here"), (a, b), (Relation("likes", 0, 0),)),
        Sentence("no relation", ("pale", "moon", "over", "lake"), (a, b)),
        Sentence("no entity", ("nothing", "happened")),
    ]  # fmt: skip


class PerfectPointer(PairPointer):
    """A pointer that scores gold cells of one sentence 5 and all others -5; words are one-hot."""

    def __init__(self, cells: Tensor, labels: int, length: int) -> None:
        super().__init__(labels, 1)
        self.matrices = torch.full((2 * labels, length, length), -5.0)
        _, matrix, row, column = cells.unbind(0)
        self.matrices[matrix, row, column] = 5.0
        self.prior.data.zero_()

    def products(self, words: Tensor, first: int, last: int) -> Tensor:
        return torch.einsum("bid,mde,bje->bmij", words, self.matrices[first:last], words)


@pytest.mark.parametrize("sentence", training_sentences(), ids=lambda sentence: sentence.id)
def test_perfect_scores_of_pointers_are_decoded_exactly(encoder: Any, sentence: Sentence) -> None:
    head = make(encoder, "full").eval()
    length = len(sentence.words)
    head.pointer = PerfectPointer(head.targets([sentence], gold=True)["relations.cells"], 3, length)

    def scores(words: Tensor, tiles: Any) -> Tensor:
        values = torch.full((1, 2, tiles.cells), -5.0)
        for entity in sentence.entities:
            cell = tiles.index(*(torch.tensor(bound) for bound in entity.range))
            values[0, LABELS.entities.index(entity.type), cell] = 5.0
        return values.view(1, 2, tiles.count, tiles.rows, tiles.columns)

    head.entities.scores = scores
    states = TokenStates(torch.eye(length).unsqueeze(0), torch.zeros(1, length), torch.ones(1, length, dtype=torch.bool))
    (predicted,) = head.decode(head.score(states, head.targets([sentence], gold=False)), 1)
    assert set(predicted.entities) == set(sentence.entities)
    assert len(predicted.relations) == len(sentence.relations)
    assert triples(predicted) == triples(sentence)
    assert all(relation.score == pytest.approx(1 / (1 + exp(-5)), abs=1e-5) for relation in predicted.relations)


@pytest.mark.parametrize("sentence", training_sentences(), ids=lambda sentence: sentence.id)
def test_perfect_scores_of_pairs_are_decoded_exactly(encoder: Any, sentence: Sentence) -> None:
    head = make(encoder, "spans").eval()
    gold = triples(sentence)
    head.entities.score = lambda states, targets: None
    head.entities.decode = lambda scored, count: [Predictions(sentence.entities)]

    def logits(words: Tensor, spans: Any, label: Tensor, first: Tensor, second: Tensor) -> Tensor:
        starts, ends, labels = spans.start.tolist(), spans.end.tolist(), label.tolist()
        entities = [Entity(LABELS.entities[k], ((s, e),)) for s, e, k in zip(starts, ends, labels, strict=True)]
        pairs = zip(first.tolist(), second.tolist(), strict=True)
        rows = [[5.0 if (r, entities[x], entities[y]) in gold else -5.0 for r in LABELS.relations] for x, y in pairs]
        return torch.tensor(rows).view(-1, 3)

    head.logits = logits
    states = TokenStates(torch.zeros(1, len(sentence.words), 12), torch.zeros(1, 12), torch.ones(1, 1, dtype=torch.bool))
    (predicted,) = head.decode(head.score(states, {}), 1)
    assert predicted.entities == sentence.entities
    assert len(predicted.relations) == len(gold)
    assert triples(predicted) == gold


def add_relations(sentences: Sequence[Sentence], seed: int = 0) -> list[Sentence]:
    """Add random relations between the entities of each sentence."""
    rng = np.random.default_rng(seed)
    annotated = []
    for sentence in sentences:
        count = len(sentence.entities)
        rows = rng.integers(0, (3, max(count, 1), max(count, 1)), size=(count, 3)).tolist()
        relations = {Relation(LABELS.relations[kind], head, tail) for kind, head, tail in rows}
        annotated.append(replace(sentence, relations=tuple(sorted(relations, key=lambda r: (r.type, r.head, r.tail)))))
    return annotated


@torch.no_grad()
@pytest.mark.parametrize("kind", KINDS)
def test_results_do_not_depend_on_the_batch(encoder: Any, random_batch: Any, joined: Any, kind: str) -> None:
    head = make(encoder, kind).eval()
    without_relations, states = random_batch(longest=9)
    sentences = add_relations(without_relations)
    single = []
    for sentence, state in zip(sentences, states, strict=True):
        losses = head.loss(state, head.targets([sentence], gold=True))
        (predicted,) = head.decode(head.score(state, head.targets([sentence], gold=False)), 1)
        single.append((losses.sums[0], losses.counts[0], predicted))
    assert any(predicted.relations for *_, predicted in single)
    rng = np.random.default_rng(7)
    for size in (2, 3, 5, 9):
        order = rng.permutation(len(sentences))
        for extra, first in enumerate(range(0, len(order), size)):
            selected = order[first : first + size].tolist()
            batch, batch_sentences = (
                joined([states[number] for number in selected], extra),
                [sentences[number] for number in selected],
            )
            losses = head.loss(batch, head.targets(batch_sentences, gold=True))
            predictions = head.decode(head.score(batch, head.targets(batch_sentences, gold=False)), len(batch_sentences))
            for row, number in enumerate(selected):
                sums, counts, predicted = single[number]
                torch.testing.assert_close(losses.sums[row], sums, rtol=1e-5, atol=1e-5)
                assert losses.counts[row] == counts
                assert predictions[row] == predicted
                for relation, single_relation in zip(predictions[row].relations, predicted.relations, strict=True):
                    assert relation.score == pytest.approx(single_relation.score, abs=1e-5)


@torch.no_grad()
@pytest.mark.parametrize("threshold", [0.5, 0.9])
@pytest.mark.parametrize("form", ["full", "shared"])
def test_pointer_relations_match_a_loop_over_entities(
    encoder: Any, random_batch: Any, joined: Any, form: str, threshold: float
) -> None:
    head = make(encoder, form, threshold=threshold).eval()
    sentences, single_states = random_batch(longest=7)
    predictions = head.decode(head.score(joined(single_states), head.targets(sentences, gold=False)), len(sentences))
    cutoff, total = log(threshold / (1 - threshold)), 0
    for states, predicted in zip(single_states, predictions, strict=True):
        scores = head.pointer.scores(states.words, 0, 6)[0]
        expected = {}
        for (x, head_entity), (y, tail_entity) in product(enumerate(predicted.entities), repeat=2):
            for label in range(3):
                first = float(scores[label, head_entity.range.start, tail_entity.range.start])
                last = float(scores[3 + label, head_entity.range.end - 1, tail_entity.range.end - 1])
                if min(first, last) > cutoff:
                    expected[LABELS.relations[label], x, y] = 1 / (1 + exp(-min(first, last)))
        actual = {(r.type, r.head, r.tail): r.score for r in predicted.relations}
        assert actual == pytest.approx(expected, abs=1e-5)
        total += len(actual)
    assert total


def reference_logits(head: SpanRelations, words: Tensor, head_entity: Entity, tail_entity: Entity) -> Tensor:
    """Compute the logits of one pair from its spans and the words between them."""
    layer = head.layer
    spans = [
        torch.cat([words[a], words[b - 1], words[a:b].max(0).values, layer.labels.weight[LABELS.entities.index(entity.type)]])
        for entity, (a, b) in ((head_entity, head_entity.range), (tail_entity, tail_entity.range))
    ]
    low, high = min(head_entity.range.end, tail_entity.range.end), max(head_entity.range.start, tail_entity.range.start)
    between = words[low:high].max(0).values if low < high else torch.zeros(words.shape[1])
    as_first, as_second = layer.span_layer(spans[0]).chunk(2)[0], layer.span_layer(spans[1]).chunk(2)[1]
    return head.classifier(F.gelu(as_first + as_second + layer.between_layer.weight @ between))


@torch.no_grad()
def test_span_relations_match_a_loop_over_entities(encoder: Any, random_batch: Any, joined: Any) -> None:
    head = make(encoder, "spans").eval()
    sentences, single_states = random_batch(longest=9)
    predictions = head.decode(head.score(joined(single_states), head.targets(sentences, gold=False)), len(sentences))
    total = 0
    for states, predicted in zip(single_states, predictions, strict=True):
        expected = {}
        for (x, head_entity), (y, tail_entity) in product(enumerate(predicted.entities), repeat=2):
            for label, logit in zip(
                LABELS.relations, reference_logits(head, states.words[0], head_entity, tail_entity).tolist(), strict=True
            ):
                if logit > 0:
                    expected[label, x, y] = 1 / (1 + exp(-logit))
        assert {(r.type, r.head, r.tail): r.score for r in predicted.relations} == pytest.approx(expected, abs=1e-5)
        total += len(expected)
    assert total


@torch.no_grad()
def test_loss_of_pairs_matches_the_reference(encoder: Any, random_batch: Any, joined: Any) -> None:
    head = make(encoder, "spans", weight=0.5).eval()
    without_relations, single_states = random_batch()
    sentences = add_relations(without_relations)
    losses = head.loss(joined(single_states), head.targets(sentences, gold=True))
    entity_losses = head.entities.loss(joined(single_states), head.entities.targets(sentences, gold=True))
    for number, (sentence, states) in enumerate(zip(sentences, single_states, strict=True)):
        values = []
        # Type and range identify an entity, also a discontinuous one.
        by_range = {(e.type, e.range): e for e in sentence.entities}
        gold = {(name, (first.type, first.range), (second.type, second.range)) for name, first, second in triples(sentence)}
        for (head_key, head_entity), (tail_key, tail_entity) in product(by_range.items(), repeat=2):
            logits = reference_logits(head, states.words[0], head_entity, tail_entity)
            target = torch.tensor([float((name, head_key, tail_key) in gold) for name in LABELS.relations])
            values.append(float(F.binary_cross_entropy_with_logits(logits, target, reduction="sum")))
        assert float(losses.sums[number]) == pytest.approx(float(entity_losses.sums[number]) + 0.5 * sum(values), rel=1e-4)
    assert losses.counts.tolist() == [1] * len(sentences)


@pytest.mark.parametrize("options", [{}, {"distances": True, "rank": 3, "hidden": 4}], ids=["small", "all layers"])
@pytest.mark.parametrize("is_partial", [False, True], ids=["complete", "partial"])
def test_pairs_in_groups_have_the_same_loss_and_gradients(
    encoder: Any, random_batch: Any, joined: Any, monkeypatch: pytest.MonkeyPatch, options: dict[str, Any], is_partial: bool
) -> None:
    without_relations, single_states = random_batch(longest=9)
    sentences = add_relations(without_relations)
    if is_partial:
        sentences = [replace(s, annotated=((0, 1),) if n % 2 else ("A",)) for n, s in enumerate(sentences)]
    head, results = make(encoder, "spans", **options).eval(), []
    assert head.targets(sentences, gold=True)["relations.pairs"].shape[1] > 20
    for pairs in (1 << 20, 7, 1):
        monkeypatch.setattr(span_relations, "MAX_VALUES", pairs * (head.classifier.in_features + 3))
        head.zero_grad()
        states = joined(single_states)
        states.words.requires_grad_()
        sums = head.loss(states, head.targets(sentences, gold=True)).sums
        sums.sum().backward()
        gradients = [parameter.grad.clone() for parameter in head.parameters() if parameter.grad is not None]
        results.append((sums.detach(), states.words.grad, *gradients))
    for at_once, *in_groups in zip(*results, strict=True):
        for values in in_groups:
            torch.testing.assert_close(values, at_once, rtol=1e-4, atol=1e-5)


def test_dropout_is_repeated_for_the_gradients_of_groups(encoder: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the same dropout, a step along the gradient of a loss would not be one of this loss."""
    head = make(encoder, "spans", dropout=0.5).double()
    sentences = training_sentences()
    monkeypatch.setattr(span_relations, "MAX_VALUES", 3 * (head.classifier.in_features + 3))
    words = torch.randn(len(sentences), 9, 12, dtype=torch.float64)
    targets = select_targets(head.targets(sentences, gold=True), "relations")

    def loss(values: Tensor) -> Tensor:
        torch.manual_seed(0)
        states = TokenStates(values, values[:, 0], torch.ones(values.shape[:2], dtype=torch.bool))
        return head.relation_loss(states, targets).sum()

    gradient = torch.autograd.grad(loss(words.requires_grad_()), words)[0]
    with torch.no_grad():
        step = 1e-3 * gradient / gradient.norm()
        difference = (loss(words + step) - loss(words - step)) / 2e-3
    assert float(difference) == pytest.approx(float(gradient.norm()), rel=1e-2)


def test_no_tensor_grows_with_the_number_of_pairs(encoder: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Vectors and scores of all pairs are never in memory at once, forward or backward, in training or prediction."""
    monkeypatch.setattr(span_relations, "MAX_VALUES", 8192)
    head = make(encoder, "spans", wrong=0)
    entities = tuple(Entity("A", ((index, index + 1),), score=0.9) for index in range(60))
    sentence = Sentence("s", ("w",) * 60, entities, (Relation("made", 3, 50), Relation("near", 59, 59)))
    states = TokenStates(torch.randn(1, 60, 12, requires_grad=True), torch.zeros(1, 12), torch.ones(1, 60, dtype=torch.bool))
    targets = select_targets(head.targets([sentence], gold=True), "relations")
    with LargestTensor() as largest:
        head.relation_loss(states, targets).sum().backward()
    pair_indices = 2 * 60**2
    assert pair_indices <= largest.size <= 8192 < 60**2 * 12
    head.entities.decode = lambda scored, count: [Predictions(entities)]
    head.entities.score = lambda states, targets: None
    with torch.no_grad(), LargestTensor() as largest:
        head.score(states, {})
    assert largest.size <= 8192


@torch.no_grad()
@pytest.mark.parametrize("form", ["full", "shared"])
def test_loss_of_pointers_is_a_sum_over_relations(encoder: Any, random_batch: Any, joined: Any, form: str) -> None:
    head = make(encoder, form, weight=0.5).eval()
    without_relations, single_states = random_batch()
    sentences = add_relations(without_relations)
    losses = head.loss(joined(single_states), head.targets(sentences, gold=True))
    entity_losses = head.entities.loss(joined(single_states), head.entities.targets(sentences, gold=True))
    for number, (sentence, states) in enumerate(zip(sentences, single_states, strict=True)):
        scores, total = head.pointer.scores(states.words, 0, 6)[0], 0.0
        for matrix in range(6):
            cells = set()
            for r in sentence.relations:
                (s1, e1), (s2, e2) = sentence.entities[r.head].range, sentence.entities[r.tail].range
                if r.type == LABELS.relations[matrix % 3]:
                    cells.add((s1, s2) if matrix < 3 else (e1 - 1, e2 - 1))
            length = len(sentence.words)
            negative = sum(exp(float(scores[matrix, i, j])) for i, j in product(range(length), repeat=2) if (i, j) not in cells)
            positive = sum(exp(-float(scores[matrix, i, j])) for i, j in cells)
            total += (log(1 + negative) + log(1 + positive)) / 2
        assert float(losses.sums[number]) == pytest.approx(float(entity_losses.sums[number]) + 0.5 * total, rel=1e-4)
    parts = {name: float(value) for name, value in losses.parts.items()}
    assert float(losses.mean) == pytest.approx(parts["entities"] + 0.5 * parts["relations"], rel=1e-5)


@torch.no_grad()
@pytest.mark.parametrize("kind", ["locate-label", "biaffine", "grid", "spanner"])
def test_entity_losses_are_summed_over_instances(encoder: Any, random_batch: Any, joined: Any, kind: str) -> None:
    """Every entity head gives the sum over its spans, so that relations have the same weight with each of them."""
    sentences, states = random_batch(longest=9)
    torch.manual_seed(3)
    head = make_head(encoder, LABELS, {"kind": kind}, sentences).eval()
    losses = head.loss(joined(states), head.targets(sentences, gold=True))
    instances = losses.counts if losses.instance_counts is None else losses.instance_counts
    word_counts = [len(sentence.words) for sentence in sentences]  # every word is a span
    assert all(count >= words for count, words in zip(instances.tolist(), word_counts, strict=True))
    means = losses.sums / instances
    assert means.min() > 0.1
    assert means.max() < 10


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_overlap_can_be_learned(encoder: Any, kind: str) -> None:
    entities = {**KINDS[kind]["entities"], "size": 16}
    check_overfitting(
        encoder, {**KINDS[kind], "entities": entities, **({"size": 16} if "size" in KINDS[kind] else {})}, training_sentences()
    )


@pytest.mark.parametrize("kind", ["gp-relations", "span-relations"])
def test_discontinuous_entities_have_relations_too(encoder: Any, kind: str) -> None:
    discontinuous, contiguous = Entity("A", ((0, 1), (3, 4))), Entity("B", ((5, 6),))
    words = ("left", "and", "right", "knee", "after", "fall")
    example = Sentence(
        "discontinuous",
        words,
        (discontinuous, Entity("A", ((2, 4),)), contiguous),
        (Relation("made", 2, 0), Relation("near", 1, 2)),
    )
    check_overfitting(encoder, {"kind": kind}, [*training_sentences()[:3], *[example] * 4], steps=200)


def check_overfitting(encoder: Any, values: dict[str, Any], sentences: Sequence[Sentence], steps: int = 150) -> None:
    """Train a head and word vectors, and check that it predicts exactly the gold annotations."""
    torch.manual_seed(0)
    word_vectors = type(encoder)(sentences, 24)
    head = make_head(word_vectors, LABELS, values, sentences)
    inputs, generator = word_vectors.collate(word_vectors.prepare(sentences)), np.random.default_rng(0)
    optimizer = torch.optim.AdamW([*word_vectors.parameters(), *head.parameters()], lr=0.02)

    @torch.no_grad()
    def predict() -> list[Predictions]:
        scored = head.eval().score(word_vectors(inputs), head.targets(sentences, gold=False))
        return head.decode(scored, len(sentences))

    def annotations(items: Iterable[Any]) -> list[Any]:
        return [(set(item.entities), triples(item), len(item.relations)) for item in items]

    for step in range(1, steps + 1):
        losses = head.train().loss(word_vectors(inputs), head.targets(sentences, gold=True, generator=generator))
        optimizer.zero_grad()
        losses.mean.backward()
        optimizer.step()
        if step % 25 == 0 and annotations(predict()) == annotations(sentences):
            break
    for sentence, predicted in zip(sentences, predict(), strict=True):
        assert set(predicted.entities) == set(sentence.entities), sentence.id
        assert triples(predicted) == triples(sentence), sentence.id
        assert len(predicted.relations) == len(sentence.relations)


@pytest.mark.parametrize("kind", KINDS)
def test_loss_does_not_synchronise(encoder: Any, random_batch: Any, joined: Any, synchronisations: Any, kind: str) -> None:
    head = make(encoder, kind)
    without_relations, single_states = random_batch()
    sentences = add_relations(without_relations)
    targets = head.targets(sentences, gold=True, generator=np.random.default_rng(0))
    states = joined(single_states)
    states.words.requires_grad_()
    with synchronisations() as counts:
        head.loss(states, targets).mean.backward()
    assert not counts


@pytest.mark.parametrize("kind", KINDS)
def test_sentences_without_entities(encoder: Any, kind: str) -> None:
    head = make(encoder, kind).eval()
    sentences = [Sentence("1", ("w",)), Sentence("2", ("w", "w"))]
    states = TokenStates(torch.zeros(2, 2, 12), torch.zeros(2, 12), torch.tensor([[True, False], [True, True]]))
    losses = head.loss(states, head.targets(sentences, gold=True))
    assert torch.isfinite(losses.mean)
    head.entities.decode = lambda scored, count: [Predictions(())] * count
    with torch.no_grad():
        assert head.decode(head.score(states, head.targets(sentences, gold=False)), 2) == [Predictions(())] * 2


def test_unknown_types_are_skipped(encoder: Any) -> None:
    unknown = Sentence(
        "s", ("w",) * 4, (Entity("A", ((0, 1),)), Entity("C", ((2, 3),))), (Relation("likes", 0, 1), Relation("eats", 0, 0))
    )
    for kind in KINDS:
        head = make(encoder, kind)
        states = TokenStates(torch.zeros(1, 4, 12), torch.zeros(1, 12), torch.ones(1, 4, dtype=torch.bool))
        assert torch.isfinite(head.loss(states, head.targets([unknown], gold=True)).mean)
    assert make(encoder, "spans").targets([unknown], gold=True)["relations.positives"].tolist() == []


def test_sampled_negatives_are_spans_of_the_sentence_and_not_gold(encoder: Any) -> None:
    head = make(encoder, "spans", wrong=6)
    gold = np.array([[0, 2, 0], [3, 4, 1]])
    sampled = set()
    for seed in range(200):
        rows = head._sample_negatives(gold, 5, np.random.default_rng(seed))
        assert len(rows) <= 6
        assert all(0 <= start < end <= 5 for start, end, _ in rows.tolist())
        sampled |= set(map(tuple, rows[:, :2].tolist()))
    assert not sampled & {(0, 2), (3, 4)}
    assert {(0, 1), (0, 3), (1, 3), (2, 4), (3, 5), (1, 2)} <= sampled
    assert len(head._sample_negatives(gold[:0], 5, np.random.default_rng(0))) == 0


def test_mistyped_spans_are_gold_spans_with_another_type(encoder: Any) -> None:
    head = make(encoder, "spans", wrong=0, wrong_types=2)
    gold = np.array([[0, 2, 0], [3, 4, 1], [5, 6, 0], [5, 6, 1]])
    rows = {tuple(row) for seed in range(50) for row in head._mistype(gold, np.random.default_rng(seed)).tolist()}
    assert rows == {(0, 2, 1), (3, 4, 0)}
    assert len(head._mistype(gold[:0], np.random.default_rng(0))) == 0
    sentences = [s for s in training_sentences() if s.entities]
    spans = head.targets(sentences, gold=True, generator=np.random.default_rng(0))["relations.spans"]
    assert spans.shape[1] > sum(len(s.entities) for s in sentences)


@torch.no_grad()
def test_only_entities_with_the_highest_scores_are_paired(encoder: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(relations_module, "MAX_PAIRED_ENTITIES", 2)
    head = make(encoder, "spans").eval()
    scores = (0.9, 0.6, 0.8)
    entities = tuple(Entity("A", ((index, index + 1),), score=score) for index, score in enumerate(scores))
    head.entities.decode = lambda scored, count: [Predictions(()), Predictions(entities)]
    head.entities.score = lambda states, targets: None
    head.logits = lambda words, spans, label, first, second: torch.ones(len(first), 3)
    states = TokenStates(torch.zeros(2, 3, 12), torch.zeros(2, 12), torch.ones(2, 3, dtype=torch.bool))
    empty, predicted = head.decode(head.score(states, {}), 2)
    assert empty == Predictions(())
    assert predicted.entities == entities
    assert {(r.head, r.tail) for r in predicted.relations} == {(0, 0), (0, 2), (2, 0), (2, 2)}


@pytest.mark.parametrize("kind", ["full", "spans"])
def test_tuning_with_extreme_scores_gives_a_finite_threshold(encoder: Any, kind: str) -> None:
    head = make(encoder, kind, threshold="dev")
    gold = training_sentences()[:1]
    correct = tuple(replace(relation, score=1.0) for relation in gold[0].relations)
    predictions = [replace(gold[0], relations=(*correct, Relation("near", 1, 2, score=0.999999)))]
    assert head.tune(gold, lambda: predictions)
    rebuilt = make_head(encoder, LABELS, head_values(head))
    assert 0.99 < rebuilt.settings.threshold < 1
    assert isfinite(rebuilt.cutoff)


def test_the_thresholds_of_entities_and_relations_are_tuned_together(encoder: Any) -> None:
    entities = (Entity("A", ((0, 1),), score=0.42), Entity("B", ((1, 2),), score=0.9))
    wrong = Entity("A", ((2, 3),), score=0.3)
    gold = [Sentence(f"s{n}", ("w",) * 3, entities, (Relation("made", 0, 1),)) for n in range(60)]
    predicted_relations = (Relation("made", 0, 1, score=0.2), Relation("likes", 0, 1, score=0.1))
    predicted = [replace(s, entities=(*entities, wrong), relations=predicted_relations) for s in gold]
    head = make_head(encoder, LABELS, {"kind": "span-relations", "entities": {"kind": "grid"}}, gold)
    tuned = head.predict_tuned(gold, lambda: predicted)
    assert [(s.entities, s.relations) for s in tuned] == [(entities, predicted_relations[:1])] * 60
    assert (head.entities.threshold, head.relation_threshold) == (0.5, 0.5)
    assert head.tune(gold, lambda: predicted)
    assert (head.entities.threshold, round(head.relation_threshold, 6)) == (0.4, 0.15)
    values = head_values(head)
    assert (values["entities"]["threshold"], values["threshold"]) == (0.4, 0.15)
    assert head_values(make_head(encoder, LABELS, values)) == values


@pytest.mark.parametrize("kind", ["gp-relations", "span-relations"])
def test_saved_settings_build_the_same_head(encoder: Any, kind: str) -> None:
    head = make_head(encoder, LABELS, {"kind": kind}, training_sentences())
    values = head_values(head)
    assert values["entities"]["decoding"] == "nested"
    assert values["entities"]["kind"] == {"gp-relations": "global-pointer", "span-relations": "biaffine"}[kind]
    rebuilt = make_head(encoder, LABELS, values)
    assert {name: value.shape for name, value in rebuilt.state_dict().items()} == {
        name: value.shape for name, value in head.state_dict().items()
    }
    assert head.finds_relations
    assert head.count_unreachable(replace(training_sentences()[0], entities=(Entity("C", ((0, 1),)),), relations=())) == 1


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"kind": "gp-relations", "entities": {"kind": "pointer"}}, "unknown head.entities 'pointer'"),
        ({"kind": "gp-relations", "entities": {"kind": "span-relations"}}, "predicts relations itself"),
        ({"kind": "gp-relations", "entities": {"kind": "global-pointer", "sizes": 3}}, "sizes"),
        ({"kind": "span-relations", "entities": {"kind": "deep-span", "unit": "subwords", "max_width": 9}}, "subwords"),
        ({"kind": "gp-relations", "threshold": 1.0}, "threshold"),
        ({"kind": "gp-relations", "form": "half"}, "form"),
    ],
)
def test_invalid_settings_are_refused(values: dict[str, Any], message: str) -> None:
    with pytest.raises(SpanwiseError, match=message):
        head_settings(values)


@pytest.mark.parametrize("kind", ["gp-relations", "span-relations"])
def test_data_without_relations_is_refused(encoder: Any, kind: str) -> None:
    with pytest.raises(SpanwiseError, match="the training data has no relations"):
        make_head(encoder, Labels(("A",)), {"kind": kind}, training_sentences())
