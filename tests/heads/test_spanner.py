"""SpanNER."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import numpy as np
import pytest
import torch
from pydantic import ValidationError

from spanwise.core.errors import SpanwiseError
from spanwise.core.types import Entity, Sentence
from spanwise.decoding.decode import decode
from spanwise.encoders.base import TokenStates
from spanwise.heads import head_class
from spanwise.heads.base import Labels
from spanwise.heads.spanner import SpanNer, SpannerSettings

LABELS = Labels(("A", "B"))
REPRESENTATIONS = ["boundary", "pooling", "hybrid"]


def make(encoder: Any, representation: str = "hybrid", **options: Any) -> SpanNer:
    torch.manual_seed(3)
    settings = SpannerSettings(**{"representation": representation, "max_width": 4, "decoding": "nested", **options})
    return SpanNer.build(encoder, LABELS, settings)


def sentence(words: int, *entities: tuple[Any, ...]) -> Sentence:
    return Sentence("s", ("w",) * words, tuple(Entity(kind, fragments) for kind, *fragments in entities))


def test_it_is_the_head_that_recipes_call_spanner() -> None:
    assert head_class("spanner") is SpanNer
    assert SpanNer.settings_class is SpannerSettings


@pytest.mark.parametrize("representation", REPRESENTATIONS)
@pytest.mark.parametrize("decoding", ["nested", "flat"])
def test_a_sentence_is_the_same_alone_and_in_any_batch(
    encoder: Any, check_batches: Any, representation: str, decoding: str
) -> None:
    check_batches(make(encoder, representation, decoding=decoding))


@pytest.mark.parametrize("representation", REPRESENTATIONS)
def test_logits_are_those_of_one_linear_layer_over_the_concatenation(
    encoder: Any, random_batch: Any, joined: Any, representation: str
) -> None:
    head = make(encoder, representation).eval()
    sentences, states = random_batch()
    batch, targets = joined(states), head.targets(sentences, gold=False)
    rows = []
    for number, start, end in zip(*(targets[name].tolist() for name in ("sentence", "start", "end")), strict=True):
        words, width = batch.words[number, start:end], head.width_embedding.weight[end - start - 1]
        boundary, pool = [words[0], words[-1]], [words.amax(0), batch.cls[number]]
        parts = {"boundary": boundary, "pooling": pool, "hybrid": boundary + pool}[representation]
        rows.append(torch.cat([*parts, width]))
    torch.testing.assert_close(head.logits(batch, targets), head.classifier(torch.stack(rows)), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("representation", REPRESENTATIONS)
def test_dropout_does_not_shift_the_logits(encoder: Any, representation: str) -> None:
    """Each copy of a sentence has masks of its own; their mean is the value without dropout, the pooled part included."""
    copies = 6000
    head = make(encoder, representation, dropout=0.4)
    torch.nn.init.zeros_(head.width_embedding.weight)  # its mask is the batch's, not a sentence's
    words, cls = torch.randn(1, 3, encoder.width).expand(copies, -1, -1), torch.randn(1, encoder.width).expand(copies, -1)
    states = TokenStates(words, cls, torch.ones(copies, 3, dtype=torch.bool))
    places = {name: torch.arange(copies) if name == "sentence" else torch.full((copies,), place) for name, place in
              (("sentence", 0), ("start", 0), ("end", 3))}  # fmt: skip
    with torch.no_grad():
        dropped = head.train().logits(states, places)
        plain = head.eval().logits(states, places)[0]
    error = dropped.std(0) / copies**0.5
    assert bool((dropped.std(0) > 0.05).all())
    assert bool(((dropped.mean(0) - plain).abs() < 4.5 * error).all())


def examples(targets: dict[str, Any]) -> dict[tuple[int, int, int], dict[int, float]]:
    """The packed spans, each once, with what they have of each label; what is left is NONE."""
    spans = list(zip(*(targets[name].tolist() for name in ("sentence", "start", "end")), strict=True))
    found: dict[tuple[int, int, int], dict[int, float]] = {span: {} for span in spans}
    assert len(found) == len(spans)
    for place, label, mass in zip(*(targets[name].tolist() for name in ("place", "label", "mass")), strict=True):
        assert label not in found[spans[place]]
        found[spans[place]][label] = mass
    return found


def check_loss(head: SpanNer, states: TokenStates, targets: dict[str, Any]) -> None:
    """The loss is torch's cross-entropy with a dense matrix of classes, summed over each sentence's examples."""
    found = examples(targets)
    dense = torch.zeros(len(found), head.none + 1)
    for place, masses in enumerate(found.values()):
        for label, mass in masses.items():
            dense[place, label] = mass
        dense[place, head.none] = 1 - sum(masses.values())
    values = torch.nn.functional.cross_entropy(head.logits(states, targets), dense, reduction="none")
    losses = head.loss(states, targets)
    for number in range(len(states.words)):
        own = targets["sentence"] == number
        torch.testing.assert_close(losses.sums[number], values[own].sum(), rtol=1e-5, atol=1e-5)
        assert losses.counts[number] == own.sum()
    torch.testing.assert_close(losses.mean, values.mean())


def random_states(encoder: Any, *lengths: int) -> TokenStates:
    generator = torch.Generator().manual_seed(11)
    words = torch.randn(len(lengths), max(lengths), encoder.width, generator=generator)
    mask = torch.arange(max(lengths)) < torch.tensor(lengths).unsqueeze(1)
    return TokenStates(words, torch.randn(len(lengths), encoder.width, generator=generator), mask)


def test_all_spans_with_gold_and_the_loss_over_them(encoder: Any) -> None:
    head = make(encoder).eval()
    one = sentence(6, ("A", (0, 2)), ("B", (1, 2)), ("A", (0, 5)), ("B", (3, 4), (5, 6)))
    targets = head.targets([one, sentence(2), sentence(3, ("B", (2, 3)))], gold=True)
    found = examples(targets)
    every = [(n, s, e) for n, length in enumerate((6, 2, 3)) for s in range(length) for e in range(s + 1, length + 1)]
    assert list(found) == [span for span in every if span[2] - span[1] <= 4]
    # The wide and the discontinuous entity are no examples, nor are the fragments of the latter.
    assert {span: labels for span, labels in found.items() if labels} == {
        (0, 0, 2): {0: 1},
        (0, 1, 2): {1: 1},
        (2, 2, 3): {1: 1},
    }
    assert set(head.targets([one], gold=False)) == {"sentence", "start", "end"}
    states = random_states(encoder, 6, 2, 3)
    check_loss(head, states, targets)
    assert head.loss(states, targets).counts.tolist() == [6 + 5 + 4 + 3, 3, 6]


def test_training_takes_the_gold_and_sampled_negatives(encoder: Any) -> None:
    head = make(encoder, negatives=7).eval()
    sentences = [sentence(10, ("A", (0, 2)), ("B", (4, 8))), sentence(2, ("A", (0, 1))), sentence(1)]
    targets = head.targets(sentences, gold=True, generator=np.random.default_rng(0))
    again = head.targets(sentences, gold=True, generator=np.random.default_rng(0))
    assert all(torch.equal(targets[name], again[name]) for name in targets)
    found = examples(targets)
    assert {span: labels for span, labels in found.items() if labels} == {
        (0, 0, 2): {0: 1},
        (0, 4, 8): {1: 1},
        (1, 0, 1): {0: 1},
    }
    negatives = [span for span, labels in found.items() if not labels]
    assert [sum(span[0] == number for span in negatives) for number in range(3)] == [7, 2, 1]
    check_loss(head, random_states(encoder, 10, 2, 1), targets)


@pytest.mark.parametrize("sampled", [False, True])
def test_with_boundary_smoothing_neighbours_are_examples(encoder: Any, sampled: bool) -> None:
    head = make(encoder, max_width=3, smoothing=0.2, negatives=2).eval()
    sentences = [sentence(1), sentence(9, ("A", (0, 2)), ("B", (5, 8))), sentence(2, ("A", (0, 1)), ("B", (0, 1)))]
    targets = head.targets(sentences, gold=True, generator=np.random.default_rng(0) if sampled else None)
    found = examples(targets)
    approx = pytest.approx
    # (5, 8) is as wide as may be and (0, 2) begins the sentence: what they could not give to others they keep.
    expected = {
        (1, 0, 1): approx({0: 0.05}), (1, 0, 2): approx({0: 0.85}), (1, 0, 3): approx({0: 0.05}), (1, 1, 2): approx({0: 0.05}),
        (1, 5, 7): approx({1: 0.05}), (1, 5, 8): approx({1: 0.9}), (1, 6, 8): approx({1: 0.05}),
        (2, 0, 1): approx({0: 0.5, 1: 0.5}), (2, 0, 2): approx({0: 0.05, 1: 0.05}),
    }  # fmt: skip
    assert {span: labels for span, labels in found.items() if labels} == expected
    negatives = [span[0] for span, labels in found.items() if not labels]
    if sampled:
        assert [negatives.count(number) for number in range(3)] == [1, 2, 1]
    else:
        assert len(found) == 1 + (9 + 8 + 7) + (2 + 1)
    check_loss(head, random_states(encoder, 1, 9, 2), targets)


@pytest.mark.parametrize("distance", [1, 2])
def test_so_is_a_sentence_the_same_in_any_batch(encoder: Any, check_batches: Any, distance: int) -> None:
    check_batches(make(encoder, smoothing=0.3, smoothing_distance=distance))


def test_what_is_out_of_reach(encoder: Any) -> None:
    wide, broken, nested = ("A", (0, 5)), ("B", (0, 1), (2, 3)), [("A", (0, 3)), ("B", (1, 2)), ("B", (2, 3))]
    twice, foreign = [("A", (5, 6)), ("B", (5, 6))], ("C", (4, 5))
    for decoding, overlapping in (("nested", 0), ("flat", 1)):
        head = make(encoder, decoding=decoding)
        assert head.decoding == decoding
        assert head.count_unreachable(sentence(8, wide)) == 1
        assert head.count_unreachable(sentence(8, broken)) == 1
        assert head.count_unreachable(sentence(8, foreign)) == 1
        assert head.count_unreachable(sentence(8, *twice)) == 1
        assert head.count_unreachable(sentence(8, twice[0], twice[0])) == 0  # the same entity, said twice
        assert head.count_unreachable(sentence(8, *nested)) == overlapping
        assert head.count_unreachable(sentence(8, wide, broken, foreign, *nested, *twice)) == 4 + overlapping
        assert head.count_unreachable(sentence(8)) == 0


def test_of_two_types_of_a_span_each_is_learned_with_half(encoder: Any) -> None:
    head = make(encoder).eval()
    for generator in (None, np.random.default_rng(0)):
        targets = head.targets([sentence(1, ("B", (0, 1)), ("A", (0, 1)))], gold=True, generator=generator)
        assert examples(targets) == {(0, 0, 1): {0: 0.5, 1: 0.5}}
        check_loss(head, random_states(encoder, 1), targets)


def test_width_and_decoding_follow_the_training_data() -> None:
    narrow = [sentence(9, ("A", (0, 2))) for _ in range(98)]
    settings = SpannerSettings().resolve([*narrow, sentence(9, ("A", (0, 3))), sentence(9, ("A", (0, 9)))])
    assert (settings.max_width, settings.decoding) == (3, "flat")
    settings = SpannerSettings().resolve([*narrow, sentence(9, ("A", (0, 3))), sentence(9, ("A", (0, 9)), ("B", (8, 9)))])
    assert (settings.max_width, settings.decoding) == (3, "nested")
    settings = SpannerSettings().resolve([*narrow[:97], sentence(9, ("A", (0, 4))), sentence(9, ("A", (0, 9)))])
    assert settings.max_width == 9  # 98 of 99 are less than 99 %
    broken = sentence(9, ("A", (0, 1), (8, 9)), ("A", (3, 5)))
    assert SpannerSettings().resolve([broken]) == SpannerSettings(max_width=2, decoding="flat", discontinuous=("A",))
    wide = sentence(9, ("A", (0, 4), (5, 6)), ("A", (7, 8)))  # fragments that are to be found must not be too wide
    assert SpannerSettings().resolve([wide]).max_width == 4
    assert SpannerSettings(discontinuous=False).resolve([wide]).max_width == 1
    twice = sentence(9, ("A", (3, 5)), ("B", (3, 5)), ("B", (5, 6)))
    assert SpannerSettings().resolve([twice]).decoding == "flat"


def test_what_is_settled_stays_and_what_is_open_is_refused(encoder: Any) -> None:
    given = SpannerSettings(max_width=7, decoding="nested", discontinuous=False)
    assert given.resolve([sentence(3, ("A", (0, 1)))]) == given
    assert given.resolve(()) == given
    for settings in (SpannerSettings(), SpannerSettings(max_width=3), SpannerSettings(decoding="flat")):
        with pytest.raises(SpanwiseError, match="resolve"):
            SpanNer.build(encoder, LABELS, settings.resolve([sentence(4)]))


@pytest.mark.parametrize(
    "wrong",
    [
        {"widths": 3}, {"max_width": 0}, {"representation": "mean"}, {"dropout": 1.0}, {"decoding": "x"}, {"smoothing": 1.0},
        {"smoothing_distance": 0},
    ],
)  # fmt: skip
def test_wrong_settings_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        SpannerSettings(**wrong)


def test_scores_are_the_probabilities_of_the_best_type(encoder: Any, random_batch: Any, joined: Any) -> None:
    head = make(encoder).eval()
    sentences, states = random_batch()
    batch, targets = joined(states), head.targets(sentences, gold=False)
    found = head.score(batch, targets)
    probabilities = head.logits(batch, targets).softmax(-1)
    kept = [place for place, row in enumerate(probabilities.tolist()) if max(row) != row[head.none]]
    assert 0 < len(kept) < len(probabilities)
    torch.testing.assert_close(found.score, probabilities[kept].amax(-1))
    assert torch.equal(found.label, probabilities[kept].argmax(-1))
    for name in ("sentence", "start", "end"):
        assert torch.equal(getattr(found, name), targets[name][kept])
    assert bool((found.label != head.none).all())


def test_the_last_span_is_not_kept_for_being_last(encoder: Any) -> None:
    """Neither the last candidate where all are NONE, nor the last proposal where a likelier one overlaps it."""
    head = make(encoder, "boundary", max_width=5, decoding="flat").eval()
    words = torch.eye(encoder.width)[:5].unsqueeze(0)
    states = TokenStates(words, torch.zeros(1, encoder.width), torch.ones(1, 5, dtype=torch.bool))
    targets = head.targets([sentence(5)], gold=False)
    with torch.no_grad():
        for parameter in head.parameters():
            parameter.zero_()
        head.classifier.bias[head.none] = 10.0
        assert len(head.score(states, targets).start) == 0
        # Word i as a first word, word j as a last one: [0, 2) is likely, [1, 5) less so, [4, 5) and the rest are NONE.
        of_first, of_last = (
            head.classifier.weight[:, : encoder.width],
            head.classifier.weight[:, encoder.width : 2 * encoder.width],
        )
        of_first[0, 0], of_last[0, 1], of_first[1, 1], of_last[1, 4] = 9.0, 9.0, 6.0, 6.0
        found = head.score(states, targets)
    assert list(zip(found.start.tolist(), found.end.tolist(), found.label.tolist(), strict=True)) == [(0, 2, 0), (1, 5, 1)]
    for order in permutations(range(2)):
        columns = [getattr(found, name).numpy()[list(order)] for name in ("sentence", "start", "end", "label", "score")]
        (entities,) = decode(*columns, count=1, types=LABELS.entities, policy=head.decoding)
        assert entities == (Entity("A", ((0, 2),)),)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
@pytest.mark.parametrize("representation", REPRESENTATIONS)
@pytest.mark.parametrize("scale", [1.0, 300.0])
def test_losses_and_gradients_are_finite_in_half_precision(
    encoder: Any, random_batch: Any, joined: Any, dtype: torch.dtype, representation: str, scale: float
) -> None:
    head = make(encoder, representation)
    sentences, states = random_batch()
    batch = joined(states)
    words, cls = ((values * scale).clamp(-6e4, 6e4).to(dtype).requires_grad_() for values in (batch.words, batch.cls))
    half = TokenStates(words, cls, batch.mask)
    losses = head.loss(half, head.targets(sentences, gold=True, generator=np.random.default_rng(0)))
    assert losses.sums.dtype == torch.float32
    losses.mean.backward()
    gradients = [values.grad for values in (words, cls, *head.parameters()) if values.grad is not None]
    assert len(gradients) == 5 - (representation == "boundary")
    assert bool(losses.sums.isfinite().all())
    assert all(bool(gradient.isfinite().all()) for gradient in gradients)
    assert bool((words.grad[~batch.mask] == 0).all())
    assert bool(head.score(half, head.targets(sentences, gold=False)).score.isfinite().all())


def test_a_head_in_half_precision_scores(encoder: Any, random_batch: Any, joined: Any) -> None:
    sentences, states = random_batch()
    head, batch = make(encoder).eval(), joined(states)
    targets = head.targets(sentences, gold=False)
    single = head.logits(batch, targets)
    half = head.to(torch.bfloat16).logits(batch, targets)
    assert half.dtype == torch.float32
    torch.testing.assert_close(half, single, rtol=0.05, atol=0.1)


def test_the_device_is_waited_for_once_in_scoring_and_never_in_training(
    encoder: Any, random_batch: Any, joined: Any, waits: Any
) -> None:
    head = make(encoder)
    sentences, states = random_batch()
    batch = joined(states)
    targets = head.targets(sentences, gold=True, generator=np.random.default_rng(0))
    with waits() as seen:
        head.loss(batch, targets).mean.backward()
    assert not seen
    with waits() as seen:
        head.score(batch, head.targets(sentences, gold=False))
    assert seen == {"aten.nonzero": 1}


def test_sentences_without_words_or_entities(encoder: Any) -> None:
    head = make(encoder)
    for words in (0, 2):
        states = TokenStates(torch.zeros(2, words, encoder.width), torch.zeros(2, encoder.width), torch.zeros(2, words).bool())
        empty = [sentence(0), sentence(0)]
        losses = head.loss(states, head.targets(empty, gold=True, generator=np.random.default_rng(0)))
        assert losses.sums.tolist() == losses.counts.tolist() == [0.0, 0.0]
        assert losses.mean == 0.0
        assert len(head.score(states, head.targets(empty, gold=False)).start) == 0


@pytest.mark.parametrize("representation", REPRESENTATIONS)
def test_it_learns(overfit: Any, nested_lesson: list[Sentence], representation: str) -> None:
    settings = SpannerSettings(representation=representation).resolve(nested_lesson)
    assert (settings.max_width, settings.decoding) == (3, "nested")
    assert overfit(SpanNer, LABELS, settings, nested_lesson)
