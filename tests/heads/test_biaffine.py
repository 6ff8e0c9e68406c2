"""The biaffine head, compared with loops over words and classes."""

from __future__ import annotations

from math import exp
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from pydantic import ValidationError
from torch import Tensor

from spanwise.core.errors import SpanwiseError
from spanwise.core.types import Entity, Sentence
from spanwise.encoders.base import TokenStates
from spanwise.heads import head_class
from spanwise.heads.base import Labels
from spanwise.heads.biaffine import Biaffine, BiaffineSettings
from spanwise.spans.tiles import Tiles

LABELS = Labels(("A", "B"))
NONE = len(LABELS.entities)


def make(encoder: Any, **options: Any) -> Biaffine:
    torch.manual_seed(4)
    settings = {"size": 6, "width_size": 5, "widths": 4, "decoding": "nested", "smoothing": 0.2, **options}
    head = Biaffine.build(encoder, LABELS, BiaffineSettings(**settings))
    with torch.no_grad():
        head.product.mul_(6.0)  # so that each class is the best for some spans
    return head


def sentence(words: int, *entities: tuple[Any, ...]) -> Sentence:
    return Sentence("s", ("w",) * words, tuple(Entity(kind, fragments) for kind, *fragments in entities))


def states_of(encoder: Any, *lengths: int) -> TokenStates:
    words = torch.randn(len(lengths), max(lengths), encoder.width, generator=torch.Generator().manual_seed(5))
    mask = torch.arange(max(lengths)) < torch.tensor(lengths).unsqueeze(1)
    return TokenStates(words, torch.zeros(len(lengths), encoder.width), mask)


def reference(head: Biaffine, words: Tensor) -> dict[tuple[int, int], list[float]]:
    """s' U e + W [s; e; width] + b for every span [start, end) and class, in float64; no dropout. ``words`` [n, d]."""
    size = head.settings.size
    weight, bias, product = (p.detach().double() for p in (head.projection.weight, head.projection.bias, head.product))
    scores = {}
    for start in range(len(words)):
        for end in range(start + 1, len(words) + 1):
            s = (weight[:size] @ words[start].double() + bias[:size]).clamp(min=0)
            e = (weight[size:] @ words[end - 1].double() + bias[size:]).clamp(min=0)
            row = []
            for c in range(NONE + 1):
                # The last row and column of the product are the linear terms, their corner is the constant.
                bilinear, of_start, of_end, constant = (
                    product[c, :-1, :-1],
                    product[c, :-1, -1],
                    product[c, -1, :-1],
                    product[c, -1, -1],
                )
                score = float(s @ bilinear @ e + of_start @ s + of_end @ e + constant)
                if head.widths is not None and head.of_width is not None:
                    embedding = head.widths.weight[min(end - start, head.settings.widths) - 1].detach().double()
                    score += float(head.of_width.weight[c].detach().double() @ embedding)
                row.append(score)
            scores[start, end] = row
    return scores


def probabilities(head: Biaffine, states: TokenStates) -> dict[tuple[int, int, int], list[float]]:
    """The reference probabilities of all classes for every span up to the maximum width."""
    actual = {}
    for number, length in enumerate(states.mask.sum(1).tolist()):
        for (start, end), row in reference(head, states.words[number, :length]).items():
            if head.max_width is None or end - start <= head.max_width:
                exps = [exp(score - max(row)) for score in row]
                actual[number, start, end] = [value / sum(exps) for value in exps]
    return actual


def test_registered_as_biaffine() -> None:
    assert head_class("biaffine") is Biaffine
    assert Biaffine.settings_class is BiaffineSettings
    assert BiaffineSettings().smoothing == 0.1


@pytest.mark.parametrize("max_width", [None, 3, 6])
@pytest.mark.parametrize("width_size", [0, 5])
def test_spans_and_scores_match_the_formula(encoder: Any, max_width: int | None, width_size: int) -> None:
    """Sentences in one tile and in several, with spans wider than the largest width embedding."""
    for lengths in ((9, 1, 4), (37, 0, 5)):
        head, states = make(encoder, max_width=max_width, width_size=width_size).eval(), states_of(encoder, *lengths)
        assert (Tiles.cut(max(lengths), max_width).count > 1) is (max(lengths) > 32 and max_width is not None)
        actual = head.score(states, head.targets([sentence(length) for length in lengths], gold=False))
        columns = (actual.sentence, actual.start, actual.end)
        spans = list(zip(*(column.tolist() for column in columns), strict=True))
        rows = dict(zip(spans, zip(actual.label.tolist(), actual.score.tolist(), strict=True), strict=True))
        every = probabilities(head, states)
        expected = {span: (row.index(max(row)), max(row)) for span, row in every.items() if max(row) != row[NONE]}
        assert len(spans) == len(rows)
        assert {span: label for span, (label, _) in rows.items()} == {span: label for span, (label, _) in expected.items()}
        assert {span: score for span, (_, score) in rows.items()} == pytest.approx(
            {span: score for span, (_, score) in expected.items()}, abs=1e-5
        )
        assert {label for label, _ in rows.values()} == {0, 1}
        assert len(rows) < len(every)


@pytest.mark.parametrize("smoothing", [0.0, 0.2])
@pytest.mark.parametrize("distance", [1, 2])
@pytest.mark.parametrize("max_width", [None, 3])
def test_loss_matches_dense_soft_classes(encoder: Any, smoothing: float, distance: int, max_width: int | None) -> None:
    """The loss is summed over the spans of a sentence and averaged over non-empty sentences."""
    head = make(encoder, smoothing=smoothing, smoothing_distance=distance, max_width=max_width).eval()
    sentences = [
        sentence(35, ("A", (0, 2)), ("B", (1, 2)), ("A", (20, 29)), ("B", (33, 35)), ("B", (4, 5), (7, 8)), ("C", (9, 10))),
        sentence(0),
        sentence(3, ("A", (0, 1)), ("B", (0, 1))),
        sentence(2),
    ]
    states, widest = states_of(encoder, 35, 0, 3, 2), 35 if max_width is None else max_width
    expected, spans = [0.0] * 4, [0] * 4
    shares: dict[tuple[int, int, int], list[float]] = {}
    every = probabilities(head, states)
    for number, one in enumerate(sentences):
        for entity in one.entities:
            start, end = entity.range
            if entity.is_discontinuous or end - start > widest or entity.type not in LABELS.entities:
                continue
            label, mass = LABELS.entities.index(entity.type), 1.0
            for n, s, e in every:
                away = abs(s - start) + abs(e - end)
                if n == number and smoothing and 1 <= away <= distance:
                    shares.setdefault((n, s, e), [0.0] * NONE)[label] += smoothing / (4 * away * distance)
                    mass -= smoothing / (4 * away * distance)
            shares.setdefault((number, start, end), [0.0] * NONE)[label] += mass
    for span, row in every.items():
        share = shares.get(span, [0.0] * NONE)
        share = [part / max(1.0, sum(share)) for part in share]
        expected[span[0]] -= sum(p * np.log(q) for p, q in zip([*share, 1 - sum(share)], row, strict=True))
        spans[span[0]] += 1
    losses = head.loss(states, head.targets(sentences, gold=True, generator=np.random.default_rng(0)))
    assert losses.sums.tolist() == pytest.approx(expected, rel=1e-5, abs=1e-5)
    assert losses.counts.tolist() == [1, 0, 1, 1]
    assert losses.mean.item() == pytest.approx(sum(expected) / 3, rel=1e-5)
    assert losses.instance_counts is not None
    assert losses.instance_counts.tolist() == spans
    assert losses.mean_per_instance.item() == pytest.approx(sum(expected) / sum(spans), rel=1e-5)


def test_without_smoothing_the_loss_is_cross_entropy(encoder: Any) -> None:
    head, one = make(encoder, smoothing=0.0).eval(), sentence(5, ("A", (0, 2)), ("B", (4, 5)))
    states = states_of(encoder, 5)
    scores = reference(head, states.words[0])
    gold = torch.tensor([{(0, 2): 0, (4, 5): 1}.get(span, NONE) for span in scores])
    expected = F.cross_entropy(torch.tensor(list(scores.values())), gold, reduction="sum")
    torch.testing.assert_close(head.loss(states, head.targets([one], gold=True)).mean, expected, rtol=1e-5, atol=1e-5)


def test_wide_spans_share_the_last_width_embedding(encoder: Any) -> None:
    """With equal words, all spans of four and more words have equal scores; narrower ones differ."""
    head = make(encoder, widths=4).eval()
    words = torch.randn(1, 1, encoder.width).expand(1, 12, -1)
    states = TokenStates(words, torch.zeros(1, encoder.width), torch.ones(1, 12, dtype=torch.bool))
    with torch.no_grad():
        head.product[NONE, -1, -1] -= 50.0  # no span is NONE
    actual = head.score(states, {})
    by_width: dict[int, set[float]] = {}
    for start, end, score in zip(actual.start.tolist(), actual.end.tolist(), actual.score.tolist(), strict=True):
        by_width.setdefault(end - start, set()).add(round(score, 5))
    assert sorted(by_width) == list(range(1, 13))
    assert all(len(scores) == 1 for scores in by_width.values())
    assert len({scores.pop() for width, scores in by_width.items() if width >= 4}) == 1
    assert len({scores.pop() for width, scores in by_width.items() if width < 4}) == 3


def test_two_types_of_a_span_get_half_the_mass_each(encoder: Any) -> None:
    head = make(encoder, smoothing=0.0)
    targets = head.targets([sentence(1), sentence(3, ("B", (0, 1)), ("A", (0, 1)), ("A", (1, 3)))], gold=True)
    rows = zip(*(targets[name].tolist() for name in ("sentence", "start", "end", "label", "mass")), strict=True)
    assert list(rows) == [(1, 0, 1, 0, 0.5), (1, 0, 1, 1, 0.5), (1, 1, 3, 0, 1.0)]
    assert head.targets([sentence(1)], gold=False) == {}
    assert head.count_unreachable(sentence(3, ("B", (0, 1)), ("A", (0, 1)), ("A", (1, 3)))) == 1


@pytest.mark.parametrize("options", [{}, {"max_width": 4}, {"width_size": 0, "smoothing": 0.0}, {"decoding": "flat"}])
def test_results_do_not_depend_on_the_batch(encoder: Any, check_batches: Any, options: dict[str, Any]) -> None:
    check_batches(make(encoder, **options))


def test_results_do_not_depend_on_the_batch_with_several_tiles(encoder: Any, check_batches: Any) -> None:
    check_batches(make(encoder, max_width=4), longest=60, widest=5)


def test_dropout_is_active_in_training_only(encoder: Any) -> None:
    sentences, states = [sentence(6, ("A", (0, 2)))], states_of(encoder, 6)
    for options in ({"dropout": 0.0}, {"hidden_dropout": 0.0}, {"dropout": 0.0, "hidden_dropout": 0.0}):
        head = make(encoder, **options)
        targets = head.targets(sentences, gold=True)
        one, other = (head.train().loss(states, targets).mean.item() for _ in range(2))
        still, too = (head.eval().loss(states, targets).mean.item() for _ in range(2))
        assert (one == other) is (len(options) == 2)
        assert still == too


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_half_precision_losses_and_gradients_are_finite(
    encoder: Any, random_batch: Any, check_half_precision: Any, dtype: torch.dtype
) -> None:
    sentences, _ = random_batch()
    states = states_of(encoder, *(len(sentence.words) for sentence in sentences))
    for with_weights, scale in [(True, 1.0), (True, 10.0), (False, 1.0), (False, 300.0)]:
        head = make(encoder, dropout=0.0, hidden_dropout=0.0)
        check_half_precision(head, sentences, states, dtype, with_weights, scale)


@pytest.mark.parametrize("max_width", [None, 4])
def test_scoring_synchronises_once_and_training_never(encoder: Any, synchronisations: Any, max_width: int | None) -> None:
    head = make(encoder, max_width=max_width)
    sentences = [sentence(40, ("A", (0, 2)), ("B", (1, 2))), sentence(3)]
    states, targets = states_of(encoder, 40, 3), head.targets(sentences, gold=True)
    with synchronisations() as seen:
        head.loss(states, targets).mean.backward()
    assert not seen
    with synchronisations() as seen:
        head.score(states, head.targets(sentences, gold=False))
    assert seen == {"aten.nonzero": 1}


@pytest.mark.parametrize("max_width", [None, 2])
def test_empty_sentences_and_empty_batches(encoder: Any, max_width: int | None) -> None:
    head = make(encoder, max_width=max_width)
    for count, words in ((2, 0), (2, 3), (2, 40), (0, 0), (0, 3)):
        mask = torch.zeros(count, words, dtype=torch.bool)
        states = TokenStates(torch.zeros(count, words, encoder.width), torch.zeros(count, encoder.width), mask)
        losses = head.loss(states, head.targets([sentence(0)] * count, gold=True))
        assert losses.sums.tolist() == losses.counts.tolist() == [0.0] * count
        assert losses.mean == losses.mean_per_instance == 0.0
        losses.mean.backward()
        assert all(p.grad is None or not p.grad.any() for p in head.parameters())
        assert len(head.score(states, {}).start) == 0


@pytest.mark.parametrize("options", [{}, {"smoothing": 0.0}, {"max_width": 3}, {"width_size": 0}])
def test_overfits_nested_sentences(overfit: Any, nested_sentences: list[Sentence], options: dict[str, Any]) -> None:
    settings = BiaffineSettings(**{"size": 24, **options}).resolve(nested_sentences)
    assert (settings.max_width, settings.decoding) == (options.get("max_width"), "nested")
    assert overfit(Biaffine, LABELS, settings, nested_sentences)


def test_decoding_follows_from_training_data_but_width_does_not(encoder: Any) -> None:
    """A second type of a span is unreachable, so it does not make the data nested."""
    for entities, decoding in (
        ([("A", (0, 2)), ("B", (2, 9))], "flat"),
        ([("A", (0, 2)), ("B", (0, 2))], "flat"),
        ([("A", (0, 2)), ("A", (1, 2))], "nested"),
    ):
        expected = BiaffineSettings(decoding=decoding, discontinuous=False, fragments_train_encoder=False)
        assert BiaffineSettings().resolve([sentence(9, *entities)]) == expected
    with pytest.raises(SpanwiseError, match="resolve"):
        Biaffine.build(encoder, LABELS, BiaffineSettings().resolve([sentence(4)]))


@pytest.mark.parametrize(
    "wrong", [{"size": 0}, {"widths": 0}, {"smoothing": 1.0}, {"smoothing_distance": 0}, {"threshold": 0.5}]
)
def test_invalid_settings_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        BiaffineSettings(**wrong)
