"""Lower thresholds, and the best threshold on dev."""

from __future__ import annotations

from pathlib import Path

import pytest
import tiny
from tiny import corpus, fit, with_relations

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
    """A model after three epochs, with many uncertain predictions."""
    out = tmp_path_factory.mktemp("pointer") / "run"
    fit(out, corpus(60, 20, 20), POINTERS, recipe="global-pointer", epochs=3, head_rate=0.01)
    return load(out, "cpu")


@pytest.fixture(scope="module")
def dev() -> tuple[Sentence, ...]:
    return corpus(60, 20, 20)["dev"]


def predict(predictor: Predictor, sentences: tuple[Sentence, ...], threshold: float) -> list[Sentence]:
    return predictor.predict(sentences, threshold=threshold)


def test_lower_threshold_predicts_more(pointer: Predictor, dev: tuple[Sentence, ...]) -> None:
    counts = [
        sum(len(s.entities) for s in predict(pointer, dev, threshold)) for threshold in (MIN_THRESHOLD, 0.1, 0.3, 0.5, 0.7)
    ]
    assert counts == sorted(counts, reverse=True)
    assert counts[0] > counts[2] > counts[3]
    # 0 means the model's default threshold, 0.5, which has not changed.
    assert predict(pointer, dev, 0.0) == predict(pointer, dev, 0.5)
    for sentence in predict(pointer, dev, 0.1):
        assert all(entity.score is not None and entity.score >= 0.1 for entity in sentence.entities)
    assert sum(len(s.entities) for s in predict(pointer, dev, 1.0)) == 0


@pytest.mark.parametrize("decoding", ["flat", "nested", "overlapping"])
def test_filtering_equals_decoding_with_the_threshold(
    pointer: Predictor, dev: tuple[Sentence, ...], decoding: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pointer.model.head, "decoding", decoding)
    everything = predict(pointer, dev, MIN_THRESHOLD)
    for threshold in (0.05, 0.2, 0.5, 0.6):
        assert list(apply_threshold(everything, threshold)) == predict(pointer, dev, threshold)


def test_an_entity_reaches_a_threshold_that_equals_its_score(pointer: Predictor, dev: tuple[Sentence, ...]) -> None:
    """Scores are rounded, and half of them are higher than the number that the head computed."""
    everything = predict(pointer, dev, MIN_THRESHOLD)
    scores = sorted({entity.score or 0 for sentence in everything for entity in sentence.entities})
    for threshold in scores[:: max(1, len(scores) // 20)]:
        expected = list(apply_threshold(everything, threshold))
        assert predict(pointer, dev, threshold) == expected
        assert pointer.predict(dev, threshold=dict.fromkeys(pointer.types, threshold)) == expected


def test_best_threshold_on_dev(pointer: Predictor, data: Path, dev: tuple[Sentence, ...]) -> None:
    best = find_threshold(pointer, data)
    assert best.data == "dev"
    assert best.default is not None
    assert best.default.threshold == 0.5
    assert best.default.score == evaluate(dev, predict(pointer, dev, 0.0)).entities.micro
    assert best.calibration.best is not None
    for threshold in (0.03, 0.1, 0.2, 0.4, 0.5, 0.6, 0.8):
        assert evaluate(dev, predict(pointer, dev, threshold)).f1 <= best.calibration.best.score.f1
    assert evaluate(dev, predict(pointer, dev, best.threshold)).entities.micro == best.calibration.best.score
    assert best.calibration.best.score.f1 > best.default.score.f1  # an uncertain head gains from a lower threshold
    assert best.threshold > MIN_THRESHOLD
    assert not best.note
    # The model's default threshold has not changed.
    assert predict(pointer, dev, 0.0) == predict(pointer, dev, 0.5)


@pytest.mark.parametrize("recipe", ["spanner", "seqner"])
def test_note_for_heads_without_threshold(recipe: str, data: Path) -> None:
    predictor = Predictor(tiny.model("static", recipe), "cpu")
    best = find_threshold(predictor, data)
    assert best.default is None
    assert best.note == BEST_LABELS
    assert best.lines[-1] == BEST_LABELS or len(best.lines) == 1


def test_wrappers_forward_the_threshold(tmp_path: Path) -> None:
    relations = tiny.Model.build(
        tiny.configure("gp-relations", encoder="static", overrides=tiny.STATIC), with_relations(corpus())
    )
    with temporary_threshold(relations.head, 0.2) as default:
        assert default == 0.5
        assert relations.head.entities.threshold == pytest.approx(0.2, abs=1e-5)  # type: ignore[union-attr]
    assert relations.head.entities.threshold == 0.5  # type: ignore[union-attr]
    locate = tiny.model("static", "locate-label")
    with temporary_threshold(locate.head, 0.1) as default:
        assert (default, locate.head.decoding.threshold) == pytest.approx((0.45, 0.1), abs=1e-5)  # type: ignore[union-attr]
    with temporary_threshold(locate.head, 0.6):
        assert locate.head.decoding.threshold == 0.45  # type: ignore[union-attr]
    paper = tiny.model("static", "locate-label", ("head.paper=[crossing-deletion]",))
    with temporary_threshold(paper.head, 0.1) as default:
        assert default is None


def test_threshold_is_restored_after_an_error(pointer: Predictor) -> None:
    with pytest.raises(RuntimeError), temporary_threshold(pointer.model.head, 0.1):
        raise RuntimeError
    assert pointer.model.head.set_threshold(0.5) == 0.5


def test_threshold_search_needs_dev(pointer: Predictor, data: Path, tmp_path: Path) -> None:
    with pytest.raises(SpanwiseError, match="--find-threshold needs a dev split; found test"):
        find_threshold(pointer, data / "test.jsonl")
    assert find_threshold(pointer, data / "dev.jsonl").data == "dev"
    held_out = tmp_path / "held-out.jsonl"
    write(corpus(60, 20, 20)["dev"], held_out)
    assert find_threshold(pointer, held_out).data == "all"
