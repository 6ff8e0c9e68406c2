"""Simulated annotation: rounds, targets, and the report of the learning curve."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import tiny

from spanwise.active_learning.choosing import Criteria
from spanwise.active_learning.learning_curve import Curve, simulate_curves, summarize, write_curves
from spanwise.active_learning.simulate import Round, Simulation
from spanwise.core.errors import SpanwiseError
from spanwise.core.types import Corpus, Entity, Sentence
from spanwise.recipes.resolve import Choices


def simulation(corpus: Corpus, **options: object) -> Simulation:
    settings = {"epochs": 4, "batch_size": 8, "head_rate": 0.03}
    config = Choices("global-pointer", "static", None, tiny.STATIC, settings).resolve()
    values = {"criteria": Criteria(10, "both"), "start": 10, "device": "cpu", **options}
    return Simulation(corpus, config, **values)  # type: ignore[arg-type]


def test_rounds_add_chosen_sentences_and_train_from_the_beginning() -> None:
    corpus = tiny.corpus(40)
    first, second, third = simulation(corpus, steps=8).run(limit=25)
    assert [row.sentences for row in (first, second, third)] == [10, 20, 25]
    assert first.words < second.words < third.words
    assert set(first.f1) == {"dev", "test"}
    again = next(iter(simulation(corpus, steps=8).run()))
    assert again == first
    assert [row.sentences for row in simulation(corpus, steps=1).run(limit=6)] == [6]


def test_the_first_sentences_have_an_entity() -> None:
    empty = [Sentence(f"e{number}", ("the", "mite")) for number in range(30)]
    train = [*empty, tiny.sentences(1)[0]]
    corpus = Corpus({"train": train, "dev": tuple(tiny.sentences(3))})
    assert train[30].entities
    assert 30 in simulation(corpus).draw_first()
    with pytest.raises(SpanwiseError, match="unknown type 'Plaace'"):
        simulation(corpus, criteria=Criteria(preferred={"Plaace": 2.0})).draw_first()
    with pytest.raises(SpanwiseError, match="no entities"):
        simulation(Corpus({"train": empty, "dev": train})).draw_first()


def test_types_that_a_model_does_not_know_yet_may_be_preferred() -> None:
    train = tiny.sentences(14, seed=3)
    rare = Sentence("rare", ("a", "gnu"), (Entity("Animal", ((1, 2),)),))
    corpus = Corpus({"train": (*train, rare), "dev": tuple(train)})
    rows = list(simulation(corpus, steps=1, criteria=Criteria(5, preferred={"Animal": 2.0})).run())
    assert [row.sentences for row in rows] == [10, 15]


def test_repeated_sentences_come_last() -> None:
    train = tiny.sentences(12, seed=3)
    corpus = Corpus({"train": (*train, *train), "dev": tuple(train)})
    assert [row.sentences for row in simulation(corpus, steps=1).run()][-1] == 24


def test_models_that_only_type_given_spans_are_refused() -> None:
    config = Choices("sng", "static", "typing").resolve()
    with pytest.raises(SpanwiseError, match="a simulation needs models that predict entities"):
        Simulation(tiny.corpus(40), config, Criteria(10))


@pytest.mark.parametrize("start", [0, -1])
def test_a_start_without_sentences_is_refused(start: int) -> None:
    config = Choices("biaffine", "static").resolve()
    with pytest.raises(SpanwiseError, match=f"start: expected at least 1 sentence to train the first model, found {start}"):
        Simulation(tiny.corpus(40), config, Criteria(10), start=start)


def curve(strategy: str, seed: int, *scores: float) -> Curve:
    rounds = [Round(100 * size, 2000 * size, 300 * size, {"test": score}) for size, score in enumerate(scores, 1)]
    return Curve(strategy, seed, "test", rounds, Round(1000, 20_000, 3000, {"test": 0.8}))


def test_the_target_is_a_share_of_the_score_with_all_sentences(tmp_path: Path) -> None:
    curves = [
        curve("both", 1, 0.5, 0.77),
        curve("both", 2, 0.76),
        curve("random", 1, 0.4, 0.6, 0.7, 0.76),
        curve("random", 2, 0.6, 0.7, 0.75, 0.759, 0.79),
    ]
    assert summarize(curves).endswith("(mean of 2 seeds), both needs 150 sentences and random choice 450 (33%).")
    assert summarize([*curves, curve("random", 3, 0.1)]).endswith(
        "both needs 150 sentences and random choice more than were simulated."
    )
    assert "F1 with all sentences, both needs 200 sentences" in summarize([curves[0], curves[2]])
    report = write_curves(curves, tmp_path / "out", "Learning curve")
    page = report.read_text(encoding="utf-8")
    assert "random choice 450" in page
    assert "<td class=n>80.00</td><td class=n>76.00</td>" in page  # the F1 with all sentences and its share
    numbers = json.loads((tmp_path / "out" / "numbers.json").read_text(encoding="utf-8"))
    tables = numbers["sections"]["learning"]["tables"]
    assert [row["sentences"] for row in tables["needed"]] == [200, 100, 400, 500]
    assert len(tables["rounds"]) == 12
    assert {path.name for path in (tmp_path / "out" / "figures").iterdir()} == {"learning-curve.png", "learning-curve.svg"}


def test_curves_end_at_the_target(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(self: Simulation, limit: int | None) -> Iterator[Round]:
        for size in range(1, 10):
            yield Round(size, size, size, {"test": size / (10 if self.criteria.strategy == "both" else 20)})

    monkeypatch.setattr(Simulation, "run", run)
    monkeypatch.setattr(Simulation, "run_whole", lambda self: Round(9, 9, 9, {"test": 0.4}))
    lines: list[str] = []
    corpus = Corpus({"train": tuple(tiny.sentences(3)), "dev": (), "test": ()})
    curves = simulate_curves(simulation(corpus), [5, 6], log=lines.append)
    assert [(c.strategy, c.seed, len(c.rounds)) for c in curves] == [
        ("both", 5, 4),
        ("random", 5, 8),
        ("both", 6, 4),
        ("random", 6, 8),
    ]
    assert lines[:2] == ["seed 5: test F1 40.00 with all 9 sentences", "seed 5, both: test F1 10.00 with 1 sentence"]
    monkeypatch.setattr(Simulation, "run_whole", lambda self: Round(9, 9, 9, {"test": 0.0}))
    with pytest.raises(SpanwiseError, match="has an F1 of 0 on test, so there is no target"):
        simulate_curves(simulation(corpus), [5], log=lines.append)
