"""Locate and Label: assignment, losses of both stages, proposals, and all options."""

from __future__ import annotations

from itertools import combinations
from math import exp, log
from typing import Any

import numpy as np
import pytest
import torch
from pydantic import ValidationError
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

from spanwise.core.errors import SpanwiseError
from spanwise.core.types import Entity, Sentence
from spanwise.decoding.soft_nms import SoftNms
from spanwise.encoders.base import TokenStates
from spanwise.heads import head_class
from spanwise.heads.base import Labels
from spanwise.heads.locate_label import LocateLabel
from spanwise.heads.locate_parts import Text
from spanwise.heads.locate_settings import LocateSettings

LABELS = Labels(("A", "B"))
Row = tuple[int, int, int]


def make(encoder: Any, *, opinionated: bool = True, **options: Any) -> LocateLabel:
    """A head that predicts entities for random states: its regressor moves, and its classifier rarely chooses NONE."""
    torch.manual_seed(3)
    settings = LocateSettings(**{"lengths": (1, 2, 3, 4), "decoding": "nested", "dropout": 0.0, **options})
    head = LocateLabel.build(encoder, LABELS, settings)
    if opinionated:
        with torch.no_grad():
            head.classifier.out.weight.mul_(8)
            if head.regressor is not None and head.regressor.edges is not None:
                torch.nn.init.normal_(head.regressor.out.weight, std=0.8)
                torch.nn.init.normal_(head.regressor.edges)
    return head


def sentence(words: int, *entities: tuple[Any, ...]) -> Sentence:
    return Sentence("s", ("w",) * words, tuple(Entity(kind, fragments) for kind, *fragments in entities))


def spans_of(targets: dict[str, Tensor]) -> list[Row]:
    return list(zip(*(targets[name].tolist() for name in ("sentence", "start", "end")), strict=True))


def overlap(one: tuple[int, ...], other: tuple[int, ...]) -> float:
    here, there = set(range(*one[-2:])), set(range(*other[-2:]))
    return len(here & there) / len(here | there)


def test_registered_as_locate_label() -> None:
    assert head_class("locate-label") is LocateLabel
    assert LocateLabel.settings_class is LocateSettings


# --- seeds, assignment, sampling -----------------------------------------------------------------------------------


def test_seeds_have_the_given_lengths(encoder: Any) -> None:
    targets = make(encoder, lengths=(1, 3)).targets([sentence(4), sentence(2), sentence(0)], gold=False)
    assert set(targets) == {"sentence", "start", "end"}
    assert spans_of(targets) == [
        (0, 0, 1), (0, 0, 3), (0, 1, 2), (0, 1, 4), (0, 2, 3), (0, 3, 4), (1, 0, 1), (1, 1, 2),
    ]  # fmt: skip


def test_assignment_by_hand(encoder: Any) -> None:
    """For an entity of 4 words, seeds of 3 words inside it (3/4) are proposals, those of 2 are not; so is wide gold."""
    head = make(encoder)
    one = sentence(9, ("A", (2, 6)), ("B", (0, 9)), ("A", (7, 8)), ("B", (0, 1), (8, 9)))
    assert head._positive(one).tolist() == [[0, 9], [2, 5], [2, 6], [3, 6], [7, 8]]
    # An overlap of exactly 0.7 (7 of 10 words) is not enough.
    assert make(encoder, lengths=(7,))._positive(sentence(10, ("A", (0, 10)))).tolist() == [[0, 10]]
    assert make(encoder, lengths=(8,))._positive(sentence(10, ("A", (0, 10)))).tolist() == [[0, 8], [0, 10], [1, 9], [2, 10]]


@pytest.mark.parametrize("seed", range(4))
def test_assignment_matches_loops_over_all_spans(encoder: Any, random_batch: Any, seed: int) -> None:
    head = make(encoder, lengths=(1, 2, 3, 5, 7))
    sentences, _ = random_batch(seed=seed)
    targets = head.targets(sentences, gold=True)
    expected, positive = set(), set()
    for number, one in enumerate(sentences):
        gold = {entity.range for entity in one.entities if not entity.is_discontinuous}
        seeds = {(s, e) for s, e in combinations(range(len(one.words) + 1), 2) if e - s in (1, 2, 3, 5, 7)}
        expected |= {(number, *span) for span in seeds | gold}
        positive |= {(number, *span) for span in seeds | gold if any(overlap(span, other) > 0.7 for other in gold)}
    actual = spans_of(targets)
    assert len(actual) == len(set(actual))
    assert set(actual) == expected
    assert {
        row for row in actual if any(tuple(row[1:]) == tuple(p) for p in head._positive(sentences[row[0]]).tolist())
    } == positive
    assert set(actual[: len(positive)]) == positive  # they come first


def test_padded_gold_and_its_classes(encoder: Any) -> None:
    head = make(encoder)
    twice = [("A", (1, 3)), ("B", (1, 3))]
    targets = head.targets([sentence(4, *twice, ("B", (0, 1))), sentence(3), sentence(1, ("A", (0, 1)))], gold=True)
    assert targets["gold"].tolist() == [[[0, 1], [1, 3]], [[0, 0], [0, 0]], [[0, 1], [0, 0]]]
    assert targets["classes"].tolist() == [
        [[0, 1, 0], [0.5, 0.5, 0]], [[0, 0, 0], [0, 0, 0]], [[1, 0, 0], [0, 0, 0]],
    ]  # fmt: skip


def test_training_samples_five_negatives_per_positive_from_the_whole_batch(encoder: Any) -> None:
    head = make(encoder, negatives=5)
    sentences = [sentence(12, ("A", (2, 6)), ("B", (8, 9))), sentence(30), sentence(3, ("A", (0, 3)))]
    positives = [(0, 2, 5), (0, 2, 6), (0, 3, 6), (0, 8, 9), (2, 0, 3)]
    seen = set()
    for number in range(80):
        targets = head.targets(sentences, gold=True, generator=np.random.default_rng(number))
        again = head.targets(sentences, gold=True, generator=np.random.default_rng(number))
        assert all(torch.equal(targets[name], again[name]) for name in targets)
        actual = spans_of(targets)
        assert actual[: len(positives)] == positives
        assert len(actual) == len(set(actual)) == 6 * len(positives)
        seen |= set(actual)
    assert seen == set(spans_of(head.targets(sentences, gold=True)))  # all negatives are sampled at some point
    assert {row[0] for row in spans_of(head.targets(sentences[1:2], gold=True, generator=np.random.default_rng(0)))} == {0}
    few = head.targets([sentence(2, ("A", (0, 2)))], gold=True, generator=np.random.default_rng(0))
    assert spans_of(few) == [(0, 0, 2), (0, 0, 1), (0, 1, 2)]


# --- the loss ------------------------------------------------------------------------------------------------------


def reference_scores(mlp: Any, words: Tensor, start: int, end: int) -> Tensor:
    left, right = words[start], words[end - 1]
    if mlp.edges is not None:
        left = words[start - 1] if start else mlp.edges[0]
        right = words[end] if end < len(words) else mlp.edges[1]
    return mlp.out(F.gelu(mlp.inner(torch.cat((words[start:end].amax(0), left, right)))))


def reference_move(start: int, end: int, moves: list[float], length: int) -> tuple[int, int]:
    first = min(max(0, start + int(np.floor(moves[0] + 0.5))), length - 1)
    return first, max(min(length, end + int(np.floor(moves[1] + 0.5))), first + 1)


def paired(start: int, end: int, gold: list[Any]) -> tuple[float, Any]:
    return max(((overlap((start, end), g[:2]), g) for g in gold), key=lambda pair: pair[0], default=(0.0, (0, 0, "")))


def weight(shared: float, threshold: float, eta: float) -> float:
    return float((shared if shared >= threshold else 1 - shared) ** eta)


def reference_loss(head: LocateLabel, sentences: list[Sentence], states: TokenStates, rows: list[Row]) -> dict[str, float]:
    """Compute the equations span by span."""
    settings = head.settings
    sums = {name: [0.0, 0] for name in ("filter", "regressor", "classifier")}
    for number, start, end in rows:
        one, words = sentences[number], states.words[number, : len(sentences[number].words)]
        gold = sorted({(*e.range, e.type) for e in one.entities if not e.is_discontinuous})

        for _ in range(head.rounds):
            shared, entity = paired(start, end, gold)
            if head.filter is not None:
                p = 1 / (1 + exp(-float(reference_scores(head.filter, words, start, end))))
                right = p if shared > 0.7 else 1 - p
                sums["filter"][0] += -weight(shared, 0.7, settings.softness) * (1 - right) ** settings.focus * log(right)
                sums["filter"][1] += 1
            if head.regressor is not None:
                moves = reference_scores(head.regressor, words, start, end)
                if shared > 0.7:
                    wanted = torch.tensor([entity[0] - start, entity[1] - end], dtype=torch.float)
                    left, right_ = (start + float(moves[0]), end + float(moves[1]))
                    meet = min(right_, entity[1]) - max(left, entity[0])
                    hull = max(right_, entity[1]) - min(left, entity[0])
                    distance = float(F.smooth_l1_loss(moves, wanted, reduction="sum"))
                    distance *= weight(shared, 0.7, settings.softness) if "weighted-offsets" in settings.paper else 1
                    sums["regressor"][0] += distance + 1 - max(meet, 0) / hull
                    sums["regressor"][1] += 1
                start, end = reference_move(start, end, moves.tolist(), len(words))
        shared, _ = paired(start, end, gold)
        types = [LABELS.entities.index(g[2]) for g in gold if g[:2] == (start, end)] or [head.none]
        probabilities = reference_scores(head.classifier, words, start, end).log_softmax(0)
        focus = settings.focus if "focal-classifier" in settings.paper else 0
        terms = [(1 - exp(float(probabilities[kind]))) ** focus * float(probabilities[kind]) for kind in types]
        value = -sum(terms) / len(types)
        sums["classifier"][0] += weight(shared, 1.0, settings.softness) * value
        sums["classifier"][1] += 1
    return {name: total / max(count, 1) for name, (total, count) in sums.items()}


VARIANTS: list[dict[str, Any]] = [
    {}, {"regressor": False}, {"filter": False}, {"regressor": False, "filter": False}, {"softness": 0.0}, {"softness": 2.0},
    {"refine": 2}, {"focus": 0.5}, {"filter_weight": 0.3, "regressor_weight": 2.0, "classifier_weight": 0.7},
    {"paper": ("focal-classifier",), "focus": 1.5}, {"paper": ("weighted-offsets",)},
]  # fmt: skip


@pytest.mark.parametrize("options", VARIANTS, ids=str)
@torch.no_grad()
def test_loss_matches_the_equations(encoder: Any, random_batch: Any, joined: Any, options: dict[str, Any]) -> None:
    head = make(encoder, **options)
    sentences, states = random_batch(seed=1)
    batch = joined(states)
    for targets in (
        head.targets(sentences, gold=True),
        head.targets(sentences, gold=True, generator=np.random.default_rng(0)),
    ):
        losses = head.loss(batch, targets)
        expected = reference_loss(head, sentences, batch, spans_of(targets))
        parts = {name for name, part in (("filter", head.filter), ("regressor", head.regressor)) if part is not None}
        assert set(losses.parts) == {"classifier"} | parts
        for name, value in losses.parts.items():
            assert float(value) == pytest.approx(expected[name], rel=1e-4), name
        weights = {name: getattr(head.settings, f"{name}_weight") for name in losses.parts}
        assert float(losses.mean) == pytest.approx(sum(weights[n] * expected[n] for n in weights), rel=1e-4)


def test_a_moved_span_has_the_label_of_the_entity_it_equals(encoder: Any) -> None:
    """The seed 0-2 matches 0-3 but is moved onto 0-1, which is also an entity: the label is A, not NONE."""
    head = make(encoder, opinionated=False, filter=False)
    assert head.regressor is not None
    with torch.no_grad():
        head.regressor.out.bias.copy_(torch.tensor([0.0, -1.0]))
    states = TokenStates(torch.randn(1, 5, encoder.width), torch.zeros(1, encoder.width), torch.ones(1, 5, dtype=torch.bool))
    targets = head.targets([sentence(5, ("A", (0, 1)), ("B", (0, 3)))], gold=True)
    only = {**targets, **{name: torch.tensor([place]) for name, place in (("sentence", 0), ("start", 0), ("end", 2))}}
    with torch.no_grad():
        probability = reference_scores(head.classifier, states.words[0], 0, 1).log_softmax(0)
        assert float(head.loss(states, only).parts["classifier"]) == pytest.approx(-float(probability[0]), rel=1e-5)


def test_an_untrained_regressor_moves_nothing(encoder: Any, random_batch: Any, joined: Any) -> None:
    head = make(encoder, opinionated=False, filter=False).eval()
    sentences, states = random_batch()
    actual = head.propose(Text.of(joined(states)), head.targets(sentences, gold=False))
    assert all(torch.equal(seed, span) for seed, span in zip(actual.seeds, actual.spans, strict=True))


@pytest.mark.parametrize(
    "options",
    [{}, {"decoding": "overlapping"}, {"decoding": "flat"}, {"refine": 2}, {"regressor": False}, {"filter": False}],
    ids=str,
)
def test_results_do_not_depend_on_the_batch(encoder: Any, check_batches: Any, options: dict[str, Any]) -> None:
    check_batches(make(encoder, threshold=0.2, **options))


# --- proposals and scores ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("refine", [1, 2])
@torch.no_grad()
def test_only_seeds_that_pass_the_filter_are_moved_and_classified(
    encoder: Any, random_batch: Any, joined: Any, monkeypatch: pytest.MonkeyPatch, refine: int
) -> None:
    head = make(encoder, proposal_threshold=0.5, refine=refine).eval()
    assert head.filter is not None
    assert head.regressor is not None
    sentences, states = random_batch()
    batch, targets = joined(states), head.targets(sentences, gold=False)
    classified: list[int] = []
    forward = head.classifier.forward

    def counted(*arguments: Any) -> Tensor:
        classified.append(len(arguments[-1][0]))
        return forward(*arguments)

    monkeypatch.setattr(head.classifier, "forward", counted)
    scored = head.score(batch, targets)
    expected, refused = [], 0
    for number, start, end in spans_of(targets):
        words = batch.words[number, : len(sentences[number].words)]
        if float(reference_scores(head.filter, words, start, end).sigmoid()) <= 0.5:
            continue
        passed = True
        for round_ in range(refine):
            passed = passed and (not round_ or float(reference_scores(head.filter, words, start, end).sigmoid()) > 0.5)
            start, end = reference_move(start, end, reference_scores(head.regressor, words, start, end).tolist(), len(words))
        probabilities = reference_scores(head.classifier, words, start, end).softmax(0)
        best = int(probabilities.argmax())
        expected.append((number, start, end, float(probabilities[best]) if passed and best != head.none else 0.0))
        refused += not passed
    assert classified == [len(expected)]
    assert 0 < len(expected) < len(spans_of(targets))
    assert bool(refused) == (refine == 2)
    assert list(zip(*(c.tolist() for c in (scored.sentence, scored.start, scored.end)), strict=True)) == [
        e[:3] for e in expected
    ]
    assert scored.score.tolist() == pytest.approx([e[3] for e in expected], abs=1e-5)
    assert any(e[3] for e in expected)
    assert not all(e[3] for e in expected)


def test_scoring_synchronises_once_and_training_never(
    encoder: Any, random_batch: Any, joined: Any, synchronisations: Any
) -> None:
    for refine in (1, 2):
        head = make(encoder, refine=refine)
        sentences, states = random_batch()
        batch = joined(states)
        targets = head.targets(sentences, gold=True, generator=np.random.default_rng(0))
        with synchronisations() as seen:
            head.loss(batch, targets).mean.backward()
        assert not seen
        with synchronisations() as seen:
            head.score(batch, head.targets(sentences, gold=False))
        assert seen == {"aten.nonzero": 1}


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_losses_are_close(encoder: Any, random_batch: Any, joined: Any, dtype: torch.dtype) -> None:
    head = make(encoder)
    sentences, states = random_batch()
    batch, targets = joined(states), head.targets(sentences, gold=True)
    words = batch.words.to(dtype).requires_grad_()
    losses = head.loss(TokenStates(words, batch.cls.to(dtype), batch.mask), targets)
    assert losses.sums.dtype == torch.float32
    for name, value in head.loss(batch, targets).parts.items():
        assert float(losses.parts[name].detach()) == pytest.approx(float(value.detach()), rel=0.1)
    losses.mean.backward()
    assert words.grad is not None
    assert bool(words.grad.isfinite().all())


def test_empty_sentences_and_sentences_without_entities(encoder: Any) -> None:
    head = make(encoder)
    for words in (0, 2):
        states = TokenStates(torch.zeros(2, words, encoder.width), torch.zeros(2, encoder.width), torch.zeros(2, words).bool())
        empty = [sentence(0), sentence(0)]
        losses = head.loss(states, head.targets(empty, gold=True, generator=np.random.default_rng(0)))
        assert losses.sums.tolist() == [0.0, 0.0]
        assert losses.mean == 0.0
        assert len(head.score(states, head.targets(empty, gold=False)).start) == 0
    states = TokenStates(torch.randn(1, 3, encoder.width), torch.zeros(1, encoder.width), torch.ones(1, 3, dtype=torch.bool))
    losses = head.loss(states, head.targets([sentence(3)], gold=True, generator=np.random.default_rng(0)))
    assert losses.parts["filter"] > 0
    assert losses.parts["regressor"] == 0


def test_a_seed_with_crossed_boundaries_and_no_entity_gives_finite_losses(encoder: Any) -> None:
    """Moved to [0.3, -0.2), it surrounds the padding (0, 0), and width and distance cancel."""
    head = make(encoder, opinionated=False)
    assert head.regressor is not None
    with torch.no_grad():
        head.regressor.out.bias.copy_(torch.tensor([0.3, -1.2]))
    words = torch.randn(2, 3, encoder.width, requires_grad=True)
    states = TokenStates(words, torch.zeros(2, encoder.width), torch.ones(2, 3, dtype=torch.bool))
    losses = head.loss(states, head.targets([sentence(3), sentence(3, ("A", (1, 2)))], gold=True))
    losses.mean.backward()
    assert bool(losses.sums.isfinite().all())
    assert all(bool(p.grad.isfinite().all()) for p in (words, *head.parameters()) if p.grad is not None)


# --- settings ------------------------------------------------------------------------------------------------------


def test_lengths_follow_from_training_data() -> None:
    narrow = [sentence(40, ("A", (0, 2))) for _ in range(98)]
    settings = LocateSettings().resolve([*narrow, sentence(40, ("A", (0, 3))), sentence(40, ("A", (0, 30)))])
    assert (settings.lengths, settings.decoding) == ((1, 2, 3), "flat")
    assert LocateSettings().resolve([sentence(40, ("A", (0, 30)), ("A", (0, 1), (3, 4)))]).lengths == tuple(range(1, 16))
    assert LocateSettings(max_width=20).resolve([sentence(40, ("A", (0, 30)))]).lengths == tuple(range(1, 21))
    assert LocateSettings(lengths=(3, 1, 3)).resolve(narrow).lengths == (1, 3)
    assert LocateSettings().resolve([sentence(9, ("A", (0, 1), (3, 5)))]).lengths == (1, 2)  # fragments only
    assert LocateSettings().resolve(()).lengths is None


def test_automatic_and_invalid_lengths_are_refused(encoder: Any) -> None:
    for settings in (LocateSettings(), LocateSettings(lengths=(1,)), LocateSettings(decoding="nested")):
        with pytest.raises(SpanwiseError, match="resolve"):
            LocateLabel.build(encoder, LABELS, settings)
    for wrong in (
        {"lengths": ()},
        {"lengths": (0, 1)},
        {"lengths": (1, 1 << 63)},
        {"refine": 0},
        {"refine": 1 << 63},
        {"decay": 0.0},
        {"paper": ("one-sided",)},
    ):
        with pytest.raises(ValidationError):
            LocateSettings(**wrong)


def test_count_unreachable(encoder: Any) -> None:
    widths = range(1, 15)

    def reached(**options: Any) -> list[int]:
        head = make(encoder, **options)
        return [width for width in widths if not head.count_unreachable(sentence(14, ("A", (0, width))))]

    assert reached(lengths=(1, 2, 3, 4, 5)) == [1, 2, 3, 4, 5, 6, 7]
    assert reached(lengths=(1, 2, 3, 4, 5), refine=2) == [1, 2, 3, 4, 5, 6, 7, 8, 9]  # 7 of 10 words are not more than 0.7
    assert reached(lengths=(1, 2, 3, 4, 5), refine=3) == list(range(1, 13))
    assert reached(lengths=(1, 5), regressor=False, refine=3) == [1, 5]
    assert reached(lengths=(1, 5)) == [1, 4, 5, 6, 7]
    assert reached(lengths=(1, 2)) == [1, 2]
    head = make(encoder, lengths=(1, 4, 5))
    assert [head.count_unreachable(sentence(length, ("A", (0, 3)))) for length in (3, 4)] == [1, 0]  # 3 words have no seed of 4
    for decoding, overlapping in (("overlapping", 0), ("nested", 1), ("flat", 1)):
        head = make(encoder, decoding=decoding)
        assert head.count_unreachable(sentence(14, ("A", (0, 2)), ("B", (0, 2)))) == 1
        assert (
            head.count_unreachable(sentence(14, ("A", (0, 2)), ("B", (1, 3)), ("C", (4, 5)), ("A", (0, 9)))) == 2 + overlapping
        )


def test_widest_span(encoder: Any) -> None:
    """Seeds of 5 words can be moved to entities of 7 words: 5 / 7 exceeds 0.7."""
    assert make(encoder, lengths=(1, 2, 5)).widest_span == "7 words"
    assert make(encoder, lengths=(1, 2, 5), regressor=False).widest_span == "5 words"


def test_unreachable_gold_spans_are_learned_too(encoder: Any) -> None:
    targets = make(encoder).targets([sentence(14, ("A", (0, 14)))], gold=True)
    assert spans_of(targets)[0] == (0, 0, 14)


# --- the published behaviour ----------------------------------------------------------------------------------------


def test_published_offsets_move_boundaries_to_the_right_only(encoder: Any, random_batch: Any, joined: Any) -> None:
    sentences, states = random_batch()
    batch = joined(states)
    fixed, published = (make(encoder, paper=paper, filter=False).eval() for paper in ((), ("one-sided-offsets",)))
    targets = fixed.targets(sentences, gold=False)
    assert all(torch.equal(value, published.targets(sentences, gold=False)[name]) for name, value in targets.items())
    spans = fixed.propose(Text.of(batch), targets).seeds
    raw, moves = (head._moves(Text.of(batch), spans) for head in (fixed, published))
    lengths = batch.mask.sum(1)[spans.sentence]
    torch.testing.assert_close(moves, raw.sigmoid() * lengths.unsqueeze(1))
    assert bool((raw < -0.5).any())
    actual = published.propose(Text.of(batch), targets)
    assert bool((actual.spans.start >= actual.seeds.start).all())
    assert bool((actual.spans.end >= actual.seeds.end).all())


@torch.no_grad()
def test_published_weights_are_one_factor_for_all_examples(encoder: Any, random_batch: Any, joined: Any) -> None:
    sentences, states = random_batch(seed=1)
    batch = joined(states)
    plain, published, fixed = make(encoder, softness=0.0), make(encoder, paper=("global-soft-weight",)), make(encoder)
    targets = fixed.targets(sentences, gold=True)
    losses = {
        name: head.loss(batch, targets).parts for name, head in (("plain", plain), ("published", published), ("fixed", fixed))
    }
    gold = [{e.range for e in one.entities if not e.is_discontinuous} for one in sentences]
    shared = [max((overlap(row, span) for span in gold[row[0]]), default=0.0) for row in spans_of(targets)]
    factor = float(np.mean([value if value >= 0.7 else 1 - value for value in shared]))
    assert float(losses["published"]["filter"]) == pytest.approx(factor * float(losses["plain"]["filter"]), rel=1e-4)
    assert float(losses["published"]["filter"]) != pytest.approx(float(losses["fixed"]["filter"]), rel=1e-3)
    ratio = float(losses["published"]["classifier"] / losses["plain"]["classifier"])
    assert 0 < ratio < 1
    assert ratio != pytest.approx(float(losses["fixed"]["classifier"] / losses["plain"]["classifier"]), rel=1e-3)
    assert losses["published"]["regressor"] == losses["fixed"]["regressor"]  # it is never weighted


def test_published_decoding(encoder: Any, random_batch: Any, joined: Any) -> None:
    switches = {"duplicate-scoring": "counts_duplicates", "crossing-deletion": "drops_crossing"}
    fixed = make(encoder)
    assert fixed.decoding == SoftNms(0.7, 0.5, 0.45, "nested")
    sentences, states = random_batch()
    batch, targets = joined(states), fixed.targets(sentences, gold=True)
    for switch, name in switches.items():
        head = make(encoder, paper=(switch,))
        assert head.decoding == SoftNms(0.7, 0.5, 0.45, "nested", **{name: True})
        assert torch.equal(head.loss(batch, targets).mean, fixed.loss(batch, targets).mean)
        scored = [one.score(batch, one.targets(sentences, gold=False)) for one in (head, fixed)]
        assert torch.equal(scored[0].score, scored[1].score)


@torch.no_grad()
def test_filtering_after_the_classifier_gives_the_same_entities_from_more_classified_spans(
    encoder: Any, random_batch: Any, joined: Any
) -> None:
    sentences, states = random_batch()
    batch = joined(states)
    for paper in ((), ("duplicate-scoring",)):
        fixed, published = (
            make(encoder, proposal_threshold=0.5, paper=(*paper, *more)).eval() for more in ((), ("classify-then-filter",))
        )
        targets = fixed.targets(sentences, gold=False)
        scored = [head.score(batch, targets) for head in (fixed, published)]
        assert len(scored[0].score) < len(scored[1].score) == len(targets["start"])
        predictions = [head.decode(one, len(sentences)) for head, one in zip((fixed, published), scored, strict=True)]
        assert predictions[0] == predictions[1]
        assert any(one.entities for one in predictions[0])


def test_paper_options_for_decoding_and_offsets_do_not_change_other_parts(encoder: Any, random_batch: Any, joined: Any) -> None:
    sentences, states = random_batch(seed=1)
    batch = joined(states)
    fixed, published = make(encoder), make(encoder, paper=("one-sided-offsets",))
    targets = fixed.targets(sentences, gold=True)
    ours, theirs = fixed.loss(batch, targets).parts, published.loss(batch, targets).parts
    assert ours["filter"] == theirs["filter"]
    assert ours["regressor"] != theirs["regressor"]


# --- learning ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"regressor": False}, {"filter": False}, {"refine": 2}, {"softness": 0.0}], ids=str)
def test_overfits_nested_sentences(overfit: Any, nested_sentences: list[Sentence], options: dict[str, Any]) -> None:
    settings = LocateSettings(**options).resolve(nested_sentences)
    assert (settings.lengths, settings.decoding) == ((1, 2, 3), "nested")
    assert overfit(LocateLabel, LABELS, settings, nested_sentences)


def four_word_entities() -> list[Sentence]:
    rng = np.random.default_rng(1)
    sentences = []
    for number in range(24):
        before, after = (list(map(str, rng.choice(["the", "yield", "of", "rose"], int(rng.integers(0, 4))))) for _ in range(2))
        words, first = [*before, "north", "sea", "oil", "field", *after], len(before)
        entities = [Entity("A", ((first, first + 4),))]
        if number % 2:
            entities.append(Entity("B", ((len(words), len(words) + 1),)))
            words.append("zinc")
        sentences.append(Sentence(f"s{number}", tuple(words), tuple(entities)))
    return sentences


@pytest.mark.parametrize("regressor", [True, False])
def test_regressor_reaches_wider_entities_than_seeds(encoder: Any, overfit: Any, regressor: bool) -> None:
    """With seeds of up to 3 words, entities of 4 words are predicted with the regressor only."""
    sentences = four_word_entities()
    settings = LocateSettings(lengths=(1, 2, 3), regressor=regressor, dropout=0.0).resolve(sentences)
    assert sum(map(LocateLabel.build(encoder, LABELS, settings).count_unreachable, sentences)) == (0 if regressor else 24)
    assert overfit(LocateLabel, LABELS, settings, sentences) == regressor
