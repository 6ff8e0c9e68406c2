"""SpanNER."""

from __future__ import annotations

from itertools import permutations, product
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


def test_registered_as_spanner() -> None:
    assert head_class("spanner") is SpanNer
    assert SpanNer.settings_class is SpannerSettings


@pytest.mark.parametrize("representation", REPRESENTATIONS)
@pytest.mark.parametrize("decoding", ["nested", "flat"])
def test_results_do_not_depend_on_the_batch(encoder: Any, check_batches: Any, representation: str, decoding: str) -> None:
    check_batches(make(encoder, representation, decoding=decoding))


@pytest.mark.parametrize("representation", REPRESENTATIONS)
def test_logits_match_one_linear_layer_over_the_concatenation(
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
def test_dropout_does_not_shift_the_mean_of_the_logits(encoder: Any, representation: str) -> None:
    """Each copy of a sentence has its own mask; the mean must equal the value without dropout."""
    copies = 6000
    head = make(encoder, representation, dropout=0.4)
    torch.nn.init.zeros_(head.width_embedding.weight)  # its dropout mask is shared by the whole batch
    words, cls = torch.randn(1, 3, encoder.width).expand(copies, -1, -1), torch.randn(1, encoder.width).expand(copies, -1)
    states = TokenStates(words, cls, torch.ones(copies, 3, dtype=torch.bool))
    targets = {name: torch.arange(copies) if name == "sentence" else torch.full((copies,), value) for name, value in
              (("sentence", 0), ("start", 0), ("end", 3))}  # fmt: skip
    with torch.no_grad():
        dropped = head.train().logits(states, targets)
        plain = head.eval().logits(states, targets)[0]
    error = dropped.std(0) / copies**0.5
    assert bool((dropped.std(0) > 0.05).all())
    assert bool(((dropped.mean(0) - plain).abs() < 4.5 * error).all())


def examples(targets: dict[str, Any]) -> dict[tuple[int, int, int], dict[int, float]]:
    """Return the mass of each label per span; the rest is NONE. No span may occur twice."""
    spans = list(zip(*(targets[name].tolist() for name in ("sentence", "start", "end")), strict=True))
    masses: dict[tuple[int, int, int], dict[int, float]] = {span: {} for span in spans}
    assert len(masses) == len(spans)
    for index, label, mass in zip(*(targets[name].tolist() for name in ("place", "label", "mass")), strict=True):
        assert label not in masses[spans[index]]
        masses[spans[index]][label] = mass
    return masses


def check_loss(head: SpanNer, states: TokenStates, targets: dict[str, Any]) -> None:
    """Compare the loss with torch's cross-entropy over dense classes, summed per sentence."""
    spans = examples(targets)
    dense = torch.zeros(len(spans), head.none + 1)
    for row, masses in enumerate(spans.values()):
        for label, mass in masses.items():
            dense[row, label] = mass
        dense[row, head.none] = 1 - sum(masses.values())
    values = torch.nn.functional.cross_entropy(head.logits(states, targets), dense, reduction="none")
    losses = head.loss(states, targets)
    for number in range(len(states.words)):
        in_sentence = targets["sentence"] == number
        torch.testing.assert_close(losses.sums[number], values[in_sentence].sum(), rtol=1e-5, atol=1e-5)
        assert losses.counts[number] == in_sentence.sum()
    torch.testing.assert_close(losses.mean, values.mean())


def random_states(encoder: Any, *lengths: int) -> TokenStates:
    generator = torch.Generator().manual_seed(11)
    words = torch.randn(len(lengths), max(lengths), encoder.width, generator=generator)
    mask = torch.arange(max(lengths)) < torch.tensor(lengths).unsqueeze(1)
    return TokenStates(words, torch.randn(len(lengths), encoder.width, generator=generator), mask)


def test_targets_and_loss_with_all_spans(encoder: Any) -> None:
    head = make(encoder).eval()
    mixed = sentence(6, ("A", (0, 2)), ("B", (1, 2)), ("A", (0, 5)), ("B", (3, 4), (5, 6)))
    targets = head.targets([mixed, sentence(2), sentence(3, ("B", (2, 3)))], gold=True)
    masses = examples(targets)
    spans = [(n, s, e) for n, length in enumerate((6, 2, 3)) for s in range(length) for e in range(s + 1, length + 1)]
    assert list(masses) == [span for span in spans if span[2] - span[1] <= 4]
    # The wide and the discontinuous entity and its fragments are not examples.
    assert {span: labels for span, labels in masses.items() if labels} == {
        (0, 0, 2): {0: 1},
        (0, 1, 2): {1: 1},
        (2, 2, 3): {1: 1},
    }
    assert set(head.targets([mixed], gold=False)) == {"sentence", "start", "end"}
    states = random_states(encoder, 6, 2, 3)
    check_loss(head, states, targets)
    assert head.loss(states, targets).counts.tolist() == [6 + 5 + 4 + 3, 3, 6]


def test_training_uses_gold_and_sampled_negatives(encoder: Any) -> None:
    head = make(encoder, negatives=7).eval()
    sentences = [sentence(10, ("A", (0, 2)), ("B", (4, 8))), sentence(2, ("A", (0, 1))), sentence(1)]
    targets = head.targets(sentences, gold=True, generator=np.random.default_rng(0))
    repeated = head.targets(sentences, gold=True, generator=np.random.default_rng(0))
    assert all(torch.equal(targets[name], repeated[name]) for name in targets)
    masses = examples(targets)
    assert {span: labels for span, labels in masses.items() if labels} == {
        (0, 0, 2): {0: 1},
        (0, 4, 8): {1: 1},
        (1, 0, 1): {0: 1},
    }
    negatives = [span for span, labels in masses.items() if not labels]
    assert [sum(span[0] == number for span in negatives) for number in range(3)] == [7, 2, 1]
    check_loss(head, random_states(encoder, 10, 2, 1), targets)


@pytest.mark.parametrize("sampled", [False, True])
def test_boundary_smoothing_adds_neighbours_as_examples(encoder: Any, sampled: bool) -> None:
    head = make(encoder, max_width=3, smoothing=0.2, negatives=2).eval()
    sentences = [sentence(1), sentence(9, ("A", (0, 2)), ("B", (5, 8))), sentence(2, ("A", (0, 1)), ("B", (0, 1)))]
    targets = head.targets(sentences, gold=True, generator=np.random.default_rng(0) if sampled else None)
    masses = examples(targets)
    approx = pytest.approx
    # (5, 8) has the largest width and (0, 2) starts the sentence: they keep the mass of their
    # missing neighbours.
    expected = {
        (1, 0, 1): approx({0: 0.05}), (1, 0, 2): approx({0: 0.85}), (1, 0, 3): approx({0: 0.05}), (1, 1, 2): approx({0: 0.05}),
        (1, 5, 7): approx({1: 0.05}), (1, 5, 8): approx({1: 0.9}), (1, 6, 8): approx({1: 0.05}),
        (2, 0, 1): approx({0: 0.5, 1: 0.5}), (2, 0, 2): approx({0: 0.05, 1: 0.05}),
    }  # fmt: skip
    assert {span: labels for span, labels in masses.items() if labels} == expected
    negatives = [span[0] for span, labels in masses.items() if not labels]
    if sampled:
        assert [negatives.count(number) for number in range(3)] == [1, 2, 1]
    else:
        assert len(masses) == 1 + (9 + 8 + 7) + (2 + 1)
    check_loss(head, random_states(encoder, 1, 9, 2), targets)


@pytest.mark.parametrize("distance", [1, 2])
def test_smoothed_results_do_not_depend_on_the_batch(encoder: Any, check_batches: Any, distance: int) -> None:
    check_batches(make(encoder, smoothing=0.3, smoothing_distance=distance))


def test_count_unreachable(encoder: Any) -> None:
    wide, discontinuous, nested = ("A", (0, 5)), ("B", (0, 1), (2, 3)), [("A", (0, 3)), ("B", (1, 2)), ("B", (2, 3))]
    two_types, unknown = [("A", (5, 6)), ("B", (5, 6))], ("C", (4, 5))
    for decoding, overlapping in (("nested", 0), ("flat", 1)):
        head = make(encoder, decoding=decoding)
        assert head.decoding == decoding
        assert head.count_unreachable(sentence(8, wide)) == 1
        assert head.count_unreachable(sentence(8, discontinuous)) == 1
        assert head.count_unreachable(sentence(8, unknown)) == 1
        assert head.count_unreachable(sentence(8, *two_types)) == 1
        assert head.count_unreachable(sentence(8, two_types[0], two_types[0])) == 0  # a repeated entity
        assert head.count_unreachable(sentence(8, *nested)) == overlapping
        assert head.count_unreachable(sentence(8, wide, discontinuous, unknown, *nested, *two_types)) == 4 + overlapping
        assert head.count_unreachable(sentence(8)) == 0


def test_two_types_of_a_span_get_half_the_mass_each(encoder: Any) -> None:
    head = make(encoder).eval()
    for generator in (None, np.random.default_rng(0)):
        targets = head.targets([sentence(1, ("B", (0, 1)), ("A", (0, 1)))], gold=True, generator=generator)
        assert examples(targets) == {(0, 0, 1): {0: 0.5, 1: 0.5}}
        check_loss(head, random_states(encoder, 1), targets)


def test_width_and_decoding_follow_from_training_data() -> None:
    narrow = [sentence(9, ("A", (0, 2))) for _ in range(98)]
    settings = SpannerSettings().resolve([*narrow, sentence(9, ("A", (0, 3))), sentence(9, ("A", (0, 9)))])
    assert (settings.max_width, settings.decoding) == (3, "flat")
    settings = SpannerSettings().resolve([*narrow, sentence(9, ("A", (0, 3))), sentence(9, ("A", (0, 9)), ("B", (8, 9)))])
    assert (settings.max_width, settings.decoding) == (3, "nested")
    settings = SpannerSettings().resolve([*narrow[:97], sentence(9, ("A", (0, 4))), sentence(9, ("A", (0, 9)))])
    assert settings.max_width == 9  # 98 of 99 entities are less than 99 %
    split = sentence(9, ("A", (0, 1), (8, 9)), ("A", (3, 5)))
    discontinuous = {"discontinuous": ("A",), "fragments_train_encoder": True, "link_width": 9}  # half of the entities
    assert SpannerSettings().resolve([split]) == SpannerSettings(max_width=2, decoding="flat", **discontinuous)
    wide = sentence(9, ("A", (0, 4), (5, 6)), ("A", (7, 8)))  # the width must cover predicted fragments
    assert SpannerSettings().resolve([wide]).max_width == 4
    assert SpannerSettings(discontinuous=False).resolve([wide]).max_width == 1
    two_types = sentence(9, ("A", (3, 5)), ("B", (3, 5)), ("B", (5, 6)))
    assert SpannerSettings().resolve([two_types]).decoding == "flat"


def test_given_settings_are_kept_and_automatic_ones_must_be_resolved(encoder: Any) -> None:
    given = SpannerSettings(max_width=7, decoding="nested", discontinuous=False, fragments_train_encoder=False)
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
def test_invalid_settings_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        SpannerSettings(**wrong)


def test_scores_are_the_probabilities_of_the_best_type(encoder: Any, random_batch: Any, joined: Any) -> None:
    head = make(encoder).eval()
    sentences, states = random_batch()
    batch, targets = joined(states), head.targets(sentences, gold=False)
    scored = head.score(batch, targets)
    probabilities = head.logits(batch, targets).softmax(-1)
    selected = [index for index, row in enumerate(probabilities.tolist()) if max(row) != row[head.none]]
    assert 0 < len(selected) < len(probabilities)
    torch.testing.assert_close(scored.score, probabilities[selected].amax(-1))
    assert torch.equal(scored.label, probabilities[selected].argmax(-1))
    for name in ("sentence", "start", "end"):
        assert torch.equal(getattr(scored, name), targets[name][selected])
    assert bool((scored.label != head.none).all())


def test_the_last_span_is_not_predicted_by_mistake(encoder: Any) -> None:
    """All candidates may be NONE, and a likelier span may overlap the last predicted one."""
    head = make(encoder, "boundary", max_width=5, decoding="flat").eval()
    words = torch.eye(encoder.width)[:5].unsqueeze(0)
    states = TokenStates(words, torch.zeros(1, encoder.width), torch.ones(1, 5, dtype=torch.bool))
    targets = head.targets([sentence(5)], gold=False)
    with torch.no_grad():
        for parameter in head.parameters():
            parameter.zero_()
        head.classifier.bias[head.none] = 10.0
        assert len(head.score(states, targets).start) == 0
        # Weights of first and last words: [0, 2) is likely, [1, 5) less likely, [4, 5) and the rest
        # are NONE.
        first_weights, last_weights = (
            head.classifier.weight[:, : encoder.width],
            head.classifier.weight[:, encoder.width : 2 * encoder.width],
        )
        first_weights[0, 0], last_weights[0, 1], first_weights[1, 1], last_weights[1, 4] = 9.0, 9.0, 6.0, 6.0
        scored = head.score(states, targets)
    assert list(zip(scored.start.tolist(), scored.end.tolist(), scored.label.tolist(), strict=True)) == [(0, 2, 0), (1, 5, 1)]
    for order in permutations(range(2)):
        columns = [getattr(scored, name).numpy()[list(order)] for name in ("sentence", "start", "end", "label", "score")]
        (entities,) = decode(*columns, count=1, types=LABELS.entities, policy=head.decoding)
        assert entities == (Entity("A", ((0, 2),)),)


def test_half_precision_losses_and_gradients_are_finite(encoder: Any, random_batch: Any, joined: Any) -> None:
    sentences, states = random_batch()
    batch = joined(states)
    dtypes = (torch.float16, torch.bfloat16, torch.float32)
    for dtype, representation, scale in product(dtypes, REPRESENTATIONS, (1.0, 300.0)):
        head = make(encoder, representation)
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


def test_half_precision_logits_are_close(encoder: Any, random_batch: Any, joined: Any) -> None:
    sentences, states = random_batch()
    head, batch = make(encoder).eval(), joined(states)
    targets = head.targets(sentences, gold=False)
    single = head.logits(batch, targets)
    half = head.to(torch.bfloat16).logits(batch, targets)
    assert half.dtype == torch.float32
    torch.testing.assert_close(half, single, rtol=0.05, atol=0.1)


def test_scoring_synchronises_once_and_training_never(
    encoder: Any, random_batch: Any, joined: Any, synchronisations: Any
) -> None:
    head = make(encoder)
    sentences, states = random_batch()
    batch = joined(states)
    targets = head.targets(sentences, gold=True, generator=np.random.default_rng(0))
    with synchronisations() as counts:
        head.loss(batch, targets).mean.backward()
    assert not counts
    with synchronisations() as counts:
        head.score(batch, head.targets(sentences, gold=False))
    assert counts == {"aten.nonzero": 1}


def test_empty_sentences_and_sentences_without_entities(encoder: Any) -> None:
    head = make(encoder)
    for words in (0, 2):
        states = TokenStates(torch.zeros(2, words, encoder.width), torch.zeros(2, encoder.width), torch.zeros(2, words).bool())
        empty = [sentence(0), sentence(0)]
        losses = head.loss(states, head.targets(empty, gold=True, generator=np.random.default_rng(0)))
        assert losses.sums.tolist() == losses.counts.tolist() == [0.0, 0.0]
        assert losses.mean == 0.0
        assert len(head.score(states, head.targets(empty, gold=False)).start) == 0


@pytest.mark.parametrize("representation", REPRESENTATIONS)
def test_overfits_nested_sentences(overfit: Any, nested_sentences: list[Sentence], representation: str) -> None:
    settings = SpannerSettings(representation=representation).resolve(nested_sentences)
    assert (settings.max_width, settings.decoding) == (3, "nested")
    assert overfit(SpanNer, LABELS, settings, nested_sentences)
