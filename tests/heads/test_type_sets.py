"""Spans with several types: sets of types as classes of the grid, compared with sums over single classes."""

from __future__ import annotations

import re
from itertools import compress, product
from math import log
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from pydantic import ValidationError

from spanwise.core.errors import SpanwiseError
from spanwise.core.type_sets import frequent_type_sets
from spanwise.core.types import Corpus, Entity, Sentence
from spanwise.encoders.base import TokenStates
from spanwise.heads import resolve_head_values
from spanwise.heads.base import Labels
from spanwise.heads.grid import Grid, GridSettings
from spanwise.heads.type_sets import TypeSets
from spanwise.losses.smoothing import SoftSpans
from spanwise.losses.teaching import TaughtSentence
from spanwise.models.model import Model
from spanwise.recipes.catalog import configure
from spanwise.training.checks import unreachable_causes
from spanwise.training.init_weights import initialize_from

LABELS = Labels(("A", "B", "C"))
SETS = (("A", "B"), ("A", "B", "C"))
CLASSES = [{0}, {1}, {2}, {0, 1}, {0, 1, 2}]


def make(encoder: Any, **options: Any) -> Grid:
    torch.manual_seed(4)
    settings = {"channels": 6, "rank": 5, "max_width": 4, "decoding": "nested", "type_sets": SETS, **options}
    head = Grid.build(encoder, LABELS, GridSettings(**settings))
    with torch.no_grad():
        for layer in (head.classifier, head.type_sets.classifier):
            layer.weight.mul_(8.0)  # so that each class is the best for some spans
            layer.bias.zero_()
    return head


def states_of(encoder: Any, *lengths: int) -> TokenStates:
    words = torch.randn(len(lengths), max(lengths), encoder.width, generator=torch.Generator().manual_seed(5))
    mask = torch.arange(max(lengths)) < torch.tensor(lengths).unsqueeze(1)
    return TokenStates(words, torch.zeros(len(lengths), encoder.width), mask)


def of_one_word(*types: str) -> Sentence:
    return Sentence("s", ("w",), tuple(Entity(type, ((0, 1),)) for type in types))


def test_only_sets_with_several_examples_are_classes() -> None:
    several = [*[of_one_word("B", "A")] * 4, *[of_one_word("B", "A", "C")] * 3, *[of_one_word("B", "C")] * 2]
    assert frequent_type_sets([*several, of_one_word("C")]) == (("A", "B"), ("A", "B", "C"))
    assert frequent_type_sets([*[of_one_word("A", "B")] * 3, *[of_one_word("A")] * 2_996]) == (("A", "B"),)
    assert frequent_type_sets([*[of_one_word("A", "B")] * 3, *[of_one_word("A")] * 2_997]) == ()  # 0.1 %


def test_the_order_of_sets_does_not_depend_on_their_frequency() -> None:
    """Otherwise, a few more sentences would change it, and ``--init`` would not copy the weights of the sets."""
    sets = (("A", "B"), ("A", "C"))
    for counts in ((4, 3), (3, 4)):
        sentences = [of_one_word(*types) for types, count in zip(sets, counts, strict=True) for _ in range(count)]
        assert frequent_type_sets(sentences) == sets


def test_sets_follow_from_the_training_data() -> None:
    data = [of_one_word("A", "B")] * 5
    resolved = GridSettings().resolve(data)
    assert (resolved.type_sets, resolved.decoding) == ((("A", "B"),), "nested")
    resolved = GridSettings().resolve([of_one_word("A")] * 5)
    assert (resolved.type_sets, resolved.decoding) == (False, "flat")
    resolved = GridSettings(type_sets=False).resolve(data)
    assert (resolved.type_sets, resolved.decoding) == (False, "flat")


@torch.no_grad()
def test_predictions_equal_sums_over_classes(encoder: Any) -> None:
    head, states = make(encoder, threshold=0.2).eval(), states_of(encoder, 40, 1, 30)
    head.type_sets.classifier.bias.copy_(torch.tensor([4.0, 0.0]))
    logits, inside = head.score_cells(states)
    expected, probabilities, sizes = {}, {}, set()
    for number, start, column in inside.nonzero().tolist():
        row = logits[number, start, column].double().softmax(0).tolist()
        span = (number, start, start + column + 1)
        totals = [sum(p for p, types in zip(row, CLASSES, strict=False) if type in types) for type in range(3)]
        probabilities[span] = [*totals, row[-1]]
        best = CLASSES[max(range(len(CLASSES)), key=row.__getitem__)]
        kept = {(*span, type): totals[type] for type in best if totals[type] >= 0.2}
        expected |= kept
        sizes.add(len(kept))
    scored = head.score(states, {})
    *rows, scores = (column.tolist() for column in scored.columns)
    assert dict(zip(zip(*rows, strict=True), scores, strict=True)) == pytest.approx(expected, abs=1e-5)
    assert {0, 1, 2, 3} <= sizes  # spans with one, two and three types
    packed = head.span_probabilities(states, {})
    spans = zip(packed.sentence.tolist(), packed.start.tolist(), packed.end.tolist(), strict=True)
    for span, row in zip(spans, packed.vectors.tolist(), strict=True):
        assert row == pytest.approx(probabilities[span], abs=1e-5)


def test_probabilities_are_at_most_one() -> None:
    classes = (torch.randn(100_000, 6, generator=torch.Generator().manual_seed(3)) * 6).softmax(-1)[:, :-1]
    assert TypeSets(SETS, LABELS.entities, 4).probabilities(classes).max() == 1.0


@torch.no_grad()
def test_a_span_learns_the_class_of_its_types(encoder: Any) -> None:
    head, states = make(encoder, smoothing=0.0).eval(), states_of(encoder, 5)
    rows = [((1, 3), "AB"), ((2, 3), "C"), ((0, 2), "BC")]  # B and C together are no class: one half each
    sentence = Sentence("a", ("w",) * 5, tuple(Entity(type, (span,)) for span, types in rows for type in types))
    gold = {(1, 3): {3: 1.0}, (2, 3): {2: 1.0}, (0, 2): {1: 0.5, 2: 0.5}}
    logits, inside = head.score_cells(states)
    expected = 0.0
    for _, start, column in inside.nonzero().tolist():
        logs = logits[0, start, column].log_softmax(0)
        masses = gold.get((start, start + column + 1), {len(CLASSES): 1.0})
        expected -= sum(mass * float(logs[label]) for label, mass in masses.items())
    assert head.loss(states, head.targets([sentence], gold=True)).sums.tolist() == pytest.approx([expected], rel=1e-4)


@torch.no_grad()
def test_open_spans_may_have_sets_of_open_types(encoder: Any) -> None:
    head, states = make(encoder, smoothing=0.0).eval(), states_of(encoder, 2)
    sentence = Sentence("a", ("w",) * 2, annotated=("C",))  # only C is annotated: {A}, {B} and {A, B} may be missing
    logits, inside = head.score_cells(states)
    expected = 0.0
    for _, start, column in inside.nonzero().tolist():
        row = logits[0, start, column].softmax(0).tolist()
        expected -= log(row[-1] + row[0] + row[1] + row[3])
    assert head.loss(states, head.targets([sentence], gold=True)).sums.tolist() == pytest.approx([expected], rel=1e-4)


@torch.no_grad()
@pytest.mark.parametrize(
    ("annotated", "share", "meant"),
    [(("A",), 0.0, {0: 1.0, 3: 1.0, 4: 1.0}), (("A", "B"), 0.0, {0: 1.0}), (("A", "C"), 0.0, {0: 1.0, 3: 1.0}),
     ((), 0.25, {0: 1.0, 3: 0.75, 4: 0.75})],
)  # fmt: skip
def test_a_span_with_open_types_may_have_more_of_them(
    encoder: Any, annotated: Any, share: float, meant: dict[int, float]
) -> None:  # fmt: skip
    head, states = make(encoder, smoothing=0.0).eval(), states_of(encoder, 2)
    head.marked_share = share
    head.classifier.weight.div_(8.0)
    head.type_sets.classifier.weight.zero_()  # no class is much more probable than the others
    sentence = Sentence("a", ("w",) * 2, (Entity("A", ((0, 1),)),), annotated=annotated)
    logits, inside = head.score_cells(states)
    expected = 0.0
    for _, start, column in inside.nonzero().tolist():
        row = logits[0, start, column].softmax(0).tolist()
        if (start, column) == (0, 0):
            expected -= log(sum(row[label] * mass for label, mass in meant.items()))
        else:
            is_open = [all(type not in map("ABC".index, annotated) for type in types) for types in CLASSES]
            expected -= log(row[-1] + (1 - share) * sum(compress(row, is_open)))
    assert head.loss(states, head.targets([sentence], gold=True)).sums.tolist() == pytest.approx([expected], rel=1e-4)


def test_known_and_open_classes_equal_loops() -> None:
    sets = TypeSets(SETS, LABELS.entities, 4)
    types = np.array(list(product((False, True), repeat=3)))
    expected = [[all(row[type] for type in types) for types in CLASSES] for row in types]
    assert sets.known_classes(types).tolist() == expected
    assert sets.open_classes(torch.from_numpy(types).unsqueeze(2)).squeeze(2).tolist() == expected


def test_known_classes_need_no_device() -> None:
    """Processes that build batches for a GPU have no access to its memory."""
    sets = TypeSets(SETS, LABELS.entities, 4).to("meta")
    assert sets.known_classes(np.array([[True, True, False]])).tolist() == [[True, True, False, True, False]]


def test_probabilities_of_teachers_are_joined() -> None:
    sets = TypeSets(SETS, LABELS.entities, 4)

    def join(*masses: float) -> dict[int, float]:
        rows = [(1, 3, label, mass) for label, mass in enumerate(masses) if mass]
        columns = [np.array(column) for column in zip(*rows, strict=True)]
        spans = sets.join_probabilities(SoftSpans(*columns[:3], columns[3].astype(np.float32)))
        assert set(zip(spans.start.tolist(), spans.end.tolist(), strict=True)) == {(1, 3)}
        return dict(zip(spans.label.tolist(), spans.mass.tolist(), strict=True))

    assert join(0.75, 0.25) == {0: 0.75, 1: 0.25}  # they may exclude each other
    assert join(0.75, 0.5) == {0: 0.5, 1: 0.25, 3: 0.25}
    assert join(1.0, 1.0) == {3: 1.0}
    assert join(1.0, 1.0, 1.0) == {4: 1.0}
    assert join(1.0, 1.0, 0.5) == {3: 0.5, 4: 0.5}
    assert join(1.0, 0.0, 1.0) == {0: 1.0, 2: 1.0}  # A and C together are no class
    assert join(0.5, 0.0, 0.25) == {0: 0.5, 2: 0.25}


def test_a_taught_span_learns_the_class_of_its_types(encoder: Any) -> None:
    head = make(encoder, smoothing=0.0)
    teacher = SoftSpans(np.array([0, 0]), np.array([1, 1]), np.array([0, 1]), np.array([1.0, 0.75], np.float32))
    sentence = TaughtSentence.teach(Sentence("a", ("w", "w")), teacher, 0.0)
    (spans,) = head.target_spans([sentence])
    assert (spans.label.tolist(), spans.mass.tolist()) == ([0, 3], [0.25, 0.75])


def test_types_beyond_a_set_are_unreachable(encoder: Any) -> None:
    head = make(encoder)
    counts = {types: head.count_unreachable(of_one_word(*types)) for types in ("A", "AB", "ABC", "AC", "BC")}
    assert counts == {"A": 0, "AB": 0, "ABC": 0, "AC": 1, "BC": 1}
    assert unreachable_causes(of_one_word("A", "C"), head) == {"of a second type on their span": 1}
    assert make(encoder, type_sets=(("A", "B"),)).count_unreachable(of_one_word("A", "B", "C")) == 1


@pytest.mark.parametrize("sets", [[["A"]], [["A", "A"]], [["A", "B"], ["B", "A"]]])
def test_sets_are_checked(sets: list[list[str]]) -> None:
    with pytest.raises(ValidationError, match="expected auto, false or different sets of at least two types"):
        GridSettings(type_sets=sets)


@pytest.mark.parametrize("wrong", [3, True, None, ["A"], {"A": "B"}, [["A", ["B"]]]])
def test_sets_are_lists_of_types(wrong: object) -> None:
    with pytest.raises(SpanwiseError, match=re.escape("type_sets: expected auto, false or different sets")):
        resolve_head_values({"kind": "grid", "type_sets": wrong}, "head", [])


def test_no_sets_are_one_type() -> None:
    assert GridSettings(type_sets=[]).type_sets is False


def test_unknown_types_are_refused(encoder: Any) -> None:
    with pytest.raises(SpanwiseError, match=r"unknown type of head.type_sets .D.; known: A, B, C"):
        make(encoder, type_sets=(("A", "D"),))


def test_it_learns_spans_with_several_types(overfit: Any) -> None:
    words = ("the", "city", "of", "Oslo", "and", "Bergen")
    sentence = Sentence(
        "s", words, (Entity("A", ((3, 4),)), Entity("B", ((3, 4),)), Entity("B", ((5, 6),)), Entity("C", ((1, 4),)))
    )
    settings = GridSettings(
        max_width=3, decoding="nested", smoothing=0.0, dropout=0.0, hidden_dropout=0.0, channels=16, type_sets=(("A", "B"),)
    )
    assert overfit(Grid, LABELS, settings, [sentence])


def several_types(count: int, *types: str) -> Corpus:
    sentence = Sentence("s", ("Oslo", "is", "big"), tuple(Entity(type, ((0, 1),)) for type in types))
    other = Sentence("t", ("Rome", "or", "Oslo"), tuple(Entity(type, ((0, 1),)) for type in LABELS.entities))
    return Corpus({"train": (*[sentence] * count, *[other] * 2), "dev": (sentence,)})


@pytest.mark.parametrize("wrapper", [[], ["head.discontinuous=[A]"]])
def test_weights_of_sets_are_copied_to_the_same_sets_only(tmp_path: Path, wrapper: list[str]) -> None:
    def build(*types: str) -> Model:
        return Model.build(
            configure("grid", encoder="static", overrides=["head.channels=8", *wrapper]), several_types(4, *types)
        )

    source = build("A", "B")
    source.save(tmp_path)
    for types, is_copied in ((("A", "B"), True), (("A", "C"), False)):
        model = build(*types)
        before = sets_of(model).classifier.weight.clone()
        initialize_from(model, tmp_path)
        after = sets_of(model).classifier.weight
        assert torch.equal(after, sets_of(source).classifier.weight) == is_copied
        assert torch.equal(after, before) != is_copied


def sets_of(model: Model) -> TypeSets:
    (type_sets,) = (part for part in model.head.modules() if isinstance(part, TypeSets))
    return type_sets
