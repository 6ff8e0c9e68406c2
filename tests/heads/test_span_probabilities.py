"""What every head says of spans: probabilities that agree with its scores, vectors and templates that agree with these."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tiny import corpus, encoded, model, sentences, with_relations

from spanwise.core.errors import SpanwiseError
from spanwise.core.types import Corpus, Entity, Sentence
from spanwise.encoders.base import TokenStates
from spanwise.heads.abilities import HasSpanProbabilities, HasSpanVectors, find_ability
from spanwise.heads.base import Head
from spanwise.models.model import Model
from spanwise.prediction.span_vectors import span_probabilities, span_vectors
from spanwise.recipes.catalog import configure, recipes

FINDERS = sorted(set(recipes()) - {"sng-paper", "locate-label-paper"})  # the one types given spans, the other is locate-label
WITHOUT_VECTORS = {
    "biaffine", "bl-seqner", "efficient-global-pointer", "global-pointer", "gp-relations", "seqner", "seqner-crf", "span-relations",
}  # fmt: skip
ONE_BY_ONE = {"efficient-global-pointer", "global-pointer", "gp-relations"}  # types that know nothing of each other
SENTENCES = (*sentences(5), Sentence("one", ("quito",)), Sentence("empty", ()))


def built(encoder: Path, recipe: str, overrides: Iterable[str] = ()) -> Model:
    if "relations" not in recipe:
        made = model(encoder, recipe, overrides)
        if recipe == "seqner-crf":  # as if it had learned what spells entities
            allowed, crf = made.head.transitions.clamp(min=-20), made.head.crf
            crf.transitions.data, crf.start.data = allowed, allowed[0]
        return made
    torch.manual_seed(0)
    config = configure(recipe, encoder=str(encoder), overrides=list(overrides))
    return Model.build(config, with_relations(corpus())).eval()


def head_of(made: Model) -> Head:
    """The one that judges spans, which has targets and scores of its own."""
    return getattr(made.head, "entities", made.head.prediction_head)  # type: ignore[no-any-return]


@torch.no_grad()
def asked(made: Model) -> tuple[Head, TokenStates, dict[str, Any]]:
    head = head_of(made)
    return head, encoded(made.encoder, made.encoder.prepare(SENTENCES)), head.targets(SENTENCES, gold=False)


def table(packed: Any) -> dict[tuple[int, int, int], np.ndarray]:
    rows = zip(packed.sentence.tolist(), packed.start.tolist(), packed.end.tolist(), strict=True)
    return dict(zip(rows, packed.vectors.detach().double().numpy(), strict=True))


@pytest.mark.parametrize("recipe", FINDERS)
@torch.no_grad()
def test_probabilities_agree_with_scores(tiny_bert: Path, recipe: str) -> None:
    head, states, targets = asked(built(tiny_bert, recipe))
    packed, scored = head.span_probabilities(states, targets), head.score(states, targets)
    known = table(packed)
    assert len(known) == len(packed.start)  # no span twice
    assert packed.vectors.shape[1] == 3  # Drug, Place and NONE
    rows = np.stack(list(known.values()))
    assert ((rows >= 0) & (rows <= 1)).all()
    if recipe in ONE_BY_ONE:
        np.testing.assert_allclose(rows[:, 2], 1 - rows[:, :2].max(1), atol=1e-6)
    else:
        np.testing.assert_allclose(rows.sum(1), 1, atol=1e-5)
    found = set()
    for sentence, start, end, label, score in zip(*(column.tolist() for column in scored.columns), strict=True):
        if score > 0:  # locate-label proposes what it then refuses with a score of 0
            assert score == pytest.approx(known[sentence, start, end][label], abs=1e-5)
            found.add((sentence, start, end))
    if "seq" not in recipe:  # whose best tags are those of the whole sentence
        assert found == {span for span, row in known.items() if row.argmax() != 2}
        assert found


# Of pruned spans the templates make one of two judgements; tests/heads/test_pruned_span.py has their mean.
@pytest.mark.parametrize("recipe", sorted(set(FINDERS) - WITHOUT_VECTORS - {"deep-span-pruned"}))
@torch.no_grad()
def test_templates_make_probabilities_of_vectors(tiny_bert: Path, recipe: str) -> None:
    """Logarithms of a softmax are the logits but for one number of each span; what templates leave is one bias per class."""
    head, states, targets = asked(built(tiny_bert, recipe))
    templates = head.class_weights
    assert templates is not None
    vectors, chances = table(head.span_vectors(states, targets)), table(head.span_probabilities(states, targets))
    assert set(chances) <= set(vectors)
    bias = np.stack([np.log(row) - templates.double().numpy() @ vectors[span] for span, row in chances.items()])
    bias -= bias[:, -1:]
    np.testing.assert_allclose(bias, np.broadcast_to(bias[0], bias.shape), atol=2e-3)


@pytest.mark.parametrize("recipe", sorted(WITHOUT_VECTORS))
def test_heads_without_span_vectors_are_refused(tiny_bert: Path, recipe: str) -> None:
    made = built(tiny_bert, recipe)
    assert find_ability(made.head, HasSpanVectors) is None
    with pytest.raises(SpanwiseError, match="has no span vectors"):
        span_vectors(made, SENTENCES[:1])


@pytest.mark.parametrize(
    ("recipe", "more"),
    [
        ("bl-spanner", []),
        ("bl-seqner", []),
        ("span-relations", ["head.entities={kind: spanner}"]),
        ("gp-relations", []),
    ],
)
def test_wrappers_have_the_abilities_of_the_wrapped_head(tiny_bert: Path, recipe: str, more: list[str]) -> None:
    made = built(tiny_bert, recipe, more)
    head, states, targets = asked(made)
    assert find_ability(made.head, HasSpanProbabilities) is head
    with torch.no_grad():
        expected = table(head.span_probabilities(states, targets))
    found = {
        (number, *span): row
        for number, (spans, values) in enumerate(span_probabilities(made, SENTENCES))
        for span, row in zip(spans.tolist(), values, strict=True)
    }
    assert found.keys() == expected.keys()
    assert all(np.allclose(found[span], row, atol=1e-6) for span, row in expected.items())
    assert (find_ability(made.head, HasSpanVectors) is None) == (recipe in WITHOUT_VECTORS and not more)


def test_a_softmax_over_tags_by_hand(tiny_bert: Path) -> None:
    """Tags O, B-Drug, I-Drug, B-Place, I-Place of two words; a span's probability is the geometric mean of its tags'."""
    head = head_of(model(tiny_bert, "seqner"))
    chances = torch.tensor([[[0.2, 0.4, 0.1, 0.2, 0.1], [0.1, 0.1, 0.4, 0.3, 0.1]]])
    head.emissions = lambda states: (chances.log(), torch.ones(1, 2, dtype=torch.bool))  # type: ignore[method-assign]
    known = table(head.span_probabilities(None, {}))  # type: ignore[arg-type]
    np.testing.assert_allclose(known[0, 0, 1], [0.4, 0.2, 0.4], atol=1e-6)
    np.testing.assert_allclose(known[0, 1, 2], [0.1, 0.3, 0.6], atol=1e-6)
    drug, place = 0.4, 0.02**0.5
    np.testing.assert_allclose(known[0, 0, 2], [drug, place, 1 - drug - place], atol=1e-6)


def test_given_spans_have_probabilities_of_types_alone() -> None:
    """A fragment that is also an entity of its own has that entity's vector, not that of the discontinuous one."""
    made = model("static", "sng", ["head.task=typing"])
    whole, parts = Entity("Drug", ((0, 1),)), Entity("Place", ((0, 1), (2, 3)))
    together = Sentence("s1", ("aspirin", "and", "acid"), (parts, whole))
    alone = Sentence("s2", ("aspirin", "and", "acid"), (whole,))
    for ask, size in ((span_probabilities, 2), (span_vectors, 400)):
        (spans, values), (_, expected) = ask(made, [together, alone])
        assert spans.tolist() == [[0, 1]]
        assert values.shape == (1, size)
        np.testing.assert_allclose(values, expected, atol=1e-6)
    head = find_ability(made.head, HasSpanVectors)
    assert head is made.head
    assert tuple(head.class_weights.shape) == (2, 400)


def test_discontinuous_types_are_found_beside_a_head_that_says_what_it_said(tiny_bert: Path) -> None:
    torch.manual_seed(0)
    split = tuple(
        Sentence(f"s{n}", ("left", "and", "right", "knee"), (Entity("X", ((0, 1), (3, 4))), Entity("X", ((2, 4),))))
        for n in range(4)
    )
    made = Model.build(configure("spanner", encoder=str(tiny_bert)), Corpus({"train": split}, "x")).eval()
    assert made.head.configured_head is not made.head
    assert find_ability(made.head, HasSpanVectors) is made.head.configured_head
    (spans, values), *_ = span_probabilities(made, split, [[(0, 1), (2, 4)]] * 4)  # type: ignore[list-item]
    assert spans.tolist() == [[0, 1], [2, 4]]
    assert values.shape == (2, 2)
