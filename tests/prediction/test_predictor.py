"""Inputs, order, offsets and chunks of predictions."""

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
    value: Predictor = request.getfixturevalue(request.param)
    return value


# --- inputs -----------------------------------------------------------------------------------------------------------


def test_raw_text_is_split_with_offsets(predictor: Predictor) -> None:
    predicted = predictor.predict(TEXT)
    assert "".join(sentence.text for sentence in predicted) == TEXT
    assert sum(len(sentence.entities) for sentence in predicted) > 3
    for sentence in predicted:
        assert sentence.start is not None
        assert TEXT[sentence.start :].startswith(sentence.text)
        for word, (start, end) in zip(sentence.words, sentence.offsets, strict=True):
            assert TEXT[sentence.start + start : sentence.start + end] == word
        for entity in sentence.entities:
            start, end = sentence.characters(entity.range)
            assert TEXT[sentence.start + start : sentence.start + end] == sentence.text_of(entity)
    assert [sentence.position for sentence in predicted] == list(range(len(predicted)))
    assert {sentence.document for sentence in predicted} == {"text-0"}


def test_mixed_inputs_stay_in_order(predictor: Predictor) -> None:
    given = Sentence("mine", ("oslo", "was", "near"), document="d", position=4, text="oslo was  near ", pos=("N", "V", "P"))
    mixed: list[Any] = ["It rained in lima.", ["aspirin", "acid"], given, ("paris",), "Quito. Cairo."]
    predicted = predictor.predict(mixed)
    assert [sentence.words for sentence in predicted] == [
        ("It", "rained", "in", "lima", "."), ("aspirin", "acid"), ("oslo", "was", "near"), ("paris",),
        ("Quito", "."), ("Cairo", "."),
    ]  # fmt: skip
    assert [sentence.id for sentence in predicted] == ["text-0-0", "text-1", "mine", "text-3", "text-4-0", "text-4-1"]
    assert replace(predicted[2], entities=()) == given
    assert predictor.predict(given) == [predicted[2]] == list(predictor.stream(given))
    assert list(predictor.stream("Quito. Cairo.")) == predictor.predict("Quito. Cairo.")


def test_strings_in_a_list_are_texts(predictor: Predictor) -> None:
    texts, words = predictor.predict(["near", "oslo"]), predictor.predict([["near", "oslo"]])
    assert [(sentence.id, sentence.words) for sentence in texts] == [("text-0-0", ("near",)), ("text-1-0", ("oslo",))]
    assert [(sentence.id, sentence.words) for sentence in words] == [("text-0", ("near", "oslo"))]
    assert "is one sentence of two words" in (BasePredictor.predict.__doc__ or "")


def test_annotations_are_ignored(predictor: Predictor) -> None:
    bare = [replace(sentence, entities=(), extra={"note": sentence.id}) for sentence in sentences(12)]
    annotated = [
        replace(
            sentence,
            entities=(Entity("Gene", ((0, 1),)), Entity("Gene", ((1, 2),))),
            relations=(Relation("binds", 0, 1),),
        )
        for sentence in bare
    ]  # fmt: skip
    predicted = predictor.predict(annotated)
    assert predicted == predictor.predict(bare)
    assert [(s.id, s.words, s.document, s.position, s.extra) for s in predicted] == [
        (s.id, s.words, s.document, s.position, s.extra) for s in bare
    ]
    assert not any(sentence.relations for sentence in predicted)
    assert {entity.type for sentence in predicted for entity in sentence.entities} <= {"Drug", "Place"}


def test_empty_inputs(predictor: Predictor) -> None:
    assert predictor.predict([]) == []
    assert predictor.predict("") == []
    assert predictor.predict(["", ""]) == []
    (blank,) = predictor.predict(" \n ")
    assert (blank.words, blank.entities, blank.text) == ((), (), " \n ")


def test_empty_sentences_stay_in_order(predictor: Predictor) -> None:
    inputs = [Sentence("a", ()), *sentences(3), Sentence("b", ()), Sentence("c", ("oslo",)), Sentence("d", ())]
    for batch_size in (1, 2, 64):
        predicted = predictor.predict(inputs, batch_size=batch_size)
        assert [sentence.id for sentence in predicted] == [sentence.id for sentence in inputs]
        assert all(not sentence.entities for sentence in predicted if not sentence.words)
    assert [s.entities for s in predictor.predict([[], []])] == [(), ()]


def test_unusual_words(predictor: Predictor) -> None:
    unusual = ["\u200d", "\ud800", "\u0000", "[SEP]", "x" * 3000, "🧬", "İ"]
    (predicted,) = predictor.predict([unusual])
    assert predicted.words == tuple(unusual)


# --- batches, chunks, thresholds --------------------------------------------------------------------------------------


def scored(predicted: list[Sentence]) -> list[list[tuple[Entity, float]]]:
    return [[(entity, round(entity.score or 0, 4)) for entity in sentence.entities] for sentence in predicted]


def test_batch_size_does_not_change_predictions(predictor: Predictor) -> None:
    inputs = [*sentences(30), Sentence("long", tuple(random.Random(3).choices(FILLERS, k=150))), Sentence("empty", ())]
    expected = scored(predictor.predict(inputs))
    for size in (1, 3, 7, 1000):
        assert scored(predictor.predict(inputs, batch_size=size)) == expected
    order = random.Random(5).sample(range(len(inputs)), len(inputs))
    assert scored(predictor.predict([inputs[n] for n in order])) == [expected[n] for n in order]


def test_threshold_drops_low_scores(predictor: Predictor) -> None:
    inputs = sentences(30)
    everything = predictor.predict(inputs)
    scores = sorted(entity.score or 0 for sentence in everything for entity in sentence.entities)
    assert all(0 <= score <= 1 for score in scores)
    middle = scores[len(scores) // 2]
    selected = predictor.predict(inputs, threshold=middle)
    assert [[e for e in s.entities if (e.score or 0) >= middle] for s in everything] == [list(s.entities) for s in selected]
    assert 0 < sum(len(s.entities) for s in selected) < len(scores)
    assert all((e.score or 0) == 1 for s in predictor.predict(inputs, threshold=1.0) for e in s.entities)


def test_stream_reads_its_input_lazily(static: Predictor) -> None:
    read = 0

    def stream() -> Iterator[Sentence]:
        nonlocal read
        for number in range(10_000):
            read += 1
            yield Sentence(f"n{number}", ("oslo", "was", FILLERS[number % len(FILLERS)]))

    predicted = static.stream(stream(), batch_size=256)
    assert read == 0
    first = next(predicted)
    assert first.id == "n0"
    assert read <= streaming.CHUNK + streaming.CONTEXT
    count = 1
    for number, sentence in enumerate(predicted, 1):
        assert sentence.id == f"n{number}"
        assert read <= number + streaming.CHUNK + streaming.CONTEXT
        count += 1
    assert count == 10_000


def test_chunks_do_not_change_predictions(tiny_bert: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    built = model(tiny_bert, "spanner", ["encoder.context=document"])
    text = [replace(sentence, document="d", position=number) for number, sentence in enumerate(sentences(90))]
    together = list(predict(built, text))
    monkeypatch.setattr(streaming, "CHUNK", 25)
    monkeypatch.setattr(streaming, "CONTEXT", 20)
    assert scored(list(predict(built, text))) == scored(together)
    separate = [predicted for sentence in text for predicted in predict(built, [sentence])]
    assert scored(separate) != scored(together)  # context is used


def test_additional_context(tiny_bert: Path) -> None:
    built = model(tiny_bert, "spanner", ["encoder.context=document"])
    text = [replace(sentence, document="d", position=number) for number, sentence in enumerate(sentences(10))]
    together = list(predict(built, text))
    bare = [replace(sentence, entities=()) for sentence in text[3:5]]  # new objects, as if the file was read again
    assert scored(list(predict(built, bare, context=text))) == scored(together[3:5])


def test_prediction_restores_training_mode(static: Predictor) -> None:
    static.model.train()
    try:
        first = static.predict(sentences(5))
        assert first == static.predict(sentences(5))  # no dropout
        assert static.model.training
        assert all(parameter.requires_grad for parameter in static.model.parameters())
    finally:
        static.model.eval()


# --- loading ----------------------------------------------------------------------------------------------------------


def test_load_a_run_folder(tmp_path: Path, tiny_bert: Path) -> None:
    built = model(tiny_bert, "seqner-crf")
    built.save(tmp_path / "run")
    predictor = load(str(tmp_path / "run"), "cpu")
    assert predictor.types == ("Drug", "Place")
    assert predictor.predict(corpus()["test"]) == list(predict(built, corpus()["test"]))
    assert isinstance(predictor.model, Model)


def test_load_a_missing_folder(tmp_path: Path) -> None:
    with pytest.raises(SpanwiseError, match="no such folder"):
        load(tmp_path / "missing")


@pytest.mark.skipif(torch.cuda.is_available(), reason="needs a machine without CUDA")
def test_missing_cuda_device(static: Predictor) -> None:
    with pytest.raises(SpanwiseError, match="no CUDA device is available"):
        Predictor(static.model, "cuda")
    with pytest.raises(SpanwiseError, match="expected cpu, cuda or auto"):
        Predictor(static.model, "gpu")
    assert next(Predictor(static.model, "auto").model.parameters()).device.type == "cpu"
