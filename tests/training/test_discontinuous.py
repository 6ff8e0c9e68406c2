"""Discontinuous entities from training to the last format, on the generated reports."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import discontinuous_corpus as reports
import pytest
import torch
import yaml
from tiny import digest, fit, quiet

import spanwise
from spanwise.cli import main
from spanwise.core.types import Corpus
from spanwise.corpora.splits import read_corpus
from spanwise.evaluation.evaluation import evaluate
from spanwise.export.torch_folder import export
from spanwise.formats import Ledger
from spanwise.training.loop import Trainer
from spanwise.training.run import Run, train

SMALL = ("encoder.word_size=32", "encoder.char_hidden=0", "encoder.hidden=48", "encoder.dropout=0.1")


def learned(out: Path, corpus: Corpus, *overrides: str, **options: Any) -> Run:
    options = {"recipe": "spanner", "epochs": 6, "head_rate": 0.01, "log": quiet, **options}
    return train(corpus, out, encoder="static", overrides=(*SMALL, *overrides), batch_size=8, device="cpu", **options)


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    return reports.corpus(300, 40, 100)


@pytest.fixture(scope="module")
def run(corpus: Corpus, tmp_path_factory: pytest.TempPathFactory) -> Run:
    return learned(tmp_path_factory.mktemp("discontinuous") / "run", corpus)


def test_they_are_found_end_to_end(run: Run) -> None:
    score = run.scores["test"]["discontinuous"]
    assert score["support"] > 200
    assert score["f1"] > 0.8
    config = yaml.safe_load((run.folder / "config.yaml").read_text())
    assert config["head"]["discontinuous"] == ["Action", "Finding"]
    assert json.loads((run.folder / "run.json").read_text())["notes"] == []  # nothing is out of reach


def test_without_the_mechanism_they_are_out_of_reach(corpus: Corpus, tmp_path: Path) -> None:
    said: list[str] = []
    run = learned(tmp_path / "run", corpus, "head.discontinuous=false", epochs=1, log=said.append)
    assert run.scores["test"]["discontinuous"]["predicted"] == 0
    count = sum(entity.is_discontinuous for sentence in corpus["train"] for entity in sentence.entities)
    assert any(f"({count:,} discontinuous)" in line for line in said)


def test_what_is_saved_and_exported_finds_the_same(run: Run, corpus: Corpus, tmp_path: Path) -> None:
    def found(folder: Path) -> list[Any]:
        predicted = spanwise.load(folder, "cpu").predict(corpus["test"])
        return [[(entity, entity.score) for entity in sentence.entities] for sentence in predicted]

    export(run.folder, tmp_path / "exported")
    before = found(run.folder)
    assert before == found(tmp_path / "exported")
    predicted = spanwise.load(run.folder, "cpu").predict(corpus["test"])
    assert evaluate(corpus["test"], predicted).to_json()["micro"] == run.scores["test"]["micro"]
    sure = spanwise.load(run.folder, "cpu").predict(corpus["test"], threshold=0.9)
    assert [list(s.entities) for s in sure] == [[e for e, score in one if score >= 0.9] for one in before]


def test_a_bundle_finds_them_with_its_span_branch(corpus: Corpus, tmp_path: Path) -> None:
    few = Corpus({split: corpus[split][:40] for split in corpus})
    run = learned(tmp_path / "run", few, recipe="bl-spanner", epochs=1)
    config = yaml.safe_load((run.folder / "config.yaml").read_text())
    assert config["head"]["span"]["discontinuous"] == ["Action", "Finding"]
    torch.manual_seed(1)
    for name, parameter in run.model.named_parameters():
        if "fragments" in name or "links" in name:
            torch.nn.init.normal_(parameter, std=0.3)  # sure of something everywhere
    run.model.save(tmp_path / "loud")
    export(tmp_path / "loud", tmp_path / "exported")
    whole, alone = (
        [sentence.entities for sentence in spanwise.load(folder, "cpu").predict(few["test"])]
        for folder in (tmp_path / "loud", tmp_path / "exported")
    )
    assert whole == alone
    assert any(entity.is_discontinuous for entities in whole for entity in entities)


def test_a_training_resumes_bit_for_bit(corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    few = Corpus({split: corpus[split][:40] for split in corpus})
    whole = learned(tmp_path / "whole", few, epochs=2)
    dev = Trainer._dev

    def interrupted(self: Trainer, *arguments: Any) -> None:
        dev(self, *arguments)
        raise KeyboardInterrupt

    monkeypatch.setattr(Trainer, "_dev", interrupted)
    with pytest.raises(KeyboardInterrupt):
        learned(tmp_path / "parts", few, epochs=2)
    monkeypatch.setattr(Trainer, "_dev", dev)
    learned(tmp_path / "parts", few, epochs=2, resume=True)
    assert digest(tmp_path / "parts") == digest(whole.folder)


@pytest.mark.parametrize("recipe", ["spanner", "global-pointer", "biaffine", "sng"])
def test_the_others_are_learned_bit_for_bit_as_without_them(recipe: str, corpus: Corpus, tmp_path: Path) -> None:
    few = Corpus({split: corpus[split][:80] for split in corpus})
    tight = ("training.clip=0.1",)  # so that every step is clipped
    whole = learned(tmp_path / "with", few, *tight, recipe=recipe, epochs=1)
    alone = learned(tmp_path / "without", few, *tight, "head.discontinuous=false", recipe=recipe, epochs=1)
    learning, inner = whole.model.state_dict(), alone.model.state_dict()
    own = {name.replace("head.", "head.head.", 1) if name.startswith("head.") else name: value for name, value in inner.items()}
    assert len(learning) > len(own)
    assert all(torch.equal(learning[name], value) for name, value in own.items())


def test_a_corpus_without_them_trains_as_if_there_were_no_such_thing(tmp_path: Path) -> None:
    runs = [
        fit(tmp_path / value, recipe="spanner", overrides=(f"head.discontinuous={value}",), epochs=1)
        for value in ("auto", "false")
    ]
    assert digest(runs[0].folder) == digest(runs[1].folder)
    assert (runs[0].folder / "config.yaml").read_text() == (runs[1].folder / "config.yaml").read_text()
    assert not any("fragments" in name or "links" in name for name in runs[0].model.state_dict())


def test_a_start_from_a_model_without_them(corpus: Corpus, run: Run, tmp_path: Path) -> None:
    few = Corpus({split: corpus[split][:40] for split in corpus})
    said: list[str] = []
    plain = learned(tmp_path / "plain", few, "head.discontinuous=false", "head.max_width=3", epochs=1)
    learned(tmp_path / "more", few, "head.max_width=3", epochs=1, init=plain.folder, log=said.append)
    taken, count = len(plain.model.head.state_dict()), len(run.model.head.state_dict())
    assert count > taken
    assert any(f"its encoder and {taken} of {count} weight tensors of the head" in line for line in said)


def test_a_start_inside_a_bundle_and_with_other_types(corpus: Corpus, tmp_path: Path) -> None:
    few = Corpus({split: corpus[split][:40] for split in corpus})
    settings: dict[str, Any] = {"recipe": "bl-spanner", "epochs": 1, "head_rate": 0.0}
    plain = learned(tmp_path / "plain", few, "head.span.discontinuous=false", **settings)
    one = learned(tmp_path / "one", few, "head.span.discontinuous=[Action]", init=plain.folder, **settings)
    span = one.model.head.branches["span"]
    found, source = span.inner.state_dict(), plain.model.head.branches["span"].state_dict()
    assert found.keys() == source.keys()
    assert all(torch.equal(found[name], source[name]) for name in source)
    other = learned(tmp_path / "other", few, "head.span.discontinuous=[Finding]", init=one.folder, seed=2, **settings)
    before, after = span.state_dict(), other.model.head.branches["span"].state_dict()
    changed = {name for name in before if not torch.equal(before[name], after[name])}
    assert changed == {"typing.typing.weight", "typing.typing.bias"}  # a row of another type is no beginning


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


def test_the_predict_command_prints_what_they_say(
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
