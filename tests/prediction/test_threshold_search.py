"""Thresholds of models: what a head proposes when it is lowered, and the best one on dev."""

from __future__ import annotations

from pathlib import Path

import pytest
import tiny
from tiny import corpus, fit, related

from spanwise import SpanwiseError
from spanwise.core.types import Sentence
from spanwise.decoding.thresholds import MIN_THRESHOLD
from spanwise.evaluation import apply_threshold, evaluate
from spanwise.formats import write
from spanwise.prediction.load import load
from spanwise.prediction.predictor import Predictor, temporary_threshold
from spanwise.prediction.threshold_search import BEST_LABELS, find_threshold

POINTERS = ("head.size=8", "head.dropout=0.0")


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    for split, sentences in corpus(60, 20, 20).splits.items():
        write(sentences, folder / f"{split}.jsonl")
    return folder


@pytest.fixture(scope="module")
def pointer(tmp_path_factory: pytest.TempPathFactory) -> Predictor:
    """Half trained, so that it is unsure of much."""
    out = tmp_path_factory.mktemp("pointer") / "run"
    fit(out, corpus(60, 20, 20), POINTERS, recipe="global-pointer", epochs=3, head_rate=0.01)
    return load(out, "cpu")


@pytest.fixture(scope="module")
def dev() -> tuple[Sentence, ...]:
    return corpus(60, 20, 20)["dev"]


def found(predictor: Predictor, sentences: tuple[Sentence, ...], threshold: float) -> list[Sentence]:
    return predictor.predict(sentences, threshold=threshold)


def test_a_lower_threshold_than_the_head_s_own_finds_more(pointer: Predictor, dev: tuple[Sentence, ...]) -> None:
    counts = [sum(len(s.entities) for s in found(pointer, dev, threshold)) for threshold in (MIN_THRESHOLD, 0.1, 0.3, 0.5, 0.7)]
    assert counts == sorted(counts, reverse=True)
    assert counts[0] > counts[2] > counts[3]
    # 0 leaves it to the model, whose own threshold is 0.5; it is the same as before.
    assert found(pointer, dev, 0.0) == found(pointer, dev, 0.5)
    for sentence in found(pointer, dev, 0.1):
        assert all(entity.score is not None and entity.score >= 0.1 for entity in sentence.entities)
    assert sum(len(s.entities) for s in found(pointer, dev, 1.0)) == 0


@pytest.mark.parametrize("decoding", ["flat", "nested", "overlapping"])
def test_keeping_what_is_above_a_threshold_is_decoding_with_it(
    pointer: Predictor, dev: tuple[Sentence, ...], decoding: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pointer.model.head, "decoding", decoding)
    everything = found(pointer, dev, MIN_THRESHOLD)
    for threshold in (0.05, 0.2, 0.5, 0.6):
        assert list(apply_threshold(everything, threshold)) == found(pointer, dev, threshold)


def test_the_best_threshold_on_dev(pointer: Predictor, data: Path, dev: tuple[Sentence, ...]) -> None:
    best = find_threshold(pointer, data)
    assert best.where == "dev"
    assert best.own is not None
    assert best.own.threshold == 0.5
    assert best.own.score == evaluate(dev, found(pointer, dev, 0.0)).entities.micro
    assert best.calibration.best is not None
    for threshold in (0.03, 0.1, 0.2, 0.4, 0.5, 0.6, 0.8):
        assert evaluate(dev, found(pointer, dev, threshold)).f1 <= best.calibration.best.score.f1
    assert evaluate(dev, found(pointer, dev, best.threshold)).entities.micro == best.calibration.best.score
    assert best.calibration.best.score.f1 > best.own.score.f1  # a head that is unsure of much should propose more
    assert best.threshold > MIN_THRESHOLD
    assert not best.note
    # The threshold is what it was.
    assert found(pointer, dev, 0.0) == found(pointer, dev, 0.5)


@pytest.mark.parametrize("recipe", ["spanner", "seqner"])
def test_heads_that_take_the_best_label_say_so(recipe: str, data: Path) -> None:
    predictor = Predictor(tiny.model("static", recipe), "cpu")
    best = find_threshold(predictor, data)
    assert best.own is None
    assert best.note == BEST_LABELS
    assert best.lines[-1] == BEST_LABELS or len(best.lines) == 1


def test_heads_around_heads_pass_it_on(tmp_path: Path) -> None:
    relations = tiny.Model.build(tiny.configure("gp-relations", encoder="static", overrides=tiny.STATIC), related(corpus()))
    with temporary_threshold(relations.head, 0.2) as own:
        assert own == 0.5
        assert relations.head.entities.threshold == 0.2  # type: ignore[union-attr]
    assert relations.head.entities.threshold == 0.5  # type: ignore[union-attr]
    locate = tiny.model("static", "locate-label")
    with temporary_threshold(locate.head, 0.1) as own:
        assert (own, locate.head.decoding.threshold) == (0.45, 0.1)  # type: ignore[union-attr]
    with temporary_threshold(locate.head, 0.6):
        assert locate.head.decoding.threshold == 0.45  # type: ignore[union-attr]
    paper = tiny.model("static", "locate-label", ("head.paper=[crossing-deletion]",))
    with temporary_threshold(paper.head, 0.1) as own:
        assert own is None


def test_it_is_given_back_when_something_goes_wrong(pointer: Predictor) -> None:
    with pytest.raises(RuntimeError), temporary_threshold(pointer.model.head, 0.1):
        raise RuntimeError
    assert pointer.model.head.set_threshold(0.5) == 0.5


def test_only_dev_will_do(pointer: Predictor, data: Path, tmp_path: Path) -> None:
    with pytest.raises(SpanwiseError, match="a threshold is found on dev, but there is only test"):
        find_threshold(pointer, data / "test.jsonl")
    assert find_threshold(pointer, data / "dev.jsonl").where == "dev"
    held_out = tmp_path / "held-out.jsonl"
    write(corpus(60, 20, 20)["dev"], held_out)
    assert find_threshold(pointer, held_out).where == "all"
