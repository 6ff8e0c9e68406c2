"""Prediction: whatever comes in, in order, with places that are right."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from tiny import FILLERS, corpus, model, sentences

from spanwise import Entity, Relation, Sentence, SpanwiseError
from spanwise.models.model import Model
from spanwise.prediction import streaming
from spanwise.prediction.base import BasePredictor
from spanwise.prediction.load import load
from spanwise.prediction.predictor import Predictor, predict

TEXT = "  The oslo was seen. Paris, aspirin acid!\n\nIt rained in lima — naïve cairo.\n"


@pytest.fixture(scope="module")
def static() -> Predictor:
    return Predictor(model("static", "spanner"), "cpu")


@pytest.fixture(scope="module")
def transformer(tiny_bert: Path) -> Predictor:
    return Predictor(model(tiny_bert, "spanner"), "cpu")


@pytest.fixture(params=["static", "transformer"])
def predictor(request: pytest.FixtureRequest) -> Predictor:
    found: Predictor = request.getfixturevalue(request.param)
    return found


# --- what may come in -------------------------------------------------------------------------------------------------


def test_raw_text_is_split_and_keeps_its_places(predictor: Predictor) -> None:
    found = predictor.predict(TEXT)
    assert "".join(sentence.text for sentence in found) == TEXT
    assert sum(len(sentence.entities) for sentence in found) > 3
    for sentence in found:
        assert sentence.start is not None
        assert TEXT[sentence.start :].startswith(sentence.text)
        for word, (start, end) in zip(sentence.words, sentence.offsets, strict=True):
            assert TEXT[sentence.start + start : sentence.start + end] == word
        for entity in sentence.entities:
            start, end = sentence.characters(entity.range)
            assert TEXT[sentence.start + start : sentence.start + end] == sentence.text_of(entity)
    assert [sentence.position for sentence in found] == list(range(len(found)))
    assert {sentence.document for sentence in found} == {"text-0"}


def test_texts_words_and_sentences_come_out_in_order(predictor: Predictor) -> None:
    given = Sentence("mine", ("oslo", "was", "near"), document="d", position=4, text="oslo was  near ", pos=("N", "V", "P"))
    mixed: list[Any] = ["It rained in lima.", ["aspirin", "acid"], given, ("paris",), "Quito. Cairo."]
    found = predictor.predict(mixed)
    assert [sentence.words for sentence in found] == [
        ("It", "rained", "in", "lima", "."), ("aspirin", "acid"), ("oslo", "was", "near"), ("paris",),
        ("Quito", "."), ("Cairo", "."),
    ]  # fmt: skip
    assert [sentence.id for sentence in found] == ["text-0-0", "text-1", "mine", "text-3", "text-4-0", "text-4-1"]
    assert replace(found[2], entities=()) == given
    assert predictor.predict(given) == [found[2]] == list(predictor.stream(given))
    assert list(predictor.stream("Quito. Cairo.")) == predictor.predict("Quito. Cairo.")


def test_strings_of_a_list_are_texts_and_words_need_a_list_of_their_own(predictor: Predictor) -> None:
    flat, inner = predictor.predict(["near", "oslo"]), predictor.predict([["near", "oslo"]])
    assert [(sentence.id, sentence.words) for sentence in flat] == [("text-0-0", ("near",)), ("text-1-0", ("oslo",))]
    assert [(sentence.id, sentence.words) for sentence in inner] == [("text-0", ("near", "oslo"))]
    assert "is one sentence of two words" in (BasePredictor.predict.__doc__ or "")


def test_annotations_are_ignored_and_the_rest_is_kept(predictor: Predictor) -> None:
    bare = [replace(sentence, entities=(), extra={"note": sentence.id}) for sentence in sentences(12)]
    annotated = [
        replace(
            sentence,
            entities=(Entity("Gene", ((0, 1),)), Entity("Gene", ((1, 2),))),
            relations=(Relation("binds", 0, 1),),
        )
        for sentence in bare
    ]  # fmt: skip
    found = predictor.predict(annotated)
    assert found == predictor.predict(bare)
    assert [(s.id, s.words, s.document, s.position, s.extra) for s in found] == [
        (s.id, s.words, s.document, s.position, s.extra) for s in bare
    ]
    assert not any(sentence.relations for sentence in found)
    assert {entity.type for sentence in found for entity in sentence.entities} <= {"Drug", "Place"}


def test_nothing_comes_of_nothing(predictor: Predictor) -> None:
    assert predictor.predict([]) == []
    assert predictor.predict("") == []
    assert predictor.predict(["", ""]) == []
    (blank,) = predictor.predict(" \n ")
    assert (blank.words, blank.entities, blank.text) == ((), (), " \n ")


def test_sentences_without_words_stay_where_they_are(predictor: Predictor) -> None:
    some = [Sentence("a", ()), *sentences(3), Sentence("b", ()), Sentence("c", ("oslo",)), Sentence("d", ())]
    for batch_size in (1, 2, 64):
        found = predictor.predict(some, batch_size=batch_size)
        assert [sentence.id for sentence in found] == [sentence.id for sentence in some]
        assert all(not sentence.entities for sentence in found if not sentence.words)
    assert [s.entities for s in predictor.predict([[], []])] == [(), ()]


def test_strange_words_do_no_harm(predictor: Predictor) -> None:
    strange = ["\u200d", "\ud800", "\u0000", "[SEP]", "x" * 3000, "🧬", "İ"]
    (found,) = predictor.predict([strange])
    assert found.words == tuple(strange)


# --- batches, chunks, thresholds --------------------------------------------------------------------------------------


def scored(found: list[Sentence]) -> list[list[tuple[Entity, float]]]:
    return [[(entity, round(entity.score or 0, 4)) for entity in sentence.entities] for sentence in found]


def test_the_batch_size_changes_nothing(predictor: Predictor) -> None:
    some = [*sentences(30), Sentence("long", tuple(random.Random(3).choices(FILLERS, k=150))), Sentence("empty", ())]
    once = scored(predictor.predict(some))
    for size in (1, 3, 7, 1000):
        assert scored(predictor.predict(some, batch_size=size)) == once
    order = random.Random(5).sample(range(len(some)), len(some))
    assert scored(predictor.predict([some[n] for n in order])) == [once[n] for n in order]


def test_the_threshold_drops_what_is_less_sure(predictor: Predictor) -> None:
    some = sentences(30)
    every = predictor.predict(some)
    scores = sorted(entity.score or 0 for sentence in every for entity in sentence.entities)
    assert all(0 <= score <= 1 for score in scores)
    middle = scores[len(scores) // 2]
    kept = predictor.predict(some, threshold=middle)
    assert [[e for e in s.entities if (e.score or 0) >= middle] for s in every] == [list(s.entities) for s in kept]
    assert 0 < sum(len(s.entities) for s in kept) < len(scores)
    assert all((e.score or 0) == 1 for s in predictor.predict(some, threshold=1.0) for e in s.entities)


def test_ten_thousand_sentences_are_read_as_they_come(static: Predictor) -> None:
    read = 0

    def stream() -> Iterator[Sentence]:
        nonlocal read
        for number in range(10_000):
            read += 1
            yield Sentence(f"n{number}", ("oslo", "was", FILLERS[number % len(FILLERS)]))

    found = static.stream(stream(), batch_size=256)
    assert read == 0
    first = next(found)
    assert first.id == "n0"
    assert read <= streaming.CHUNK + streaming.CONTEXT
    count = 1
    for number, sentence in enumerate(found, 1):
        assert sentence.id == f"n{number}"
        assert read <= number + streaming.CHUNK + streaming.CONTEXT
        count += 1
    assert count == 10_000


def test_where_a_chunk_ends_does_not_matter(tiny_bert: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    built = model(tiny_bert, "spanner", ["encoder.context=document"])
    text = [replace(sentence, document="d", position=number) for number, sentence in enumerate(sentences(90))]
    whole = list(predict(built, text))
    monkeypatch.setattr(streaming, "CHUNK", 25)
    monkeypatch.setattr(streaming, "REACH", 20)
    assert scored(list(predict(built, text))) == scored(whole)
    alone = [found for sentence in text for found in predict(built, [sentence])]
    assert scored(alone) != scored(whole)  # context is used


def test_context_may_be_given(tiny_bert: Path) -> None:
    built = model(tiny_bert, "spanner", ["encoder.context=document"])
    text = [replace(sentence, document="d", position=number) for number, sentence in enumerate(sentences(10))]
    whole = list(predict(built, text))
    bare = [replace(sentence, entities=()) for sentence in text[3:5]]  # other objects, as another reading of the file gives
    assert scored(list(predict(built, bare, context=text))) == scored(whole[3:5])


def test_a_model_in_training_goes_on_training(static: Predictor) -> None:
    static.model.train()
    try:
        first = static.predict(sentences(5))
        assert first == static.predict(sentences(5))  # no dropout
        assert static.model.training
        assert all(parameter.requires_grad for parameter in static.model.parameters())
    finally:
        static.model.eval()


# --- loading ----------------------------------------------------------------------------------------------------------


def test_a_run_folder_is_all_that_is_needed(tmp_path: Path, tiny_bert: Path) -> None:
    built = model(tiny_bert, "seqner-crf")
    built.save(tmp_path / "run")
    predictor = load(str(tmp_path / "run"), "cpu")
    assert predictor.types == ("Drug", "Place")
    assert predictor.predict(corpus()["test"]) == list(predict(built, corpus()["test"]))
    assert isinstance(predictor.model, Model)


def test_a_folder_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(SpanwiseError, match="no trained model here"):
        load(tmp_path / "nowhere")


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device here")
def test_cuda_where_there_is_none(static: Predictor) -> None:
    with pytest.raises(SpanwiseError, match="no CUDA device is available"):
        Predictor(static.model, "cuda")
    with pytest.raises(SpanwiseError, match="expected cpu, cuda or auto"):
        Predictor(static.model, "gpu")
    assert next(Predictor(static.model, "auto").model.parameters()).device.type == "cpu"
