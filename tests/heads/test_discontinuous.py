"""Discontinuous entities: losses compared with loops, reachable entities, batch invariance and learning."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from math import exp, log, log1p
from typing import Any

import numpy as np
import pytest
import torch

from spanwise.core.errors import SpanwiseError
from spanwise.core.types import Entity, Sentence
from spanwise.decoding.fragments import discontinuous_entities
from spanwise.encoders.base import TokenStates
from spanwise.heads import head_settings, head_values, make_head
from spanwise.heads.base import Head, Labels
from spanwise.heads.bundle import Bundle
from spanwise.heads.discontinuous import Discontinuous
from spanwise.heads.link_grid import LinkGrid
from spanwise.heads.wrapper import select_targets
from spanwise.training.checks import unreachable_causes

LABELS = Labels(("A", "B"))
KINDS: dict[str, dict[str, Any]] = {
    "biaffine": {"size": 8},
    "spanner": {"max_width": 13},
    "global-pointer": {"size": 8},
    "efficient-global-pointer": {"size": 8},
    "sng": {"max_width": 13, "hidden": 6},
    "locate-label": {"max_width": 4},
    "shallow-span": {"max_width": 13, "hidden": 8, "lstm": 4},
}
every = pytest.mark.parametrize("kind", KINDS)


def make(encoder: Any, kind: str = "biaffine", types: tuple[str, ...] = ("A", "B"), **options: Any) -> Discontinuous:
    torch.manual_seed(3)
    values = {"kind": kind, "decoding": "nested", "discontinuous": types, **KINDS[kind], **options}
    head = make_head(encoder, LABELS, values, [sentence(9, ("A", (0, 1)), ("B", (2, 5)))])
    assert isinstance(head, Discontinuous)
    return head


def sentence(words: int, *entities: tuple[Any, ...]) -> Sentence:
    return Sentence("s", ("w",) * words, tuple(Entity(kind, fragments) for kind, *fragments in entities))


@pytest.fixture
def discontinuous_batch(random_batch: Any, joined: Any) -> Any:
    """Random sentences, most with discontinuous entities of two and more fragments, and their states."""

    def make(count: int = 12, longest: int = 11) -> tuple[list[Sentence], list[TokenStates], TokenStates]:
        sentences, states = random_batch(count, longest=longest)
        rng, broken = np.random.default_rng(4), []
        for one in sentences:
            entities = set(one.entities)
            for kind in "AB" * 2:
                ends = sorted(
                    rng.choice(len(one.words) + 1, min(2 * int(rng.integers(2, 4)), len(one.words) + 1), replace=False)
                )
                fragments = tuple((int(a), int(b)) for a, b in zip(ends[::2], ends[1::2], strict=False))
                entities |= {Entity(kind, fragments)} if len(fragments) > 1 else set()
            broken.append(replace(one, entities=tuple(sorted(entities, key=lambda e: (e.fragments, e.type)))))
        return broken, states, joined(states)

    return make


def with_large_weights(head: Head, factor: float = 6.0) -> Head:
    """The head with larger weights, for large scores of both signs."""
    with torch.no_grad():
        for parameter in head.parameters():
            parameter.mul_(factor)
        for module in head.modules():
            if isinstance(module, Discontinuous):
                words = torch.randn(4, 9, module.context.width, generator=torch.Generator().manual_seed(2))
                scores, _ = module.links.scores(TokenStates(words, words[:, 0], torch.ones(4, 9, dtype=torch.bool)))
                module.links.grid.classifier.bias.sub_(scores.mean((0, 2, 3)))  # as many above as below 0
    return head


@every
def test_results_do_not_depend_on_the_batch(check_batches: Any, encoder: Any, kind: str) -> None:
    check_batches(with_large_weights(make(encoder, kind), 3.0))


def test_an_untrained_head_predicts_no_fragments(encoder: Any) -> None:
    head = make(encoder).eval()
    words = torch.randn(4, 9, head.context.width, generator=torch.Generator().manual_seed(2))
    scores, _ = head.links.scores(TokenStates(words, words[:, 0], torch.ones(4, 9, dtype=torch.bool)))
    assert (scores < 0).all()


def test_random_scores_give_valid_entities_of_all_kinds(encoder: Any, discontinuous_batch: Any) -> None:
    head = with_large_weights(make(encoder, "global-pointer", decoding="overlapping")).eval()
    sentences, states, batch = discontinuous_batch(60)
    actual = head.decode(head.score(batch, head.targets(sentences, gold=False)), len(sentences))
    entities = [entity for one in actual for entity in one.entities]
    assert {len(entity.fragments) for entity in entities} >= {1, 2, 3}
    for one, state in zip(actual, states, strict=True):
        assert all(entity.fragments[-1].end <= state.words.shape[1] for entity in one.entities)
        assert list(one.entities) == sorted(one.entities, key=lambda e: (e.range.start, -e.range.end, e.type, e.fragments))


@every
def test_loss_is_the_wrapped_loss_plus_two_means(encoder: Any, discontinuous_batch: Any, kind: str) -> None:
    """Computed cell by cell in float64: log(1 + sum of e^s) over negatives, log(1 + sum of e^-s) over positives.

    And for every fragment and type that it has, the type's cross-entropy.
    """
    head = with_large_weights(make(encoder, kind, max_width=4, link_width=8), 2.0).eval()
    sentences, states, batch = discontinuous_batch()
    targets = head.targets(sentences, gold=True)
    actual, alone = head.loss(batch, targets), head.head.loss(batch, targets)
    rows, kinds = alone.sums / alone.counts.clamp(min=1), set[int]()
    for number, (one, state) in enumerate(zip(sentences, states, strict=True)):
        length, context = len(one.words), head._contextualize(state)
        gold = [
            entity
            for entity in discontinuous_entities(one, LABELS.entities)
            if max(fragment.width for fragment in entity.fragments) <= 4
            and all(b.start - a.start < 8 and b.end - a.end < 8 for a, b in combinations(entity.fragments, 2))
        ]
        kinds |= {len(entity.fragments) for entity in gold}
        positive = {(*fragment, 0) for entity in gold for fragment in entity.fragments}
        for entity in gold:
            for a, b in combinations(entity.fragments, 2):
                positive |= {(a.start, b.start + 1, 1), (a.end - 1, b.end, 2)}
        scores = head.links.scores(context)[0][0].detach().double()
        for label in range(3):
            low = high = 0.0
            for start in range(length):
                for end in range(start + 1, min(length, start + 8) + 1):
                    score = float(scores[label, start, end - start - 1])
                    if (start, end, label) in positive:
                        high += exp(-score)
                    else:
                        low += exp(score)
            rows[number] += (log1p(low) + log1p(high)) / 3
        typed, words = {(fragment, entity.type) for entity in gold for fragment in entity.fragments}, context.words
        values = []
        for (start, end), name in typed:
            ends = torch.cat((words[0, start], words[0, end - 1]))
            logits = (head.typing.typing.weight @ ends + head.typing.typing.bias).double().tolist()
            values.append(log(sum(exp(logit) for logit in logits)) - logits[LABELS.entities.index(name)])
        rows[number] += sum(values) / max(len(values), 1)
    assert kinds == {2, 3}
    torch.testing.assert_close(actual.sums / actual.counts.clamp(min=1), rows, rtol=1e-4, atol=1e-4)
    assert torch.equal(actual.counts, alone.counts)
    assert actual.parts.keys() == {"spans", "typing", "links", *alone.parts}
    torch.testing.assert_close(actual.parts["spans"], alone.mean)
    if actual.weighted_mean is None:
        torch.testing.assert_close(actual.mean, (rows * alone.counts).sum() / alone.counts.sum(), rtol=1e-4, atol=1e-4)
    else:
        torch.testing.assert_close(actual.mean, sum(actual.parts[name] for name in ("spans", "typing", "links")))


def test_scores_are_tables_of_probable_cells(encoder: Any, discontinuous_batch: Any) -> None:
    head = with_large_weights(make(encoder, link_width=5)).eval()
    _, states, batch = discontinuous_batch()
    with torch.no_grad():
        fragments, links = head.links.score(head._contextualize(batch))
        expected: tuple[dict[Any, float], dict[Any, float]] = ({}, {})
        for number, state in enumerate(states):
            probabilities = head.links.scores(head._contextualize(state))[0][0].sigmoid()
            length = state.words.shape[1]
            for label in range(3):
                for start in range(length):
                    for end in range(start + 1, min(length, start + 5) + 1):
                        value = float(probabilities[label, start, end - start - 1])
                        if value > 0.5:
                            expected[label > 0][number, start, end, max(label - 1, 0)] = value
    for table, rows in zip((fragments, links), expected, strict=True):
        columns = [column.tolist() for column in table.columns]
        assert dict(zip(zip(*columns[:4], strict=True), columns[4], strict=True)) == pytest.approx(rows, abs=1e-4)
        assert len(rows) > 20


def test_types_share_the_score_of_a_fragment(encoder: Any, discontinuous_batch: Any) -> None:
    head = with_large_weights(make(encoder)).eval()
    *_, batch = discontinuous_batch()
    with torch.no_grad():
        batch = head._contextualize(batch)
        actual, _ = head.links.score(batch)
        rows = head.typing.split_by_type(batch, actual)
        assert len(actual.start)
        torch.testing.assert_close(rows.score.view(-1, 2).sum(1), actual.score)
        assert rows.label.view(-1, 2).tolist() == [[0, 1]] * len(actual.start)
        place = len(actual.start) // 2
        words = batch.words[actual.sentence[place], [actual.start[place], actual.end[place] - 1]].flatten()
        shares = head.typing.typing(words).softmax(0) * actual.score[place]
        torch.testing.assert_close(rows.score.view(-1, 2)[place], shares)


@every
def test_loss_does_not_synchronise(encoder: Any, random_batch: Any, joined: Any, synchronisations: Any, kind: str) -> None:
    head = make(encoder, kind)
    sentences, states = random_batch()
    batch, targets = joined(states), head.targets(sentences, gold=True, generator=np.random.default_rng(1))
    with synchronisations() as alone:
        head.head.loss(batch, targets).mean.backward()
    with synchronisations() as counted:
        head.loss(batch, targets).mean.backward()
    assert counted == alone
    assert all(parameter.grad is not None for parameter in head.separately_clipped_parameters())
    assert {*head.parameters()} == {*head.head.parameters(), *head.separately_clipped_parameters()}


@every
def test_states_get_gradients_from_the_wrapped_head_only(encoder: Any, discontinuous_batch: Any, kind: str) -> None:
    """In training, with dropout: the parts draw no random numbers, neither when built nor in training."""
    sentences, _, batch = discontinuous_batch()
    values = {"kind": kind, **KINDS[kind], "fragments_train_encoder": False}
    gradients, drawn = [], []
    for discontinuous in ("auto", False):
        torch.manual_seed(5)
        head = make_head(encoder, LABELS, {**values, "discontinuous": discontinuous}, sentences).train()
        words = batch.words.clone().requires_grad_()
        targets = head.targets(sentences, gold=True, generator=np.random.default_rng(1))
        loss = head.loss(TokenStates(words, batch.cls, batch.mask), targets)
        loss.mean.backward()
        gradients.append([words.grad, *(parameter.grad for parameter in head.configured_head.parameters())])
        drawn.append(torch.rand(3))
    assert torch.equal(*drawn)
    assert all(torch.equal(one, other) for one, other in zip(*gradients, strict=True))


@pytest.mark.parametrize("kind", ["biaffine", "spanner"])
def test_fragments_train_the_encoder_where_they_are_frequent(encoder: Any, discontinuous_batch: Any, kind: str) -> None:
    """The states get the gradient of both losses; that of the parts is scaled down to the loss of the head."""
    sentences, _, batch = discontinuous_batch()
    losses, gradients = [], []
    for is_shared in (True, False):
        head = with_large_weights(make(encoder, kind, fragments_train_encoder=is_shared), 2.0).eval()
        words = batch.words.clone().requires_grad_()
        states, targets = TokenStates(words, batch.cls, batch.mask), head.targets(sentences, gold=True)
        whole, alone = head.loss(states, targets), head.head.loss(states, targets)
        (both,) = torch.autograd.grad(whole.mean, words, retain_graph=True)
        (expected,) = torch.autograd.grad(alone.mean, words, retain_graph=True)
        losses.append(whole.mean)
        gradients.append(both - expected)
        if is_shared:
            context = head._contextualize(states)
            parts = {name: part.loss(context, select_targets(targets, name)) for name, part in head._parts.items()}
            added = alone.with_terms("spans", parts).mean - alone.mean
            (expected,) = torch.autograd.grad(added, words, retain_graph=True)
            ratio = (alone.mean / added).item()
            assert (ratio < 1) == (kind == "spanner")
            torch.testing.assert_close(gradients[0], expected * min(ratio, 1.0), rtol=1e-3, atol=1e-6)
    assert torch.equal(*losses)
    assert gradients[0].abs().max() > 1e-5
    assert gradients[1].abs().max() == 0
    with torch.no_grad():
        head.loss(batch, head.targets(sentences, gold=True))  # dev losses have no gradient


def test_share_of_discontinuous_entities_decides_who_trains_the_encoder(encoder: Any) -> None:
    frequent = [sentence(6, ("A", (0, 1), (2, 3)), *((("B", (n, n + 1))) for n in range(5)))]
    contiguous = sentence(9, *(("B", (n, n + 1)) for n in range(8)), ("A", (8, 9)))
    for sentences, expected in ((frequent, True), ([*frequent, contiguous], True), ([*frequent, *[contiguous] * 2], False)):
        head = make_head(encoder, LABELS, {"kind": "spanner"}, sentences)
        assert head_values(head)["fragments_train_encoder"] is expected  # 1 of 6, of 15 and of 24
        head = make_head(encoder, LABELS, {"kind": "spanner", "fragments_train_encoder": not expected}, sentences)
        assert head_values(head)["fragments_train_encoder"] is not expected


@every
def test_the_wrapped_head_is_the_same_as_without_wrapper(encoder: Any, random_batch: Any, joined: Any, kind: str) -> None:
    head = make(encoder, kind).eval()
    torch.manual_seed(3)
    values = {**head_values(head), "discontinuous": False}
    alone = make_head(encoder, LABELS, values).eval()
    assert type(alone) is type(head.configured_head)
    state = alone.state_dict()
    assert all(torch.equal(value, state[name]) for name, value in head.configured_head.state_dict().items())
    sentences, states = random_batch()
    batch = joined(states)
    actual = head.decode(head.score(batch, head.targets(sentences, gold=False)), len(sentences))
    theirs = alone.decode(alone.score(batch, alone.targets(sentences, gold=False)), len(sentences))
    for one, other in zip(actual, theirs, strict=True):
        assert [entity for entity in one.entities if not entity.is_discontinuous] == list(other.entities)


def test_no_wrapper_without_discontinuous_entities(encoder: Any) -> None:
    plain = [sentence(6, ("A", (0, 2)), ("B", (3, 4)))]
    broken = [*plain, sentence(6, ("B", (0, 1), (2, 3)))]
    for kind, options in KINDS.items():
        torch.manual_seed(1)
        head = make_head(encoder, LABELS, {"kind": kind, **options}, plain)
        assert head is head.configured_head
        assert head_values(head)["discontinuous"] is False
        head = make_head(encoder, LABELS, {"kind": kind, **options}, broken)
        assert isinstance(head, Discontinuous)
        assert head_values(head)["discontinuous"] == ["B"]  # not A
        assert head.typing.types == ("B",)
        assert head_values(head)["link_width"] == 3
        again = make_head(encoder, LABELS, head_values(head))
        assert again.load_state_dict(head.state_dict())
        off = make_head(encoder, LABELS, {"kind": kind, **options, "discontinuous": False}, broken)
        assert off is off.configured_head


def test_training_data_with_discontinuous_entities_only(encoder: Any) -> None:
    head = make_head(encoder, LABELS, {"kind": "spanner"}, [sentence(6, ("B", (0, 2), (3, 4)))])
    assert isinstance(head, Discontinuous)
    assert (head.settings.max_width, head.settings.decoding) == (2, "flat")


def test_unsupported_settings_are_refused(encoder: Any) -> None:
    with pytest.raises(SpanwiseError, match=r"type of head.discontinuous.*'C'"):
        make(encoder, types=("C",))
    for wrong in (True, "A", 3):
        with pytest.raises(SpanwiseError, match=f"discontinuous: expected auto, false or a list of types, found {wrong!r}"):
            make_head(encoder, LABELS, {"kind": "biaffine", "discontinuous": wrong})
    with pytest.raises(SpanwiseError, match="consist of words"):
        make_head(encoder, LABELS, {"kind": "deep-span", "unit": "subwords", "max_width": 3, "discontinuous": ["A"]})
    settings = head_settings({"kind": "deep-span", "unit": "subwords", "max_width": 3})
    assert settings.resolve([sentence(6, ("A", (0, 1), (2, 3)))]).discontinuous_types == ()


def test_count_unreachable(encoder: Any) -> None:
    head = make(encoder, "spanner", types=("A",), max_width=2, link_width=5)
    here, there = ("A", (0, 1), (2, 3)), ("A", (2, 3), (4, 5))
    for one, missed in [
        (sentence(8, here), 0),
        (sentence(8, here, here, there), 0),
        (sentence(8, here, ("A", (0, 1), (2, 3), (4, 5))), 1),  # part of the larger one
        (sentence(8, ("B", (0, 1), (2, 3))), 1),  # a type without discontinuous training entities
        (sentence(8, ("A", (0, 3), (4, 5))), 1),  # a fragment wider than max_width
        (sentence(8, ("A", (0, 1), (4, 5))), 0),
        (sentence(8, ("A", (0, 1), (5, 6))), 1),  # a link wider than link_width
        (sentence(8, ("A", (0, 3)), here, ("A", (0, 1))), 1),  # the contiguous one is too wide
        (sentence(8, ("A", (0, 2)), ("A", (1, 3)), here), 1),  # crossing spans are counted by the wrapped head
    ]:
        assert head.count_unreachable(one) == missed
        assert unreachable_causes(one, head).total() == missed
    assert unreachable_causes(sentence(8, here, ("A", (0, 1), (2, 3), (4, 5))), head) == {"overlapping another": 1}
    assert unreachable_causes(sentence(8, ("B", (0, 1), (2, 3))), head) == {"discontinuous": 1}
    far, wide = ("A", (0, 1), (5, 6)), ("A", (0, 3), (4, 5))
    assert unreachable_causes(sentence(8, far, wide), head) == {"with fragments too wide or too far apart": 2}


def training_sentences() -> list[Sentence]:
    """Coordinations that share fragments and cross, and contiguous entities on the same spans as fragments."""
    return [
        Sentence(
            "s1", ("left", "and", "right", "knee", "pain", "rose"),
            (Entity("A", ((0, 1), (3, 5))), Entity("A", ((2, 5),)), Entity("B", ((3, 4),))),
        ),
        Sentence(
            "s2", ("heel", "and", "hip", "were", "red", "and", "sore", "respectively"),
            (Entity("A", ((0, 1), (4, 5))), Entity("A", ((2, 3), (6, 7))), Entity("B", ((0, 1),)), Entity("B", ((2, 3),))),
        ),
        Sentence(
            "s3", ("muscle", "in", "arm", "or", "thigh", "was", "weak"),
            (Entity("A", ((0, 1), (2, 3), (6, 7))), Entity("A", ((0, 1), (4, 5), (6, 7))), Entity("B", ((2, 3),))),
        ),
        Sentence("s4", ("switched", "the", "lamp", "off"), (Entity("B", ((0, 1), (3, 4))),)),
        Sentence("s5", ("nothing", "at", "all")),
    ]  # fmt: skip


@pytest.mark.parametrize("kind", ["biaffine", "spanner", "global-pointer"])
def test_overfits_a_few_sentences(overfit: Any, kind: str) -> None:
    class Built(Discontinuous):
        @classmethod
        def build(cls, encoder: Any, labels: Labels, settings: Any) -> Head:
            return make_head(encoder, labels, settings, training_sentences())

    assert overfit(Built, LABELS, {"kind": kind, "dropout": 0.0}, training_sentences())


def test_discontinuous_span_branch_of_a_bundle(encoder: Any, discontinuous_batch: Any) -> None:
    values = {"kind": "bundle", "span": {"kind": "global-pointer", "size": 8}, "sequence": {"kind": "seqner"}}
    sentences, _, batch = discontinuous_batch()
    torch.manual_seed(3)
    bundle = make_head(encoder, LABELS, values, sentences)
    assert isinstance(bundle, Bundle)
    branch = bundle.prediction_head
    assert isinstance(branch, Discontinuous)
    assert head_values(bundle)["span"]["discontinuous"] == ["A", "B"]
    with_large_weights(bundle).eval()
    losses = bundle.loss(batch, bundle.targets(sentences, gold=True))
    expected = branch.loss(batch, branch.targets(sentences, gold=True))
    torch.testing.assert_close(losses.parts["span"], expected.mean_per_instance)
    assert {"span.typing", "span.links"} <= losses.parts.keys()
    actual = bundle.decode(bundle.score(batch, bundle.targets(sentences, gold=False)), len(sentences))
    assert actual == branch.decode(branch.score(batch, branch.targets(sentences, gold=False)), len(sentences))
    assert any(entity.is_discontinuous for one in actual for entity in one.entities)


def test_fragments_depend_on_the_words_around_them(encoder: Any) -> None:
    """Even with a context-free encoder, fragments depend on the words around them."""
    words = torch.randn(1, 5, encoder.width, generator=torch.Generator().manual_seed(1))
    other = words.clone()
    other[0, 4] += 1.0
    head = make(encoder).eval()
    both = [head._contextualize(TokenStates(w, w[:, 0], torch.ones(1, 5, dtype=torch.bool))) for w in (words, other)]
    one, changed = (head.links.scores(states)[0][0, 0, 0, 1] for states in both)
    assert one != changed


def test_fragments_are_not_wider_than_spans() -> None:
    """Links may be wider, but a wider fragment is never gold, so no score of one is learned."""
    links = LinkGrid(4, ("A",), max_width=2, link_width=5)
    torch.nn.init.constant_(links.grid.classifier.bias, 9.0)  # every cell is probable
    words = torch.zeros(1, 6, 4)
    fragments, spans = links.score(TokenStates(words, words[:, 0], torch.ones(1, 6, dtype=torch.bool)))
    assert sorted(zip(fragments.start.tolist(), fragments.end.tolist(), strict=True)) == [
        (start, end) for start in range(6) for end in range(start + 1, min(start + 2, 6) + 1)
    ]
    assert (spans.end - spans.start).max() == 5


@pytest.mark.parametrize(
    ("rare", "others", "copies"), [(1, 19, 0), (1, 38, 1), (2, 190, 8), (1, 1000, 9), (3, 3, 0), (0, 5, 0)]
)
def test_sentences_with_rare_entities_are_repeated(encoder: Any, rare: int, others: int, copies: int) -> None:
    with_fragments = sentence(6, ("A", (0, 1), (3, 4)))
    sentences = [with_fragments] * rare + [sentence(6, ("A", (0, 1)))] * others
    repeated = make(encoder).repeat(sentences)
    assert repeated[: len(sentences)] == sentences
    assert repeated[len(sentences) :] == [with_fragments] * copies


def test_entities_that_do_not_fit_on_the_grid_are_not_repeated(encoder: Any) -> None:
    wide = sentence(60, ("A", (0, 1), (58, 59)))
    sentences = [wide, *[sentence(6)] * 99]
    assert make(encoder).repeat(sentences) == sentences
