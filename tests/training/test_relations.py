"""Relations from training data to predictions: runs, scores, files."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path
from random import Random
from statistics import mean, stdev
from typing import Any

import pytest
from tiny import STATIC, corpus, digest, fit, with_relations
from tiny import model as tiny_model

import spanwise
from spanwise import Corpus, Sentence, SpanwiseError
from spanwise.cli import main
from spanwise.corpora.splits import fingerprint
from spanwise.decoding.decode import Predictions
from spanwise.decoding.thresholds import best_threshold
from spanwise.evaluation import evaluate
from spanwise.prediction.describe import describe_model
from spanwise.prediction.predictor import Predictor
from spanwise.recipes.resolve import Choices, resolve_config
from spanwise.training.checks import check_corpus
from spanwise.training.dev import DevScorer
from spanwise.training.run import Run, RunOptions
from spanwise.training.seeds import train_seeds
from spanwise.training.sweep import train_sweep

RECIPES = ["gp-relations", "span-relations"]
CHOICES = Choices("gp-relations", "static", overrides=STATIC, settings={"epochs": 2, "batch_size": 8})


@pytest.fixture(scope="module", params=RECIPES)
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Run:
    out = tmp_path_factory.mktemp("runs") / str(request.param)
    return fit(out, with_relations(corpus(60, 20, 20)), recipe=request.param, epochs=12, head_rate=0.03)


def test_a_training_learns_and_reports_relations(run: Run) -> None:
    rows = [json.loads(line) for line in (run.folder / "metrics.jsonl").read_text().splitlines()]
    report = json.loads((run.folder / "run.json").read_text())
    chosen = [(row["dev"]["f1"] + row["dev"]["relations"]["f1"]) / 2 for row in rows]
    assert report["best_epoch"] == len(chosen) - chosen[::-1].index(max(chosen))
    assert {"entities", "relations", "loss"} <= rows[0].keys()
    for split in ("dev", "test"):
        scores = report["scores"][split]["relations"]
        assert set(scores) == {"strict", "boundaries"}
        assert scores["strict"]["micro"]["f1"] > 0.6
        assert set(scores["strict"]["types"]) == {"sold", "known", "has"}
        assert set(scores["strict"]["types"]["sold"]) == set(report["scores"][split]["types"]["Drug"])
        assert scores["boundaries"]["macro"]["f1"] >= scores["strict"]["macro"]["f1"]


def test_a_loaded_model_predicts_the_same_relations(run: Run) -> None:
    test = with_relations(corpus(60, 20, 20))["test"]
    bare = [replace(sentence, entities=(), relations=()) for sentence in test]
    here = Predictor(run.model, "cpu").predict(bare)
    there = spanwise.load(run.folder, "cpu").predict(bare, batch_size=3)
    assert here == there
    assert any(sentence.relations for sentence in here)
    for left, right in zip(here, there, strict=True):
        for a, b in zip(left.relations, right.relations, strict=True):
            assert a.score == pytest.approx(b.score, abs=1e-5)
            assert a.score is not None
            assert 0.5 < a.score <= 1


def test_a_threshold_drops_entities_with_their_relations(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every third entity and every fourth relation gets a low score."""
    before = run.model.head.decode

    def read(scored: Any, count: int) -> list[Predictions]:
        return [
            Predictions(
                tuple(replace(entity, score=0.9 if number % 3 else 0.2) for number, entity in enumerate(row.entities)),
                tuple(replace(relation, score=0.8 if number % 4 else 0.3) for number, relation in enumerate(row.relations)),
            )
            for row in before(scored, count)
        ]

    monkeypatch.setattr(run.model.head, "decode", read)
    test = with_relations(corpus(60, 20, 20))["test"]
    predictor = Predictor(run.model, "cpu")
    predicted, confident = (predictor.predict(test, threshold=threshold) for threshold in (0.0, 0.5))
    remaining = 0
    for sentence, thresholded in zip(predicted, confident, strict=True):
        entities = tuple(entity for entity in sentence.entities if entity.score == 0.9)
        assert thresholded.entities == entities
        expected = {triple for triple, score in triples(sentence) if score == 0.8 and {*triple[1:]} <= {*entities}}
        assert {triple for triple, _ in triples(thresholded)} == expected
        remaining += len(expected)
    assert 0 < remaining < sum(len(sentence.relations) for sentence in predicted)


def triples(sentence: Sentence) -> set[Any]:
    entities = sentence.entities
    return {((r.type, entities[r.head], entities[r.tail]), r.score) for r in sentence.relations}


def test_predict_and_evaluate_with_relations(run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    test = with_relations(corpus(60, 20, 20))["test"]
    data, output, scores = tmp_path / "test.jsonl", tmp_path / "predicted.jsonl", tmp_path / "scores.json"
    spanwise.write(test, data)
    for arguments in (
        ["predict", run.folder, data, "--output", output, "--device", "cpu"],
        ["evaluate", run.folder, data, "--json", scores, "--device", "cpu", "--last-words"],
    ):
        with pytest.raises(SystemExit) as exit_info:
            main([str(argument) for argument in arguments])
        assert not exit_info.value.code
    expected = Predictor(run.model, "cpu").predict(test)
    assert [(s.entities, s.relations) for s in spanwise.read(output)] == [(s.entities, s.relations) for s in expected]
    relations = json.loads(scores.read_text())["relations"]
    evaluation = evaluate(test, expected, last_words=True).relations
    assert evaluation is not None
    assert relations == evaluation.to_json()
    assert relations["last_words"]["micro"]["correct"] >= relations["boundaries"]["micro"]["correct"] > 0
    assert "last words" in capsys.readouterr().out


def test_formats_with_relations_store_the_predictions(run: Run, tmp_path: Path) -> None:
    expected = [s for s in Predictor(run.model, "cpu").predict(with_relations(corpus(60, 20, 20))["test"]) if s.relations]

    for name, format in (("predicted.json", "spert"), ("predicted.jsonl", "jsonl")):
        spanwise.write(expected, tmp_path / name, format, lossy=True)
        again = list(spanwise.read(tmp_path / name, format))
        assert [{triple for triple, _ in triples(sentence)} for sentence in again] == [
            {triple for triple, _ in triples(sentence)} for sentence in expected
        ]


def test_a_model_without_predicted_relations_scores_zero(run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    test = with_relations(corpus(60, 20, 20))["test"]
    spanwise.write(test, tmp_path / "test.jsonl")
    head = run.model.head
    before = head.decode
    monkeypatch.setattr(head, "decode", lambda scored, count: [Predictions(row.entities) for row in before(scored, count)])
    from spanwise.prediction.scoring import score_model

    evaluation = score_model(Predictor(run.model, "cpu"), tmp_path / "test.jsonl")
    assert evaluation.relations is not None
    assert evaluation.relations.strict.micro.f1 == 0
    assert evaluation.relations.strict.micro.support > 0
    assert not any("relations" in note for note in evaluation.notes)


def test_a_description_has_the_cost_of_another_relation(run: Run) -> None:
    described = describe_model(run.model)
    sizes = {"gp-relations": 2 * (32 * 2 * 64 + 2 * 64 + 1), "span-relations": 33}  # two matrices and their biases; a row
    assert described.parameters_per_relation_type == sizes[run.model.config.recipe]
    assert described.labels["relations"] == ["has", "known", "sold"]
    assert any(line.startswith("relation type") for line in described.lines())


@pytest.mark.parametrize(("recipe", "setting"), [("gp-relations", "head.weight=1"), ("spanner", "head.relations=auto")])
def test_a_resumed_run_is_identical(tmp_path: Path, recipe: str, setting: str) -> None:
    data, overrides = with_relations(corpus(30)), [setting, "training.checkpoint_steps=1"]
    fit(tmp_path / "whole", data, recipe=recipe, epochs=2, overrides=[setting])

    def stop(line: str) -> None:
        if line.startswith("epoch 1"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fit(tmp_path / "halves", data, recipe=recipe, epochs=2, log=stop, overrides=overrides)
    fit(tmp_path / "halves", data, recipe=recipe, epochs=2, resume=True, overrides=overrides)
    assert digest(tmp_path / "whole") == digest(tmp_path / "halves")


def test_the_fingerprint_depends_on_relations() -> None:
    data, related = corpus(), with_relations(corpus())
    assert fingerprint(data["train"]) != fingerprint(related["train"])
    reversed_relations = [
        replace(s, relations=tuple(replace(r, head=r.tail, tail=r.head) for r in s.relations)) for s in related["train"]
    ]
    assert fingerprint(reversed_relations) != fingerprint(related["train"])


def test_a_recipe_without_relations_logs_a_note(tmp_path: Path) -> None:
    lines: list[str] = []
    fit(tmp_path / "run", with_relations(corpus()), epochs=1, log=lines.append)
    count = sum(len(sentence.relations) for sentence in with_relations(corpus())["train"])
    assert any(f"train has {count:,} relations, which this model does not learn" in line for line in lines)
    assert not any("does not learn" in line for line in check_corpus(corpus(), fit(tmp_path / "b", epochs=1).model.head))


@pytest.mark.parametrize(
    ("data", "setting", "kind"),
    [
        (with_relations(corpus()), "auto", "span-relations"),
        (with_relations(corpus()), "{weight: 2.0, kind: gp-relations}", "gp-relations"),
        (with_relations(corpus()), "false", "spanner"),
        (corpus(), "auto", "spanner"),
        (corpus(), "{weight: 2.0}", "spanner"),
    ],
)
def test_relations_are_learned_if_the_data_has_them(tmp_path: Path, data: Corpus, setting: str, kind: str) -> None:
    lines: list[str] = []
    run = fit(
        tmp_path / "run", data, recipe="spanner", epochs=1, overrides=[f"head.relations={setting}"], log=lines.append
    )  # fmt: skip
    learns = kind != "spanner"
    assert run.model.config.head["kind"] == kind
    assert any(line.startswith("the training data has relations, so the model learns them, too") for line in lines) == learns
    assert any("24 sentences, 2 types and 3 relation types: 1 epoch," in line for line in lines) == learns
    loaded = spanwise.load(run.folder, "cpu")
    assert loaded.finds_relations == learns
    assert loaded.model.config.head == run.model.config.head
    if learns:
        assert loaded.model.config.head["entities"]["kind"] == "spanner"
        assert loaded.model.head.settings.weight == (1.0 if setting == "auto" else 2.0)


@pytest.mark.parametrize(
    ("recipe", "setting", "message"),
    [
        ("spanner", "true", "expected auto, false or settings of a relation head"),
        ("spanner", "{weigth: 2}", "unknown setting of head.relations span-relations 'weigth' (did you mean 'weight'?)"),
        ("spanner", "{kind: grid}", "head.relations: expected settings of a relation head, without its entities"),
        ("spanner", "{entities: {kind: grid}}", "head.relations: expected settings of a relation head, without its entities"),
        ("seqner", "auto", "unknown setting of head seqner 'relations'"),
    ],
)
def test_wrong_settings_of_relations_are_refused(recipe: str, setting: str, message: str) -> None:
    with pytest.raises(SpanwiseError, match=re.escape(message)):
        resolve_config(recipe, encoder="static", overrides=[f"head.relations={setting}"])


def test_a_head_inside_another_head_learns_no_relations() -> None:
    with pytest.raises(SpanwiseError, match=r"head\.span: relations must be false"):
        resolve_config("bl-spanner", encoder="static", overrides=["head.span.relations=auto"])


def test_data_without_relations_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SpanwiseError, match="the training data has no relations"):
        fit(tmp_path / "run", corpus(), recipe="gp-relations")


def test_a_lower_threshold_predicts_more_relations(run: Run) -> None:
    """A number lowers the threshold of all relations, a mapping that of its types only."""
    sentences = [replace(s, entities=(), relations=()) for s in with_relations(corpus(60, 20, 20))["test"]]
    head, predictor = run.model.head, Predictor(run.model, "cpu")
    default = head.set_relation_threshold(0.99999)
    try:
        before, lowered, one_type = (
            Counter(relation.type for s in predictor.predict(sentences, threshold=threshold) for relation in s.relations)
            for threshold in (0.0, 0.02, {"sold": 0.02})
        )
        assert head.relation_threshold == pytest.approx(0.99999)
    finally:
        head.set_relation_threshold(default)
    assert lowered.total() > before.total()
    assert one_type["sold"] == lowered["sold"] > before["sold"]
    assert one_type - Counter(sold=one_type["sold"]) == before - Counter(sold=before["sold"])


# --- thresholds, seeds and sweeps -------------------------------------------------------------------------------------


def test_the_threshold_is_tuned_on_dev_after_training(run: Run) -> None:
    """No other threshold gives a better score on dev, and the run folder stores it."""
    dev = with_relations(corpus(60, 20, 20))["dev"]
    settings = spanwise.load(run.folder, "cpu").model.head.settings
    chosen = settings.model_dump()["threshold"]
    assert isinstance(chosen, float)
    head: Any = run.model.head

    def f1(threshold: float) -> float:
        head._set_cutoff(threshold)
        scores = evaluate(dev, Predictor(run.model, "cpu").predict(dev), finds_relations=True).relations
        assert scores is not None
        return scores.strict.micro.f1

    best = f1(chosen)
    report = json.loads((run.folder / "run.json").read_text())
    assert report["scores"]["dev"]["relations"]["strict"]["micro"]["f1"] == best
    assert best >= max(f1(threshold) for threshold in (0.03, 0.1, 0.3, 0.5, 0.7, 0.9, 0.97))
    head._set_cutoff(chosen)


def test_a_given_threshold_is_not_tuned(tmp_path: Path) -> None:
    out = tmp_path / "run"
    fit(out, with_relations(corpus()), recipe="gp-relations", epochs=1, overrides=["head.threshold=0.7"])
    assert spanwise.load(out, "cpu").model.config.head["threshold"] == 0.7


def test_seeds_and_sweeps_include_relations(tmp_path: Path) -> None:
    data = with_relations(corpus())
    lines: list[str] = []
    choices, options = replace(CHOICES, recipe="span-relations"), RunOptions("cpu", log=lines.append)
    summary = train_seeds(data, tmp_path / "seeds", [1, 2], choices, options)
    reports = [json.loads((tmp_path / "seeds" / f"seed-{seed}" / "run.json").read_text()) for seed in (1, 2)]
    f1 = [report["scores"]["test"]["relations"]["strict"]["micro"]["f1"] for report in reports]
    assert summary["scores"]["test"]["relations"] == {"mean": mean(f1), "deviation": stdev(f1), "f1": f1}
    summary = train_sweep(data, tmp_path / "sweep", ["head.weight=0.5,2"], choices, options)
    for row in summary["grid"]:
        scores = json.loads((tmp_path / "sweep" / row["folder"] / "run.json").read_text())["scores"]["dev"]
        assert row["dev"] == (scores["micro"]["f1"] + scores["relations"]["strict"]["micro"]["f1"]) / 2
    assert any("mean F1 of entities and relations" in line for line in lines)


def test_the_best_threshold_equals_a_search() -> None:
    rng = Random(0)
    for _ in range(50):
        rows = [(rng.randint(1, 9) / 10, rng.random() < 0.5) for _ in range(rng.randint(1, 12))]
        support = sum(right for _, right in rows) + rng.randint(0, 3)
        threshold = best_threshold(rows, support, lowest=0.0)

        def f1(cutoff: float) -> float:
            kept = [right for score, right in rows if score > cutoff]  # noqa: B023
            return 2 * sum(kept) / (len(kept) + support) if kept else 0.0  # noqa: B023

        best = max(f1(number / 20) for number in range(20))
        assert (threshold is None) == (best == 0)
        if threshold is not None:
            assert f1(threshold) == best


def test_weights_of_other_relations_are_not_copied(tmp_path: Path) -> None:
    data = with_relations(corpus())
    fit(tmp_path / "first", data, recipe="gp-relations", epochs=1)
    renamed = Corpus(
        {
            split: tuple(replace(s, relations=tuple(replace(r, type=f"{r.type}!") for r in s.relations)) for s in data[split])
            for split in data
        }
    )
    for corpus_, message in ((data, "weight tensors of the head"), (renamed, "the encoder only, because the head")):
        lines: list[str] = []
        fit(tmp_path / message[:3], corpus_, recipe="gp-relations", epochs=1, init=tmp_path / "first", log=lines.append)
        assert any(message in line for line in lines)


@pytest.mark.parametrize("recipe", RECIPES)
def test_relation_scores_during_training_use_the_tuned_threshold(tmp_path: Path, recipe: str) -> None:
    """The dev score of the selected epoch is that of the finished model, whose threshold is tuned."""
    fit(tmp_path / "run", with_relations(corpus(60, 20, 20)), recipe=recipe, epochs=7, head_rate=0.02)
    rows = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    report = json.loads((tmp_path / "run" / "run.json").read_text())
    f1 = report["scores"]["dev"]["relations"]["strict"]["micro"]["f1"]
    assert f1 > 0
    assert rows[report["best_epoch"] - 1]["dev"]["relations"]["f1"] == f1


def test_scoring_dev_does_not_fix_the_threshold_of_relations() -> None:
    data = with_relations(corpus(60, 20, 20))
    model = tiny_model("static", "gp-relations", data=data)
    scorer = DevScorer(model, data["dev"], ())
    scores, predicted = scorer.score()
    assert model.head.settings.threshold == "dev"  # type: ignore[attr-defined]
    assert model.head.cutoff == 0.0
    relations = evaluate(data["dev"], predicted, finds_relations=True).relations
    assert relations is not None
    assert scores["relations"]["f1"] == relations.strict.micro.f1
