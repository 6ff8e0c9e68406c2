"""The training of a round: its data, its model, and the comparison with the served model."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import label_studio_requests as requests
import pytest
import tiny

from spanwise.core.errors import SpanwiseError
from spanwise.core.types import Corpus, Entity, Relation, Sentence
from spanwise.corpora.splits import read_corpus
from spanwise.formats import write
from spanwise.label_studio import messages, train_round
from spanwise.label_studio.backend import saved_changes
from spanwise.label_studio.collection import Change, Collection
from spanwise.label_studio.configuration import write_configuration
from spanwise.label_studio.round_data import round_corpus
from spanwise.label_studio.rounds import LearningFolder, Round, RoundRequest, RoundResult
from spanwise.models.model import Model
from spanwise.runs.folder import RunFolder
from spanwise.training.kept_types import annotated_types


def collect(folder: Path, texts: dict[str, list[tuple[int, int, str]]], types: str = requests.PEOPLE) -> RoundRequest:
    """Collect annotated texts; return the request of a round with them."""
    collection = Collection(folder)
    for number, (text, spans) in enumerate(texts.items(), 1):
        result = [requests.region(start, end, text[start:end], label, f"r{start}") for start, end, label in spans]
        message = requests.saved(number, result, text=text, task_id=number) | {"project": requests.project(types)}
        [change], _ = saved_changes(messages.validate(messages.AnnotationsSaved, message))
        collection.add(change)
    return RoundRequest("run", collection.count, str(collection.path))


def save(folder: Path, **splits: list[Sentence]) -> Path:
    folder.mkdir()
    for name, sentences in splits.items():
        write(sentences, folder / f"{name}.jsonl")
    return folder


def words(sentences: tuple[Sentence, ...]) -> list[str]:
    return [" ".join(sentence.words) for sentence in sentences]


def test_annotations_join_the_base_data(tmp_path: Path) -> None:
    place, person = Entity("Place", ((1, 2),)), Entity("Person", ((0, 1),))
    base = save(
        tmp_path / "base",
        train=[Sentence("1", ("in", "Oslo"), (place,)), Sentence("2", ("Ann", "came"), (person,))],
        dev=[Sentence("3", ("in", "Rome"), (place,))],
        test=[Sentence("4", ("in", "Bonn"), (place,))],
    )
    texts = {"Bob came": [(0, 3, "Person")], "Ann came": [], "in Rome": [], "in Bonn": [(3, 7, "Place")]}
    lines: list[str] = []
    corpus = round_corpus(replace(collect(tmp_path, texts), data=str(base)), lines.append)
    assert words(corpus["train"]) == ["in Oslo", "Bob came", "Ann came"]
    assert corpus["train"][2].entities == (), "the annotation replaces the sentence of the base data"
    assert words(corpus["dev"]) == ["in Rome"], "unchanged, and not trained on"
    assert lines[-1] == (
        "training on 1 sentence of the base data and 2 collected; 1 replaced, 2 skipped because they are in dev or test"
    )
    assert [sentence.annotated for sentence in corpus["train"]] == [None] * 3


def test_types_without_a_label_are_not_counted_as_annotated(tmp_path: Path) -> None:
    drug = Entity("Drug", ((0, 1),))
    base = save(tmp_path / "base", train=[Sentence("1", ("Aspirin", "helps"), (drug,))], dev=[Sentence("2", ("No",))])
    corpus = round_corpus(replace(collect(tmp_path, {"Bob came": [(0, 3, "Person")]}), data=str(base)), tiny.quiet)
    assert [sentence.annotated for sentence in corpus["train"]] == [None, ("Person", "Place")]


def test_a_correction_keeps_what_the_project_cannot_show(tmp_path: Path) -> None:
    """The project has no label for drugs, and Label Studio no discontinuous entities."""
    ann, aspirin, pair = Entity("Person", ((0, 1),)), Entity("Drug", ((2, 3),)), Entity("Person", ((0, 1), (4, 5)))
    words, relations = ("Ann", "takes", "Aspirin", "in", "Oslo"), (Relation("takes", 0, 1), Relation("same", 0, 2))
    original = Sentence("1", words, (ann, aspirin, pair), relations)
    base = save(tmp_path / "base", train=[original], dev=[Sentence("2", ("No",))])
    texts = {original.text: [(0, 3, "Person"), (21, 25, "Place")]}
    corpus = round_corpus(replace(collect(tmp_path, texts), data=str(base)), tiny.quiet)
    (sentence,) = corpus["train"]
    assert sentence.entities == (ann, Entity("Place", ((4, 5),)), aspirin, pair)
    assert sentence.relations == (Relation("takes", 0, 2), Relation("same", 0, 3))
    assert sentence.annotated is None


def test_sentences_with_other_words_are_recognised(tmp_path: Path) -> None:
    """A text of Label Studio has no words: it may be divided into other words and sentences than the base data."""
    dose = Entity("Dose", ((1, 2),))
    base = save(
        tmp_path / "base",
        train=[Sentence("1", ("Ann's", "5mg-dose", "helps."), (dose,)), Sentence("2", ("Bob", "came"))],
        dev=[Sentence("3", ("in-Rome", "again")), Sentence("4", ("Ann", "left.", "Bob", "stayed."))],
    )
    texts = {
        "in-Rome again": [(3, 7, "Place")],
        "Ann's 5mg-dose helps.": [(0, 3, "Person")],
        "Ann left. Bob stayed.": [(0, 3, "Person")],
        "Ann left. Ann came.": [(0, 3, "Person")],
    }
    lines: list[str] = []
    corpus = round_corpus(replace(collect(tmp_path, texts), data=str(base)), lines.append)
    assert [sentence.text.strip() for sentence in corpus["train"]] == [
        "Bob came", "Ann's 5mg-dose helps.", "Ann left.", "Ann came."
    ]  # fmt: skip
    corrected = corpus["train"][1]
    assert {(entity.type, corrected.text_of(entity)) for entity in corrected.entities} == {
        ("Person", "Ann"), ("Dose", "5mg-dose")
    }  # fmt: skip
    assert lines[-1].endswith("1 replaced, 3 skipped because they are in dev or test")


def test_without_base_data_dev_is_a_fixed_part_of_the_tasks(tmp_path: Path) -> None:
    texts = {f"Bob came {number} times": [(0, 3, "Person")] for number in range(20)}
    request = replace(collect(tmp_path, texts), model=str(with_types(tmp_path / "run", ["Person"])))
    small, large = (round_corpus(replace(request, changes=count), tiny.quiet) for count in (12, 20))
    assert set(words(small["dev"])) < set(words(large["dev"]))
    assert not set(words(large["dev"])) & set(words(large["train"]))
    assert len(small["dev"]) + len(small["train"]) == 12
    with pytest.raises(SpanwiseError, match="not enough annotations"):
        round_corpus(replace(request, changes=1), tiny.quiet)


def test_without_base_data_labels_that_were_never_used_are_kept(tmp_path: Path) -> None:
    """The project has no label for drugs, so its sentences are marked; its label for places was not used yet."""
    texts = {f"Bob came {number} times": [(0, 3, "Person")] for number in range(20)}
    old = with_types(tmp_path / "run", ["Drug", "Person", "Place"])
    corpus = round_corpus(replace(collect(tmp_path, texts), model=str(old)), tiny.quiet)
    assert {sentence.annotated for split in corpus for sentence in corpus[split]} == {("Person",)}
    assert annotated_types(corpus["train"]) == {"Person"}, "the served model teaches the others"


def with_types(folder: Path, types: list[str]) -> Path:
    """A run folder of which only the labels are read."""
    folder.mkdir()
    (folder / "labels.json").write_text(json.dumps({"entities": types, "relations": []}))
    return folder


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The base data, and a model that was trained too short on half of it."""
    folder = tmp_path_factory.mktemp("served")
    corpus = tiny.corpus(60)
    base = save(folder / "base", **{split: list(corpus[split]) for split in corpus})
    half = Corpus({**corpus.splits, "train": corpus["train"][::2]})
    return base, tiny.fit(folder / "run", half, epochs=2).folder


def test_a_round_trains_from_the_served_model(
    served: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    base, run = served
    folder = LearningFolder(tmp_path / "learning", run)
    with folder.opened():
        text = "nobody came from quito to lima"
        types = write_configuration(["Drug", "Place"])
        request = collect(folder.path, {text: [(17, 22, "Place"), (26, 30, "Place")]}, types)
        config = json.loads((run / "run.json").read_text())["requested"]
        round = folder.add_round(replace(request, model=str(folder.model), data=str(base), device="cpu"))
        train_round.run_round(round)
        result = round.read_result()
        assert result.error is None
        assert result.old == pytest.approx(RunFolder(run).read_scores()["dev"]["micro"]["f1"]), "on the same dev data"
        data = read_corpus(round.data)
        assert words(data["train"])[-1] == text
        assert words(data["dev"]) == words(read_corpus(base)["dev"])
        assert "weight tensors of the head" in capsys.readouterr().out
        assert result.is_better, result
        assert json.loads((round.run / "run.json").read_text())["requested"] == config, "the settings of the served model"
        assert folder.model == round.run
        old, new = Model.load(run), Model.load(round.run)
        assert train_round.compare(new, new, data).is_better is False
        assert train_round.compare(new, old, data) == RoundResult(result.new, result.old)
        round.finish(RoundResult(result.new, result.old))
        assert (folder.model, round.run.exists()) == (run, False), "a worse model is removed"


def test_types_that_nobody_annotates_are_kept(served: tuple[Path, Path], tmp_path: Path) -> None:
    folder = LearningFolder(tmp_path / "learning", served[1])
    with folder.opened():
        sentences = [sentence for sentence in tiny.sentences(40, seed=3) if "Place" in {e.type for e in sentence.entities}]
        texts = {
            sentence.text: [(*sentence.characters(e.fragments[0]), e.type) for e in sentence.entities if e.type == "Place"]
            for sentence in sentences
        }
        request = collect(folder.path, texts, write_configuration(["Place"]))
        round = folder.add_round(replace(request, model=str(folder.model), device="cpu"))
        data = round_corpus(round.read_request(), tiny.quiet)
        assert {sentence.annotated for split in data.values() for sentence in split} == {("Place",)}
        result = train_round.train_round(round)
        assert result.error is None
        assert Model.load(round.run).labels.entities == ("Drug", "Place")


def test_errors_end_a_round(tmp_path: Path, served: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    folder = LearningFolder(tmp_path / "learning", served[1])
    with folder.opened():
        request = collect(folder.path, {"Bob": []})
        round = folder.add_round(replace(request, model=str(folder.model), data=str(tmp_path / "missing")))
        train_round.run_round(round)
        assert round.read_result() == RoundResult(error=f"{tmp_path / 'missing'}: no such file or folder")
        assert "no such file" in capsys.readouterr().out


def test_damaged_records_are_errors(tmp_path: Path) -> None:
    (tmp_path / "result.json").write_text('{"other": 1}')
    with pytest.raises(SpanwiseError, match=r"result\.json: not a valid record"):
        Round(tmp_path).read_result()


def test_a_deleted_annotation_is_not_trained_on(tmp_path: Path) -> None:
    request = collect(tmp_path, {"Bob came": [(0, 3, "Person")], "Ann came": [(0, 3, "Person")]})
    collection = Collection(tmp_path)
    collection.add(Change(1, 1, is_deleted=True))
    base = save(tmp_path / "base", train=[Sentence("1", ("Rain",))], dev=[Sentence("2", ("No",))])
    request = replace(request, changes=collection.count, data=str(base))
    assert words(round_corpus(request, tiny.quiet)["train"]) == ["Rain", "Ann came"]


def test_a_round_can_be_continued_from_another_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    folder = LearningFolder(Path("learning"), Path("run"))
    round = folder.add_round(RoundRequest(str(folder.model), 1, "annotations.jsonl"))
    assert round.path == tmp_path / "learning" / "rounds" / "0001"
    assert round.read_request().model == str(tmp_path / "run")
