"""Distillation: the opinions of teachers, what a student learns from them, resuming, and refusals."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import discontinuous_corpus as reports
import pytest
import torch
from interruptions import Interrupted, interrupt
from tiny import STATIC, corpus, digest, fit, model, quiet, sentences, with_relations

from spanwise import Corpus, Entity, Sentence, SpanwiseError, distill, write
from spanwise.cli import main
from spanwise.heads.base import Labels
from spanwise.losses.teaching import TaughtSentence
from spanwise.models.model import Model
from spanwise.prediction.predictor import predict
from spanwise.prediction.span_vectors import span_probabilities
from spanwise.training.data import UNLABELLED, add_unlabelled, all_sentences
from spanwise.training.distillation import check_student
from spanwise.training.loop import Trainer
from spanwise.training.steps import TrainingSteps
from spanwise.training.teachers import ask_teachers

GRID = ("head.channels=8", "head.rank=4", "head.dropout=0", "head.hidden_dropout=0")
LABELS = Labels(("Drug", "Place"))
TEXT = tuple(replace(s, id=f"u{s.id}") for s in sentences(25, seed=77))


@pytest.fixture(scope="module")
def teachers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A span head, a tagger, and a relation head, trained for a second."""
    folder = tmp_path_factory.mktemp("teachers")
    fit(folder / "grid", overrides=GRID, recipe="grid", epochs=6)
    fit(folder / "tagger", recipe="seqner", epochs=4, seed=2)
    fit(folder / "relations", with_relations(corpus(60)), recipe="gp-relations", epochs=8)
    return {path.name: path for path in folder.iterdir()}


@pytest.fixture
def text(tmp_path: Path) -> Path:
    write(TEXT, tmp_path / "text.jsonl")
    return tmp_path / "text.jsonl"


def few() -> Corpus:
    """The tiny corpus with a few training sentences."""
    data = corpus(60)
    return Corpus({**data.splits, "train": data["train"][:12]})


def taught(out: Path, teachers: Any, **options: Any) -> Any:
    options = {"recipe": "spanner", "epochs": 2, "data": few(), **options}
    return fit(out, teachers=teachers, **options)


@pytest.mark.parametrize(
    ("recipe", "open_spans"),
    [("spanner", "learned from the teachers"), ("seqner", "ignored")],  # from probabilities, from labels
)
def test_the_note_on_partial_annotations_says_what_the_student_learns(
    recipe: str, open_spans: str, teachers: dict[str, Path], text: Path, tmp_path: Path
) -> None:  # fmt: skip
    data, lines = few(), list[str]()
    marked = Corpus({**data.splits, "train": tuple(replace(s, annotated=("Drug",)) for s in data["train"])}, data.name)
    taught(tmp_path / "run", [teachers["grid"]], recipe=recipe, data=marked, unlabelled=[text], log=lines.append)
    assert f"note: 12 of 12 training sentences are annotated partially: their open spans are {open_spans}" in lines


def test_opinions_are_means_over_the_teachers(teachers: dict[str, Path]) -> None:
    """Compared with a loop over spans: probabilities of a span head, scores of the entities of a tagger."""
    inputs = [*sentences(8, seed=5), Sentence("empty", ())]
    opinions = ask_teachers([teachers["grid"], teachers["tagger"]], LABELS, inputs, policy="flat", log=quiet)
    grid, tagger = (Model.load(teachers[name]) for name in ("grid", "tagger"))
    count = 0
    for sentence, opinion, vectors, tagged in zip(
        inputs, opinions, span_probabilities(grid, inputs), predict(tagger, inputs), strict=True
    ):
        by_span = {tuple(span): vector for span, vector in zip(vectors.spans.tolist(), vectors.vectors, strict=True)}
        expected = {}
        for start, end in product(range(len(sentence.words)), range(1, len(sentence.words) + 1)):
            for index, type in enumerate(LABELS.entities):
                one = float(by_span[start, end][index]) if (start, end) in by_span else 0.0
                scores = [e.score or 0.0 for e in tagged.entities if e.type == type and e.range == (start, end)]
                mean = ((one if one > 0.01 else 0.0) + sum(scores)) / 2
                if mean >= 0.01:
                    expected[start, end, index] = mean
        actual = {(int(s), int(e), int(c)): float(m) for s, e, c, m in zip(*opinion.spans, strict=True)}
        assert actual == pytest.approx(expected, abs=1e-5)
        for entity in opinion.predictions.entities:
            mean = expected[entity.range.start, entity.range.end, LABELS.entities.index(entity.type)]
            assert entity.score == pytest.approx(mean, abs=1e-5)
            assert mean >= 0.5
        count += len(opinion.predictions.entities)
    assert count >= 5


def test_discontinuous_entities_are_those_that_most_teachers_with_fragments_predict(tmp_path: Path) -> None:
    data = reports.corpus(40, 5, 6)
    for name, overrides in (("joins", ()), ("also", ()), ("none", ("head.discontinuous=false",))):
        built = model("static", "grid", overrides, data=data)
        if name != "none":
            with torch.no_grad():  # many fragments and links, with a score above 0.7
                built.head.get_parameter("links.grid.classifier.bias").fill_(1.0)
                built.head.get_parameter("links.grid.classifier.weight").fill_(0.0)
                built.head.get_parameter("typing.typing.bias")[0] = 9.0
        built.save(tmp_path / name)
    inputs = [Sentence("s", ("left", "and", "right", "knee"))]

    def joined(*names: str) -> list[list[Entity]]:
        opinions = ask_teachers([tmp_path / name for name in names], built.labels, inputs, log=quiet)
        return [[entity for entity in opinion.predictions.entities if entity.is_discontinuous] for opinion in opinions]

    assert any(joined("joins"))
    assert joined("joins", "none") == joined("joins", "also") == joined("joins")
    assert not any(joined("none"))
    student = model("static", "grid", data=data)
    assert not check_student(student, [str(tmp_path / "joins"), str(tmp_path / "none")], has_unlabelled=True)
    (note,) = check_student(student, [str(tmp_path / "none")], has_unlabelled=True)
    assert note.startswith("no teacher predicts discontinuous entities of ")


def test_a_student_learns_from_unlabelled_text(teachers: dict[str, Path], text: Path, tmp_path: Path) -> None:
    options: dict[str, Any] = {"recipe": "grid", "overrides": GRID, "epochs": 8, "data": few()}
    alone = fit(tmp_path / "alone", **options).scores["test"]["micro"]["f1"]
    student = taught(tmp_path / "student", [teachers["grid"]], unlabelled=[text], **options)
    assert student.scores["test"]["micro"]["f1"] > alone + 0.1
    report = json.loads((tmp_path / "student" / "run.json").read_text())["distillation"]
    assert report["unlabelled"] == [str(text)]
    (teacher,) = report["teachers"]
    assert (teacher["path"], teacher["recipe"], len(teacher["weights"])) == (str(teachers["grid"]), "grid", 16)
    assert not (tmp_path / "student" / "teacher_outputs.jsonl").exists()


def test_training_sentences_keep_gold_and_unlabelled_ones_get_predictions(
    teachers: dict[str, Path], text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trainers: list[Trainer] = []
    train = Trainer.train
    monkeypatch.setattr(Trainer, "train", lambda self, *args: (trainers.append(self), train(self, *args)))
    long = Sentence("long", ("oslo",) * 600, (Entity("Place", ((0, 1),)),))
    data = few()
    data = Corpus({**data.splits, "train": (*data["train"], long)})
    taught(tmp_path / "run", [teachers["grid"]], data=data, unlabelled=[text], epochs=1, gold_weight=0.3)
    (trainer,) = trainers
    assert [s.entities for s in trainer.sentences[: len(data["train"])]] == [s.entities for s in data["train"]]
    rest = trainer.sentences[len(data["train"]) :]
    assert [s.words for s in rest] == [s.words for s in TEXT if s.words not in {k.words for k in all_sentences(data)}]
    for index, sentence in enumerate(trainer.sentences):
        if sentence.id == "long":  # longer than what a model reads at once: only gold
            assert not isinstance(sentence, TaughtSentence)
        else:
            assert isinstance(sentence, TaughtSentence)
            assert sentence.gold_weight == (0.3 if index < len(data["train"]) else 0.0)
    assert any(s.entities for s in rest)
    assert all(entity.score and entity.score >= 0.5 for s in rest for entity in s.entities)


def test_sentences_of_the_data_are_no_unlabelled_text(text: Path, tmp_path: Path) -> None:
    data, lines = few(), list[str]()
    write((*TEXT[:3], *data["dev"][:4], *data["test"][:2]), tmp_path / "more.jsonl")
    (tmp_path / "raw.txt").write_text("Aspirin helps in Quito. Nothing here.\n")
    added = add_unlabelled(data, [str(tmp_path / "more.jsonl"), str(tmp_path / "raw.txt")], lines.append)[UNLABELLED]
    assert [s.words for s in added[:3]] == [s.words for s in TEXT[:3]]
    assert [" ".join(s.words) for s in added[3:]] == ["Aspirin helps in Quito .", "Nothing here ."]
    assert not any(s.entities for s in added)
    assert "note: 6 unlabelled sentences that are also in the data, skipped" in lines
    write(data["dev"][:2], tmp_path / "none.jsonl")
    with pytest.raises(SpanwiseError, match=r"none\.jsonl: no unlabelled sentences that are not in the data"):
        add_unlabelled(data, [str(tmp_path / "none.jsonl")], quiet)


def test_long_sentences_of_the_data_are_no_unlabelled_text(tmp_path: Path) -> None:
    """A sentence is compared as a whole, before it is split into windows."""
    data, lines = few(), list[str]()
    long, other = (Sentence(word, (word,) * 600) for word in ("known", "new"))
    data = Corpus({**data.splits, "dev": (*data["dev"], long)})
    write((long, other), tmp_path / "long.jsonl")
    added = add_unlabelled(data, [str(tmp_path / "long.jsonl")], lines.append)[UNLABELLED]
    assert {s.words[0] for s in added} == {"new"}
    assert len(added) == 2
    assert lines == ["note: 1 unlabelled sentence that is also in the data, skipped"]


def test_unlabelled_text_has_the_encoding_of_the_data(teachers: dict[str, Path], tmp_path: Path) -> None:
    data, text = tmp_path / "data.jsonl", tmp_path / "text.txt"
    write(few()["train"], data)
    text.write_text("Aspirine à Quito et à Lima.\n", encoding="latin-1")
    options: dict[str, Any] = {"recipe": "spanner", "epochs": 1, "unlabelled": [text], "data": data}
    with pytest.raises(SpanwiseError, match=r"text.txt:1: not UTF-8 .*; pass --encoding latin-1"):
        taught(tmp_path / "run", [teachers["grid"]], **options)
    taught(tmp_path / "run", [teachers["grid"]], **options, data_format=":encoding=latin-1")
    vocabulary = json.loads((tmp_path / "run" / "static_encoder.json").read_text(encoding="utf-8"))["vocabulary"]
    assert "à" in vocabulary["learned"]


def test_an_interrupted_student_resumes_identically_without_its_teachers(
    teachers: dict[str, Path], text: Path, tmp_path: Path
) -> None:
    group = tmp_path / "group"
    copies = [shutil.copytree(teachers[name], group / name) for name in ("grid", "tagger")]
    options: dict[str, Any] = {"unlabelled": [text], "checkpoint_steps": 2, "overrides": ("head.negatives=6",)}
    taught(tmp_path / "whole", copies, **options)
    with pytest.MonkeyPatch.context() as patch:
        interrupt(patch, TrainingSteps, "_backward", 6)
        with pytest.raises(Interrupted):
            taught(tmp_path / "parts", copies, **options)
    for message, changes in (
        ("was started with spanwise distill; resume it with that command", {"teachers": (), "unlabelled": ()}),
        ("cannot resume with other teachers; it was started with", {"teachers": copies[:1]}),
        ("cannot resume with other unlabelled text", {"unlabelled": [copies[0] / "metrics.jsonl"]}),
    ):
        with pytest.raises(SpanwiseError, match=message):
            taught(tmp_path / "parts", **{"teachers": copies, **options, "resume": True, **changes})
    shutil.rmtree(group)
    taught(tmp_path / "parts", [group], resume=True, checkpoint_steps=2, overrides=("head.negatives=6",))
    assert digest(tmp_path / "parts") == digest(tmp_path / "whole")
    assert sorted(p.name for p in (tmp_path / "parts").iterdir()) == sorted(p.name for p in (tmp_path / "whole").iterdir())


@pytest.mark.parametrize("moment", [1, 2, 3])  # before the record, the outputs of teachers, the configuration
def test_a_student_interrupted_before_its_first_step_starts_again(
    teachers: dict[str, Path], tmp_path: Path, moment: int
) -> None:
    options: dict[str, Any] = {"epochs": 1, "teachers": [teachers["tagger"]]}
    taught(tmp_path / "whole", **options)
    with pytest.MonkeyPatch.context() as patch:
        interrupt(patch, Path, "replace", moment)
        with pytest.raises(Interrupted):
            taught(tmp_path / "parts", **options)
    taught(tmp_path / "parts", resume=True, **options)
    assert digest(tmp_path / "parts") == digest(tmp_path / "whole")


def test_changed_unlabelled_text_is_refused(teachers: dict[str, Path], text: Path, tmp_path: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        interrupt(patch, TrainingSteps, "_backward", 6)
        with pytest.raises(Interrupted):
            taught(tmp_path / "run", [teachers["tagger"]], unlabelled=[text], checkpoint_steps=2)
    write(TEXT[1:], text)
    with pytest.raises(SpanwiseError, match="the unlabelled data has changed since the run was started"):
        taught(tmp_path / "run", [teachers["tagger"]], unlabelled=[text], checkpoint_steps=2, resume=True)


def test_random_numbers_of_a_student_do_not_depend_on_its_teachers(teachers: dict[str, Path], tmp_path: Path) -> None:
    """With all weight on gold, a student is the model that is trained without teachers."""
    fit(tmp_path / "alone", few(), recipe="spanner", epochs=2)
    taught(tmp_path / "student", [teachers["grid"]], gold_weight=1.0)
    one, other = digest(tmp_path / "alone"), digest(tmp_path / "student")
    assert one[0] == other[0]
    assert one[1] == other[1]


def test_relations_in_unlabelled_text_are_those_that_most_teachers_predict(
    teachers: dict[str, Path], text: Path, tmp_path: Path
) -> None:
    lines: list[str] = []
    data = with_relations(few())
    student = {"data": data, "recipe": "gp-relations", "epochs": 1, "unlabelled": [text], "log": lines.append}
    taught(tmp_path / "run", [teachers["relations"], teachers["grid"]], **student)
    assert any("relations are learned from gold and, in unlabelled text, from relations that" in line for line in lines)
    labels = Labels(("Drug", "Place"), data.relation_types)
    opinions = ask_teachers([teachers["relations"]], labels, data["train"], log=quiet)
    predicted = list(predict(Model.load(teachers["relations"]), data["train"]))
    assert any(sentence.relations for sentence in predicted)
    for opinion, sentence in zip(opinions, predicted, strict=True):
        assert {(r.type, r.head, r.tail) for r in opinion.predictions.relations} == {
            (r.type, r.head, r.tail) for r in sentence.relations
        }
    with pytest.raises(SpanwiseError, match="no teacher predicts relations"):
        taught(tmp_path / "refused", [teachers["grid"]], **student)
    assert not (tmp_path / "refused").exists()


def test_only_teachers_that_know_a_relation_type_vote_on_it(teachers: dict[str, Path], text: Path, tmp_path: Path) -> None:
    data = with_relations(few())
    labels = Labels(("Drug", "Place"), data.relation_types)
    other = shutil.copytree(teachers["relations"], tmp_path / "other")
    record = json.loads((other / "labels.json").read_text())
    (other / "labels.json").write_text(json.dumps({**record, "relations": [f"other {type}" for type in labels.relations]}))

    def relations(*folders: Path) -> list[Any]:
        opinions = ask_teachers(folders, labels, data["train"], log=quiet)
        return [relation for opinion in opinions for relation in opinion.predictions.relations]

    assert relations(teachers["relations"])
    assert relations(teachers["relations"], other, other) == relations(teachers["relations"])
    with pytest.raises(SpanwiseError, match=f"no teacher predicts relations of {labels.relations[0]}"):
        taught(tmp_path / "run", [other], data=data, recipe="gp-relations", unlabelled=[text])


def test_a_head_that_learns_labels_needs_unlabelled_text(teachers: dict[str, Path], text: Path, tmp_path: Path) -> None:
    with pytest.raises(SpanwiseError, match="the head seqner learns from labels, not from probabilities; pass --unlabelled"):
        taught(tmp_path / "run", [teachers["grid"]], recipe="seqner")
    lines: list[str] = []
    taught(tmp_path / "run", [teachers["grid"]], recipe="seqner", epochs=1, unlabelled=[text], log=lines.append)
    assert any("from entities to which the teachers give 0.5 or more" in line for line in lines)


def test_refused_teachers(teachers: dict[str, Path], tmp_path: Path) -> None:
    data = few()
    other = Corpus({
        split: tuple(replace(s, entities=(*s.entities, Entity("Virus", ((0, 1),)))) for s in rows)
        for split, rows in data.splits.items()
    })  # fmt: skip
    with pytest.raises(SpanwiseError, match="grid: does not know Virus; a teacher must know all entity types"):
        taught(tmp_path / "run", [teachers["grid"]], data=other)
    typing = shutil.copytree(teachers["tagger"], tmp_path / "typing") / "config.yaml"
    typing.write_text(typing.read_text().replace("kind: seqner", "kind: sng\n  task: typing"))
    with pytest.raises(SpanwiseError, match="typing: types given spans and cannot teach"):
        taught(tmp_path / "run", [tmp_path / "typing"])
    with pytest.raises(SpanwiseError, match="nowhere: no such folder"):
        taught(tmp_path / "run", [tmp_path / "nowhere"])
    with pytest.raises(SpanwiseError, match="distillation needs at least one teacher"):
        distill([], data, tmp_path / "run")
    with pytest.raises(SpanwiseError, match="unlabelled text needs a teacher"):
        fit(tmp_path / "run", data, unlabelled=["x.jsonl"])
    with pytest.raises(SpanwiseError, match="would overwrite"):
        taught(teachers["grid"] / "model.safetensors", [teachers["grid"]])
    assert not (tmp_path / "run").exists()


def test_a_folder_of_runs_is_several_teachers(teachers: dict[str, Path], tmp_path: Path) -> None:
    group = tmp_path / "group"
    for name in ("grid", "tagger"):
        shutil.copytree(teachers[name], group / f"seed-{len(name)}")
    lines: list[str] = []
    taught(tmp_path / "run", [group], epochs=1, log=lines.append)
    assert [line.split(":")[0] for line in lines if line.startswith("teacher")] == ["teacher 1 of 2", "teacher 2 of 2"]
    assert torch.isfinite(next(Model.load(tmp_path / "run").parameters())).all()


def test_the_command(teachers: dict[str, Path], text: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = tmp_path / "data"
    data.mkdir()
    for split, rows in few().splits.items():
        write(rows, data / f"{split}.jsonl")

    def run(*words: object) -> tuple[int, str, str]:
        settings = [word for setting in STATIC for word in ("--set", setting)]
        command = ["distill", *map(str, words), "--encoder", "static", "--recipe", "spanner", "--device", "cpu", *settings]
        with pytest.raises(SystemExit) as caught:
            main([*command, "--epochs", "1", "--out", str(tmp_path / "run")])
        return (int(caught.value.code or 0), *capsys.readouterr())

    code, _, error = run(data)
    assert code == 2
    assert "missing argument" in error
    assert run(tmp_path / "nowhere", data) == (2, "", f"{tmp_path / 'nowhere'}: no such folder\n")
    code, out, error = run(teachers["grid"], teachers["tagger"], data, "--unlabelled", text, "--seed", "3")
    assert (code, error) == (0, "")
    assert f"teacher 2 of 2: {teachers['tagger']} reads " in out
    assert f"run folder: {tmp_path / 'run'}" in out.splitlines()
    assert json.loads((tmp_path / "run" / "run.json").read_text())["seed"] == 3
