"""Relation heads: all kinds of overlap, reference computations, batch invariance and learning."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from math import exp, isfinite, log
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor

from spanwise.core.errors import SpanwiseError
from spanwise.core.types import Entity, Relation, Sentence
from spanwise.decoding.decode import Predictions
from spanwise.encoders.base import TokenStates
from spanwise.heads import head_settings, head_values, make_head
from spanwise.heads import relations as relations_module
from spanwise.heads.base import Labels
from spanwise.heads.gp_relations import PointerRelations
from spanwise.heads.pair_pointer import PairPointer
from spanwise.heads.relations import RelationHead
from spanwise.heads.span_relations import SpanRelations

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


def triples(actual: Predictions | Sentence) -> set[tuple[str, Entity, Entity]]:
    return {(r.type, actual.entities[r.head], actual.entities[r.tail]) for r in actual.relations}


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


class Perfect(PairPointer):
    """Scores the gold cells of one sentence 5 and all others -5; words are one-hot vectors."""

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
    head.pointer = Perfect(head.targets([sentence], gold=True)["relations.cells"], 3, length)

    def scores(words: Tensor, tiles: Any) -> Tensor:
        actual = torch.full((1, 2, tiles.cells), -5.0)
        for entity in sentence.entities:
            place = tiles.index(*(torch.tensor(bound) for bound in entity.range))
            actual[0, LABELS.entities.index(entity.type), place] = 5.0
        return actual.view(1, 2, tiles.count, tiles.rows, tiles.columns)

    head.entities.scores = scores
    states = TokenStates(torch.eye(length).unsqueeze(0), torch.zeros(1, length), torch.ones(1, length, dtype=torch.bool))
    (actual,) = head.decode(head.score(states, head.targets([sentence], gold=False)), 1)
    assert set(actual.entities) == set(sentence.entities)
    assert len(actual.relations) == len(sentence.relations)
    assert triples(actual) == triples(sentence)
    assert all(relation.score == pytest.approx(1 / (1 + exp(-5)), abs=1e-5) for relation in actual.relations)


@pytest.mark.parametrize("sentence", training_sentences(), ids=lambda sentence: sentence.id)
def test_perfect_scores_of_pairs_are_decoded_exactly(encoder: Any, sentence: Sentence) -> None:
    head = make(encoder, "spans").eval()
    gold = triples(sentence)
    head.entities.score = lambda states, targets: None
    head.entities.decode = lambda scored, count: [Predictions(sentence.entities)]

    def logits(words: Tensor, spans: Any, label: Tensor, first: Tensor, second: Tensor) -> Tensor:
        starts, ends, labels = spans.start.tolist(), spans.end.tolist(), label.tolist()
        entity = [Entity(LABELS.entities[k], ((s, e),)) for s, e, k in zip(starts, ends, labels, strict=True)]
        pairs = zip(first.tolist(), second.tolist(), strict=True)
        rows = [[5.0 if (r, entity[x], entity[y]) in gold else -5.0 for r in LABELS.relations] for x, y in pairs]
        return torch.tensor(rows).view(-1, 3)

    head.logits = logits
    states = TokenStates(torch.zeros(1, len(sentence.words), 12), torch.zeros(1, 12), torch.ones(1, 1, dtype=torch.bool))
    (actual,) = head.decode(head.score(states, {}), 1)
    assert actual.entities == sentence.entities
    assert len(actual.relations) == len(gold)
    assert triples(actual) == gold


def related(sentences: Sequence[Sentence], seed: int = 0) -> list[Sentence]:
    """The sentences with random relations between their entities."""
    rng = np.random.default_rng(seed)
    actual = []
    for sentence in sentences:
        count = len(sentence.entities)
        rows = rng.integers(0, (3, max(count, 1), max(count, 1)), size=(count, 3)).tolist()
        relations = {Relation(LABELS.relations[kind], head, tail) for kind, head, tail in rows}
        actual.append(replace(sentence, relations=tuple(sorted(relations, key=lambda r: (r.type, r.head, r.tail)))))
    return actual


@torch.no_grad()
@pytest.mark.parametrize("kind", KINDS)
def test_results_do_not_depend_on_the_batch(encoder: Any, random_batch: Any, joined: Any, kind: str) -> None:
    head = make(encoder, kind).eval()
    bare, states = random_batch(longest=9)
    sentences = related(bare)
    alone = []
    for sentence, state in zip(sentences, states, strict=True):
        losses = head.loss(state, head.targets([sentence], gold=True))
        (actual,) = head.decode(head.score(state, head.targets([sentence], gold=False)), 1)
        alone.append((losses.sums[0], losses.counts[0], actual))
    assert any(actual.relations for *_, actual in alone)
    rng = np.random.default_rng(7)
    for size in (2, 3, 5, 9):
        order = rng.permutation(len(sentences))
        for extra, first in enumerate(range(0, len(order), size)):
            chosen = order[first : first + size].tolist()
            batch, some = joined([states[number] for number in chosen], extra), [sentences[number] for number in chosen]
            losses = head.loss(batch, head.targets(some, gold=True))
            every = head.decode(head.score(batch, head.targets(some, gold=False)), len(some))
            for place, number in enumerate(chosen):
                sums, counts, actual = alone[number]
                torch.testing.assert_close(losses.sums[place], sums, rtol=1e-5, atol=1e-5)
                assert losses.counts[place] == counts
                assert every[place] == actual
                for one, other in zip(every[place].relations, actual.relations, strict=True):
                    assert one.score == pytest.approx(other.score, abs=1e-5)


@torch.no_grad()
@pytest.mark.parametrize("threshold", [0.5, 0.9])
@pytest.mark.parametrize("form", ["full", "shared"])
def test_pointer_relations_match_a_loop_over_entities(
    encoder: Any, random_batch: Any, joined: Any, form: str, threshold: float
) -> None:
    head = make(encoder, form, threshold=threshold).eval()
    sentences, alone = random_batch(longest=7)
    every = head.decode(head.score(joined(alone), head.targets(sentences, gold=False)), len(sentences))
    cutoff, total = log(threshold / (1 - threshold)), 0
    for states, actual in zip(alone, every, strict=True):
        scores = head.pointer.scores(states.words, 0, 6)[0]
        expected = {}
        for (x, one), (y, other) in product(enumerate(actual.entities), repeat=2):
            for label in range(3):
                first = float(scores[label, one.range.start, other.range.start])
                last = float(scores[3 + label, one.range.end - 1, other.range.end - 1])
                if min(first, last) > cutoff:
                    expected[LABELS.relations[label], x, y] = 1 / (1 + exp(-min(first, last)))
        got = {(r.type, r.head, r.tail): r.score for r in actual.relations}
        assert got == pytest.approx(expected, abs=1e-5)
        total += len(got)
    assert total


def reference_pair(head: SpanRelations, words: Tensor, one: Entity, other: Entity) -> Tensor:
    """The logits of a pair, computed by the layer as one product."""
    layer = head.layer
    spans = [
        torch.cat([words[a], words[b - 1], words[a:b].max(0).values, layer.labels.weight[LABELS.entities.index(entity.type)]])
        for entity, (a, b) in ((one, one.range), (other, other.range))
    ]
    low, high = min(one.range.end, other.range.end), max(one.range.start, other.range.start)
    between = words[low:high].max(0).values if low < high else torch.zeros(words.shape[1])
    as_first, as_second = layer.span_layer(spans[0]).chunk(2)[0], layer.span_layer(spans[1]).chunk(2)[1]
    return head.classifier(F.gelu(as_first + as_second + layer.between_layer.weight @ between))


@torch.no_grad()
def test_span_relations_match_a_loop_over_entities(encoder: Any, random_batch: Any, joined: Any) -> None:
    head = make(encoder, "spans").eval()
    sentences, alone = random_batch(longest=9)
    every = head.decode(head.score(joined(alone), head.targets(sentences, gold=False)), len(sentences))
    total = 0
    for states, actual in zip(alone, every, strict=True):
        expected = {}
        for (x, one), (y, other) in product(enumerate(actual.entities), repeat=2):
            for label, value in zip(LABELS.relations, reference_pair(head, states.words[0], one, other).tolist(), strict=True):
                if value > 0:
                    expected[label, x, y] = 1 / (1 + exp(-value))
        assert {(r.type, r.head, r.tail): r.score for r in actual.relations} == pytest.approx(expected, abs=1e-5)
        total += len(expected)
    assert total


@torch.no_grad()
def test_loss_of_pairs_matches_the_reference(encoder: Any, random_batch: Any, joined: Any) -> None:
    head = make(encoder, "spans", weight=0.5).eval()
    bare, alone = random_batch()
    sentences = related(bare)
    losses = head.loss(joined(alone), head.targets(sentences, gold=True))
    entities = head.entities.loss(joined(alone), head.entities.targets(sentences, gold=True))
    for number, (sentence, states) in enumerate(zip(sentences, alone, strict=True)):
        gold, values = triples(sentence), []
        of_range = {(e.type, e.range): e for e in sentence.entities}  # a discontinuous one is told by its first and last word
        gold = {(r, (one.type, one.range), (other.type, other.range)) for r, one, other in gold}
        for one, other in product(of_range.items(), repeat=2):
            scores = reference_pair(head, states.words[0], one[1], other[1])
            target = torch.tensor([float((r, one[0], other[0]) in gold) for r in LABELS.relations])
            values.append(float(F.binary_cross_entropy_with_logits(scores, target, reduction="sum")))
        assert float(losses.sums[number]) == pytest.approx(float(entities.sums[number]) + 0.5 * sum(values), rel=1e-4)
    assert losses.counts.tolist() == [1] * len(sentences)


@torch.no_grad()
@pytest.mark.parametrize("form", ["full", "shared"])
def test_loss_of_pointers_is_a_sum_over_relations(encoder: Any, random_batch: Any, joined: Any, form: str) -> None:
    head = make(encoder, form, weight=0.5).eval()
    bare, alone = random_batch()
    sentences = related(bare)
    losses = head.loss(joined(alone), head.targets(sentences, gold=True))
    entities = head.entities.loss(joined(alone), head.entities.targets(sentences, gold=True))
    for number, (sentence, states) in enumerate(zip(sentences, alone, strict=True)):
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
        assert float(losses.sums[number]) == pytest.approx(float(entities.sums[number]) + 0.5 * total, rel=1e-4)
    parts = {name: float(value) for name, value in losses.parts.items()}
    assert float(losses.mean) == pytest.approx(parts["entities"] + 0.5 * parts["relations"], rel=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_overlap_can_be_learned(encoder: Any, kind: str) -> None:
    entities = {**KINDS[kind]["entities"], "size": 16}
    learn(
        encoder, {**KINDS[kind], "entities": entities, **({"size": 16} if "size" in KINDS[kind] else {})}, training_sentences()
    )


@pytest.mark.parametrize("kind", ["gp-relations", "span-relations"])
def test_discontinuous_entities_have_relations_too(encoder: Any, kind: str) -> None:
    broken, whole = Entity("A", ((0, 1), (3, 4))), Entity("B", ((5, 6),))
    words = ("left", "and", "right", "knee", "after", "fall")
    more = Sentence("broken", words, (broken, Entity("A", ((2, 4),)), whole), (Relation("made", 2, 0), Relation("near", 1, 2)))
    learn(encoder, {"kind": kind}, [*training_sentences()[:3], *[more] * 4], steps=200)


def learn(encoder: Any, values: dict[str, Any], sentences: Sequence[Sentence], steps: int = 150) -> None:
    """Train a head and word vectors on sentences and check that it predicts exactly their annotations."""
    torch.manual_seed(0)
    table = type(encoder)(sentences, 24)
    head = make_head(table, LABELS, values, sentences)
    inputs, generator = table.collate(table.prepare(sentences)), np.random.default_rng(0)
    optimizer = torch.optim.AdamW([*table.parameters(), *head.parameters()], lr=0.02)
    for _ in range(steps):
        losses = head.loss(table(inputs), head.targets(sentences, gold=True, generator=generator))
        optimizer.zero_grad()
        losses.mean.backward()
        optimizer.step()
    head.eval()
    with torch.no_grad():
        every = head.decode(head.score(table(inputs), head.targets(sentences, gold=False)), len(sentences))
    for sentence, actual in zip(sentences, every, strict=True):
        assert set(actual.entities) == set(sentence.entities), sentence.id
        assert triples(actual) == triples(sentence), sentence.id
        assert len(actual.relations) == len(sentence.relations)


@pytest.mark.parametrize("kind", KINDS)
def test_loss_does_not_synchronise(encoder: Any, random_batch: Any, joined: Any, synchronisations: Any, kind: str) -> None:
    head = make(encoder, kind)
    bare, alone = random_batch()
    sentences = related(bare)
    targets = head.targets(sentences, gold=True, generator=np.random.default_rng(0))
    states = joined(alone)
    states.words.requires_grad_()
    with synchronisations() as count:
        head.loss(states, targets).mean.backward()
    assert not count


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
    other = Sentence(
        "s", ("w",) * 4, (Entity("A", ((0, 1),)), Entity("C", ((2, 3),))), (Relation("likes", 0, 1), Relation("eats", 0, 0))
    )
    for kind in KINDS:
        head = make(encoder, kind)
        states = TokenStates(torch.zeros(1, 4, 12), torch.zeros(1, 12), torch.ones(1, 4, dtype=torch.bool))
        assert torch.isfinite(head.loss(states, head.targets([other], gold=True)).mean)
    assert make(encoder, "spans").targets([other], gold=True)["relations.positives"].tolist() == []


def test_sampled_negatives_are_spans_of_the_sentence_and_not_gold(encoder: Any) -> None:
    head = make(encoder, "spans", wrong=6)
    gold = np.array([[0, 2, 0], [3, 4, 1]])
    seen = set()
    for seed in range(200):
        rows = head._sample_negatives(gold, 5, np.random.default_rng(seed))
        assert len(rows) <= 6
        assert all(0 <= start < end <= 5 for start, end, _ in rows.tolist())
        seen |= set(map(tuple, rows[:, :2].tolist()))
    assert not seen & {(0, 2), (3, 4)}
    assert {(0, 1), (0, 3), (1, 3), (2, 4), (3, 5), (1, 2)} <= seen
    assert len(head._sample_negatives(gold[:0], 5, np.random.default_rng(0))) == 0


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
    empty, actual = head.decode(head.score(states, {}), 2)
    assert empty == Predictions(())
    assert actual.entities == entities
    assert {(r.head, r.tail) for r in actual.relations} == {(0, 0), (0, 2), (2, 0), (2, 2)}


@pytest.mark.parametrize("kind", ["full", "spans"])
def test_tuning_with_extreme_scores_gives_a_finite_threshold(encoder: Any, kind: str) -> None:
    head = make(encoder, kind, threshold="dev")
    gold = training_sentences()[:1]
    right = tuple(replace(relation, score=1.0) for relation in gold[0].relations)
    actual = [replace(gold[0], relations=(*right, Relation("near", 1, 2, score=0.999999)))]
    assert head.tune(gold, lambda: actual)
    again = make_head(encoder, LABELS, head_values(head))
    assert 0.99 < again.settings.threshold < 1
    assert isfinite(again.cutoff)


@pytest.mark.parametrize("kind", ["gp-relations", "span-relations"])
def test_saved_settings_build_the_same_head(encoder: Any, kind: str) -> None:
    head = make_head(encoder, LABELS, {"kind": kind}, training_sentences())
    values = head_values(head)
    assert values["entities"]["decoding"] == "nested"
    assert values["entities"]["kind"] == {"gp-relations": "global-pointer", "span-relations": "biaffine"}[kind]
    again = make_head(encoder, LABELS, values)
    assert {name: value.shape for name, value in again.state_dict().items()} == {
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
