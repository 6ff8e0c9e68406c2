"""Bundle: two heads on one encoder, one of which predicts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F  # noqa: N812

from spanwise.core.types import Entity, Sentence
from spanwise.encoders.base import TokenStates
from spanwise.heads import head_class, head_settings, head_values, make_head, tuned_threshold
from spanwise.heads.abilities import HasSpanProbabilities, HasSpanVectors, HasThreshold, Tunable, find_ability, heads_with
from spanwise.heads.base import Labels, Losses
from spanwise.heads.bundle import Bundle, BundleSettings

LABELS = Labels(("A", "B"))
SEQUENCE = {"softmax": {"kind": "seqner"}, "crf": {"kind": "seqner", "tagging": "crf"}}
SPAN = {
    "spanner": {"kind": "spanner", "max_width": 4, "decoding": "nested", "representation": "boundary"},
    "biaffine": {"kind": "biaffine", "decoding": "nested", "size": 5, "width_size": 3},
    "global-pointer": {"kind": "global-pointer", "decoding": "nested", "size": 4},
    "efficient": {"kind": "efficient-global-pointer", "decoding": "flat", "size": 4, "max_width": 5},
}
PAIRS = [("softmax", "spanner"), ("crf", "efficient"), ("softmax", "biaffine"), ("crf", "global-pointer")]


def make(encoder: Any, sequence: str = "softmax", span: str = "spanner", **options: Any) -> Bundle:
    torch.manual_seed(3)
    settings = BundleSettings(**{"alpha": 0.3, "sequence": SEQUENCE[sequence], "span": SPAN[span], **options})
    return Bundle.build(encoder, LABELS, settings)


def sentence(words: int, *entities: tuple[Any, ...]) -> Sentence:
    return Sentence("s", ("w",) * words, tuple(Entity(kind, fragments) for kind, *fragments in entities))


def test_registered_as_bundle() -> None:
    assert head_class("bundle") is Bundle
    settings = head_settings({"kind": "bundle"})
    assert isinstance(settings, BundleSettings)
    assert (settings.alpha, settings.branch) == (0.1, "span")
    assert settings.branches == {"sequence": {"kind": "seqner"}, "span": {"kind": "spanner"}}


@pytest.mark.parametrize("pair", PAIRS)
@pytest.mark.parametrize("branch", ["sequence", "span"])
def test_results_do_not_depend_on_the_batch(encoder: Any, check_batches: Any, pair: Any, branch: str) -> None:
    check_batches(make(encoder, *pair, branch=branch))


@torch.no_grad()
def test_loss_is_the_weighted_sum_of_means_per_instance(encoder: Any, random_batch: Any, joined: Any) -> None:
    """Computed word by word and span by span."""
    bundle = make(encoder).eval()
    sentences, alone = random_batch()
    losses = bundle.loss(joined(alone), bundle.targets(sentences, gold=True))
    of_words, of_spans = [], []  # losses of each sentence
    tagger, spanner = bundle.branches["sequence"], bundle.branches["span"]
    for one, states in zip(sentences, alone, strict=True):
        tags = tagger.targets([one], gold=True)["tags"][0]
        of_words.append(F.cross_entropy(tagger.classifier(states.words[0]), tags, reduction="none").tolist())
        targets = spanner.targets([one], gold=True)
        dense = torch.zeros(len(targets["start"]), 3)
        dense[targets["place"], targets["label"]] = targets["mass"]
        dense[:, 2] = 1 - dense.sum(1)
        of_spans.append(F.cross_entropy(spanner.logits(states, targets), dense, reduction="none").tolist())
    words, spans = (np.mean(np.concatenate(actual)) for actual in (of_words, of_spans))
    assert float(losses.mean) == pytest.approx(0.3 * words + 0.7 * spans, rel=1e-5)
    assert {name: float(value) for name, value in losses.parts.items()} == pytest.approx({"sequence": words, "span": spans})
    rows = [
        len(word_values) * (0.3 * np.mean(word_values) + 0.7 * np.mean(span_values))
        for word_values, span_values in zip(of_words, of_spans, strict=True)
    ]
    assert losses.sums.tolist() == pytest.approx(rows, rel=1e-5)
    assert losses.counts.tolist() == [len(sentence.words) for sentence in sentences]


@torch.no_grad()
@pytest.mark.parametrize("pair", PAIRS)
def test_loss_matches_its_branches_for_every_pair(encoder: Any, random_batch: Any, joined: Any, pair: Any) -> None:
    bundle = make(encoder, *pair, alpha=0.25).eval()
    sentences, states = random_batch()
    batch = joined(states)
    total = 0.0
    for name, weight in (("sequence", 0.25), ("span", 0.75)):
        head = bundle.branches[name]
        losses = head.loss(batch, head.targets(sentences, gold=True))
        instances = losses.counts if losses.instance_counts is None else losses.instance_counts
        total += weight * float(losses.sums.sum() / instances.sum())
    assert float(bundle.loss(batch, bundle.targets(sentences, gold=True)).mean) == pytest.approx(total, rel=1e-5)


@pytest.mark.parametrize("pair", PAIRS)
def test_gradients_reach_both_branches_and_the_encoder(encoder: Any, random_batch: Any, joined: Any, pair: Any) -> None:
    """The gradient of the states is the weighted sum of the branches' gradients."""
    bundle = make(encoder, *pair).eval()
    sentences, states = random_batch()
    batch = joined(states)

    def gradient(loss: Any, head: Any) -> torch.Tensor:
        leaf = batch.words.clone().requires_grad_()
        loss(head.loss(TokenStates(leaf, batch.cls, batch.mask), head.targets(sentences, gold=True))).backward()
        assert leaf.grad is not None
        return leaf.grad

    parts = {name: gradient(lambda losses: losses.mean_per_instance, head) for name, head in bundle.branches.items()}
    bundle.zero_grad()
    actual = gradient(lambda losses: losses.mean, bundle)
    torch.testing.assert_close(actual, 0.3 * parts["sequence"] + 0.7 * parts["span"], rtol=1e-4, atol=1e-7)
    assert all(part.abs().max() > 1e-4 for part in parts.values())
    for head in bundle.branches.values():
        assert all(parameter.grad is not None for parameter in head.parameters())
        assert sum(float(parameter.grad.abs().sum()) for parameter in head.parameters()) > 0


def test_loss_does_not_synchronise(encoder: Any, random_batch: Any, joined: Any, synchronisations: Any) -> None:
    bundle = make(encoder, "crf", "efficient")
    sentences, states = random_batch()
    batch, targets = joined(states), bundle.targets(sentences, gold=True, generator=np.random.default_rng(1))
    with synchronisations() as counted:
        bundle.loss(batch, targets).mean.backward()
    assert not counted


def test_targets_are_named_after_their_branches(encoder: Any) -> None:
    sentences = [sentence(6, ("A", (0, 2)))]
    for branch in ("sequence", "span"):
        bundle = make(encoder, branch=branch)
        scoring, gold = bundle.targets(sentences, gold=False), bundle.targets(sentences, gold=True)
        assert scoring.keys() == {f"{branch}.{key}" for key in bundle.prediction_head.targets(sentences, gold=False)}
        assert {key.partition(".")[0] for key in gold} == {"sequence", "span"}
        assert gold["sequence.tags"].tolist() == [[1, 2, 0, 0, 0, 0]]
    generators = [np.random.default_rng(5) for _ in range(2)]
    sampled = [make(encoder).targets([sentence(40)], gold=True, generator=generator) for generator in generators]
    assert all(torch.equal(sampled[0][key], sampled[1][key]) for key in sampled[0])


@pytest.mark.parametrize("branch", ["sequence", "span"])
def test_the_chosen_branch_predicts(encoder: Any, random_batch: Any, joined: Any, branch: str) -> None:
    bundle = make(encoder, "crf", "global-pointer", branch=branch).eval()
    reader = bundle.branches[branch]
    assert bundle.prediction_head is reader
    assert bundle.decoding == reader.decoding == {"sequence": "flat", "span": "nested"}[branch]
    sentences, states = random_batch()
    ours = bundle.score(joined(states), bundle.targets(sentences, gold=False))
    theirs = reader.score(joined(states), reader.targets(sentences, gold=False))
    assert len(ours.start)
    for name in ("sentence", "start", "end", "label", "score"):
        assert torch.equal(getattr(ours, name), getattr(theirs, name))
    nested = sentence(8, ("A", (0, 4)), ("B", (1, 2)), ("A", (1, 2)))
    assert bundle.count_unreachable(nested) == {"sequence": 2, "span": 0}[branch]


@pytest.mark.parametrize(("alpha", "branch", "other"), [(0.0, "span", "sequence"), (1.0, "sequence", "span")])
def test_a_branch_without_weight_is_not_built(
    encoder: Any, random_batch: Any, joined: Any, alpha: float, branch: str, other: str
) -> None:
    bundle = make(encoder, alpha=alpha, branch=branch).eval()
    assert list(bundle.branches) == [branch]
    assert not any(other in name for name in bundle.state_dict())
    sentences, states = random_batch()
    targets = bundle.targets(sentences, gold=True)
    assert not any(key.startswith(other) for key in targets)
    losses, head = bundle.loss(joined(states), targets), bundle.prediction_head
    alone = head.loss(joined(states), head.targets(sentences, gold=True))
    torch.testing.assert_close(losses.mean, alone.mean_per_instance)
    assert losses.parts.keys() == {branch}
    assert head_values(bundle)[other]["kind"]  # the configuration still contains it


def test_settings_of_both_branches_are_resolved_and_saved(encoder: Any) -> None:
    sentences = [sentence(8, ("A", (0, 3)), ("B", (1, 2))), sentence(4, ("A", (0, 1)))]
    bundle = make_head(encoder, LABELS, {"kind": "bundle", "span": {"kind": "spanner", "negatives": 7}}, sentences)
    values = head_values(bundle)
    assert (values["kind"], values["alpha"], values["branch"]) == ("bundle", 0.1, "span")
    assert values["sequence"] == {"kind": "seqner", **head_settings({"kind": "seqner"}).model_dump()}
    assert {key: values["span"][key] for key in ("kind", "max_width", "decoding", "negatives")} == {
        "kind": "spanner", "max_width": 3, "decoding": "nested", "negatives": 7,
    }  # fmt: skip
    again = make_head(encoder, LABELS, values)  # without training sentences
    assert head_values(again) == values
    assert again.load_state_dict(bundle.state_dict())


def test_a_threshold_tuned_on_dev_is_saved(encoder: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuned_threshold, "choose_threshold", lambda gold, predicted: 0.3)
    grid = {"kind": "grid", "max_width": 2, "decoding": "flat", "channels": 4, "rank": 2}
    bundle = make_head(encoder, Labels(("A",)), {"kind": "bundle", "span": grid})
    tunable = find_ability(bundle, Tunable)
    assert tunable is not None
    assert tunable.tune([], list)
    loaded = make_head(encoder, Labels(("A",)), head_values(bundle))
    assert [head.threshold for head in heads_with(loaded, tuned_threshold.TunedThreshold)] == [0.3]


def test_abilities_are_those_of_the_branch_that_predicts(encoder: Any) -> None:
    bundle = make(encoder)
    head = bundle.branches["span"]
    assert find_ability(bundle, HasSpanVectors) is head
    assert find_ability(bundle, HasThreshold) is None
    assert find_ability(make(encoder, span="biaffine"), HasSpanVectors) is None
    pointer = make(encoder, span="global-pointer")
    assert find_ability(pointer, HasThreshold) is pointer.branches["span"]
    assert find_ability(make(encoder, span="global-pointer", branch="sequence"), HasThreshold) is None
    assert heads_with(bundle, HasSpanProbabilities) == list(bundle.branches.values())


def test_the_loss_of_a_branch_may_have_several_terms() -> None:
    terms = {"one": (1.0, Losses(torch.ones(2), torch.ones(2))), "two": (0.5, Losses(torch.ones(2), torch.full((2,), 2.0)))}
    losses = Losses.weighted_sum({"span": (0.5, Losses.weighted_sum(terms)), "sequence": (0.5, terms["two"][1])})
    assert {name: float(value) for name, value in losses.parts.items()} == {
        "span": 1.25, "sequence": 0.5, "span.one": 1.0, "span.two": 0.5,
    }  # fmt: skip
    assert float(losses.mean) == 0.875


@pytest.mark.parametrize("pair", PAIRS)
@pytest.mark.parametrize("branch", ["sequence", "span"])
def test_overfits_a_few_sentences(overfit: Any, pair: Any, branch: str) -> None:
    sentences = [
        Sentence("s1", ("the", "aspirin", "acid", "near", "oslo"), (Entity("A", ((1, 3),)), Entity("B", ((4, 5),)))),
        Sentence("s2", ("it", "rained", "in", "new", "york"), (Entity("B", ((3, 5),)),)),
        Sentence("s3", ("nothing", "here")),
    ]
    settings = BundleSettings(alpha=0.5, branch=branch, sequence=SEQUENCE[pair[0]], span=SPAN[pair[1]])
    assert overfit(Bundle, LABELS, settings, sentences)
