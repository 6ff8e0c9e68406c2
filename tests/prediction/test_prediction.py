"""Prediction as users ask for it: any recipe and batch size, thresholds of types, splitters, threads, long documents."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import torch
from tiny import DRUGS, FILLERS, PLACES, STATIC, corpus, fit, model, related, sentences

from spanwise import Entity, Sentence, Span, SpanwiseError
from spanwise.decoding.decode import drop_conflicts, text_order
from spanwise.decoding.thresholds import MIN_THRESHOLD
from spanwise.models.model import Model
from spanwise.prediction import streaming
from spanwise.prediction.load import load
from spanwise.prediction.predictor import Predictor
from spanwise.recipes.catalog import configure, recipes

LONG = Sentence("long", tuple(random.Random(3).choices([*FILLERS, *PLACES, *DRUGS], k=150)))


@pytest.fixture(scope="module")
def pointer(tmp_path_factory: pytest.TempPathFactory) -> Predictor:
    """Half trained, so that it is unsure of much."""
    out = tmp_path_factory.mktemp("pointer") / "run"
    fit(out, corpus(60, 20, 20), ("head.size=8", "head.dropout=0.0"), recipe="global-pointer", epochs=3, head_rate=0.01)
    found = load(out, "cpu")
    assert isinstance(found, Predictor)
    return found


# --- batches --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("recipe", sorted(recipes()))
def test_every_recipe_finds_the_same_whatever_the_batch_size(recipe: str, tiny_bert: Path) -> None:
    torch.manual_seed(0)
    encoder, options = ("static", STATIC if recipe == "sng" else ()) if recipe.startswith("sng") else (str(tiny_bert), ())
    if recipe == "locate-label-paper":
        options = ("encoder.parts.0.layers=2",)
    built = Model.build(configure(recipe, encoder=encoder, overrides=options), related(corpus())).eval()
    with torch.no_grad():
        for parameter in built.head.parameters():  # opinionated: every head proposes something
            if parameter.ndim > 1:
                parameter.mul_(4)
    predictor = Predictor(built, "cpu")
    some = [*sentences(20), LONG, Sentence("empty", ())]
    threshold = 0.0 if predictor.default_threshold is None else 0.3
    once = predictor.predict(some, threshold=threshold)
    assert sum(len(sentence.entities) for sentence in once) > 20
    for batch_size in (1, 3):
        again = predictor.predict(some, threshold=threshold, batch_size=batch_size)
        assert again == once
        for one, other in zip(once, again, strict=True):
            for first, second in zip((*one.entities, *one.relations), (*other.entities, *other.relations), strict=True):
                assert first.score == pytest.approx(second.score, abs=1e-4)


def test_long_sentences_are_read_few_at_a_time() -> None:
    from spanwise.batching.plan import LENGTH, plan

    costs = torch.tensor([LENGTH] * 10 + [4 * LENGTH] * 10 + [40 * LENGTH]).numpy()
    assert [len(batch) for batch in plan(costs, 8, None, None)] == [1, 2, 2, 2, 2, 2, 8, 2]


# --- long documents -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("encoder", ["static", "transformer"])
def test_a_long_document_has_the_entities_of_its_sentences(
    encoder: str, tiny_bert: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    predictor = Predictor(model("static" if encoder == "static" else tiny_bert, "spanner"), "cpu")
    monkeypatch.setattr(streaming, "CHUNK", 64)  # several chunks
    monkeypatch.setattr(streaming, "REACH", 8)
    text = "".join(" ".join(one.words).capitalize() + (". " if n % 7 else ".\n") for n, one in enumerate(sentences(400)))
    whole = predictor.predict(text)
    assert "".join(sentence.text for sentence in whole) == text
    assert sum(len(sentence.entities) for sentence in whole) > 300
    for sentence in whole[::10]:
        (alone,) = predictor.predict(sentence.text)
        assert alone.words == sentence.words
        assert alone.entities == sentence.entities


@pytest.mark.parametrize("recipe", ["spanner", "seqner-crf"])
def test_a_sentence_without_an_end_is_read_in_windows(recipe: str, monkeypatch: pytest.MonkeyPatch) -> None:
    predictor = Predictor(model("static", recipe), "cpu")
    lengths: list[int] = []
    encode = predictor.model.encoder.prepare

    def prepare(sentences: Sequence[Sentence], context: Sequence[Sentence] = ()) -> list[Any]:
        lengths.extend(len(sentence.words) for sentence in sentences)
        return encode(sentences, context)

    monkeypatch.setattr(predictor.model.encoder, "prepare", prepare)
    words = tuple(random.Random(1).choices([*FILLERS, *PLACES, *DRUGS], k=1200))
    before, found, after = predictor.predict([["oslo", "was"], words, ["lima"]])
    assert lengths == [2, 512, 512, 432, 1]
    assert (before.words, found.words, after.words) == (("oslo", "was"), words, ("lima",))
    places = [entity.range.start for entity in found.entities]
    assert places == sorted(places)
    assert all(any(low <= place < low + 100 for place in places) for low in range(0, 1200, 100))


# --- thresholds -----------------------------------------------------------------------------------------------------------


def everything(pointer: Predictor, some: tuple[Sentence, ...], monkeypatch: pytest.MonkeyPatch) -> list[list[Entity]]:
    """All that the head can propose, before entities are chosen among those that clash."""
    with monkeypatch.context() as patch:
        patch.setattr(pointer.model.head, "decoding", "overlapping")
        return [list(sentence.entities) for sentence in pointer.predict(some, threshold=MIN_THRESHOLD)]


@pytest.mark.parametrize("decoding", ["flat", "nested", "overlapping"])
def test_thresholds_of_types(pointer: Predictor, decoding: str, monkeypatch: pytest.MonkeyPatch) -> None:
    some = corpus(60, 20, 20)["dev"]
    proposed = everything(pointer, some, monkeypatch)
    monkeypatch.setattr(pointer.model.head, "decoding", decoding)
    for thresholds in ({"Drug": 0.1}, {"Drug": 0.2, "Place": 0.4}, {"Place": 0.7}, {"Drug": 0.6, "Place": 0.05}, {"Drug": 0.0}):
        bars = {type: thresholds.get(type) or 0.5 for type in pointer.types}
        found = pointer.predict(some, threshold=thresholds)
        for own, sentence in zip(proposed, found, strict=True):
            kept = [entity for entity in own if (entity.score or 0) >= bars[entity.type]]
            if decoding != "overlapping":
                kept = drop_conflicts(kept, {"nested": Span.crosses, "flat": Span.overlaps}[decoding])
            assert list(sentence.entities) == sorted(kept, key=text_order)
    assert pointer.predict(some, threshold=dict.fromkeys(pointer.types, 0.3)) == pointer.predict(some, threshold=0.3)
    assert pointer.predict(some) == pointer.predict(some, threshold={})
    assert pointer.model.head.min_scores is None


def test_thresholds_of_types_and_of_relations() -> None:
    torch.manual_seed(0)
    built = Model.build(configure("gp-relations", encoder="static", overrides=STATIC), related(corpus())).eval()
    with torch.no_grad():
        for parameter in built.head.parameters():
            parameter.copy_(torch.randn_like(parameter))  # relations are rarely found, and this model knows it
    predictor = Predictor(built, "cpu")
    scores = [
        relation.score or 0 for one in predictor.predict(sentences(20)) for relation in one.relations if relation.type == "has"
    ]
    assert len(scores) > 3
    middle = sorted(scores)[len(scores) // 2]
    kept = [r for one in predictor.predict(sentences(20), threshold={"has": middle}) for r in one.relations]
    assert sorted(r.score or 0 for r in kept if r.type == "has") == sorted(score for score in scores if score >= middle)
    every = [r for one in predictor.predict(sentences(20)) for r in one.relations]
    assert sum(r.type != "has" for r in kept) == sum(r.type != "has" for r in every)


@pytest.mark.parametrize(
    ("texts", "options", "message"),
    [
        ("In Oslo", {"batch_size": 0}, "batch_size=0: expected 1 or more"),
        ("In Oslo", {"threshold": 2}, "threshold 2: expected a number from 0 to 1"),
        ("In Oslo", {"threshold": "0.5"}, "threshold '0.5': expected a number"),
        ("In Oslo", {"threshold": {"Drug": -0.1}}, "threshold -0.1: expected a number"),
        (5, {}, "cannot predict a int: expected a text, a Sentence, or a list of texts, Sentences and lists of words"),
        (None, {}, "cannot predict a NoneType"),
        (b"In Oslo", {}, "cannot predict a bytes"),
        ([5], {}, "text-0: expected a text, a list of words of which none is empty, or a Sentence"),
        (["In Oslo", ["In", ""]], {}, "text-1: expected a text, a list of words of which none is empty"),
    ],
)
@pytest.mark.parametrize("way", ["predict", "stream"])
def test_what_cannot_be_predicted_is_said(
    pointer: Predictor, texts: Any, options: dict[str, Any], message: str, way: str
) -> None:
    with pytest.raises(SpanwiseError, match=re.escape(message)):
        list(getattr(pointer, way)(texts, **options))


def test_a_threshold_for_a_type_that_is_none(pointer: Predictor) -> None:
    with pytest.raises(
        SpanwiseError, match=r"unknown type with a threshold 'Drugs' \(did you mean 'Drug'\?\); known: Drug, Place"
    ):
        pointer.predict("oslo", threshold={"Drugs": 0.5})


def test_threads_do_not_see_each_other_s_thresholds(pointer: Predictor) -> None:
    some = corpus(60, 20, 20)["dev"]
    asked: list[float | dict[str, float]] = [0.0, 0.05, {"Drug": 0.1}, 0.3, {"Place": 0.02}]
    truth = [pointer.predict(some, threshold=threshold) for threshold in asked]
    assert len({sum(len(s.entities) for s in one) for one in truth}) == len(asked)
    with ThreadPoolExecutor(8) as pool:
        jobs = [(n % 5, pool.submit(pointer.predict, some, threshold=asked[n % 5], batch_size=3)) for n in range(60)]
        for number, job in jobs:
            assert job.result() == truth[number]


# --- choices of the caller ------------------------------------------------------------------------------------------------


def test_the_overlap_is_chosen_when_asked(pointer: Predictor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pointer.model.head, "decoding", "overlapping")
    some = corpus(60, 20, 20)["dev"]
    every = pointer.predict(some, threshold=0.05)
    assert pointer.predict(some, threshold=0.05, overlap="nested") == every
    counts = [sum(len(s.entities) for s in every)]
    for overlap in ("outermost", "flat"):
        found = pointer.predict(some, threshold=0.05, overlap=overlap)
        assert all(set(one.entities) <= set(other.entities) for one, other in zip(found, every, strict=True))
        counts.append(sum(len(s.entities) for s in found))
    assert counts[0] > counts[1] > 0
    assert counts[0] > counts[2] > 0
    with pytest.raises(SpanwiseError, match="unknown overlap policy"):
        pointer.predict(some, overlap="some")


def test_a_splitter_of_the_caller_s_own(pointer: Predictor) -> None:
    text = "oslo|paris|lima;aspirin acid|it rained;"

    def split(text: str) -> Iterator[list[tuple[int, int]]]:
        start = 0
        for piece in text.split(";"):
            words, at = [], start
            for word in piece.split("|"):
                words += [(at, at + len(word))] if word else []
                at += len(word) + 1
            yield words
            start += len(piece) + 1

    found = pointer.predict(text, splitter=split)
    assert [sentence.words for sentence in found] == [("oslo", "paris", "lima"), ("aspirin acid", "it rained")]
    assert "".join(sentence.text for sentence in found) == text
    assert [sentence.start for sentence in found] == [0, 16]
    for wrong in ([[(0, 4), (3, 6)]], [[(0, 99)]], [[(2, 2)]], [[(5, 8)], [(0, 3)]]):
        with pytest.raises(SpanwiseError, match="sentence 0 of the splitter has words that are"):
            pointer.predict("oslo paris", splitter=lambda text, wrong=wrong: wrong)


def test_chinese_and_spaced_text() -> None:
    predictor = Predictor(model("static", "spanner"), "cpu")
    text = "他在北京工作。She lives in Oslo. 上海很大！"
    found = predictor.predict(text)
    assert [sentence.text for sentence in found] == ["他在北京工作。", "She lives in Oslo. ", "上海很大！"]
    assert found[0].words == tuple("他在北京工作。")
    assert found[1].words == ("She", "lives", "in", "Oslo", ".")
    assert [found[2].start, found[2].characters(Span(0, 2))] == [26, Span(0, 2)]


def test_a_model_remembers_nothing_of_a_stream(tiny_bert: Path) -> None:
    built = model(tiny_bert, "deep-span", ["head.unit=subwords", "head.max_width=6"])
    predictor = Predictor(built, "cpu")
    predictor.predict(sentences(10))
    assert len(built.head._borders._kept) == 0  # type: ignore[union-attr, arg-type]
