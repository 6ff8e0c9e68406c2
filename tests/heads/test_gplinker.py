"""The published form of GPLinker: a pointer for subjects and objects, and summed losses."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from spanwise.core.errors import SpanwiseError
from spanwise.core.types import Entity, Relation, Sentence
from spanwise.encoders.base import TokenStates
from spanwise.heads import make_head
from spanwise.heads.base import Labels
from spanwise.spans.matching import PackedSpans

LABELS = Labels(("A",), ("likes", "near"))
VALUES = {"kind": "gp-relations", "entities": {"kind": "global-pointer", "decoding": "overlapping", "size": 4}, "size": 4}
A, B, C = Entity("A", ((0, 2),)), Entity("A", ((3, 4),)), Entity("A", ((1, 2),))
SENTENCE = Sentence(
    "s", ("a", "b", "c", "d"), (A, B, C), (Relation("likes", 0, 1), Relation("near", 0, 1), Relation("near", 2, 1))
)


def make(encoder: Any, **options: Any) -> Any:
    torch.manual_seed(3)
    return make_head(encoder, LABELS, {**VALUES, "dropout": 0.0, "threshold": 0.5, **options}).eval()


def random_states(width: int, length: int = 4) -> TokenStates:
    torch.manual_seed(1)
    return TokenStates(torch.randn(1, length, width), torch.zeros(1, width), torch.ones(1, length, dtype=torch.bool))


@torch.no_grad()
def test_losses_of_roles_and_of_both_matrices_are_summed(encoder: Any) -> None:
    plain, linker = make(encoder), make(encoder, roles=True)
    assert linker.role_pointer.labels.entities == ("subject", "object")
    states, targets = random_states(encoder.width), linker.targets([SENTENCE], gold=True)
    roles = {name: targets[f"relations.roles.{name}"].tolist() for name in ("start", "end", "label")}
    assert roles == {"start": [0, 1, 3], "end": [2, 2, 4], "label": [0, 0, 1]}
    linker.pointer.load_state_dict(plain.pointer.state_dict())
    expected = 2 * plain.relation_loss(states, {"cells": targets["relations.cells"]})
    packed = {name: torch.tensor(values) for name, values in roles.items()} | {"sentence": torch.zeros(3, dtype=torch.long)}
    expected = expected + linker.role_pointer.loss(states, packed).sums
    losses = linker.loss(states, targets)
    torch.testing.assert_close(losses.parts["relations"], expected.mean())
    entities = linker.entities.loss(states, linker.wrapped_targets(targets)).sums
    torch.testing.assert_close(losses.sums, entities + expected)


@torch.no_grad()
def test_a_relation_needs_a_subject_and_an_object(encoder: Any) -> None:
    linker = make(encoder, roles=True)
    linker.pointer.prior.fill_(50.0)  # every pair has every relation
    linker.entities.score = lambda states, targets: None
    linker.entities.decode = lambda scored, count: [type("P", (), {"entities": SENTENCE.entities})()]
    states = random_states(encoder.width)
    spans = PackedSpans(torch.zeros(3, dtype=torch.long), torch.tensor([0, 3, 1]), torch.tensor([2, 4, 2]))
    scores = linker.role_pointer.span_scores(states, spans)
    tiles, cells, _ = linker.role_pointer._score_cells(states)
    for row, (start, end) in enumerate(((0, 2), (3, 4), (1, 2))):
        cell = tiles.index(torch.tensor(start), torch.tensor(end))
        torch.testing.assert_close(scores[row], cells.flatten(2)[0, :, cell])
    linker.role_pointer.span_scores = lambda states, spans: torch.tensor([[1.0, -1.0], [-1.0, 1.0], [-1.0, 1.0]])
    (predicted,) = linker.decode(linker.score(states, {}), 1)
    assert {(r.type, r.head, r.tail) for r in predicted.relations} == {
        (type, 0, tail) for type in LABELS.relations for tail in (1, 2)
    }


def test_an_odd_size_is_refused_with_roles(encoder: Any) -> None:
    with pytest.raises(SpanwiseError, match=r"^head gp-relations: size: expected an even number with roles.*, found 7$"):
        make(encoder, roles=True, size=7)
    make(encoder, size=7)
