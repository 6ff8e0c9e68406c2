"""A training from data to run folder."""

from __future__ import annotations

import json
import os
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from tiny import FILLERS, corpus, digest, fit, sentences

import spanwise
from spanwise import Corpus, Entity, Sentence, evaluate
from spanwise.corpora import splits
from spanwise.corpora.splits import fingerprint
from spanwise.encoders.static import StaticEncoder
from spanwise.prediction.scoring import score_model
from spanwise.training.loop import Trainer


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "run"
    fit(folder, epochs=6)
    return folder


def test_a_training_learns(run: Path) -> None:
    report = json.loads((run / "run.json").read_text())
    assert report["scores"]["test"]["micro"]["f1"] > 0.9


def test_the_report_is_complete(run: Path) -> None:
    report = json.loads((run / "run.json").read_text())
    assert report["recipe"] == "seqner"
    assert report["encoder"]["kind"] == "static"
    assert report["seed"] == 1
    assert report["epochs"] == 6
    assert 1 <= report["best_epoch"] <= 6
    assert report["device"] == "cpu"
    assert report["precision"] == "fp32"
    assert report["versions"].keys() >= {"spanwise", "python", "torch", "transformers", "accelerate", "numpy"}
    assert report["seconds"]["total"] >= report["seconds"]["training"] > 0
    assert report["parameters"]["encoder"] > report["parameters"]["head"] > 0
    for split, members in corpus(60).splits.items():
        assert report["data"][split] == {"sentences": len(members), "fingerprint": fingerprint(members)}
    assert report["data"]["dev"]["fingerprint"] != report["data"]["test"]["fingerprint"]


def test_a_fingerprint_depends_on_words_and_entities() -> None:
    base = Sentence("s", ("a", "b"), (Entity("X", ((0, 1),)), Entity("Y", ((1, 2),))))
    same = replace(base, id="t", document="d", position=0, entities=base.entities[::-1])
    assert fingerprint([base]) == fingerprint([same])
    others = [
        [], [base, base], [replace(base, entities=())], [Sentence("s", ("ab",))], [Sentence("s", ("a", "c"), base.entities)],
        [replace(base, entities=(Entity("X", ((0, 1),)), Entity("Y", ((0, 2),))))],
    ]  # fmt: skip
    assert len({fingerprint(other) for other in [*others, [base]]}) == 7
    assert fingerprint([Sentence("s", ("\ud800",))])


def test_the_files_of_a_finished_run(run: Path) -> None:
    assert sorted(path.name for path in run.iterdir()) == [
        "config.yaml", "labels.json", "metrics.jsonl", "model.safetensors", "run.json", "static_encoder.json",
    ]  # fmt: skip
    mask = os.umask(0)
    os.umask(mask)
    assert {path.stat().st_mode & 0o777 for path in run.iterdir()} == {0o666 & ~mask}


def test_the_scores_are_those_of_the_saved_model(run: Path) -> None:
    report = json.loads((run / "run.json").read_text())
    data = corpus(60)
    for split in ("dev", "test"):
        predicted = spanwise.load(run, "cpu").predict(data[split])
        scores = evaluate(data[split], predicted, train=data["train"]).to_json()
        assert json.loads(json.dumps(scores)) == report["scores"][split]
    assert report["scores"].keys() == {"dev", "test"}


def test_metrics_have_a_line_for_every_epoch(run: Path) -> None:
    rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    assert [row["epoch"] for row in rows] == [1, 2, 3, 4, 5, 6]
    assert [row["step"] for row in rows] == [8, 16, 24, 32, 40, 48]
    assert rows[0]["loss"] > rows[-1]["loss"]
    report = json.loads((run / "run.json").read_text())
    best = max(rows, key=lambda row: (row["dev"]["f1"], row["epoch"]))
    assert report["best_epoch"] == best["epoch"]
    assert best["dev"]["f1"] == report["scores"]["dev"]["micro"]["f1"]


def test_the_same_seed_gives_the_same_weights(run: Path, tmp_path: Path) -> None:
    torch.rand(7)  # earlier random numbers do not matter
    fit(tmp_path / "again", epochs=6)
    assert digest(tmp_path / "again") == digest(run)
    fit(tmp_path / "other", epochs=6, seed=2)
    assert digest(tmp_path / "other")[0] != digest(run)[0]


def test_a_transformer_trains_with_document_context(tiny_bert: Path, tmp_path: Path) -> None:
    folders = [tmp_path / "one", tmp_path / "two"]
    for folder in folders:
        fit(folder, corpus(), ["encoder.context=document"], encoder=str(tiny_bert), encoder_rate=1e-3, epochs=2)
    assert digest(folders[0]) == digest(folders[1])
    predicted = spanwise.load(folders[0], "cpu").predict(corpus()["dev"])  # without the context of the other splits
    assert [sentence.words for sentence in predicted] == [sentence.words for sentence in corpus()["dev"]]


def test_from_files_and_without_a_dev_split(tmp_path: Path) -> None:
    spanwise.write(sentences(60), tmp_path / "all.jsonl")
    lines: list[str] = []
    done = spanwise.train(
        tmp_path / "all.jsonl", tmp_path / "run", recipe="spanner", encoder="static", epochs=1, device="cpu", log=lines.append
    )
    assert "no dev split: using 10 of 60 training sentences as dev (fixed seed 13)" in lines
    assert done.scores.keys() == {"dev"}
    assert any("50 sentences, 2 types: 1 epoch, 7 steps" in line for line in lines)
    assert done.model.training is False


def test_the_report_and_a_later_evaluation_agree(tiny_bert: Path, tmp_path: Path) -> None:
    """Also if the encoder reads neighbouring sentences of other splits."""
    choose = random.Random(2)
    splits: dict[str, list[Sentence]] = {"train": [], "dev": [], "test": []}
    for sentence in sentences(48):
        splits[choose.choice(("train", "train", "dev", "test"))].append(sentence)
    (tmp_path / "data").mkdir()
    for split, members in splits.items():
        spanwise.write(members, tmp_path / "data" / f"{split}.jsonl")
    done = spanwise.train(
        tmp_path / "data", tmp_path / "run", recipe="seqner", encoder=str(tiny_bert), epochs=8, batch_size=4, device="cpu",
        overrides=["encoder.context=document"], encoder_rate=1e-3, head_rate=0.01, log=lambda line: None,
    )  # fmt: skip
    for split in ("dev", "test"):
        again = score_model(spanwise.load(tmp_path / "run", "cpu"), tmp_path / "data", split=split).to_json()
        assert again == done.scores[split]
        assert again["micro"]["predicted"] > 0


@pytest.mark.parametrize(("recipe", "branch"), [("bl-seqner", "sequence"), ("bl-spanner", "span")])
def test_a_bundle_reports_its_branches(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, recipe: str, branch: str) -> None:
    """Losses and dev scores of each branch, with dev encoded once; the model has the scores of the branch that predicts."""
    encoded = []
    forward = StaticEncoder.forward

    def record(self: StaticEncoder, inputs: Any) -> Any:
        encoded.append(self.training)
        return forward(self, inputs)

    monkeypatch.setattr(StaticEncoder, "forward", record)
    fit(tmp_path / "run", recipe=recipe, epochs=3, overrides=["head.alpha=0.4"], test=False)
    rows = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    for row in rows:
        assert row["loss"] == pytest.approx(0.4 * row["sequence"] + 0.6 * row["span"], abs=1e-5)
        assert row["dev"]["branches"].keys() == {"sequence", "span"}
        assert row["dev"]["branches"][branch] == {key: row["dev"][key] for key in ("precision", "recall", "f1")}
    assert rows[-1]["sequence"] < rows[0]["sequence"]
    assert rows[-1]["span"] < rows[0]["span"]
    assert any(row["dev"]["branches"]["sequence"] != row["dev"]["branches"]["span"] for row in rows)
    assert encoded.count(False) == 3 + 1  # one batch of dev in each epoch, and one for the report
    report = json.loads((tmp_path / "run" / "run.json").read_text())
    assert report["scores"]["dev"]["micro"]["f1"] == max(row["dev"]["branches"][branch]["f1"] for row in rows)


def test_other_heads_have_no_branches(run: Path) -> None:
    rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    assert all(row["dev"].keys() == {"precision", "recall", "f1"} for row in rows)


@pytest.mark.parametrize("encoder", ["static", "tiny_bert"])
@pytest.mark.parametrize("recipe", ["seqner", "seqner-crf", "spanner", "bl-spanner"])
def test_batches_of_empty_sentences(request: pytest.FixtureRequest, tmp_path: Path, encoder: str, recipe: str) -> None:
    name = encoder if encoder == "static" else str(request.getfixturevalue(encoder))
    empty = tuple(Sentence(f"e{number}", ()) for number in range(20))
    data = Corpus({split: (*sentences, *empty) for split, sentences in corpus().splits.items()})
    for options in ({}, {"accumulate": 2}, {"token_budget": 40}):
        folder = tmp_path / "-".join(options or ["plain"])
        done = fit(folder, data, recipe=recipe, encoder=name, epochs=1, **options)
        assert done.scores["dev"]["sentences"] == 28
        assert all(torch.isfinite(value).all() for value in done.model.state_dict().values())


def test_without_scores_of_the_test_split(tmp_path: Path) -> None:
    assert fit(tmp_path / "run", corpus(), epochs=1, test=False).scores.keys() == {"dev"}
    assert json.loads((tmp_path / "run" / "run.json").read_text())["scores"].keys() == {"dev"}


# --- the best epoch -------------------------------------------------------------------------------------------


@pytest.fixture
def scripted(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Set the dev scores of the epochs; return the weights after each."""

    def script(*scores: float) -> list[dict[str, torch.Tensor]]:
        weights: list[dict[str, torch.Tensor]] = []
        record_score = Trainer._record_score

        def scored(self: Trainer, f1: float) -> bool:
            weights.append({name: value.clone() for name, value in self.model.state_dict().items()})
            return record_score(self, scores[self.epoch - 1])

        monkeypatch.setattr(Trainer, "_record_score", scored)
        return weights

    return script


@pytest.mark.parametrize(
    ("scores", "best"),
    [
        ((0.2, 0.8, 0.5), 2),
        ((0.2, 0.3, 0.5), 3),
        ((0.5, 0.5, 0.5), 3),
        ((0.5, 0.5, 0.4), 2),
        ((0, 0.1, 0), 2),
        ((0, 0, 0), 3),
        ((0.1, 0, 0), 1),
    ],
)
def test_the_best_epoch_on_dev_is_kept(tmp_path: Path, scripted: Any, scores: tuple[float, ...], best: int) -> None:
    weights = scripted(*scores)
    done = fit(tmp_path / "run", corpus(), epochs=3)
    saved = load_file(tmp_path / "run" / "model.safetensors")
    assert all(torch.equal(saved[name], weights[best - 1][name]) for name in saved)
    assert any(not torch.equal(saved[name], weights[best % 3][name]) for name in saved)
    assert json.loads((tmp_path / "run" / "run.json").read_text())["best_epoch"] == best
    assert all(torch.equal(value, saved[name]) for name, value in done.model.state_dict().items())


@pytest.mark.parametrize(
    ("scores", "patience", "epochs"),
    [((0.2, 0.8, 0.5, 0.8, 0.7, 0.9), 2, 4), ((0.2, 0.8, 0.5, 0.9, 0.7, 0.9), 2, 6), ((0, 0, 0.5, 0.6, 0.7, 0.7), 3, 6),
     ((0, 0, 0, 0, 0, 1), 2, 3), ((0.5, 0.4, 0.6, 0.6, 0.6, 0.6), 1, 2)],
)  # fmt: skip
def test_training_stops_after_epochs_without_a_better_score(
    tmp_path: Path, scripted: Any, scores: tuple[float, ...], patience: int, epochs: int
) -> None:
    scripted(*scores)
    fit(tmp_path / "run", corpus(), epochs=6, patience=patience)
    assert json.loads((tmp_path / "run" / "run.json").read_text())["epochs"] == epochs
    assert len((tmp_path / "run" / "metrics.jsonl").read_text().splitlines()) == epochs


# --- unreachable entities ---------------------------------------------------------------------------------------------


def unreachable() -> Corpus:
    """The tiny corpus with wide, nested and discontinuous entities, and a sentence longer than the window."""
    words = tuple(FILLERS * 10)
    more = (
        Sentence("wide", words[:20], (Entity("Place", ((2, 12),)),)),
        Sentence("long", words, (Entity("Place", ((1, 2),)), Entity("Place", ((120, 121),)), Entity("Drug", ((130, 132),)))),
        Sentence("broken", words[:9], (Entity("Drug", ((1, 2), (4, 5))),)),
        Sentence("nested", words[:9], (Entity("Drug", ((1, 3),)), Entity("Place", ((2, 3),)))),
        Sentence("twice", words[:9], (Entity("Drug", ((1, 3),)), Entity("Drug", ((1, 3),)), Entity("Place", ((1, 3),)))),
    )
    data = corpus(60)
    return Corpus({split: (*data[split], *(more if split != "train" else ())) for split in data})


@pytest.mark.parametrize("recipe", ["seqner", "seqner-crf", "spanner"])
@pytest.mark.parametrize("encoder", ["static", "tiny_bert"])
def test_unreachable_entities_count_as_misses(
    request: pytest.FixtureRequest, tmp_path: Path, recipe: str, encoder: str
) -> None:
    name = encoder if encoder == "static" else str(request.getfixturevalue(encoder))
    data, lines = unreachable(), list[str]()
    overrides = ["head.max_width=3"] if recipe == "spanner" else []
    fit(tmp_path / "run", data, overrides, recipe=recipe, encoder=name, epochs=2, encoder_rate=1e-3, log=lines.append)
    scores = json.loads((tmp_path / "run" / "run.json").read_text())["scores"]
    predictor = spanwise.load(tmp_path / "run", "cpu")
    for split in ("dev", "test"):
        gold = sum(len(set(sentence.entities)) for sentence in data[split])
        assert gold == 9 + sum(len(sentence.entities) for sentence in corpus(60)[split])
        assert scores[split]["micro"]["support"] == gold
        assert sum(kind["support"] for kind in scores[split]["types"].values()) == gold
        predicted = predictor.predict(data[split])
        assert evaluate(data[split], predicted).entities.micro.support == gold
        assert scores[split]["discontinuous"]["support"] == 1
        assert scores[split]["discontinuous"]["correct"] == 0
        assert scores[split]["unlabelled"]["support"] == gold - 1  # one range has two types
        # Too wide or nested, discontinuous, and a second type: in the log and in the report.
        missed = {"seqner": 3, "seqner-crf": 3, "spanner": 4}[recipe]
        note = f"{split}: this model cannot predict {missed} of {gold} entities ({missed / gold:.1%})"
        assert any(note in line for line in lines), lines
    notes = json.loads((tmp_path / "run" / "run.json").read_text())["notes"]
    assert [line.removeprefix("note: ") for line in lines if line.startswith("note: ")] == notes


def test_each_split_is_read_for_its_fingerprint_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []

    def counted(sentences: Any) -> str:
        calls.append(len(sentences))
        return fingerprint(sentences)

    monkeypatch.setattr(splits, "fingerprint", counted)
    data = corpus(30)
    fit(tmp_path / "run", data, epochs=1)
    assert calls == [len(data[split]) for split in data]
    report = json.loads((tmp_path / "run" / "run.json").read_text())
    assert report["data"]["dev"]["fingerprint"] == fingerprint(data["dev"])
