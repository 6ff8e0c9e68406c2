"""GlobalPointer and Efficient GlobalPointer against loops over words and types."""

from __future__ import annotations

from itertools import product
from math import cos, exp, log, log1p, sin, sqrt
from typing import Any

import numpy as np
import pytest
import torch
from pydantic import ValidationError
from torch import Tensor

from spanwise.core.errors import SpanwiseError
from spanwise.core.types import Entity, Sentence
from spanwise.encoders.base import TokenStates
from spanwise.heads import head_class
from spanwise.heads.base import Labels
from spanwise.heads.pointer import EfficientGlobalPointer, GlobalPointer, Pointer, PointerSettings, logit
from spanwise.spans.tiles import Tiles

LABELS = Labels(("A", "B"))
CLASSES = [GlobalPointer, EfficientGlobalPointer]
Scores = dict[tuple[int, int, int], float]  # by first word, last word (inclusive) and type

both = pytest.mark.parametrize("kind", CLASSES)


def make(kind: type[Pointer], encoder: Any, **options: Any) -> Pointer:
    torch.manual_seed(3)
    head = kind.build(encoder, LABELS, PointerSettings(**{"size": 8, "decoding": "nested", **options}))
    with torch.no_grad():
        for parameter in head.parameters():
            parameter.mul_(3.0)  # for large scores of both signs
    return head


def sentence(words: int, *entities: tuple[Any, ...]) -> Sentence:
    return Sentence("s", ("w",) * words, tuple(Entity(kind, fragments) for kind, *fragments in entities))


def states_of(encoder: Any, *lengths: int) -> TokenStates:
    words = torch.randn(len(lengths), max(lengths), encoder.width, generator=torch.Generator().manual_seed(5))
    mask = torch.arange(max(lengths)) < torch.tensor(lengths).unsqueeze(1)
    return TokenStates(words, torch.zeros(len(lengths), encoder.width), mask)


def rotation(position: int, size: int) -> Tensor:
    """The matrix R of a position: 2 x 2 blocks that rotate components 2i and 2i + 1 by position / 10000^(2i / size)."""
    matrix = torch.zeros(size, size, dtype=torch.float64)
    for i in range(size // 2):
        angle = position / 10000 ** (2 * i / size)
        matrix[2 * i, 2 * i], matrix[2 * i, 2 * i + 1] = cos(angle), -sin(angle)
        matrix[2 * i + 1, 2 * i], matrix[2 * i + 1, 2 * i + 1] = sin(angle), cos(angle)
    return matrix


def reference(head: Pointer, words: Tensor) -> Scores:
    """Compute the formulas for each pair of words and type of one sentence, ``words`` [n, d], in float64."""
    size, types, count = head.settings.size, len(head.labels.entities), len(words)
    turn = [rotation(p, size) if head.settings.rotation else torch.eye(size, dtype=torch.float64) for p in range(count)]
    weight, bias = (p.detach().double() for p in (head.projection.weight, head.projection.bias))  # type: ignore[union-attr]
    words = words.double()
    scores: Scores = {}
    for i in range(count):
        for j in range(i, count):
            for c in range(types):
                if isinstance(head, GlobalPointer):
                    first = 2 * c * size  # rows of the query, then of the key, for each type
                    q = weight[first : first + size] @ words[i] + bias[first : first + size]
                    k = weight[first + size : first + 2 * size] @ words[j] + bias[first + size : first + 2 * size]
                    scores[i, j, c] = float((turn[i] @ q) @ (turn[j] @ k)) / sqrt(size)
                else:
                    both_of_i, both_of_j = weight @ words[i] + bias, weight @ words[j] + bias  # [q; k]
                    assert isinstance(head, EfficientGlobalPointer)
                    u, v = (head.typing.weight[row].detach().double() for row in (c, types + c))
                    b, b2 = (head.typing.bias[row].detach().double() for row in (c, types + c))
                    extraction = float((turn[i] @ both_of_i[:size]) @ (turn[j] @ both_of_j[size:])) / sqrt(size)
                    scores[i, j, c] = extraction + float(u @ both_of_i + b) / 2 + float(v @ both_of_j + b2) / 2
    return scores


def computed(head: Pointer, words: Tensor, max_width: int | None) -> Scores:
    """The scores of the head for the same sentence, read from its tiles."""
    tiles = Tiles.cut(len(words), max_width)
    with torch.no_grad():
        cells = head.scores(words.unsqueeze(0), tiles)[0].flatten(1)
    places = tiles.inside(torch.ones(1, len(words))).flatten().nonzero().squeeze(1)
    start, end = tiles.spans(places)
    return {
        (int(s), int(e) - 1, c): float(cells[c, place])
        for place, s, e in zip(places, start, end, strict=True)
        for c in range(len(head.labels.entities))
    }


def test_both_pointers_are_registered() -> None:
    assert head_class("global-pointer") is GlobalPointer
    assert head_class("efficient-global-pointer") is EfficientGlobalPointer
    assert GlobalPointer.settings_class is EfficientGlobalPointer.settings_class is PointerSettings


@both
@pytest.mark.parametrize("rotation", [True, False])
def test_scores_match_the_formula(encoder: Any, kind: type[Pointer], rotation: bool) -> None:
    head = make(kind, encoder, rotation=rotation).eval()
    words = states_of(encoder, 9).words[0]
    expected = reference(head, words)
    assert computed(head, words, None) == pytest.approx(expected, abs=1e-4)
    assert max(map(abs, expected.values())) > 3
    assert len({round(score, 3) for score in expected.values()}) > 80


@both
@pytest.mark.parametrize("rotation", [True, False])
def test_scores_with_max_width_equal_those_without(encoder: Any, kind: type[Pointer], rotation: bool) -> None:
    head = make(kind, encoder, rotation=rotation).eval()
    words = states_of(encoder, 41).words[0]
    assert Tiles.cut(41, 3).count == 3
    band, triangle = computed(head, words, 3), computed(head, words, None)
    assert set(band) == {(i, j, c) for i, j, c in triangle if j - i < 3}
    assert band == pytest.approx({cell: triangle[cell] for cell in band}, abs=1e-4)
    assert band == pytest.approx({cell: score for cell, score in reference(head, words).items() if cell in band}, abs=1e-4)


@both
def test_with_rotation_scores_depend_on_the_distance(encoder: Any, kind: type[Pointer]) -> None:
    """With equal words, a span's score depends on its width; without rotation it is constant."""
    words = torch.randn(1, encoder.width).expand(30, -1)
    for rotation in (True, False):
        scores = computed(make(kind, encoder, rotation=rotation).eval(), words, None)
        by_width: dict[tuple[int, int], list[float]] = {}
        for (i, j, c), score in scores.items():
            by_width.setdefault((j - i, c), []).append(score)
        assert all(max(values) - min(values) < 1e-3 for values in by_width.values())
        of_type = [values[0] for (_, c), values in by_width.items() if c == 0]
        assert (max(of_type) - min(of_type) > 0.1) is rotation


LOSSES = ["imbalance", "binary"]


@both
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("max_width", [None, 3])
def test_loss_matches_the_reference_and_is_averaged_over_sentences_and_types(
    encoder: Any, kind: type[Pointer], loss: str, max_width: int | None
) -> None:
    head = make(kind, encoder, loss=loss, max_width=max_width).eval()
    sentences = [
        sentence(36, ("A", (0, 2)), ("B", (0, 2)), ("B", (0, 1)), ("A", (30, 36)), ("B", (33, 35)), ("A", (4, 5), (7, 8))),
        sentence(3, ("C", (0, 1))),
        sentence(0),
        sentence(5, ("B", (2, 5))),
    ]
    states = states_of(encoder, 36, 3, 0, 5)
    assert (Tiles.cut(36, max_width).count > 1) is (max_width is not None)
    losses = head.loss(states, head.targets(sentences, gold=True))
    expected = []
    for number, one in enumerate(sentences):
        gold = {(e.range.start, e.range.end - 1, e.type) for e in one.entities if not e.is_discontinuous}
        total = 0.0
        scores = reference(head, states.words[number, : len(one.words)])
        for c, name in enumerate(LABELS.entities):
            cells = {
                cell: s for cell, s in scores.items() if cell[2] == c and (max_width is None or cell[1] - cell[0] < max_width)
            }
            positives = [s for (i, j, _), s in cells.items() if (i, j, name) in gold]
            negatives = [s for (i, j, _), s in cells.items() if (i, j, name) not in gold]
            if loss == "binary":
                total += sum(log1p(exp(s)) for s in negatives) + sum(log1p(exp(-s)) for s in positives)
            else:
                total += log(1 + sum(exp(s) for s in negatives)) + log(1 + sum(exp(-s) for s in positives))
        expected.append(total)
    assert losses.sums.tolist() == pytest.approx(expected, rel=1e-5)
    assert losses.counts.tolist() == [2, 2, 0, 2]
    assert losses.mean.item() == pytest.approx(sum(expected) / 6, rel=1e-5)


@both
def test_all_types_of_a_span_are_gold(encoder: Any, kind: type[Pointer]) -> None:
    head = make(kind, encoder, max_width=4)
    one = sentence(6, ("B", (0, 2)), ("A", (0, 2)), ("A", (0, 2)), ("A", (0, 5)), ("B", (3, 4), (5, 6)), ("C", (1, 2)))
    targets = head.targets([sentence(1), one, sentence(2, ("B", (0, 2)))], gold=True, generator=np.random.default_rng(0))
    rows = zip(*(targets[name].tolist() for name in ("sentence", "start", "end", "label")), strict=True)
    assert sorted(rows) == [(1, 0, 2, 0), (1, 0, 2, 1), (2, 0, 2, 1)]
    assert head.targets([one], gold=False) == {}
    assert head.count_unreachable(one) == 3
    assert make(kind, encoder).count_unreachable(one) == 2
    twice = sentence(6, ("A", (0, 2)), ("B", (0, 2)), ("B", (1, 3)), ("B", (4, 5)))
    assert make(kind, encoder, decoding="overlapping").count_unreachable(twice) == 0
    assert make(kind, encoder, decoding="nested").count_unreachable(twice) == 1
    assert make(kind, encoder, decoding="flat").count_unreachable(twice) == 2
    both_twice = sentence(6, ("A", (0, 2)), ("B", (0, 2)), ("A", (1, 3)), ("B", (1, 3)))  # one span, with both of its types
    assert make(kind, encoder, decoding="nested").count_unreachable(both_twice) == 2


@both
@pytest.mark.parametrize("threshold", [0.02, 0.5, 0.98])
@pytest.mark.parametrize("max_width", [None, 2])
def test_spans_above_the_threshold_are_scored(
    encoder: Any, kind: type[Pointer], threshold: float, max_width: int | None
) -> None:
    head = make(kind, encoder, threshold=threshold, max_width=max_width).eval()
    states = states_of(encoder, 4, 37, 0, 1)
    actual = head.score(states, head.targets([sentence(n) for n in (4, 37, 0, 1)], gold=False))
    columns = (actual.sentence, actual.start, actual.end, actual.label)
    rows = dict(zip(zip(*(column.tolist() for column in columns), strict=True), actual.score.tolist(), strict=True))
    assert len(rows) == len(actual.score)
    cutoff = log(threshold / (1 - threshold))
    expected, total = {}, 0
    for number, length in enumerate((4, 37, 0, 1)):
        for (i, j, c), score in reference(head, states.words[number, :length]).items():
            total += 1
            if score > cutoff and (max_width is None or j - i < max_width):
                expected[number, i, j + 1, c] = 1 / (1 + exp(-score))
    assert rows == pytest.approx(expected, abs=1e-5)
    assert 0 < len(expected) < total


def test_the_papers_cutoff_is_zero(encoder: Any) -> None:
    assert logit(make(GlobalPointer, encoder).threshold) == 0.0


@both
@pytest.mark.parametrize("options", [{}, {"max_width": 4}, {"rotation": False, "loss": "binary"}, {"decoding": "flat"}])
def test_results_do_not_depend_on_the_batch(
    encoder: Any, check_batches: Any, kind: type[Pointer], options: dict[str, Any]
) -> None:
    check_batches(make(kind, encoder, **options))


@both
def test_results_do_not_depend_on_the_batch_with_several_tiles(encoder: Any, check_batches: Any, kind: type[Pointer]) -> None:
    check_batches(make(kind, encoder, max_width=4), longest=60, widest=5)


@both
def test_half_precision_losses_and_gradients_are_finite(
    encoder: Any, random_batch: Any, check_half_precision: Any, kind: type[Pointer]
) -> None:
    sentences, _ = random_batch()
    states = states_of(encoder, *(len(sentence.words) for sentence in sentences))
    scales = [(True, 1.0), (True, 30.0), (False, 1.0), (False, 300.0)]
    for dtype, loss, (with_weights, scale) in product((torch.float16, torch.bfloat16, torch.float32), LOSSES, scales):
        head = make(kind, encoder, loss=loss, dropout=0.0)
        check_half_precision(head, sentences, states, dtype, with_weights, scale)


@both
@pytest.mark.parametrize("max_width", [None, 4])
@pytest.mark.parametrize("loss", LOSSES)
def test_scoring_synchronises_once_and_training_never(
    encoder: Any, synchronisations: Any, kind: type[Pointer], loss: str, max_width: int | None
) -> None:
    head = make(kind, encoder, loss=loss, max_width=max_width)
    sentences = [sentence(40, ("A", (0, 2)), ("B", (1, 2))), sentence(3)]
    states, targets = states_of(encoder, 40, 3), head.targets(sentences, gold=True)
    with synchronisations() as seen:
        head.loss(states, targets).mean.backward()
    assert not seen
    with synchronisations() as seen:
        head.score(states, head.targets(sentences, gold=False))
    assert seen == {"aten.nonzero": 1}


@both
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("max_width", [None, 2])
def test_empty_sentences_and_empty_batches(encoder: Any, kind: type[Pointer], loss: str, max_width: int | None) -> None:
    head = make(kind, encoder, loss=loss, max_width=max_width)
    for count, words in ((2, 0), (2, 3), (2, 40), (0, 0), (0, 3)):
        mask = torch.zeros(count, words, dtype=torch.bool)
        states = TokenStates(torch.zeros(count, words, encoder.width), torch.zeros(count, encoder.width), mask)
        losses = head.loss(states, head.targets([sentence(0)] * count, gold=True))
        assert losses.sums.tolist() == losses.counts.tolist() == [0.0] * count
        assert losses.mean == 0.0
        losses.mean.backward()
        assert all(p.grad is None or not p.grad.any() for p in head.parameters())
        assert len(head.score(states, {}).start) == 0


@both
@pytest.mark.parametrize("options", [{}, {"rotation": False}, {"loss": "binary"}, {"max_width": 3}])
def test_overfits_nested_entities_with_two_types_per_span(
    overfit: Any, nested_sentences: list[Sentence], kind: type[Pointer], options: dict[str, Any]
) -> None:
    """Every span of type A also has type B."""
    training_sentences = [
        Sentence(one.id, one.words, (*one.entities, *(Entity("B", e.fragments) for e in one.entities if e.type == "A")))
        for one in nested_sentences
    ]
    settings = PointerSettings(**{"size": 16, **options}).resolve(training_sentences)
    assert (settings.max_width, settings.decoding) == (options.get("max_width"), "nested")
    assert overfit(kind, LABELS, settings, training_sentences)


def test_decoding_follows_from_training_data_but_width_does_not() -> None:
    for entities, decoding in (
        ([("A", (0, 2)), ("B", (2, 9))], "flat"),
        ([("A", (0, 2)), ("A", (0, 2))], "flat"),  # a duplicate entity
        ([("A", (0, 2)), ("B", (0, 2))], "nested"),
        ([("A", (0, 2)), ("A", (1, 2))], "nested"),
        ([("A", (0, 2)), ("A", (1, 3))], "overlapping"),
    ):
        expected = PointerSettings(decoding=decoding, discontinuous=False, fragments_train_encoder=False)
        assert PointerSettings().resolve([sentence(9, *entities)]) == expected


@both
def test_automatic_settings_must_be_resolved(encoder: Any, kind: type[Pointer]) -> None:
    with pytest.raises(SpanwiseError, match="resolve"):
        kind.build(encoder, LABELS, PointerSettings().resolve([sentence(4)]))


def test_weights_per_type_match_the_paper() -> None:
    """2 v d weights and 2 d biases for GlobalPointer, 4 d weights and 2 biases for the efficient one (section 3.3)."""
    width, size = 768, 64

    def count(kind: Any, types: int) -> int:
        head = kind(width, Labels(tuple(map(str, range(types)))), PointerSettings(decoding="flat"))
        return sum(parameter.numel() for parameter in head.parameters())

    for types in (1, 4):
        assert count(GlobalPointer, types + 1) - count(GlobalPointer, types) == 2 * width * size + 2 * size
        assert count(EfficientGlobalPointer, types + 1) - count(EfficientGlobalPointer, types) == 4 * size + 2


@pytest.mark.parametrize(
    "wrong",
    [{"size": 7}, {"size": 0}, {"threshold": 0.0}, {"threshold": 1.0}, {"loss": "focal"}, {"smoothing": 0.1}, {"max_width": 0}],
)
def test_invalid_settings_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        PointerSettings(**wrong)
