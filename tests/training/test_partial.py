"""Training on partially annotated data."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from pathlib import Path

import pytest
from interruptions import Interrupted, interrupt
from tiny import corpus, digest, fit, model, quiet

from spanwise import Corpus, Entity, Relation, Sentence, Span, SpanwiseError
from spanwise.corpora.splits import fingerprint
from spanwise.decoding.decode import Predictions
from spanwise.heads.spanner import SpanNer
from spanwise.training.distillation import Distillation
from spanwise.training.gaps import FilledGaps
from spanwise.training.partial_checks import check_partial
from spanwise.training.run import train
from spanwise.training.steps import TrainingSteps
from spanwise.training.teacher_outputs import TeacherOutputs
from spanwise.training.teachers import Opinion, to_spans

WORDS_ONLY = ("encoder.char_hidden=0", "encoder.layers=0")  # the corpus needs no context


def remove_entities(data: Corpus, *, is_marked: bool) -> Corpus:
    """Remove six of ten training entities; dev stays complete."""
    generator = random.Random(3)

    def damage(sentence: Sentence) -> Sentence:
        kept = tuple(entity for entity in sentence.entities if generator.random() < 0.4)
        return replace(sentence, entities=kept, relations=(), annotated=() if is_marked else None)

    return Corpus({**data.splits, "train": tuple(map(damage, data["train"]))}, data.name)


@pytest.mark.parametrize("recipe", ["spanner", "seqner-crf"])
def test_marks_keep_missing_entities_from_being_learned_as_none(recipe: str, tmp_path: Path) -> None:
    recalls = {}
    for is_marked in (False, True):
        lines: list[str] = []
        data = remove_entities(corpus(90), is_marked=is_marked)
        options = {"recipe": recipe, "epochs": 5, "rounds": 1, "overrides": WORDS_ONLY}
        run = fit(tmp_path / str(is_marked), data, log=lines.append, **options)
        recalls[is_marked] = run.scores["dev"]["micro"]["recall"]
        note = "note: 90 of 90 training sentences are annotated partially: their open spans are ignored, except in 90 without"
        assert any(line.startswith(note) for line in lines) == is_marked
    assert recalls[True] > recalls[False] + 0.2


GAPS = {"recipe": "spanner", "epochs": 6, "overrides": WORDS_ONLY, "checkpoint_steps": 4}


@pytest.fixture(scope="module")
def two_rounds(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """A run of two rounds and its log."""
    lines: list[str] = []
    folder = tmp_path_factory.mktemp("runs") / "run"
    fit(folder, remove_entities(corpus(60), is_marked=True), log=lines.append, **GAPS)
    return folder, lines


def test_a_first_model_fills_the_gaps(two_rounds: tuple[Path, list[str]]) -> None:
    folder, lines = two_rounds
    assert "first round: 60 training sentences with gaps; this model predicts what is missing there" in lines
    report = json.loads((folder / "run.json").read_text())
    added = report["gaps"]["added_entities"]
    assert added > 10
    assert f"second round: learning {added} more entities that the first model predicts in 60 sentences" in lines
    assert not (folder / "checkpoints").exists()
    assert not (folder / "teacher_outputs.jsonl").exists()


@pytest.mark.parametrize("step", [6, 48 + 7])  # of the first and of the second round, which have 48 steps each
def test_both_rounds_are_resumed(
    step: int, two_rounds: tuple[Path, list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:  # fmt: skip
    data = remove_entities(corpus(60), is_marked=True)
    with monkeypatch.context() as patch:
        interrupt(patch, TrainingSteps, "make", step)
        with pytest.raises(Interrupted):
            fit(tmp_path / "run", data, **GAPS)
    lines: list[str] = []
    fit(tmp_path / "run", data, resume=True, log=lines.append, **GAPS)
    assert any(line.startswith("resuming after step") for line in lines)
    assert digest(tmp_path / "run") == digest(two_rounds[0])


def test_both_rounds_have_the_same_encoder(tiny_bert: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A default encoder that does not know the script is replaced, also if the first round is resumed."""
    monkeypatch.setattr("spanwise.recipes.catalog.default_encoder", lambda: str(tiny_bert))
    sentence = Sentence("z", tuple("奥斯陆是挪威的首都"), (Entity("Place", ((0, 3),)),), annotated=())
    data = Corpus({"train": (sentence,) * 2, "dev": (sentence,)})
    with monkeypatch.context() as patch:
        interrupt(patch, TrainingSteps, "make", 2)
        with pytest.raises(Interrupted):
            train(data, tmp_path / "run", epochs=2, device="cpu", log=quiet)
    lines: list[str] = []
    run = train(data, tmp_path / "run", resume=True, device="cpu", log=lines.append)
    assert run.model.config.encoder["kind"] == "static"
    assert not any("starting from the beginning" in line for line in lines)


def test_a_failing_first_round_leaves_nothing(tmp_path: Path) -> None:
    data = remove_entities(corpus(24), is_marked=True)
    empty = tuple(replace(sentence, entities=()) for sentence in data["train"])
    with pytest.raises(SpanwiseError, match="no entities"):
        fit(tmp_path / "run", Corpus({**data.splits, "train": empty}))
    assert not (tmp_path / "run").exists()


def test_relations_are_filled_too() -> None:
    words = tuple("abcd")
    a, b, c = (Entity("X", (Span(n, n + 1),), 0.9) for n in range(3))
    sentence = Sentence("s", words, (b, a), (Relation("r", 0, 1),), annotated=())
    predictions = Predictions((a, b, c), (Relation("r", 1, 0), Relation("r", 0, 2)))
    filled = FilledGaps(Corpus({"train": (sentence,)}), TeacherOutputs([Opinion(to_spans(()), predictions)]))
    (result,) = filled.corpus["train"]
    assert result.entities == (b, a, c)
    assert result.relations == (Relation("r", 0, 1), Relation("r", 1, 2))
    assert result.annotated is None


def test_marks_are_part_of_the_fingerprint() -> None:
    """A run is not resumed with other marks."""
    one, other = (remove_entities(corpus(30), is_marked=is_marked)["train"] for is_marked in (False, True))
    assert fingerprint(one) != fingerprint(other)


def test_heads_that_cannot_learn_from_marks_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    data = remove_entities(corpus(30), is_marked=True)
    built = model("static", "seqner", data=data)
    assert len(check_partial(data["train"], built.head)) == 1
    monkeypatch.setattr("spanwise.training.partial_checks.LearnsPartial", SpanNer)
    with pytest.raises(SpanwiseError, match=r"the head seqner cannot learn from partially annotated .* can: spanner"):
        check_partial(data["train"], built.head)


def test_teachers_decide_about_open_spans() -> None:
    data = remove_entities(corpus(30), is_marked=True)
    sentence = replace(data["train"][0], entities=())
    opinion = Opinion(to_spans([(0, 1, 0, 0.8)]), Predictions(()))
    stored = TeacherOutputs([opinion])
    distillation = Distillation(Corpus({"train": (sentence,)}), (), (), stored, device="cpu", log=quiet)
    student = model("static", "spanner", data=data)
    (taught,) = distillation.sentences(student)
    assert taught.annotated is None
    assert student.head.target_spans([taught])[0].mass.tolist() == pytest.approx([0.8])  # type: ignore[operator]
    tagger = model("static", "seqner", data=data)  # learns no probabilities, so the spans stay open
    assert distillation.sentences(tagger)[0].annotated == ()
