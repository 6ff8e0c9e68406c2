"""Relations from training data to predictions: runs, scores, files, folds."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from random import Random
from statistics import mean, stdev
from typing import Any

import pytest
from tiny import STATIC, corpus, digest, fit, quiet, related

import spanwise
from spanwise import Corpus, Sentence, SpanwiseError
from spanwise.cli import main
from spanwise.corpora.splits import fingerprint
from spanwise.decoding.decode import Predictions
from spanwise.decoding.thresholds import best_threshold
from spanwise.evaluation import evaluate
from spanwise.prediction.describe import describe_model
from spanwise.prediction.load import Predictor
from spanwise.training.checks import before_training
from spanwise.training.folds import cut_folds, train_folds
from spanwise.training.run import Run
from spanwise.training.several import train_seeds, train_sweep

RECIPES = ["gp-relations", "span-relations"]
OPTIONS: dict[str, Any] = {"recipe": "gp-relations", "encoder": "static", "epochs": 2, "batch_size": 8, "device": "cpu"}


@pytest.fixture(scope="module", params=RECIPES)
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Run:
    out = tmp_path_factory.mktemp("runs") / str(request.param)
    return fit(out, related(corpus(60, 20, 20)), recipe=request.param, epochs=12, head_rate=0.03)


def test_a_training_learns_relations_and_says_so(run: Run) -> None:
    rows = [json.loads(line) for line in (run.folder / "metrics.jsonl").read_text().splitlines()]
    report = json.loads((run.folder / "run.json").read_text())
    chosen = [(row["dev"]["f1"] + row["dev"]["relations"]["f1"]) / 2 for row in rows]
    assert report["best_epoch"] == chosen.index(max(chosen)) + 1
    assert {"entities", "relations", "loss"} <= rows[0].keys()
    for split in ("dev", "test"):
        scores = report["scores"][split]["relations"]
        assert set(scores) == {"strict", "boundaries"}
        assert scores["strict"]["micro"]["f1"] > 0.6
        assert set(scores["strict"]["types"]) == {"sold", "known", "has"}
        assert set(scores["strict"]["types"]["sold"]) == set(report["scores"][split]["types"]["Drug"])
        assert scores["boundaries"]["macro"]["f1"] >= scores["strict"]["macro"]["f1"]


def test_a_loaded_model_predicts_the_same_relations(run: Run) -> None:
    test = related(corpus(60, 20, 20))["test"]
    bare = [replace(sentence, entities=(), relations=()) for sentence in test]
    here = Predictor(run.model, "cpu").predict(bare)
    there = spanwise.load(run.folder, "cpu").predict(bare, batch_size=3)
    assert here == there
    assert any(sentence.relations for sentence in here)
    for one, other in zip(here, there, strict=True):
        for a, b in zip(one.relations, other.relations, strict=True):
            assert a.score == pytest.approx(b.score, abs=1e-5)
            assert a.score is not None
            assert 0.5 < a.score <= 1


def test_a_threshold_drops_entities_with_their_relations_and_keeps_the_places_right(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of what is found every third entity and every fourth relation is made to be unsure."""
    before = run.model.head.read

    def read(scored: Any, count: int) -> list[Predictions]:
        return [
            Predictions(
                tuple(replace(entity, score=0.9 if number % 3 else 0.2) for number, entity in enumerate(one.entities)),
                tuple(replace(relation, score=0.8 if number % 4 else 0.3) for number, relation in enumerate(one.relations)),
            )
            for one in before(scored, count)
        ]

    monkeypatch.setattr(run.model.head, "read", read)
    test = related(corpus(60, 20, 20))["test"]
    predictor = Predictor(run.model, "cpu")
    every, sure = (predictor.predict(test, threshold=threshold) for threshold in (0.0, 0.5))
    left = 0
    for one, other in zip(every, sure, strict=True):
        kept = tuple(entity for entity in one.entities if entity.score == 0.9)
        assert other.entities == kept
        expected = {triple for triple, score in triples(one) if score == 0.8 and {*triple[1:]} <= {*kept}}
        assert {triple for triple, _ in triples(other)} == expected
        left += len(expected)
    assert 0 < left < sum(len(sentence.relations) for sentence in every)


def triples(sentence: Sentence) -> set[Any]:
    entities = sentence.entities
    return {((r.type, entities[r.head], entities[r.tail]), r.score) for r in sentence.relations}


def test_predict_and_evaluate_carry_relations(run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    test = related(corpus(60, 20, 20))["test"]
    data, found, scores = tmp_path / "test.jsonl", tmp_path / "found.jsonl", tmp_path / "scores.json"
    spanwise.write(test, data)
    for arguments in (
        ["predict", run.folder, data, "--output", found, "--device", "cpu"],
        ["evaluate", run.folder, data, "--json", scores, "--device", "cpu", "--last-words"],
    ):
        with pytest.raises(SystemExit) as left:
            main([str(argument) for argument in arguments])
        assert not left.value.code
    expected = Predictor(run.model, "cpu").predict(test)
    assert [(s.entities, s.relations) for s in spanwise.read(found)] == [(s.entities, s.relations) for s in expected]
    relations = json.loads(scores.read_text())["relations"]
    evaluation = evaluate(test, expected, last_words=True).relations
    assert evaluation is not None
    assert relations == evaluation.to_json()
    assert relations["last_words"]["micro"]["correct"] >= relations["boundaries"]["micro"]["correct"] > 0
    assert "last words" in capsys.readouterr().out


def test_every_format_that_holds_relations_holds_what_is_predicted(run: Run, tmp_path: Path) -> None:
    expected = [s for s in Predictor(run.model, "cpu").predict(related(corpus(60, 20, 20))["test"]) if s.relations]

    for name, format in (("found.json", "spert"), ("found.jsonl", "jsonl")):
        spanwise.write(expected, tmp_path / name, format, lossy=True)
        again = list(spanwise.read(tmp_path / name, format))
        assert [{found for found, _ in triples(one)} for one in again] == [
            {found for found, _ in triples(one)} for one in expected
        ]


def test_a_model_that_finds_no_relation_scores_zero(run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    test = related(corpus(60, 20, 20))["test"]
    spanwise.write(test, tmp_path / "test.jsonl")
    head = run.model.head
    before = head.read
    monkeypatch.setattr(head, "read", lambda scored, count: [Predictions(one.entities) for one in before(scored, count)])
    from spanwise.prediction.scoring import score_model

    evaluation = score_model(Predictor(run.model, "cpu"), tmp_path / "test.jsonl")
    assert evaluation.relations is not None
    assert evaluation.relations.strict.micro.f1 == 0
    assert evaluation.relations.strict.micro.support > 0
    assert not any("relations" in note for note in evaluation.notes)


def test_a_description_says_what_one_more_relation_costs(run: Run) -> None:
    described = describe_model(run.model)
    sizes = {"gp-relations": 2 * (32 * 2 * 64 + 2 * 64 + 1), "span-relations": 33}  # two matrices and their priors; a row
    assert described.another_relation == sizes[run.model.config.recipe]
    assert described.labels["relations"] == ["has", "known", "sold"]
    assert any(line.startswith("relation type") for line in described.lines())


def test_resuming_gives_the_same_run(tmp_path: Path) -> None:
    data = related(corpus(30))
    fit(tmp_path / "whole", data, recipe="gp-relations", epochs=2)

    def stop(line: str) -> None:
        if line.startswith("epoch 1"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fit(tmp_path / "halves", data, recipe="gp-relations", epochs=2, log=stop, overrides=["training.checkpoint_steps=1"])
    fit(tmp_path / "halves", data, recipe="gp-relations", epochs=2, resume=True, overrides=["training.checkpoint_steps=1"])
    assert digest(tmp_path / "whole") == digest(tmp_path / "halves")


def test_other_relations_are_other_data() -> None:
    data, other = corpus(), related(corpus())
    assert fingerprint(data["train"]) != fingerprint(other["train"])
    turned = [replace(s, relations=tuple(replace(r, head=r.tail, tail=r.head) for r in s.relations)) for s in other["train"]]
    assert fingerprint(turned) != fingerprint(other["train"])


def test_a_recipe_that_leaves_relations_alone_is_told_so(tmp_path: Path) -> None:
    said: list[str] = []
    fit(tmp_path / "run", related(corpus()), epochs=1, log=said.append)
    count = sum(len(sentence.relations) for sentence in related(corpus())["train"])
    assert any(f"train has {count:,} relations, which this method does not learn" in line for line in said)
    assert not any("does not learn" in line for line in before_training(corpus(), fit(tmp_path / "b", epochs=1).model.head))


def test_data_without_relations_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SpanwiseError, match="the training data has no relations"):
        fit(tmp_path / "run", corpus(), recipe="gp-relations")


# --- folds ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def folds(tmp_path: Path) -> Path:
    path = tmp_path / "three.json"
    ids = [f"s{number}" for number in range(40)]
    path.write_text(json.dumps([{"fold": k, "test": ids[k::3]} for k in range(3)]))
    return path


def test_every_fold_is_tested_once_and_never_learned_from(folds: Path) -> None:
    data = corpus()
    every = [sentence.id for split in data for sentence in data[split]]
    tested = []
    for number, part in cut_folds(data, folds):
        assert set(part) == {"train", "test"}
        assert [s.id for s in part["test"]] == [name for name in every if int(name[1:]) % 3 == number]
        assert {s.id for s in part["train"]} == set(every) - {s.id for s in part["test"]}
        tested += [s.id for s in part["test"]]
    assert sorted(tested) == sorted(every)


def test_folds_give_mean_and_deviation_and_can_be_resumed(tmp_path: Path, folds: Path) -> None:
    data, out, said = related(corpus()), tmp_path / "out", []
    summary = train_folds(data, out, folds, overrides=STATIC, **{**OPTIONS, "log": said.append})
    assert json.loads((out / "folds.json").read_text()) == summary
    assert summary["folds"] == [0, 1, 2]
    reports = [json.loads((out / f"fold-{k}" / "run.json").read_text()) for k in range(3)]
    assert [report["data"]["test"]["sentences"] for report in reports] == [14, 13, 13]
    macro = [report["scores"]["test"]["macro"]["f1"] for report in reports]
    assert summary["scores"]["entities macro F1"] == {"mean": mean(macro), "deviation": stdev(macro), "folds": macro}
    strict = [report["scores"]["test"]["relations"]["strict"]["micro"]["f1"] for report in reports]
    assert summary["scores"]["relations strict micro F1"]["folds"] == strict
    assert any(line.startswith("relations strict macro F1:") and "over 3 folds" in line for line in said)
    (out / "fold-1" / "run.json").unlink()
    (out / "fold-1").rename(tmp_path / "away")
    before = (out / "fold-0" / "run.json").read_bytes()
    assert train_folds(data, out, folds, overrides=STATIC, resume=True, **{**OPTIONS, "log": quiet}) == summary
    assert (out / "fold-0" / "run.json").read_bytes() == before


def test_folds_by_command(tmp_path: Path, folds: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = tmp_path / "data"
    data.mkdir()
    for split, sentences in corpus().splits.items():
        spanwise.write(sentences, data / f"{split}.jsonl")
    fixed = [word for setting in STATIC for word in ("--set", setting)]
    arguments = ["train", data, "--out", tmp_path / "out", "--folds", folds, "--encoder", "static", "--recipe", "seqner",
                 "--epochs", 1, "--device", "cpu", *fixed]  # fmt: skip
    with pytest.raises(SystemExit) as left:
        main([str(argument) for argument in arguments])
    assert not left.value.code
    assert "entities macro F1:" in capsys.readouterr().out
    scores = json.loads((tmp_path / "out" / "folds.json").read_text())["scores"]
    assert set(scores) == {"entities macro F1", "entities micro F1"}
    with pytest.raises(SystemExit) as left:
        main([str(argument) for argument in [*arguments, "--seeds", "1,2"]])
    assert left.value.code == 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "expected folds as"),
        ('[{"fold": 0}]', "expected folds as"),
        ("[]", "at least one fold"),
        ('[{"fold": 0, "test": ["s0"]}, {"fold": 1, "test": []}]', "fold 1 has no sentences"),
        ('[{"fold": 0, "test": ["s0"]}, {"fold": 0, "test": ["s1"]}]', "a number of its own"),
        ('[{"fold": 0, "test": ["x"]}]', "fold 0 names 'x', which the data does not have"),
        ('[{"fold": 0, "test": ["s1"]}, {"fold": 1, "test": ["s1"]}]', "fold 1 names 's1', which an earlier fold has"),
    ],
)
def test_folds_that_are_wrong(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "folds.json"
    path.write_text(text)
    with pytest.raises(SpanwiseError, match=message):
        list(cut_folds(corpus(), path))


def test_folds_need_ids(tmp_path: Path, folds: Path) -> None:
    twice = Corpus({"train": corpus()["train"], "test": corpus()["train"]})
    with pytest.raises(SpanwiseError, match="occurs 2 times"):
        list(cut_folds(twice, folds))
    with pytest.raises(SpanwiseError, match="cannot be read"):
        list(cut_folds(corpus(), tmp_path / "none.json"))


# --- thresholds, seeds and sweeps -------------------------------------------------------------------------------------


def test_dev_settles_the_threshold_when_training_is_over(run: Run) -> None:
    """No other threshold gives a better score on dev, and the folder has it."""
    dev = related(corpus(60, 20, 20))["dev"]
    settings = spanwise.load(run.folder, "cpu").model.head.settings
    chosen = settings.model_dump()["threshold"]
    assert isinstance(chosen, float)
    head: Any = run.model.head

    def f1(threshold: float) -> float:
        head._set_bar(threshold)
        found = evaluate(dev, Predictor(run.model, "cpu").predict(dev), finds_relations=True).relations
        assert found is not None
        return found.strict.micro.f1

    best = f1(chosen)
    report = json.loads((run.folder / "run.json").read_text())
    assert report["scores"]["dev"]["relations"]["strict"]["micro"]["f1"] == best
    assert best >= max(f1(threshold) for threshold in (0.03, 0.1, 0.3, 0.5, 0.7, 0.9, 0.97))
    head._set_bar(chosen)


def test_a_threshold_that_is_given_stays(tmp_path: Path) -> None:
    out = tmp_path / "run"
    fit(out, related(corpus()), recipe="gp-relations", epochs=1, overrides=["head.threshold=0.7"])
    assert spanwise.load(out, "cpu").model.config.head["threshold"] == 0.7


def test_seeds_and_sweeps_look_at_relations_too(tmp_path: Path) -> None:
    data = related(corpus())
    said: list[str] = []
    options = {**OPTIONS, "recipe": "span-relations", "log": said.append}
    summary = train_seeds(data, tmp_path / "seeds", [1, 2], overrides=STATIC, **options)
    reports = [json.loads((tmp_path / "seeds" / f"seed-{seed}" / "run.json").read_text()) for seed in (1, 2)]
    f1 = [report["scores"]["test"]["relations"]["strict"]["micro"]["f1"] for report in reports]
    assert summary["scores"]["test"]["relations"] == {"mean": mean(f1), "deviation": stdev(f1), "f1": f1}
    summary = train_sweep(data, tmp_path / "sweep", ["head.weight=0.5,2"], overrides=STATIC, **options)
    for row in summary["grid"]:
        scores = json.loads((tmp_path / "sweep" / row["folder"] / "run.json").read_text())["scores"]["dev"]
        assert row["dev"] == (scores["micro"]["f1"] + scores["relations"]["strict"]["micro"]["f1"]) / 2
    assert any("mean F1 of entities and relations" in line for line in said)


def test_the_best_threshold_is_that_of_a_search() -> None:
    rng = Random(0)
    for _ in range(50):
        rows = [(rng.randint(1, 9) / 10, rng.random() < 0.5) for _ in range(rng.randint(1, 12))]
        support = sum(right for _, right in rows) + rng.randint(0, 3)
        found = best_threshold(rows, support, lowest=0.0)

        def f1(threshold: float) -> float:
            kept = [right for score, right in rows if score > threshold]  # noqa: B023
            return 2 * sum(kept) / (len(kept) + support) if kept else 0.0  # noqa: B023

        best = max(f1(number / 20) for number in range(20))
        assert (found is None) == (best == 0)
        if found is not None:
            assert f1(found) == best


def test_weights_of_other_relations_are_not_taken_over(tmp_path: Path) -> None:
    data = related(corpus())
    fit(tmp_path / "first", data, recipe="gp-relations", epochs=1)
    other = Corpus(
        {
            split: tuple(replace(s, relations=tuple(replace(r, type=f"{r.type}!") for r in s.relations)) for s in data[split])
            for split in data
        }
    )
    for corpus_, message in ((data, "weight tensors of the head were taken over"), (other, "the head begins anew")):
        said: list[str] = []
        fit(tmp_path / message[:3], corpus_, recipe="gp-relations", epochs=1, init=tmp_path / "first", log=said.append)
        assert any(message in line for line in said)
