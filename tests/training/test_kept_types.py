"""Learning new types from data where only these are annotated, with and without the old model as a teacher."""

from __future__ import annotations

import shutil
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from interruptions import Interrupted, interrupt
from tiny import METHODS, STATIC, corpus, digest, fit, model, with_relations

from spanwise import Corpus, Entity, Sentence, SpanwiseError, SpanwiseWarning, evaluate, load
from spanwise.cli import main
from spanwise.corpora.splits import ensure_dev_split, read_corpus
from spanwise.decoding.decode import Predictions
from spanwise.export.onnx import export_onnx
from spanwise.export.torch_folder import export
from spanwise.formats import Ledger, write
from spanwise.heads.abilities import LearnsProbabilities, find_ability
from spanwise.models.model import Model
from spanwise.prediction.scoring import score_model
from spanwise.prediction.span_vectors import span_probabilities
from spanwise.prediction.systems import System, system_predictions
from spanwise.recipes.resolve import Choices
from spanwise.training.init_weights import copy_types, initialize_from
from spanwise.training.kept_types import KeptTypes
from spanwise.training.run import RunOptions
from spanwise.training.seeds import train_seeds
from spanwise.training.steps import TrainingSteps
from spanwise.training.sweep import train_sweep
from spanwise.training.teacher_outputs import TeacherOutputs
from spanwise.training.teachers import Opinion, to_spans

OLD, NEW = ("Drug",), ("Place",)
WORDS_ONLY = ("encoder.char_hidden=0", "encoder.layers=0")  # the corpus needs no context


def only(*types: str, count: int = 60) -> Corpus:
    """The tiny corpus, annotated with some types only."""
    data = corpus(count)
    return Corpus({
        split: tuple(replace(s, entities=tuple(e for e in s.entities if e.type in types), relations=()) for s in data[split])
        for split in data
    })  # fmt: skip


def recalls(run: Path) -> dict[str, float]:
    """The recall of each type on the completely annotated training sentences."""
    gold = corpus(60)["train"]
    predicted = list(load(run).predict([replace(sentence, entities=()) for sentence in gold]))
    return {type: score.recall for type, score in evaluate(gold, predicted).entities.types.items()}


@pytest.mark.parametrize("recipe", ["spanner", "seqner"])  # one learns probabilities, one predictions
def test_old_types_are_kept(recipe: str, tmp_path: Path) -> None:
    fit(tmp_path / "old", only(*OLD), recipe=recipe, epochs=5, overrides=WORDS_ONLY)
    lines: list[str] = []
    options = {"recipe": recipe, "epochs": 5, "overrides": WORDS_ONLY, "init": tmp_path / "old", "log": lines.append}
    run = fit(tmp_path / "kept", only(*NEW), keep_types=True, **options)
    assert f"keeping Drug of {tmp_path / 'old'}, which the data does not annotate" in lines
    assert not any("has no entity of" in line for line in lines)
    assert run.model.labels.entities == ("Drug", "Place")
    kept = recalls(tmp_path / "kept")
    assert min(kept.values()) > 0.8
    # Old types are not annotated in dev: predictions of them are no errors.
    assert run.scores["dev"]["micro"]["precision"] > 0.8
    fit(tmp_path / "plain", only(*NEW), **options)
    assert recalls(tmp_path / "plain").get("Drug", 0.0) == 0.0


def test_kept_types_do_not_count_when_the_data_of_the_run_is_scored(tmp_path: Path) -> None:
    fit(tmp_path / "old", only(*OLD), epochs=5, overrides=WORDS_ONLY)
    run = fit(tmp_path / "new", only(*NEW), epochs=5, overrides=WORDS_ONLY, init=tmp_path / "old", keep_types=True)
    predictor = load(tmp_path / "new")
    write(only(*NEW)["dev"], tmp_path / "dev.jsonl")
    scored = score_model(predictor, tmp_path / "dev.jsonl")
    assert scored.to_json()["micro"] == run.scores["dev"]["micro"]
    assert "predictions of Drug do not count: the model kept these types, but this data does not annotate them" in scored.notes
    # Nor do they in a comparison, which does not take dev for training data.
    gold, options = only(*NEW)["dev"], {"format": None, "data_format": None, "ledger": Ledger(), "device": "cpu"}
    with warnings.catch_warnings(action="error", category=SpanwiseWarning):
        (compared,) = system_predictions(System("new", (tmp_path / "new",)), gold, tmp_path / "dev.jsonl", "all", **options)
    assert evaluate(gold, compared).to_json()["micro"] == run.scores["dev"]["micro"]
    # Other data may annotate them.
    write(only(*NEW, count=80)["dev"], tmp_path / "other.jsonl")
    other = score_model(predictor, tmp_path / "other.jsonl").to_json()
    assert other["micro"]["precision"] < scored.to_json()["micro"]["precision"]


def test_an_exported_model_is_scored_like_its_run(tmp_path: Path) -> None:
    """Kept types do not count, and dev is the part of a training file that was held out."""
    pytest.importorskip("onnx")
    fit(tmp_path / "old", only(*OLD), epochs=5, overrides=WORDS_ONLY)
    write(only(*NEW)["train"], tmp_path / "data.jsonl")
    data, _ = ensure_dev_split(read_corpus(tmp_path / "data.jsonl"))
    fit(tmp_path / "run", data, epochs=5, overrides=WORDS_ONLY, init=tmp_path / "old", keep_types=True)
    export(tmp_path / "run", tmp_path / "torch")
    export(tmp_path / "torch", tmp_path / "again")
    export_onnx(tmp_path / "again", tmp_path / "onnx")
    expected = score_model(load(tmp_path / "run"), tmp_path / "data.jsonl", split="dev")
    assert "predictions of Drug do not count" in expected.notes[-1]
    for name in ("torch", "again", "onnx"):
        scored = score_model(load(tmp_path / name), tmp_path / "data.jsonl", split="dev")
        assert (name, scored.to_json()["micro"], scored.notes) == (name, expected.to_json()["micro"], expected.notes)
    # The export itself compares the F1 of both models without kept types.
    write(data["dev"], tmp_path / "dev.jsonl")
    exported = export_onnx(tmp_path / "run", tmp_path / "compared", data=tmp_path / "dev.jsonl")
    assert exported.f1 == pytest.approx((expected.f1, expected.f1))


@pytest.mark.parametrize("recipe", ["grid", "seqner"])
def test_discontinuous_entities_of_kept_types_are_learned(recipe: str) -> None:
    """Probabilities are of contiguous spans; the fragments of others are learned from the entities of a sentence."""
    gold = Sentence("s", ("left", "and", "right", "knee"), (Entity("Drug", ((1, 2),)),))
    predicted = (Entity("Site", ((0, 1), (3, 4)), 0.9), Entity("Site", ((2, 4),), 0.6))
    opinion = Opinion(to_spans([(2, 4, 0, 0.6)]), Predictions(predicted))
    kept = KeptTypes(Corpus({"train": (gold,)}), TeacherOutputs([opinion], types=("Site",)))
    student = model("static", recipe, data=kept.corpus)
    (sentence,) = kept.sentences(student)
    learned = predicted[:1] if recipe == "grid" else predicted
    assert sentence.entities == (*gold.entities, *learned)
    assert student.head.discontinuous_types == (("Site",) if recipe == "grid" else ())


@pytest.mark.parametrize(
    ("recipe", "decoding", "learned"),
    [
        ("spanner", "nested", {"Drug": 1.0}),
        ("global-pointer", "flat", {"Drug": 1.0}),
        ("global-pointer", "nested", {"Drug": 1.0, "Site": 0.9}),
    ],
)
def test_an_old_type_is_learned_on_the_span_of_a_new_one_only_if_both_can_be_predicted(
    recipe: str, decoding: str, learned: dict[str, float]
) -> None:
    """A head that returns one of them could otherwise return the old one, and miss an entity of gold."""
    gold = Sentence("s", ("left", "knee"), (Entity("Drug", ((1, 2),)),))
    opinion = Opinion(to_spans([(0, 2, 0, 0.8), (1, 2, 0, 0.9)]), Predictions((Entity("Site", ((0, 2),), 0.8),)))
    kept = KeptTypes(Corpus({"train": (gold,)}), TeacherOutputs([opinion], types=("Site",)))
    student = model("static", recipe, (f"head.decoding={decoding}", "head.max_width=3"), data=kept.corpus)
    head = find_ability(student.head, LearnsProbabilities)
    assert head is not None
    (spans,) = head.target_spans(kept.sentences(student))
    rows = {
        (start, end, student.labels.entities[label]): mass
        for start, end, label, mass in zip(*(column.tolist() for column in spans), strict=True)
        if mass > 0
    }
    assert rows == pytest.approx({(0, 2, "Site"): 0.8} | {(1, 2, type): mass for type, mass in learned.items()})


def test_a_run_with_kept_types_is_resumed_without_the_old_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fit(tmp_path / "old", only(*OLD, count=24), recipe="spanner", epochs=1)
    options = {"recipe": "spanner", "epochs": 3, "checkpoint_steps": 2}
    data = only(*NEW, count=24)
    fit(tmp_path / "whole", data, init=tmp_path / "old", keep_types=True, **options)
    with monkeypatch.context() as patch:
        interrupt(patch, TrainingSteps, "make", 5)
        with pytest.raises(Interrupted):
            fit(tmp_path / "resumed", data, init=tmp_path / "old", keep_types=True, **options)
    shutil.rmtree(tmp_path / "old")
    fit(tmp_path / "resumed", data, resume=True, **options)
    assert digest(tmp_path / "resumed") == digest(tmp_path / "whole")


def test_a_run_without_kept_types_is_not_resumed_with_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fit(tmp_path / "old", only(*OLD, count=24), epochs=1)
    data = only(*NEW, count=24)
    with monkeypatch.context() as patch:
        interrupt(patch, TrainingSteps, "make", 2)
        with pytest.raises(Interrupted):
            fit(tmp_path / "run", data, init=tmp_path / "old")
    with pytest.raises(SpanwiseError, match="cannot resume with --keep-types: the run was started without it"):
        fit(tmp_path / "run", data, init=tmp_path / "old", keep_types=True, resume=True)


def test_groups_of_runs_keep_types(tmp_path: Path) -> None:
    fit(tmp_path / "old", only(*OLD, count=24), epochs=1, overrides=WORDS_ONLY)
    choices = Choices("seqner", "static", None, (*STATIC, *WORDS_ONLY), {"epochs": 1, "batch_size": 8})
    options = RunOptions(device="cpu", init=tmp_path / "old", keep_types=True, log=lambda line: None)
    train_seeds(only(*NEW, count=24), tmp_path / "seeds", [1], choices, options)
    resumed = replace(options, resume=True, init=None, keep_types=False)
    train_seeds(only(*NEW, count=24), tmp_path / "seeds", [1, 2], choices, resumed)
    for seed in (1, 2):
        assert load(tmp_path / "seeds" / f"seed-{seed}").types == ("Drug", "Place")


def test_a_sweep_does_not_count_kept_types_as_errors(tmp_path: Path) -> None:
    """The test split does not annotate them."""
    fit(tmp_path / "old", only(*OLD), epochs=5, overrides=WORDS_ONLY)
    settings = {"epochs": 5, "batch_size": 8, "head_rate": 0.03}
    choices = Choices("seqner", "static", None, (*STATIC, *WORDS_ONLY), settings)
    options = RunOptions(device="cpu", init=tmp_path / "old", keep_types=True, log=lambda line: None)
    summary = train_sweep(only(*NEW), tmp_path / "sweep", ["training.seed=1"], choices, options)
    assert summary["test"]["micro"]["precision"] > 0.8


def test_nothing_to_keep(tmp_path: Path) -> None:
    fit(tmp_path / "old", only(*OLD, count=24), epochs=1)
    lines: list[str] = []
    fit(tmp_path / "new", corpus(24), epochs=1, init=tmp_path / "old", keep_types=True, log=lines.append)
    assert f"the data annotates all types of {tmp_path / 'old'}: there are no types to keep" in lines


def test_data_without_entities_is_refused_before_the_old_model_reads_it(tmp_path: Path) -> None:
    fit(tmp_path / "old", only(*OLD, count=24), recipe="biaffine", epochs=1)
    for marks in (None, (), OLD):
        unannotated = Corpus({"train": tuple(replace(s, annotated=marks) for s in only(count=24)["train"])})
        lines: list[str] = []
        with pytest.raises(SpanwiseError, match="the training data has no entities; a model needs at least one to learn from"):
            fit(tmp_path / "new", unannotated, recipe="biaffine", init=tmp_path / "old", keep_types=True, log=lines.append)
        assert not any("reads" in line for line in lines)
        assert not (tmp_path / "new").exists()


def test_an_initial_model_that_does_not_match_is_refused_before_models_read_the_data(tmp_path: Path) -> None:
    fit(tmp_path / "old", only(*OLD, count=24), epochs=1)
    cases: list[tuple[Corpus, dict[str, Any]]] = [
        (only(*NEW, count=24), {"keep_types": True}),
        (only(*OLD, count=24), {"teachers": [tmp_path / "old"]}),
    ]
    for data, options in cases:
        lines: list[str] = []
        with pytest.raises(SpanwiseError, match="the encoder does not match this configuration"):
            fit(tmp_path / "new", data, ["encoder.hidden=5"], init=tmp_path / "old", log=lines.append, **options)
        assert not any("reads" in line for line in lines)


def test_a_type_that_the_data_annotates_without_entities_is_not_kept(tmp_path: Path) -> None:
    fit(tmp_path / "old", corpus(24), epochs=1)
    marked = Corpus({
        split: tuple(replace(s, annotated=(*OLD, *NEW)) for s in sentences) for split, sentences in only(*NEW).splits.items()
    })  # fmt: skip
    lines: list[str] = []
    run = fit(tmp_path / "new", marked, epochs=1, init=tmp_path / "old", keep_types=True, log=lines.append)
    assert run.model.labels.entities == NEW
    assert 'note: "annotated" lists Drug, but train has no such entity: the model will not predict it' in lines


def test_relations_that_the_old_model_does_not_predict_are_not_reported(tmp_path: Path) -> None:
    fit(tmp_path / "old", with_relations(corpus(24)), recipe="spanner", epochs=1)
    lines: list[str] = []
    fit(tmp_path / "new", only(*NEW, count=24), epochs=1, init=tmp_path / "old", keep_types=True, log=lines.append)
    assert any(line.startswith("keeping Drug of") for line in lines)
    assert not any("will not be predicted" in line for line in lines)


def test_relations_that_are_not_kept_are_reported(tmp_path: Path) -> None:
    relations = with_relations(corpus(24))
    fit(tmp_path / "old", relations, recipe="span-relations", epochs=1)
    names = sorted({relation.type for sentence in relations["train"] for relation in sentence.relations})
    lines: list[str] = []
    run = fit(tmp_path / "new", only(*NEW, count=24), epochs=1, init=tmp_path / "old", keep_types=True, log=lines.append)
    assert run.model.labels.relations == ()
    note = f"note: --keep-types keeps entity types only: the relations {', '.join(names)} will not be predicted"
    assert note in lines


def test_keep_types_needs_an_old_model(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["train", str(tmp_path), "--out", str(tmp_path / "run"), "--keep-types"])
    assert capsys.readouterr().err == "--keep-types needs --init RUN, the model whose types to keep\n"
    with pytest.raises(SpanwiseError, match="--keep-types needs --init RUN"):  # there is nothing to resume
        fit(tmp_path / "run", corpus(24), keep_types=True, resume=True)
    with pytest.raises(SpanwiseError, match="cannot be combined with teachers"):
        fit(tmp_path / "run", corpus(24), init=tmp_path, keep_types=True, teachers=[tmp_path])


def test_weights_of_types_are_copied_to_the_same_types() -> None:
    old, new = ("A", "C"), ("A", "B", "C")
    tags = copy_types(torch.zeros(7, 2), torch.arange(10.0).view(5, 2), old, new)  # O, then B and I of each type
    assert tags is not None
    assert tags[:, 0].tolist() == [0, 2, 4, 0, 0, 6, 8]
    blocks = copy_types(torch.zeros(9), torch.arange(1.0, 7.0), old, new)
    assert blocks is not None
    assert blocks.tolist() == [1, 2, 3, 0, 0, 0, 4, 5, 6]
    halves = copy_types(torch.zeros(6), torch.arange(1.0, 5.0), old, new)  # first words, then last words
    assert halves is not None
    assert halves.tolist() == [1, 0, 2, 3, 0, 4]
    square = copy_types(torch.zeros(4, 4), torch.ones(3, 3), old, new)
    assert square is not None
    assert square.sum() == 9
    assert square[1].sum() == 0
    assert copy_types(torch.zeros(5), torch.ones(3), old, new) is None


def with_new_type(recipe: str, folder: Path) -> tuple[Model, Model, str]:
    """A model, one with another type that has its weights, and the line of the log."""
    data = with_relations(corpus(24))
    # Not next to an old type of the same span, which would add a set of types.
    new_spans = [(s, (len(s.words) - 1, len(s.words))) for s in data["train"]]
    last = [
        s
        if any(tuple(entity.range) == span for entity in s.entities)
        else replace(s, entities=(*s.entities, Entity("New", (span,))))
        for s, span in new_spans
    ]
    old = model("static", recipe, ("encoder.pos_size=0",), data=data)
    new = model("static", recipe, ("encoder.pos_size=0",), data=Corpus({**data.splits, "train": tuple(last)}), seed=1)
    old.save(folder)
    return old, new, initialize_from(new, folder)


@pytest.mark.parametrize("recipe", [name for name in METHODS if "-paper" not in name and "deep" not in name])
def test_the_head_of_every_method_is_copied_if_there_are_more_types(recipe: str, tmp_path: Path) -> None:
    _, new, line = with_new_type(recipe, tmp_path)
    count = len(new.head.state_dict())
    assert f"and {count} of {count} weight tensors of the head" in line


@pytest.mark.parametrize(
    ("recipe", "table"),
    [("grid", "widths"), ("spanner", "width_embedding.weight"), ("shallow-span", "sizes.weight")],
)
@pytest.mark.parametrize("more_widths", [0, 1, 2])
def test_weights_of_widths_are_copied_to_the_same_widths(recipe: str, table: str, more_widths: int, tmp_path: Path) -> None:
    """Also if there are as many more widths as types: two types and widths before, three or more after."""
    data = corpus(24)
    train = [replace(s, entities=(*s.entities, Entity("A", ((0, 1),)))) for s in data["train"]]
    old = model("static", recipe, ("head.max_width=2",), data=data)
    new = model("static", recipe, (f"head.max_width={2 + more_widths}",), data=Corpus({**data.splits, "train": train}), seed=1)
    old.save(tmp_path)
    before = new.head.state_dict()[table].clone()
    initialize_from(new, tmp_path)
    after = new.head.state_dict()[table]
    assert torch.equal(after[:2], old.head.state_dict()[table])
    assert torch.equal(after[2:], before[2:])


@pytest.mark.parametrize("recipe", ["global-pointer", "efficient-global-pointer"])
def test_old_types_are_scored_as_before_if_there_are_more_types(recipe: str, tmp_path: Path) -> None:
    """Types of these heads are independent, so a new one changes no probability."""
    old, new, _ = with_new_type(recipe, tmp_path)
    columns = [new.labels.entities.index(type) for type in old.labels.entities]
    before, after = (span_probabilities(each.eval(), corpus(24)["train"]) for each in (old, new))
    for one, other in zip(before, after, strict=True):
        np.testing.assert_allclose(other.vectors[:, columns], one.vectors[:, : len(columns)], atol=1e-6)
