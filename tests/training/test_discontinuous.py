"""Discontinuous entities from training to output formats, on generated reports."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import discontinuous_corpus as reports
import pytest
import torch
import yaml
from tiny import digest, fit, quiet

import spanwise
from spanwise.cli import main
from spanwise.core.types import Corpus, Entity, Sentence
from spanwise.corpora.splits import read_corpus
from spanwise.evaluation.evaluation import evaluate
from spanwise.export.torch_folder import export
from spanwise.formats import Ledger
from spanwise.heads import link_grid
from spanwise.models.model import Model
from spanwise.recipes.catalog import configure
from spanwise.training.loop import Trainer
from spanwise.training.run import Run, train

SMALL = ("encoder.word_size=32", "encoder.char_hidden=0", "encoder.hidden=48", "encoder.dropout=0.1")


def train_model(out: Path, corpus: Corpus, *overrides: str, **options: Any) -> Run:
    options = {"recipe": "spanner", "epochs": 6, "head_rate": 0.02, "log": quiet, **options}
    return train(corpus, out, encoder="static", overrides=(*SMALL, *overrides), batch_size=8, device="cpu", **options)


@pytest.fixture(scope="module", autouse=True)
def _small_grids() -> Iterator[None]:
    """A quarter of the channels of link grids, which take most of the time of a training."""
    with patch.object(link_grid, "CHANNELS", 16):
        yield


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    return reports.corpus(150, 12, 100)


@pytest.fixture(scope="module")
def run(corpus: Corpus, tmp_path_factory: pytest.TempPathFactory) -> Run:
    return train_model(tmp_path_factory.mktemp("discontinuous") / "run", corpus, epochs=8, head_rate=0.02)


def test_discontinuous_entities_are_predicted(run: Run) -> None:
    score = run.scores["test"]["discontinuous"]
    assert score["support"] > 200
    assert score["f1"] > 0.8
    config = yaml.safe_load((run.folder / "config.yaml").read_text())
    assert config["head"]["discontinuous"] == ["Action", "Finding"]
    assert config["head"]["fragments_train_encoder"] is True
    assert json.loads((run.folder / "run.json").read_text())["notes"] == []  # all entities can be predicted


def test_without_the_mechanism_they_are_unreachable(corpus: Corpus, tmp_path: Path) -> None:
    lines: list[str] = []
    run = train_model(tmp_path / "run", corpus, "head.discontinuous=false", epochs=1, log=lines.append)
    assert run.scores["test"]["discontinuous"]["predicted"] == 0
    count = sum(entity.is_discontinuous for sentence in corpus["train"] for entity in sentence.entities)
    assert any(f": {count:,} discontinuous;" in line for line in lines)


def test_saved_and_exported_models_predict_the_same(run: Run, corpus: Corpus, tmp_path: Path) -> None:
    def predictions(folder: Path) -> list[Any]:
        predicted = spanwise.load(folder, "cpu").predict(corpus["test"])
        return [[(entity, entity.score) for entity in sentence.entities] for sentence in predicted]

    export(run.folder, tmp_path / "exported")
    before = predictions(run.folder)
    assert before == predictions(tmp_path / "exported")
    predicted = spanwise.load(run.folder, "cpu").predict(corpus["test"])
    assert evaluate(corpus["test"], predicted).to_json()["micro"] == run.scores["test"]["micro"]
    confident = spanwise.load(run.folder, "cpu").predict(corpus["test"], threshold=0.9)
    assert [list(s.entities) for s in confident] == [[e for e, score in rows if score >= 0.9] for rows in before]


def test_the_span_branch_of_a_bundle_predicts_them(corpus: Corpus, tmp_path: Path) -> None:
    few = Corpus({split: corpus[split][:40] for split in corpus})
    run = train_model(tmp_path / "run", few, recipe="bl-spanner", epochs=1)
    config = yaml.safe_load((run.folder / "config.yaml").read_text())
    assert config["head"]["span"]["discontinuous"] == ["Action", "Finding"]
    torch.manual_seed(1)
    for name, parameter in run.model.named_parameters():
        if "links" in name:
            torch.nn.init.normal_(parameter, std=0.3)  # so that there are predictions everywhere
    run.model.save(tmp_path / "changed")
    export(tmp_path / "changed", tmp_path / "exported")
    whole, alone = (
        [sentence.entities for sentence in spanwise.load(folder, "cpu").predict(few["test"])]
        for folder in (tmp_path / "changed", tmp_path / "exported")
    )
    assert whole == alone
    assert any(entity.is_discontinuous for entities in whole for entity in entities)


def test_a_training_resumes_with_identical_weights(corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    few = Corpus({split: corpus[split][:40] for split in corpus})
    whole = train_model(tmp_path / "whole", few, epochs=2)
    evaluate_dev = Trainer._evaluate

    def interrupted(self: Trainer, *arguments: Any) -> None:
        evaluate_dev(self, *arguments)
        raise KeyboardInterrupt

    monkeypatch.setattr(Trainer, "_evaluate", interrupted)
    with pytest.raises(KeyboardInterrupt):
        train_model(tmp_path / "parts", few, epochs=2)
    monkeypatch.setattr(Trainer, "_evaluate", evaluate_dev)
    train_model(tmp_path / "parts", few, epochs=2, resume=True)
    assert digest(tmp_path / "parts") == digest(whole.folder)


@pytest.mark.parametrize("recipe", ["spanner", "global-pointer", "biaffine", "sng"])
def test_contiguous_entities_are_learned_identically_without_them(recipe: str, corpus: Corpus, tmp_path: Path) -> None:
    few = Corpus({split: corpus[split][:40] for split in corpus})
    clip = ("training.clip=0.1", "head.fragments_train_encoder=false")  # every step is clipped
    whole = train_model(tmp_path / "with", few, *clip, recipe=recipe, epochs=1)
    alone = train_model(tmp_path / "without", few, *clip, "head.discontinuous=false", recipe=recipe, epochs=1)
    tensors, contiguous = whole.model.state_dict(), alone.model.state_dict()
    expected = {
        name.replace("head.", "head.head.", 1) if name.startswith("head.") else name: t for name, t in contiguous.items()
    }
    assert len(tensors) > len(expected)
    assert all(torch.equal(tensors[name], value) for name, value in expected.items())


def test_sentences_with_rare_entities_are_learned_several_times(corpus: Corpus, tmp_path: Path) -> None:
    rare = next(sentence for sentence in corpus["train"] if any(entity.is_discontinuous for entity in sentence.entities))
    others = [Sentence(f"s{index}", ("Oslo", "sleeps"), (Entity("Finding", ((0, 1),)),)) for index in range(57)]
    data = Corpus({"train": (rare, *others), "dev": (rare,)})
    model = Model.build(configure("biaffine", encoder="static", overrides=SMALL), data)
    trainer = Trainer(model, data, tmp_path, device="cpu", log=quiet)
    learned = [
        trainer.batches.sentences[index] for batch in trainer.batches.batches[: trainer.batches.ends[0]] for index in batch
    ]
    assert learned.count(rare) == 3  # of 60, which are 5 %
    assert len(learned) == 60


def test_a_corpus_without_them_adds_no_parts(tmp_path: Path) -> None:
    runs = [
        fit(tmp_path / value, recipe="spanner", overrides=(f"head.discontinuous={value}",), epochs=1)
        for value in ("auto", "false")
    ]
    assert digest(runs[0].folder) == digest(runs[1].folder)
    assert (runs[0].folder / "config.yaml").read_text() == (runs[1].folder / "config.yaml").read_text()
    assert not any("links" in name for name in runs[0].model.state_dict())


def test_init_from_a_model_without_them(corpus: Corpus, run: Run, tmp_path: Path) -> None:
    few = Corpus({split: corpus[split][:40] for split in corpus})
    lines: list[str] = []
    plain = train_model(tmp_path / "plain", few, "head.discontinuous=false", "head.max_width=3", epochs=1)
    train_model(tmp_path / "more", few, "head.max_width=3", epochs=1, init=plain.folder, log=lines.append)
    taken, count = len(plain.model.head.state_dict()), len(run.model.head.state_dict())
    assert count > taken
    assert any(f"the encoder, and {taken} of {count} weight tensors of the head" in line for line in lines)


def test_init_inside_a_bundle_and_with_other_types(corpus: Corpus, tmp_path: Path) -> None:
    few = Corpus({split: corpus[split][:40] for split in corpus})
    settings: dict[str, Any] = {"recipe": "bl-spanner", "epochs": 1, "head_rate": 0.0}
    width = "head.span.link_width=9"
    plain = train_model(tmp_path / "plain", few, "head.span.discontinuous=false", **settings)
    one = train_model(tmp_path / "one", few, "head.span.discontinuous=[Action]", width, init=plain.folder, **settings)
    span = one.model.head.branches["span"]
    copied, source = span.configured_head.state_dict(), plain.model.head.branches["span"].state_dict()
    assert copied.keys() == source.keys()
    assert all(torch.equal(copied[name], source[name]) for name in source)
    other = train_model(
        tmp_path / "other", few, "head.span.discontinuous=[Finding]", width, init=one.folder, seed=2, **settings
    )
    before, after = span.state_dict(), other.model.head.branches["span"].state_dict()
    changed = {name for name in before if not torch.equal(before[name], after[name])}
    assert changed == {"typing.typing.weight", "typing.typing.bias"}  # the row of another type is not copied


@pytest.mark.parametrize("name", ["out.jsonl", "out.w2ner.json", "brat"])
def test_the_predict_command_writes_their_fragments(
    run: Run, corpus: Corpus, tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    predicted = spanwise.load(run.folder, "cpu").predict(corpus["test"][:20])
    text = tmp_path / "reports.txt"
    text.write_text("\n".join(sentence.text for sentence in predicted) + "\n", encoding="utf-8")
    expected = [set(sentence.entities) for sentence in predicted]
    assert sum(entity.is_discontinuous for entities in expected for entity in entities) > 10
    formats = {"out.jsonl": "jsonl", "out.w2ner.json": "w2ner", "brat": "brat"}
    with pytest.raises(SystemExit):
        main(["predict", str(run.folder), str(text), "--output", str(tmp_path / name), "--format", formats[name]])
    ledger = Ledger()
    back = read_corpus(tmp_path / name, formats[name], ledger)
    assert [set(sentence.entities) for split in back for sentence in back[split]] == expected
    assert not ledger.lost


def test_the_predict_command_prints_their_text(
    run: Run, corpus: Corpus, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    predicted = spanwise.load(run.folder, "cpu").predict(corpus["test"])
    sentence = next(s for s in predicted if any(entity.is_discontinuous for entity in s.entities))
    text = tmp_path / "report.txt"
    text.write_text(f"{sentence.text}\n", encoding="utf-8")
    with pytest.raises(SystemExit):
        main(["predict", str(run.folder), str(text)])
    (record,) = map(json.loads, capsys.readouterr().out.splitlines())
    for entity, shown in zip(sentence.entities, record["entities"], strict=True):
        assert shown["spans"] == [list(fragment) for fragment in entity.fragments]
        assert shown["text"] == " ".join(word for fragment in entity.fragments for word in sentence.words[slice(*fragment)])
        assert " ".join(sentence.text[slice(*place)] for place in shown["characters"]) == shown["text"]
        assert 0 < shown["score"] <= 1
