"""Scores of candidates, compared with a slow literal computation."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from random import Random

import numpy as np
import pytest
import torch
from tiny import sentences

from spanwise.audit import mixture
from spanwise.audit.candidates import Candidate, Key
from spanwise.audit.evidence import Evidence
from spanwise.audit.features import Features
from spanwise.audit.logistic import PENALTY, fit_logistic
from spanwise.audit.mixture import MIN_EXAMPLES, STRENGTH, log_odds_of_errors
from spanwise.audit.ranking import ERROR_RATE, rank_candidates
from spanwise.audit.simulation import simulate_errors
from spanwise.audit.span_scores import SpanScores
from spanwise.audit.view import AuditView
from spanwise.core.types import Entity, Sentence

TYPES = ("Drug", "Place")


def make_view(count: int = 250, seed: int = 5, *, dropped: int = 0) -> AuditView:
    """A corpus and the scores of an imaginary model, which is mostly right and unsure where it is wrong.

    ``dropped`` entities are removed from gold.
    """
    random = Random(seed)
    corpus = list(sentences(count, seed=seed))
    rows: dict[tuple[int, int, int, int], float] = {}
    for index, sentence in enumerate(corpus):
        for entity in sentence.entities:
            label = TYPES.index(entity.type)
            rows[index, *entity.range, label] = random.gauss(4, 2)
            rows[index, *entity.range, 1 - label] = random.gauss(-4, 2)
        for _ in range(2):  # spans that may be wrong predictions
            start = random.randrange(len(sentence.words))
            rows.setdefault((index, start, start + 1, random.randrange(2)), random.gauss(-2, 2))
    entities = [(index, entity) for index, sentence in enumerate(corpus) for entity in sentence.entities]
    for index, gone in random.sample(entities, dropped):
        corpus[index] = replace(corpus[index], entities=tuple(e for e in corpus[index].entities if e != gone))
    columns = np.array([(*key, value) for key, value in sorted(rows.items())]).T
    scores = SpanScores(*columns[:4].astype(np.int32), columns[4].astype(np.float32))
    return AuditView(corpus, TYPES, Evidence([scores], count))


def literal_features(view: AuditView, index: int, candidate: Candidate) -> Iterator[float]:
    """The features of a candidate, by reading the whole corpus for every count."""

    def places(width: int) -> Iterator[tuple[int, int, Sentence]]:
        for number, sentence in enumerate(view.sentences):
            for start in range(len(sentence.words) - width + 1):
                yield number, start, sentence

    def log_odds(word: str, position: int, is_such: Callable[[Sentence, int], bool], rate: float) -> float:
        others = [(s, i) for n, i, s in places(1) if s.words[i] == word and (n, i) != (index, position)]
        count = sum(is_such(sentence, i) for sentence, i in others)
        return math.log((count + rate) / (len(others) - count + 1 - rate))

    def is_inside(sentence: Sentence, i: int) -> bool:
        return any(entity.range.start <= i < entity.range.end for entity in sentence.entities)

    def is_first(sentence: Sentence, i: int) -> bool:
        return any(entity.range.start == i for entity in sentence.entities)

    def is_last(sentence: Sentence, i: int) -> bool:
        return any(entity.range.end == i + 1 for entity in sentence.entities)

    word_places = list(places(1))
    inside_rate = (sum(is_inside(s, i) for _, i, s in word_places) + 1) / (len(word_places) + 2)
    edge_rate = (sum(len(sentence.entities) for sentence in view.sentences) + 1) / (len(word_places) + 2)
    parts = [(candidate.suggestion, candidate.suggestion_odds, (2, 5)), (candidate.gold, -candidate.gold_odds, (3, 6))]
    for key, odds, (low, high) in parts:
        if key is None:
            continue
        start, end, label = key
        words = view.sentences[index].words[start:end]
        yield from (min(odds, low), min(max(odds - low, 0), high - low), max(odds - high, 0))
        same = [
            (n, i, s) for n, i, s in places(end - start) if s.words[i : i + end - start] == words and (n, i) != (index, start)
        ]
        annotated = sum(Entity(TYPES[label], ((i, i + end - start),)) in s.entities for _, i, s in same)
        yield math.log((annotated + 0.5) / (len(same) - annotated + 0.5))
        yield from (math.log(1 + len(same)), math.log(1 + annotated))
        yield from (float(len(same) > 0 and annotated == len(same)), float(len(same) > 2 and annotated == 0))
        inside = [log_odds(word, start + i, is_inside, inside_rate) for i, word in enumerate(words)]
        yield from (min(inside), sum(inside) / len(inside))
        yield log_odds(words[0], start, is_first, edge_rate)
        yield log_odds(words[-1], end - 1, is_last, edge_rate)
        yield from (float(label == 0), float(label == 1), math.log(end - start))
        yield from (
            float(words[0][0].isupper()),
            float(words[-1][0].isupper()),
            float(any(c.isdigit() for c in "".join(words))),
        )


def literal_regression(rows: np.ndarray, targets: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The maximum of the penalised likelihood, disagreements by another optimiser."""
    x, y, w = (torch.tensor(array, dtype=torch.float64) for array in (rows, targets, weights))
    parameters = torch.zeros(x.shape[1] + 1, dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.LBFGS(
        [parameters], max_iter=500, tolerance_grad=1e-10, tolerance_change=1e-14, line_search_fn="strong_wolfe"
    )

    def loss() -> torch.Tensor:
        optimizer.zero_grad()
        logits = parameters[0] + x @ parameters[1:]
        errors = torch.nn.functional.binary_cross_entropy_with_logits(logits, y, weight=w, reduction="sum")
        value = errors + PENALTY / 2 * parameters[1:].square().sum() + 1e-6 / 2 * parameters[0] ** 2
        value.backward()
        return value

    optimizer.step(loss)
    return parameters.detach().numpy()


def literal_log_odds(disagreements: list[list[float]], simulated: list[list[float]], expected: float) -> list[float]:
    """Expectation maximisation of the mixture, row by row."""
    every = np.array(disagreements + simulated)
    mean, scale = np.array(simulated).mean(0), every.std(0) + 1e-6
    disagreement_rows, simulated_rows = (
        [(np.array(row) - mean) / scale for row in disagreements],
        [(np.array(row) - mean) / scale for row in simulated],
    )
    share = first_share = min(0.5, expected / len(disagreements))
    errors = [share] * len(disagreements)
    values: list[float] = []
    for _ in range(mixture.STEPS):
        data = [(row, 1.0, q) for row, q in zip(disagreement_rows, errors, strict=True)]
        data += [(row, 0.0, 1 - q) for row, q in zip(disagreement_rows, errors, strict=True)]
        data += [(row, 1.0, (len(disagreements) - sum(errors)) / len(simulated)) for row in simulated_rows]
        rows, targets, weights = (np.array(column) for column in zip(*data, strict=True))
        fitted = literal_regression(rows, targets, weights)
        prior = math.log(len(disagreements) / sum(1 - q for q in errors))
        values = [fitted[0] + float(row @ fitted[1:]) - prior + math.log(share / (1 - share)) for row in disagreement_rows]
        errors = [1 / (1 + math.exp(-value)) for value in values]
        share = (sum(errors) + STRENGTH * first_share) / (len(disagreements) + STRENGTH)
    return values


@pytest.fixture(scope="module")
def view() -> AuditView:
    return make_view(60)


def test_features_are_those_of_the_literal_computation(view: AuditView) -> None:
    simulated = list(simulate_errors(view, 1))
    candidates = [*view.candidates[::7], *simulated[::40]]
    features = Features(view, [*view.candidates, *simulated])
    assert {candidate.kind for _, candidate in candidates} == {"missing", "spurious", "type", "boundary"}
    for index, candidate in candidates:
        assert list(features.row(index, candidate)) == pytest.approx(list(literal_features(view, index, candidate)))


def test_scores_are_those_of_the_literal_computation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mixture, "STEPS", 3)
    random = np.random.default_rng(1)
    simulated = random.normal((2, 1, 0), 1, (40, 3))
    disagreements = np.concatenate((random.normal((2, 1, 0), 1, (8, 3)), random.normal((-1, 0, 0), 1, (60, 3))))
    expected = literal_log_odds(disagreements.tolist(), simulated.tolist(), 3.0)
    assert log_odds_of_errors(disagreements, simulated, 3.0) == pytest.approx(np.array(expected), abs=1e-4)


def test_the_regression_is_the_maximum_of_the_likelihood() -> None:
    random = np.random.default_rng(2)
    rows, weights = random.normal(size=(50, 4)), random.uniform(0.1, 3, 50)
    targets = (rows[:, 0] + random.normal(size=50) > 0).astype(float)
    assert fit_logistic(rows, targets, weights) == pytest.approx(literal_regression(rows, targets, weights), abs=1e-5)


def test_dropped_entities_come_first_with_clearly_higher_scores() -> None:
    view = make_view(dropped=15)
    ranked = [item for item in rank_candidates(view) if item.candidate.kind == "missing"]
    truth = {(i, (*e.range, TYPES.index(e.type))) for i, s in enumerate(sentences(250, seed=5)) for e in s.entities}
    hits = [(item.sentence, item.candidate.suggestion) in truth for item in ranked]
    assert hits == [True] * 15 + [False] * (len(hits) - 15)
    assert ranked[14].log_odds > ranked[15].log_odds + 2


def test_scores_never_fall_with_the_certainty_of_the_models() -> None:
    """Simulated errors are at 2, others at -2. Rows at 9 look like neither, but the models are surer."""
    random = np.random.default_rng(3)
    simulated, disagreements = random.normal(2, 0.5, (60, 2)), random.normal(-2, 0.5, (60, 2))
    disagreements[:30, 0] = 9
    free, constrained = (log_odds_of_errors(disagreements, simulated, 5.0, mask) for mask in (None, np.array([True, False])))
    assert np.corrcoef(disagreements[:, 0], free)[0, 1] < 0
    assert np.corrcoef(disagreements[:, 0], constrained)[0, 1] > -0.2


def test_the_columns_of_certainty_are_known(view: AuditView) -> None:
    features = Features(view, list(simulate_errors(view, 1)))
    for index, candidate in simulate_errors(view, 1):
        surer = replace(candidate, gold_odds=candidate.gold_odds - 9, suggestion_odds=candidate.suggestion_odds + 9)
        before, after = (np.array(list(features.row(index, item))) for item in (candidate, surer))
        assert (after[features.is_certainty(candidate.kind)] >= before[features.is_certainty(candidate.kind)]).all()
        assert (after == before)[~features.is_certainty(candidate.kind)].all()


def test_candidates_are_ranked_by_the_models_if_there_are_too_few_to_compare() -> None:
    few = np.array([[1.0, 0.0, 0.0, 5.0], [2.0, 1.0, 0.0, 0.0], [2.0, 0.0, 0.0, 9.0]])
    assert len(few) < MIN_EXAMPLES
    assert np.argsort(-log_odds_of_errors(few, few, 1.0)).tolist() == [1, 2, 0]
    assert mixture.log_odds_of_errors(few, np.zeros((0, 0)), 1.0).shape == (3,)


def test_simulated_errors_have_all_kinds_and_change_one_entity(view: AuditView) -> None:
    simulated = list(simulate_errors(view, 1))
    assert {candidate.kind for _, candidate in simulated} == {"missing", "spurious", "type", "boundary"}
    for index, candidate in simulated:
        gold: list[Key] = view.gold[index]
        if candidate.gold is not None:
            assert candidate.gold not in gold  # it replaces a gold entity, or is added
        else:
            assert candidate.suggestion in gold
    assert simulated == list(simulate_errors(view, 1))
    assert list(simulate_errors(AuditView([Sentence("s", ("a",))], TYPES, Evidence([], 1)), 1)) == []
    assert ERROR_RATE < 0.1


def make_roles_view(count: int = 250, *, dropped: int = 0) -> AuditView:
    """``make_view`` with a further type, Town, of every second place. ``dropped`` towns lack one of their types in gold."""
    view, random = make_view(count), Random(1)
    corpus, rows = list(view.sentences), {}
    for index in range(count):
        odds = view.odds(index)
        for number, place in enumerate(entity for entity in corpus[index].entities if entity.type == "Place"):
            is_town = (index + number) % 2 == 0
            odds[*place.range, 2] = random.gauss(3 if is_town else -3, 1)
            if is_town:
                corpus[index] = replace(corpus[index], entities=(*corpus[index].entities, replace(place, type="Town")))
        rows |= {(index, *key): value for key, value in odds.items()}
    towns = [(index, entity) for index, sentence in enumerate(corpus) for entity in sentence.entities if entity.type == "Town"]
    for index, town in random.sample(towns, dropped):
        gone = random.choice((town, replace(town, type="Place")))
        corpus[index] = replace(corpus[index], entities=tuple(e for e in corpus[index].entities if e != gone))
    columns = np.array([(*key, value) for key, value in sorted(rows.items())]).T
    scores = SpanScores(*columns[:4].astype(np.int32), columns[4].astype(np.float32))
    return AuditView(corpus, (*TYPES, "Town"), Evidence([scores], count))


def test_dropped_types_of_spans_with_several_types_come_first() -> None:
    complete, view = make_roles_view(), make_roles_view(dropped=15)
    lost = {(index, key) for index, keys in enumerate(complete.gold) for key in keys if key not in view.gold[index]}
    ranked = [item for item in rank_candidates(view) if item.candidate.kind == "missing"]
    hits = [(item.sentence, item.candidate.suggestion) in lost for item in ranked]
    assert sum(hits[:15]) >= 14


def test_simulated_errors_concern_all_types_of_a_span() -> None:
    """Also in a corpus without overlapping spans."""
    view = make_roles_view()
    assert view.is_flat
    simulated = {
        (candidate.kind, (candidate.suggestion or candidate.gold)[2])  # type: ignore[index]
        for _, candidate in simulate_errors(view, 1)
    }
    assert simulated == {(kind, label) for kind in ("missing", "spurious", "type", "boundary") for label in range(3)}


def test_a_further_type_of_a_span_is_no_further_occurrence_of_its_edges() -> None:
    """Features are of other places; otherwise, an entity without one of its types would differ from a simulated one."""
    one = [Sentence("s", ("Ada", "slept"), (Entity("Drug", ((0, 1),)),)), Sentence("t", ("Ada", "woke"))]
    both = [replace(one[0], entities=(*one[0].entities, Entity("Place", ((0, 1),)))), one[1]]
    candidate = Candidate("missing", None, (0, 1, 1), 0.0, 2.0)
    first, second = (
        list(Features(AuditView(corpus, TYPES, Evidence([], 2)), [(0, candidate)]).row(0, candidate)) for corpus in (one, both)
    )
    assert first == second
