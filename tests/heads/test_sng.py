"""SNG: predicting entities and typing given ones."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from spanwise.core.types import Entity, Sentence
from spanwise.encoders.base import TokenStates
from spanwise.encoders.static import StaticEncoder, StaticSettings
from spanwise.heads import head_class
from spanwise.heads.base import Labels
from spanwise.heads.sng import Sng, SngSettings
from spanwise.models.model import count_parameters

LABELS = Labels(("A", "B"))
WIDTH = 12  # of the word states from the fixtures


def make(encoder: Any, **options: Any) -> Sng:
    torch.manual_seed(3)
    head = Sng.build(encoder, LABELS, SngSettings(**{"max_width": 4, "decoding": "nested", "hidden": 6, **options}))
    with torch.no_grad():  # larger weights, so that logits depend on the span more than on the bias
        head.classifier.weight.mul_(8)
    return head.eval()


def given(*fragments: tuple[tuple[int, int], ...], words: str = "a b c d e f") -> Sentence:
    return Sentence("s", tuple(words.split()), tuple(Entity("A", ranges) for ranges in fragments))


def reference_logits(head: Sng, words: torch.Tensor) -> torch.Tensor:
    """Compute the logits of a single span from its word states."""
    states, hidden = head.spans.lstm(words)[0], head.settings.hidden
    weights = (states @ torch.cat((states[-1, :hidden], states[0, hidden:]))).softmax(0)
    return head.classifier(weights @ states)


def test_registered_as_sng() -> None:
    assert head_class("sng") is Sng
    assert Sng.tasks == ("entities", "typing")


def test_number_of_weights_matches_the_paper(encoder: Any) -> None:
    """805,205 weights: 300 values per word, 200 states per direction, 5 types without NONE."""
    encoder.width = 300
    settings = SngSettings(task="typing", max_width=1, decoding="flat")
    assert count_parameters(Sng.build(encoder, Labels(tuple("ABCDE")), settings)) == 805_205


@pytest.mark.parametrize("context", [False, True])
@pytest.mark.parametrize("decoding", ["nested", "flat"])
def test_results_do_not_depend_on_the_batch(encoder: Any, check_batches: Any, context: bool, decoding: str) -> None:
    check_batches(make(encoder, context=context, decoding=decoding))


@pytest.mark.parametrize("fragments", ["together", "separate"])
@pytest.mark.parametrize("context", [False, True])
def test_typing_does_not_depend_on_the_batch(encoder: Any, check_batches: Any, context: bool, fragments: str) -> None:
    check_batches(make(encoder, task="typing", context=context, fragments=fragments))


def test_logits_match_those_of_single_spans(encoder: Any, random_batch: Any, joined: Any) -> None:
    head = make(encoder)
    sentences, states = random_batch()
    batch, targets = joined(states), head.targets(sentences, gold=False)
    actual = head.logits(batch, targets)
    spans = zip(*(targets[name].tolist() for name in ("sentence", "start", "end")), strict=True)
    expected = torch.stack([reference_logits(head, batch.words[number, start:end]) for number, start, end in spans])
    torch.testing.assert_close(actual, expected, rtol=1e-4, atol=1e-5)


def test_typing_loss_is_the_cross_entropy_of_the_gold_spans(encoder: Any, random_batch: Any, joined: Any) -> None:
    head = make(encoder, task="typing")
    sentences, states = random_batch()
    losses = head.loss(joined(states), head.targets(sentences, gold=True))
    for number, (sentence, state) in enumerate(zip(sentences, states, strict=True)):
        words = [torch.cat([state.words[0, a:b] for a, b in e.fragments]) for e in sentence.entities]
        labels = [LABELS.entities.index(e.type) for e in sentence.entities]
        expected = sum(
            -reference_logits(head, span).log_softmax(0)[label].item() for span, label in zip(words, labels, strict=True)
        )
        assert losses.sums[number].item() == pytest.approx(expected, rel=1e-4, abs=1e-5)
        assert losses.counts[number] == len(sentence.entities)
    assert head.classifier.out_features == len(LABELS.entities)  # no NONE


def test_types_of_given_spans_are_ignored(encoder: Any, random_batch: Any, joined: Any) -> None:
    head = make(encoder, task="typing")
    sentences, states = random_batch()
    renamed = [replace(s, entities=tuple(replace(e, type="unknown") for e in s.entities)) for s in sentences]
    batch = joined(states)
    predictions, renamed_predictions = (
        head.decode(head.score(batch, head.targets(inputs, gold=False)), len(inputs)) for inputs in (sentences, renamed)
    )
    assert predictions == renamed_predictions
    for sentence, predicted in zip(sentences, predictions, strict=True):
        assert {e.fragments for e in predicted.entities} == {e.fragments for e in sentence.entities}
        assert all(0 < (e.score or 0) <= 1 for e in predicted.entities)


def test_a_discontinuous_entity_gets_one_type(encoder: Any) -> None:
    """It is typed like its fragments' words in sequence; the paper types each fragment separately."""
    sentences = [given(((0, 1), (3, 5))), given(((0, 3),), words="a d e")]
    encoder = type(encoder)(sentences)
    states = encoder(encoder.collate(encoder.prepare(sentences)))
    head = make(encoder, task="typing")
    logits = head.logits(states, head.targets(sentences, gold=False))
    torch.testing.assert_close(logits[0], logits[1])
    torch.testing.assert_close(logits[0], reference_logits(head, states.words[0, [0, 3, 4]]), rtol=1e-4, atol=1e-5)

    fragment_head = make(encoder, task="typing", fragments="separate")
    targets = fragment_head.targets(sentences[:1], gold=False)
    first = TokenStates(states.words[:1], states.cls[:1], states.mask[:1])
    fragment_logits = fragment_head.logits(first, targets)
    torch.testing.assert_close(fragment_logits[1], reference_logits(fragment_head, states.words[0, 3:5]), rtol=1e-4, atol=1e-5)
    gold = fragment_head.targets(sentences[:1], gold=True)
    assert gold["label"].tolist() == [0, 0]  # each fragment is an example


@pytest.mark.parametrize(("labels", "expected"), [([0, 0], ["A"]), ([0, 1], []), ([1, 1], ["B"])])
def test_separate_fragments_form_an_entity_if_their_types_agree(encoder: Any, labels: list[int], expected: list[str]) -> None:
    head = make(encoder, task="typing", fragments="separate")
    sentence = given(((0, 1), (3, 5)))
    states = TokenStates(torch.randn(1, 6, WIDTH), torch.zeros(1, WIDTH), torch.ones(1, 6, dtype=torch.bool))
    scored = replace(head.score(states, head.targets([sentence], gold=False)), label=torch.tensor(labels))
    (predicted,) = head.decode(scored, 1)
    assert [(e.type, e.fragments) for e in predicted.entities] == [(kind, ((0, 1), (3, 5))) for kind in expected]


def test_equal_words_are_read_once_without_context(encoder: Any) -> None:
    sentences = [given(((0, 2),), ((1, 2),), words="a b c"), given(((1, 3),), ((0, 1),), words="c a b")]
    encoder = type(encoder)(sentences)
    states = encoder(encoder.collate(encoder.prepare(sentences)))
    with_context, context_free = make(encoder, task="typing"), make(encoder, task="typing")
    context_free.is_context_free = True
    targets, unique_targets = (head.targets(sentences, gold=True) for head in (with_context, context_free))
    assert (len(targets["forward_end"]), len(unique_targets["forward_end"])) == (4, 3)  # "a b", "b", "c"
    assert unique_targets["read_span"].tolist() == [0, 1, 0, 2]
    losses, unique_losses = with_context.loss(states, targets), context_free.loss(states, unique_targets)
    torch.testing.assert_close(losses.sums, unique_losses.sums)
    assert losses.counts.tolist() == unique_losses.counts.tolist() == [2, 2]
    predictions = [
        head.decode(head.score(states, head.targets(sentences, gold=False)), 2) for head in (with_context, context_free)
    ]
    assert predictions[0] == predictions[1]


def test_context_free_encoders() -> None:
    tagged = [Sentence("s", ("a", "b"), (Entity("A", ((0, 1),)),), pos=("X", "Y"))]
    for options, expected in (({"layers": 0}, True), ({"layers": 1}, False), ({"layers": 0, "pos_size": 3}, False)):
        encoder = StaticEncoder.build(StaticSettings(**{"char_hidden": 4, **options}), tagged)
        assert encoder.is_context_free is expected
        assert make(encoder, task="typing").is_context_free is expected
        assert not make(encoder, task="typing", context=True).is_context_free


def test_two_types_of_a_span_are_learned_but_one_is_unreachable(encoder: Any) -> None:
    head = make(encoder, task="typing")
    two_types = Sentence("s", tuple("abcdefgh"), (Entity("A", ((0, 2),)), Entity("B", ((0, 2),)), Entity("Z", ((3, 4),))))
    assert head.targets([two_types], gold=True)["label"].tolist() == [0, 1]
    assert len(head.targets([two_types], gold=False)["forward_end"]) == 2  # distinct spans
    assert head.count_unreachable(two_types) == 2  # one of the two types, and the unknown type
    assert head.count_unreachable(given(((0, 6),), ((0, 1), (5, 6)))) == 0  # any width, any fragments
    assert make(encoder).count_unreachable(given(((0, 6),), ((0, 1), (5, 6)))) == 2


def test_with_context_a_span_depends_on_its_neighbours(encoder: Any) -> None:
    sentence = given(((2, 4),))
    words = torch.randn(1, 6, WIDTH)
    changed = words.clone()
    changed[0, 5] += 3
    mask, cls = torch.ones(1, 6, dtype=torch.bool), torch.zeros(1, WIDTH)
    for context in (False, True):
        head = make(encoder, task="typing", context=context)
        targets = head.targets([sentence], gold=False)
        logits, changed_logits = (head.logits(TokenStates(values, cls, mask), targets) for values in (words, changed))
        assert torch.equal(logits, changed_logits) is not context


@pytest.mark.parametrize("options", [{}, {"context": True, "context_hidden": 8}, {"smoothing": 0.1}])
def test_overfits_nested_sentences(overfit: Any, nested_sentences: list[Sentence], options: dict[str, Any]) -> None:
    settings = SngSettings(max_width=3, decoding="nested", hidden=16, **options)
    assert overfit(Sng, LABELS, settings, nested_sentences)


def test_overfits_typing_of_given_spans(overfit: Any, nested_sentences: list[Sentence]) -> None:
    assert overfit(Sng, LABELS, SngSettings(task="typing", max_width=3, decoding="nested", hidden=16), nested_sentences)


def test_training_uses_gold_and_sampled_negatives(encoder: Any) -> None:
    head = make(encoder, negatives=3)
    sentence = given(((0, 2),), ((4, 5),))
    targets = head.targets([sentence], gold=True, generator=np.random.default_rng(0))
    assert len(targets["start"]) == len(targets["forward_end"]) == 2 + 3
    assert targets["label"].tolist() == [0, 0]


@pytest.mark.parametrize("task", ["entities", "typing"])
def test_loss_does_not_synchronise(encoder: Any, random_batch: Any, joined: Any, synchronisations: Any, task: str) -> None:
    head = make(encoder, task=task, context=True).train()
    sentences, states = random_batch()
    targets = head.targets(sentences, gold=True, generator=np.random.default_rng(0))
    batch = joined(states)
    with synchronisations() as counts:
        head.loss(batch, targets).mean.backward()
    assert not counts


def test_sentences_without_given_spans(encoder: Any) -> None:
    head = make(encoder, task="typing")
    sentences = [Sentence("s1", ("a", "b")), Sentence("s2", ())]
    states = TokenStates(torch.randn(2, 2, WIDTH), torch.zeros(2, WIDTH), torch.tensor([[True, True], [False, False]]))
    losses = head.loss(states, head.targets(sentences, gold=True))
    assert losses.sums.tolist() == losses.counts.tolist() == [0, 0]
    assert losses.mean.item() == 0
    predictions = head.decode(head.score(states, head.targets(sentences, gold=False)), 2)
    assert [predicted.entities for predicted in predictions] == [(), ()]


def test_span_vectors_are_the_input_of_the_classifier(encoder: Any, random_batch: Any, joined: Any) -> None:
    head = make(encoder)
    sentences, states = random_batch()
    batch, targets = joined(states), head.targets(sentences, gold=False)
    packed = head.span_vectors(batch, targets)
    torch.testing.assert_close(head.classifier(packed.vectors), head.logits(batch, targets))
    assert len(packed.vectors) == len(packed.start)
