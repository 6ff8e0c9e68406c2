"""SeqNER with and without a CRF."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from spanwise.core.partial import known_ends, known_types
from spanwise.core.tags import decode
from spanwise.core.types import Entity, Sentence
from spanwise.encoders.base import TokenStates
from spanwise.heads import head_class
from spanwise.heads.base import Labels
from spanwise.heads.crf import viterbi
from spanwise.heads.seqner import SeqNer, SeqnerSettings, bio_transitions, decode_tags

LABELS = Labels(("A", "B"))
NAMES = ("O", "B-A", "I-A", "B-B", "I-B")
TAGGINGS = ["softmax", "crf"]


def make(encoder: Any, tagging: str = "softmax", **options: Any) -> SeqNer:
    torch.manual_seed(3)
    return SeqNer.build(encoder, LABELS, SeqnerSettings(tagging=tagging, **options))


def sentence(words: int, *entities: tuple[Any, ...]) -> Sentence:
    return Sentence("s", ("w",) * words, tuple(Entity(kind, fragments) for kind, *fragments in entities))


def test_registered_as_seqner() -> None:
    assert head_class("seqner") is SeqNer
    assert SeqNer.settings_class is SeqnerSettings
    assert SeqnerSettings().resolve([sentence(1)]) == SeqnerSettings()
    with pytest.raises(ValidationError):
        SeqnerSettings(tagging="crf", scheme="bioes")  # type: ignore[call-arg]


@pytest.mark.parametrize("tagging", TAGGINGS)
def test_results_do_not_depend_on_the_batch(encoder: Any, check_batches: Any, tagging: str) -> None:
    check_batches(make(encoder, tagging))


def test_gold_tags_prefer_the_widest_of_overlapping_entities(encoder: Any) -> None:
    head = make(encoder)
    sentences = [
        sentence(7, ("B", (1, 2)), ("A", (0, 3)), ("A", (3, 4)), ("B", (5, 7))),
        sentence(2),
        sentence(3, ("A", (0, 1), (2, 3)), ("C", (0, 3))),
    ]
    assert head.targets(sentences, gold=True)["tags"].tolist() == [[1, 2, 2, 1, 0, 3, 4], [0] * 7, [0] * 7]
    assert [head.count_unreachable(example) for example in sentences] == [1, 0, 2]
    assert head.count_unreachable(sentence(3, ("A", (0, 2)), ("B", (0, 2)), ("A", (0, 2)))) == 1
    assert head.targets(sentences, gold=False) == {}
    assert head.decoding == "flat"


@given(st.lists(st.lists(st.integers(0, 4), max_size=9), min_size=1, max_size=5))
def test_decoding_matches_that_of_the_formats(rows: list[list[int]]) -> None:
    """Decode any tags, also I without B, in a padded batch."""
    longest = max(1, *map(len, rows))
    tags = torch.tensor([row + [2] * (longest - len(row)) for row in rows])
    mask = torch.tensor([[True] * len(row) + [False] * (longest - len(row)) for row in rows])
    probability = torch.rand(tags.shape, generator=torch.Generator().manual_seed(0)) + 0.01
    scored = decode_tags(tags, probability, mask)
    columns = (scored.sentence, scored.start, scored.end, scored.label)
    expected = [
        (number, *entity.range, LABELS.entities.index(entity.type))
        for number, row in enumerate(rows)
        for entity in decode([NAMES[tag] for tag in row])[0]
    ]
    assert list(zip(*(column.tolist() for column in columns), strict=True)) == expected
    means = [probability[number, start:end].log().mean().exp().item() for number, start, end, _ in expected]
    assert scored.score.tolist() == pytest.approx(means, rel=1e-4)


def test_losses_are_sums_over_words(encoder: Any, random_batch: Any, joined: Any) -> None:
    sentences, states = random_batch()
    batch = joined(states)
    for tagging in TAGGINGS:
        head = make(encoder, tagging).eval()
        targets = head.targets(sentences, gold=True)
        losses = head.loss(batch, targets)
        assert losses.counts.tolist() == [len(example.words) for example in sentences]
        for number, (example, state) in enumerate(zip(sentences, states, strict=True)):
            emissions, tags = head.classifier(state.words), targets["tags"][number : number + 1, : len(example.words)]
            if head.crf is None:
                expected = torch.nn.functional.cross_entropy(emissions[0], tags[0], reduction="sum")
            else:
                expected = head.crf.loss(emissions, tags, state.mask)[0]
            torch.testing.assert_close(losses.sums[number], expected)


def test_scores_are_probabilities_or_marginals(encoder: Any, random_batch: Any, joined: Any) -> None:
    sentences, states = random_batch()
    batch = joined(states)
    for tagging in TAGGINGS:
        head = make(encoder, tagging, constrained=False).eval()
        scored = head.score(batch, head.targets(sentences, gold=False))
        assert len(scored.score) > 0
        for number, start, end, score in zip(
            *(column.tolist() for column in (scored.sentence, scored.start, scored.end, scored.score)), strict=True
        ):
            emissions = head.classifier(states[number].words)
            if head.crf is None:
                probabilities, tags = emissions.softmax(-1), emissions.argmax(-1)
            else:
                probabilities, tags = (
                    compute(emissions, states[number].mask) for compute in (head.crf.marginals, head.crf.decode)
                )
            span_probabilities = probabilities.gather(-1, tags.unsqueeze(-1))[0, start:end, 0]
            assert score == pytest.approx(span_probabilities.log().mean().exp().item(), rel=1e-4)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
@pytest.mark.parametrize("tagging", TAGGINGS)
@pytest.mark.parametrize("scale", [1.0, 300.0])
def test_half_precision_losses_and_gradients_are_finite(
    encoder: Any, random_batch: Any, joined: Any, dtype: torch.dtype, tagging: str, scale: float
) -> None:
    head = make(encoder, tagging)
    sentences, states = random_batch()
    batch = joined(states)
    words = (batch.words * scale).clamp(-6e4, 6e4).to(dtype).requires_grad_()
    half = TokenStates(words, batch.cls.to(dtype), batch.mask)
    losses = head.loss(half, head.targets(sentences, gold=True))
    assert losses.sums.dtype == torch.float32
    losses.mean.backward()
    gradients = [words.grad, *(parameter.grad for parameter in head.parameters())]
    assert all(gradient is not None and bool(gradient.isfinite().all()) for gradient in gradients)
    assert bool(losses.sums.isfinite().all())
    assert bool((words.grad[~batch.mask] == 0).all())
    assert bool(head.score(half, {}).score.isfinite().all())


@pytest.mark.parametrize("tagging", TAGGINGS)
def test_scoring_synchronises_once_and_training_never(
    encoder: Any, random_batch: Any, joined: Any, synchronisations: Any, tagging: str
) -> None:
    head = make(encoder, tagging)
    sentences, states = random_batch()
    batch, targets = joined(states), head.targets(sentences, gold=True)
    with synchronisations() as counts:
        head.loss(batch, targets).mean.backward()
    assert not counts
    with synchronisations() as counts:
        head.score(batch, {})
    assert counts == {"aten.nonzero": 1}


@pytest.mark.parametrize("tagging", TAGGINGS)
def test_empty_sentences(encoder: Any, tagging: str) -> None:
    head = make(encoder, tagging)
    for words in (0, 2):
        states = TokenStates(torch.zeros(2, words, encoder.width), torch.zeros(2, encoder.width), torch.zeros(2, words).bool())
        losses = head.loss(states, head.targets([sentence(0), sentence(0)], gold=True))
        assert losses.sums.tolist() == losses.counts.tolist() == [0.0, 0.0]
        assert len(head.score(states, {}).start) == 0


@pytest.mark.parametrize("tagging", TAGGINGS)
def test_overfits_flat_sentences(overfit: Any, tagging: str) -> None:
    rng = np.random.default_rng(0)
    fillers, sentences = ["the", "yield", "of", "rose", "near", "while", "and", "fell"], []
    for number in range(20):
        before, between = (list(map(str, rng.choice(fillers, int(rng.integers(0, 4))))) for _ in range(2))
        words = [*before, "acetic", "acid", *between, "north", "harbour", "zinc"]
        first, second = len(before), len(before) + 2 + len(between)
        entities = [("A", (first, first + 2)), ("B", (second, second + 2)), ("A", (second + 2, second + 3))]
        sentences.append(Sentence(f"s{number}", tuple(words), tuple(Entity(kind, (range_,)) for kind, range_ in entities)))
    assert overfit(SeqNer, LABELS, SeqnerSettings(tagging=tagging), sentences)


def is_valid(tags: tuple[int, ...]) -> bool:
    """Check that every I continues a B or an I of the same type."""
    return all(tag == 0 or tag % 2 or previous in (tag - 1, tag) for previous, tag in zip((0, *tags), tags, strict=False))


@given(st.lists(st.lists(st.floats(-4, 4), min_size=5, max_size=5), min_size=1, max_size=4))
def test_constrained_tags_are_the_best_valid_sequence(rows: list[list[float]]) -> None:
    emissions = torch.tensor([rows], dtype=torch.float32).log_softmax(-1)
    allowed = bio_transitions(2)
    mask = torch.ones(1, len(rows), dtype=torch.bool)
    best_tags = tuple(viterbi(emissions, mask, allowed, allowed[0], torch.zeros(5))[0].tolist())

    def score(tags: tuple[int, ...]) -> float:
        return float(sum(emissions[0, index, tag] for index, tag in enumerate(tags)))

    expected = max((tags for tags in product(range(5), repeat=len(rows)) if is_valid(tags)), key=score)
    assert is_valid(best_tags)
    assert score(best_tags) == pytest.approx(score(expected), abs=1e-4)


@pytest.mark.parametrize("annotated", [(), ((0, 2),), ((1, 2), (3, 4)), ("A",), ("A", "B"), ("C",)])
def test_a_crf_sums_over_the_sequences_that_agree_with_a_partial_annotation(encoder: Any, annotated: tuple[Any, ...]) -> None:
    """An entity without a mark lowers the probability of a sequence once, also if it starts with I."""
    head = make(encoder, "crf").eval()
    head.marked_share = 0.3
    gold = replace(sentence(4, ("A", (1, 2))), annotated=annotated)
    states = TokenStates(torch.randn(1, 4, encoder.width), torch.zeros(1, encoder.width), torch.ones(1, 4, dtype=torch.bool))
    known = [end > word for word, end in enumerate(known_ends(gold))] if known_types(gold) is None else [False] * 4

    def weight(tags: tuple[int, ...]) -> float:
        entities = set(decode(NAMES[tag] for tag in tags)[0])
        more = entities - set(gold.entities)
        is_open = all(entity.type not in (known_types(gold) or ()) and not any(known[slice(*entity.range)]) for entity in more)
        return (0.7 if annotated == () else 1.0) ** len(more) if is_open and entities > more and tags[1] == 1 else 0.0

    assert head.crf is not None
    emissions, mask = head.emissions(states)
    sequences = list(product(range(len(NAMES)), repeat=4))
    scores = head.crf._sequence_score(emissions.expand(len(sequences), -1, -1), torch.tensor(sequences), mask.expand(625, -1))
    expected = -(scores.softmax(0) * torch.tensor(list(map(weight, sequences)))).sum().log()
    assert head.loss(states, head.targets([gold], gold=True)).sums.item() == pytest.approx(expected.item(), rel=1e-4)
