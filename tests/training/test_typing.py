"""Training models that type given spans: reports, vectors, resuming, errors."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from tiny import corpus, digest, fit

from spanwise import Corpus, SpanwiseError
from spanwise.core.types import Entity, Sentence
from spanwise.encoders import static
from spanwise.models.model import Model
from spanwise.prediction.load import load
from spanwise.recipes.catalog import configure
from spanwise.recipes.resolve import resolve_config
from spanwise.training.steps import TrainingSteps
from spanwise.vectors import cooccurrence
from spanwise.vectors.compiled import compiled

SMALL = ("encoder.glove.iterations=2", "encoder.word_dropout=0.0", "head.hidden=8")
TYPING: dict[str, Any] = {"recipe": "sng", "task": "typing"}


def discontinuous_corpus() -> Corpus:
    """The tiny corpus with a discontinuous entity in every sentence, and dev and test words that are not in train."""
    splits = {}
    for split, sentences in corpus(60).splits.items():
        more = []
        for s in sentences:
            words = (*s.words, "swollen", "left", split, "knee")
            start = len(s.words)
            more.append(
                replace(
                    s,
                    words=words,
                    text="",
                    starts=(),
                    entities=(*s.entities, Entity("Pain", ((start, start + 1), (start + 3, start + 4)))),
                )
            )
        splits[split] = tuple(more)
    return Corpus(splits, "discontinuous")


def small_fit(out: Path, **options: Any) -> Any:
    overrides = (*SMALL, *options.pop("overrides", ()))
    return fit(out, options.pop("data", None), overrides, **{**TYPING, **options})


@pytest.mark.parametrize("recipe", ["sng", "sng-paper"])
def test_a_run_reports_accuracy_and_no_f1(tmp_path: Path, recipe: str) -> None:
    lines: list[str] = []
    epochs = 4 if recipe == "sng" else 40  # with one step per epoch
    run = small_fit(tmp_path / "run", data=discontinuous_corpus(), recipe=recipe, epochs=epochs, log=lines.append)
    report = json.loads((tmp_path / "run" / "run.json").read_text())
    for split in ("dev", "test"):
        typing = report["scores"][split]["typing"]
        assert typing["accuracy"] == 1.0
        assert typing["entities"] == sum(len(s.entities) for s in discontinuous_corpus()[split])
        assert typing["paper_f1"] == 1.0
        assert 0.5 < typing["lookup"]["accuracy"] <= 1.0
        assert set(typing["types"]) == {"Place", "Drug", "Pain"}
        assert set(report["scores"][split]) == {"typing", "notes"}
    metrics = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    best = max(range(epochs), key=lambda n: (metrics[n]["dev"]["typing"]["accuracy"], n))  # the latest of equal ones
    assert report["best_epoch"] == best + 1
    assert set(metrics[0]["dev"]) == {"typing"}
    assert not any("F1" in line for line in lines)
    if recipe == "sng-paper":
        assert any(f"{epochs} epochs, {epochs} steps" in line for line in lines)
    sentences = discontinuous_corpus()["test"]
    predicted = load(run.folder, "cpu").predict(
        [replace(s, entities=tuple(replace(e, type="?") for e in s.entities)) for s in sentences]
    )
    assert [set(s.entities) for s in predicted] == [set(s.entities) for s in sentences]


def test_training_with_context_and_of_entities(tmp_path: Path) -> None:
    run = small_fit(tmp_path / "context", overrides=("head.context=true", "head.context_hidden=8"))
    assert run.scores["test"]["typing"]["accuracy"] > 0.9
    run = small_fit(tmp_path / "entities", task="entities", epochs=12, overrides=("head.hidden=16", "head.dropout=0.0"))
    assert run.scores["test"]["micro"]["f1"] > 0.9


def test_vectors_are_learned_from_the_training_sentences_and_saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    texts: list[list[tuple[str, ...]]] = []
    learn = static.learn_vectors

    def spied(sentences: Any, *rest: Any, **options: Any) -> Any:
        texts.append([tuple(words) for words in sentences])
        return learn(texts[-1], *rest, **options)

    monkeypatch.setattr(static, "learn_vectors", spied)
    lines: list[str] = []
    data = discontinuous_corpus()
    run = small_fit(tmp_path / "run", data=data, epochs=1, log=lines.append, overrides=("encoder.freeze_words=true",))
    assert texts == [[s.words for s in data["train"]]]
    assert any("training word vectors of 16 values on the 60 training sentences" in line for line in lines)
    assert "dev" not in run.model.encoder.vocabulary.given
    monkeypatch.setattr(static, "learn_vectors", None)  # a loaded model learns no vectors
    again = Model.load(tmp_path / "run")
    assert torch.equal(again.encoder.words.given, run.model.encoder.words.given)  # type: ignore[union-attr, arg-type]
    assert float(again.encoder.words.given.abs().sum()) > 0  # type: ignore[union-attr, operator]


def test_given_vectors_are_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(static, "learn_vectors", None)
    (tmp_path / "given.txt").write_text("oslo 1 2 3\nlima 3 2 1\n", encoding="utf-8")
    options = ("encoder.vectors=" + str(tmp_path / "given.txt"), "encoder.word_size=null", "encoder.freeze_words=true")
    run = small_fit(tmp_path / "run", epochs=1, overrides=options)
    assert run.model.encoder.vocabulary.given == ("oslo", "lima")
    assert run.model.encoder.words.given.tolist() == [[1, 2, 3], [3, 2, 1]]


def test_a_resumed_run_learns_no_vectors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It uses those of its checkpoint."""
    small_fit(tmp_path / "whole", epochs=3)
    backward, calls = TrainingSteps._backward, []

    def interrupted(self: TrainingSteps, *rest: Any) -> Any:
        calls.append(1)
        if len(calls) == 12:
            raise KeyboardInterrupt
        return backward(self, *rest)

    with monkeypatch.context() as patch:
        patch.setattr(TrainingSteps, "_backward", interrupted)
        with pytest.raises(KeyboardInterrupt):
            small_fit(tmp_path / "parts", epochs=3)
    monkeypatch.setattr(static, "learn_vectors", None)
    small_fit(tmp_path / "parts", epochs=3, resume=True)
    assert digest(tmp_path / "parts") == digest(tmp_path / "whole")


def test_training_examples_of_typing() -> None:
    data = discontinuous_corpus()
    bare = Sentence("bare", ("it", "rained"))
    config = resolve_config("sng", task="typing", overrides=SMALL)
    model = Model.build(config, data)
    assert model.head.training_example(bare) is None
    sentence = data["train"][0]
    training_example = model.head.training_example(sentence)
    assert training_example is not None
    assert len(training_example.words) < len(sentence.words)
    assert [training_example.text_of(e) for e in training_example.entities] == [sentence.text_of(e) for e in sentence.entities]
    assert [len(e.fragments) for e in training_example.entities] == [len(e.fragments) for e in sentence.entities]
    model.eval()
    batches = [
        (model.encoder(model.encoder.collate(model.encoder.prepare([s]))), model.head.targets([s], gold=True))
        for s in (sentence, training_example)
    ]
    one, other = (model.head.loss(*batch).sums for batch in batches)
    torch.testing.assert_close(one, other)
    with_context = Model.build(resolve_config("sng", task="typing", overrides=(*SMALL, "head.context=true")), data)
    assert with_context.head.training_example(bare) is None
    assert with_context.head.training_example(sentence) is sentence
    assert Model.build(resolve_config("sng", overrides=SMALL), data).head.training_example(bare) is bare


def test_heads_that_cannot_type() -> None:
    with pytest.raises(SpanwiseError, match="--task typing: the head spanner does not support it; use one of sng"):
        resolve_config("spanner", task="typing")
    with pytest.raises(SpanwiseError, match="unknown task 'typng'"):
        resolve_config("sng", task="typng")
    assert resolve_config("spanner", task="entities") == configure("spanner")
    assert resolve_config("sng-paper", task="entities").head["task"] == "entities"


def test_without_numba(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "numba", None)
    first = compiled(cooccurrence._collect_pairs.__wrapped__)  # an earlier test may have compiled the original
    monkeypatch.setattr(cooccurrence, "_collect_pairs", first)
    with pytest.raises(SpanwiseError, match=r"^training word vectors requires numba; run pip install 'spanwise\[vectors\]'$"):
        Model.build(resolve_config("sng"), corpus())
