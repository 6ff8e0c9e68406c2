"""Prediction options: batch size, thresholds, splitters, threads and long documents."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import torch
from tiny import DRUGS, FILLERS, METHODS, PLACES, STATIC, corpus, fit, model, sentences, with_relations

from spanwise import Entity, Sentence, Span, SpanwiseError
from spanwise.decoding.decode import drop_conflicts, text_order
from spanwise.decoding.thresholds import MIN_THRESHOLD
from spanwise.models.model import Model
from spanwise.prediction import streaming
from spanwise.prediction.load import load
from spanwise.prediction.predictor import Predictor
from spanwise.recipes.catalog import configure

LONG = Sentence("long", tuple(random.Random(3).choices([*FILLERS, *PLACES, *DRUGS], k=150)))


@pytest.fixture(scope="module")
def pointer(tmp_path_factory: pytest.TempPathFactory) -> Predictor:
    """A model after three epochs, with many uncertain predictions."""
    out = tmp_path_factory.mktemp("pointer") / "run"
    fit(out, corpus(60, 20, 20), ("head.size=8", "head.dropout=0.0"), recipe="global-pointer", epochs=3, head_rate=0.01)
    predictor = load(out, "cpu")
    assert isinstance(predictor, Predictor)
    return predictor


# --- batches --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("recipe", METHODS)
def test_predictions_do_not_depend_on_the_batch_size(recipe: str, tiny_bert: Path) -> None:
    torch.manual_seed(0)
    encoder, options = ("static", STATIC if recipe == "sng" else ()) if recipe.startswith("sng") else (str(tiny_bert), ())
    if recipe == "locate-label-paper-genia":
        parts = ("encoder.parts.0.layers=2", "encoder.parts.1.glove.iterations=2", "encoder.parts.1.pos_size=0")
        options = (*parts, "head.paper=[]", "head.filter=false", "head.decay=1")
    built = Model.build(configure(recipe, encoder=encoder, overrides=options), with_relations(corpus())).eval()
    with torch.no_grad():
        for parameter in built.head.parameters():  # larger weights, so that every head predicts entities
            if parameter.ndim > 1:
                parameter.mul_(4)
    predictor = Predictor(built, "cpu")
    inputs = [*sentences(20), LONG, Sentence("empty", ())]
    threshold = 0.0 if predictor.default_threshold is None else 0.3
    expected = predictor.predict(inputs, threshold=threshold)
    assert sum(len(sentence.entities) for sentence in expected) > 20
    for batch_size in (1, 3):
        again = predictor.predict(inputs, threshold=threshold, batch_size=batch_size)
        assert again == expected
        for one, other in zip(expected, again, strict=True):
            for first, second in zip((*one.entities, *one.relations), (*other.entities, *other.relations), strict=True):
                assert first.score == pytest.approx(second.score, abs=1e-4)


def test_batches_of_long_sentences_are_small() -> None:
    from spanwise.batching.plan import LENGTH, plan

    costs = torch.tensor([LENGTH] * 10 + [4 * LENGTH] * 10 + [40 * LENGTH]).numpy()
    assert [len(batch) for batch in plan(costs, 8, None, None)] == [1, 2, 2, 2, 2, 2, 8, 2]


# --- long documents -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("encoder", ["static", "transformer"])
def test_document_predictions_equal_sentence_predictions(
    encoder: str, tiny_bert: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    predictor = Predictor(model("static" if encoder == "static" else tiny_bert, "spanner"), "cpu")
    monkeypatch.setattr(streaming, "CHUNK", 64)  # several chunks
    monkeypatch.setattr(streaming, "CONTEXT", 8)
    text = "".join(" ".join(one.words).capitalize() + (". " if n % 7 else ".\n") for n, one in enumerate(sentences(400)))
    document = predictor.predict(text)
    assert "".join(sentence.text for sentence in document) == text
    assert sum(len(sentence.entities) for sentence in document) > 300
    for sentence in document[::10]:
        (single,) = predictor.predict(sentence.text)
        assert single.words == sentence.words
        assert single.entities == sentence.entities


@pytest.mark.parametrize("recipe", ["spanner", "seqner-crf"])
def test_long_sentence_is_predicted_in_windows(recipe: str, monkeypatch: pytest.MonkeyPatch) -> None:
    predictor = Predictor(model("static", recipe), "cpu")
    lengths: list[int] = []
    encode = predictor.model.encoder.prepare

    def prepare(sentences: Sequence[Sentence], context: Sequence[Sentence] = ()) -> list[Any]:
        lengths.extend(len(sentence.words) for sentence in sentences)
        return encode(sentences, context)

    monkeypatch.setattr(predictor.model.encoder, "prepare", prepare)
    words = tuple(random.Random(1).choices([*FILLERS, *PLACES, *DRUGS], k=1200))
    before, predicted, after = predictor.predict([["oslo", "was"], words, ["lima"]])
    assert lengths == [2, 512, 512, 432, 1]
    assert (before.words, predicted.words, after.words) == (("oslo", "was"), words, ("lima",))
    starts = [entity.range.start for entity in predicted.entities]
    assert starts == sorted(starts)
    assert all(any(low <= start < low + 100 for start in starts) for low in range(0, 1200, 100))


# --- thresholds -----------------------------------------------------------------------------------------------------------


def all_candidates(pointer: Predictor, inputs: tuple[Sentence, ...], monkeypatch: pytest.MonkeyPatch) -> list[list[Entity]]:
    """All entities above the lowest threshold, before overlaps are resolved."""
    with monkeypatch.context() as patch:
        patch.setattr(pointer.model.head, "decoding", "overlapping")
        return [list(sentence.entities) for sentence in pointer.predict(inputs, threshold=MIN_THRESHOLD)]


@pytest.mark.parametrize("decoding", ["flat", "nested", "overlapping"])
def test_thresholds_by_type(pointer: Predictor, decoding: str, monkeypatch: pytest.MonkeyPatch) -> None:
    inputs = corpus(60, 20, 20)["dev"]
    proposed = all_candidates(pointer, inputs, monkeypatch)
    monkeypatch.setattr(pointer.model.head, "decoding", decoding)
    for thresholds in ({"Drug": 0.1}, {"Drug": 0.2, "Place": 0.4}, {"Place": 0.7}, {"Drug": 0.6, "Place": 0.05}, {"Drug": 0.0}):
        cutoffs = {type: thresholds.get(type) or 0.5 for type in pointer.types}
        predicted = pointer.predict(inputs, threshold=thresholds)
        for candidates, sentence in zip(proposed, predicted, strict=True):
            expected = [entity for entity in candidates if (entity.score or 0) >= cutoffs[entity.type]]
            if decoding != "overlapping":
                expected = drop_conflicts(expected, {"nested": Span.crosses, "flat": Span.overlaps}[decoding])
            assert list(sentence.entities) == sorted(expected, key=text_order)
    assert pointer.predict(inputs, threshold=dict.fromkeys(pointer.types, 0.3)) == pointer.predict(inputs, threshold=0.3)
    assert pointer.predict(inputs) == pointer.predict(inputs, threshold={})
    assert pointer.model.head.min_scores is None


def test_thresholds_by_relation_type() -> None:
    torch.manual_seed(0)
    built = Model.build(configure("gp-relations", encoder="static", overrides=STATIC), with_relations(corpus())).eval()
    with torch.no_grad():
        for parameter in built.head.parameters():
            parameter.copy_(torch.randn_like(parameter))  # an untrained model predicts few relations
    predictor = Predictor(built, "cpu")
    scores = [
        relation.score or 0 for one in predictor.predict(sentences(20)) for relation in one.relations if relation.type == "has"
    ]
    assert len(scores) > 3
    middle = sorted(scores)[len(scores) // 2]
    selected = [r for one in predictor.predict(sentences(20), threshold={"has": middle}) for r in one.relations]
    assert sorted(r.score or 0 for r in selected if r.type == "has") == sorted(score for score in scores if score >= middle)
    everything = [r for one in predictor.predict(sentences(20)) for r in one.relations]
    assert sum(r.type != "has" for r in selected) == sum(r.type != "has" for r in everything)


def test_a_threshold_of_zero_is_the_default_of_the_model(pointer: Predictor, monkeypatch: pytest.MonkeyPatch) -> None:
    inputs = corpus(60, 20, 20)["dev"]
    monkeypatch.setattr(pointer, "thresholds", {"Drug": 0.2, "Place": 0.3})
    assert pointer.predict(inputs, threshold={"Drug": 0.0}) == pointer.predict(inputs)
    assert pointer.predict(inputs) != pointer.predict(inputs, threshold={"Drug": 0.5, "Place": 0.5})


@pytest.mark.parametrize(
    ("texts", "options", "message"),
    [
        ("In Oslo", {"batch_size": 0}, "batch_size=0: expected 1 or more"),
        ("In Oslo", {"threshold": 2}, "threshold 2: expected a number from 0 to 1"),
        ("In Oslo", {"threshold": "0.5"}, "threshold '0.5': expected a number"),
        ("In Oslo", {"threshold": {"Drug": -0.1}}, "threshold -0.1: expected a number"),
        (
            5,
            {},
            "cannot predict an input of type int: expected a text, a Sentence, or a list of texts, Sentences and lists of words",
        ),
        (None, {}, "cannot predict an input of type NoneType"),
        (b"In Oslo", {}, "cannot predict an input of type bytes"),
        ([5], {}, "text-0: expected a text, a list of non-empty words, or a Sentence"),
        (["In Oslo", ["In", ""]], {}, "text-1: expected a text, a list of non-empty words"),
    ],
)
@pytest.mark.parametrize("method", ["predict", "stream"])
def test_invalid_inputs(pointer: Predictor, texts: Any, options: dict[str, Any], message: str, method: str) -> None:
    with pytest.raises(SpanwiseError, match=re.escape(message)):
        list(getattr(pointer, method)(texts, **options))


def test_threshold_of_an_unknown_type(pointer: Predictor) -> None:
    with pytest.raises(
        SpanwiseError, match=r"unknown type with a threshold 'Drugs' \(did you mean 'Drug'\?\); known: Drug, Place"
    ):
        pointer.predict("oslo", threshold={"Drugs": 0.5})


def test_threads_use_separate_thresholds(pointer: Predictor) -> None:
    inputs = corpus(60, 20, 20)["dev"]
    thresholds: list[float | dict[str, float]] = [0.0, 0.05, {"Drug": 0.1}, 0.3, {"Place": 0.02}]
    expected = [pointer.predict(inputs, threshold=threshold) for threshold in thresholds]
    assert len({sum(len(s.entities) for s in one) for one in expected}) == len(thresholds)
    with ThreadPoolExecutor(8) as pool:
        jobs = [(n % 5, pool.submit(pointer.predict, inputs, threshold=thresholds[n % 5], batch_size=3)) for n in range(60)]
        for number, job in jobs:
            assert job.result() == expected[number]


# --- other options --------------------------------------------------------------------------------------------------------


def test_overlap_policies(pointer: Predictor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pointer.model.head, "decoding", "overlapping")
    inputs = corpus(60, 20, 20)["dev"]
    everything = pointer.predict(inputs, threshold=0.05)
    assert pointer.predict(inputs, threshold=0.05, overlap="nested") == everything
    counts = [sum(len(s.entities) for s in everything)]
    for overlap in ("outermost", "flat"):
        predicted = pointer.predict(inputs, threshold=0.05, overlap=overlap)
        assert all(set(one.entities) <= set(other.entities) for one, other in zip(predicted, everything, strict=True))
        counts.append(sum(len(s.entities) for s in predicted))
    assert counts[0] > counts[1] > 0
    assert counts[0] > counts[2] > 0
    with pytest.raises(SpanwiseError, match="unknown overlap policy"):
        pointer.predict(inputs, overlap="some")


def test_custom_splitter(pointer: Predictor) -> None:
    text = "oslo|paris|lima;aspirin acid|it rained;"

    def split(text: str) -> Iterator[list[tuple[int, int]]]:
        start = 0
        for piece in text.split(";"):
            words, position = [], start
            for word in piece.split("|"):
                words += [(position, position + len(word))] if word else []
                position += len(word) + 1
            yield words
            start += len(piece) + 1

    predicted = pointer.predict(text, splitter=split)
    assert [sentence.words for sentence in predicted] == [("oslo", "paris", "lima"), ("aspirin acid", "it rained")]
    assert "".join(sentence.text for sentence in predicted) == text
    assert [sentence.start for sentence in predicted] == [0, 16]
    for wrong in ([[(0, 4), (3, 6)]], [[(0, 99)]], [[(2, 2)]], [[(5, 8)], [(0, 3)]]):
        with pytest.raises(SpanwiseError, match="sentence 0 of the splitter has words that are"):
            pointer.predict("oslo paris", splitter=lambda text, wrong=wrong: wrong)


def test_chinese_and_english_text() -> None:
    predictor = Predictor(model("static", "spanner"), "cpu")
    text = "他在北京工作。She lives in Oslo. 上海很大！"
    predicted = predictor.predict(text)
    assert [sentence.text for sentence in predicted] == ["他在北京工作。", "She lives in Oslo. ", "上海很大！"]
    assert predicted[0].words == tuple("他在北京工作。")
    assert predicted[1].words == ("She", "lives", "in", "Oslo", ".")
    assert [predicted[2].start, predicted[2].characters(Span(0, 2))] == [26, Span(0, 2)]


def test_caches_are_empty_after_prediction(tiny_bert: Path) -> None:
    built = model(tiny_bert, "deep-span", ["head.unit=subwords", "head.max_width=6"])
    predictor = Predictor(built, "cpu")
    predictor.predict(sentences(10))
    assert len(built.head._boundaries._cached) == 0  # type: ignore[union-attr, arg-type]
