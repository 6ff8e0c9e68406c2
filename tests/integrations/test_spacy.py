"""The spaCy component."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pytest
import tiny

spacy = pytest.importorskip("spacy")

from spacy.tokens import Doc  # noqa: E402
from spacy.tokens import Span as SpacySpan  # noqa: E402

from spanwise.core.types import Entity, Relation, Sentence  # noqa: E402
from spanwise.integrations.spacy import SpanwiseComponent  # noqa: E402
from spanwise.prediction.load import load  # noqa: E402

TEXT = "The oslo was seen.  Paris, aspirin acid!\n\n It rained in lima — naïve cairo."


@pytest.fixture(scope="module")
def model(model: Path) -> str:
    return str(model)  # configurations hold texts


@pytest.fixture
def nlp(model: str) -> Any:
    pipeline = spacy.blank("en")
    pipeline.add_pipe("spanwise", config={"model": model, "device": "cpu"})
    return pipeline


def set_predictions(component: SpanwiseComponent, entities: Sequence[Entity], relations: Sequence[Relation] = ()) -> None:
    """Make the component predict these in every sentence."""

    def predict_chunk(sentences: Sequence[Sentence], context: object, **options: object) -> list[Sentence]:
        return [Sentence(s.id, s.words, tuple(entities), tuple(relations)) for s in sentences]

    component.predictor.predict_chunk = predict_chunk  # type: ignore[assignment, method-assign]


def test_entry_point() -> None:
    (factory,) = (entry for entry in entry_points(group="spacy_factories") if entry.name == "spanwise")
    assert factory.value == "spanwise.integrations.spacy:make_spanwise"


def test_tokens_are_the_words_and_spans_have_scores(nlp: Any, model: str) -> None:
    doc = nlp(TEXT)
    group = doc.spans["spanwise"]
    assert len(group) > 3
    words = [[token.text for token in sentence if not token.is_space] for sentence in split(doc)]
    predicted = load(model, "cpu").predict(words)
    expected = [(e.type, e.score, sentence.words[slice(*e.range)]) for sentence in predicted for e in sentence.entities]
    spans = zip(group, group.attrs["scores"], strict=True)
    assert [(span.label_, score, tuple(t.text for t in span if not t.is_space)) for span, score in spans] == expected
    assert doc.text == TEXT
    assert nlp.pipe_labels["spanwise"] == ["Drug", "Place"]


def split(doc: Any) -> list[Any]:
    """Split as the rules do: after "seen." and after "acid!"."""
    ends = [index + 1 for index, token in enumerate(doc) if token.text in (".", "!")]
    return [doc[a:b] for a, b in zip([0, *ends], ends, strict=False)]


def test_sentences_of_the_document_are_used(nlp: Any) -> None:
    component = nlp.get_pipe("spanwise")
    received: list[tuple[str, ...]] = []
    real = component.predictor.predict_chunk

    def predict_chunk(sentences: Sequence[Sentence], context: Any, **options: Any) -> Any:
        received.extend(sentence.words for sentence in sentences)
        return real(sentences, context, **options)

    component.predictor.predict_chunk = predict_chunk
    words = ["oslo", ".", "was", "\n", "seen", "in", "lima"]
    component(Doc(nlp.vocab, words=words, sent_starts=[True, False, False, False, True, False, False]))
    assert received == [("oslo", ".", "was"), ("seen", "in", "lima")]
    received.clear()
    component(Doc(nlp.vocab, words=["oslo", "rained", ".", "Lima"]))
    assert received == [("oslo", "rained", "."), ("Lima",)]


def test_all_entities_are_spans_and_flat_ones_are_ents(nlp: Any) -> None:
    nested = [Entity("Org", ((0, 3),), 0.6), Entity("Place", ((0, 2),), 0.8), Entity("Time", ((4, 5),), 0.3)]  # type: ignore[arg-type]
    set_predictions(nlp.get_pipe("spanwise"), nested, [Relation("in", 0, 1, 0.4)])
    doc = nlp("New  York Times on Monday")
    assert [(span.text, span.label_) for span in doc.spans["spanwise"]] == [
        ("New  York Times", "Org"), ("New  York", "Place"), ("Monday", "Time"),
    ]  # fmt: skip
    assert [(entity.text, entity.label_) for entity in doc.ents] == [("New  York", "Place"), ("Monday", "Time")]
    assert doc.spans["spanwise"].attrs["relations"] == [["in", 0, 1, 0.4]]
    again = Doc(nlp.vocab).from_bytes(doc.to_bytes())
    assert again.spans["spanwise"].attrs == doc.spans["spanwise"].attrs


def test_fragments_of_discontinuous_entities(nlp: Any) -> None:
    set_predictions(nlp.get_pipe("spanwise"), [Entity("Disease", ((0, 1), (3, 4)), 0.6), Entity("Disease", ((2, 4),), 0.5)])  # type: ignore[arg-type]
    doc = nlp("breast and ovarian cancer")
    assert [span.text for span in doc.spans["spanwise"]] == ["breast and ovarian cancer", "ovarian cancer"]
    assert doc.spans["spanwise"].attrs["fragments"] == [[[0, 1], [3, 4]], [[2, 4]]]
    assert [entity.text for entity in doc.ents] == ["ovarian cancer"]


@pytest.mark.parametrize(
    ("ents", "expected"),
    [("keep", ["york:Old", "monday:Time"]), ("replace", ["new york:Place", "monday:Time"]), ("none", ["york:Old"])],
)
def test_existing_entities(model: str, ents: str, expected: list[str]) -> None:
    nlp = spacy.blank("en")
    nlp.add_pipe("spanwise", config={"model": model, "device": "cpu", "ents": ents, "spans_key": "mine"})
    component = nlp.get_pipe("spanwise")
    set_predictions(component, [Entity("Place", ((0, 2),), 0.8), Entity("Time", ((3, 4),), 0.3)])  # type: ignore[arg-type]
    doc = nlp.make_doc("new york on monday")
    doc.ents = [SpacySpan(doc, 1, 2, label="Old")]
    component(doc)
    assert [f"{entity.text}:{entity.label_}" for entity in doc.ents] == expected
    assert len(doc.spans["mine"]) == 2


def test_pipe_equals_single_documents(nlp: Any) -> None:
    texts = [TEXT, "", "  \n", *(" ".join(sentence.words) for sentence in tiny.sentences(20)), "Quito. Cairo."]
    single = [[(span.text, span.label_) for span in doc.spans["spanwise"]] for doc in map(nlp, texts)]
    for size in (1, 4, 100):
        piped = nlp.pipe(iter(texts), batch_size=size)
        assert [[(span.text, span.label_) for span in doc.spans["spanwise"]] for doc in piped] == single
    pairs = list(nlp.pipe([(text, index) for index, text in enumerate(texts)], as_tuples=True))
    assert [index for _, index in pairs] == list(range(len(texts)))


def test_several_processes(model: str) -> None:
    """spaCy forks its processes, in which torch has no threads."""
    program = f"""
import os, signal
os.register_at_fork(after_in_child=lambda: signal.alarm(60))
signal.alarm(120)
import spacy, torch
torch.set_num_threads(2)
nlp = spacy.blank("en")
nlp.add_pipe("spanwise", config={{"model": {model!r}, "device": "cpu"}})
texts = [{TEXT!r}] * 4
expected = [len(doc.spans["spanwise"]) for doc in nlp.pipe(texts)]
assert [len(doc.spans["spanwise"]) for doc in nlp.pipe(texts, n_process=2)] == expected
print(sum(expected), torch.get_num_threads())
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    count, threads = done.stdout.split()
    assert (int(count) > 3, threads) == (True, "2"), done.stderr


def test_saved_pipeline(nlp: Any, tmp_path: Path) -> None:
    before = [(entity.text, entity.label_) for entity in nlp(TEXT).ents]
    nlp.to_disk(tmp_path / "pipeline")
    again = spacy.load(tmp_path / "pipeline")
    assert [(entity.text, entity.label_) for entity in again(TEXT).ents] == before
    assert again.config["components"]["spanwise"]["model"] == nlp.config["components"]["spanwise"]["model"]


def test_thresholds(model: str) -> None:
    nlp = spacy.blank("en")
    nlp.add_pipe("spanwise", config={"model": model, "threshold": {"Place": 1.0}})
    assert not any(span.label_ == "Place" for span in nlp(TEXT).spans["spanwise"])


def test_displacy(nlp: Any) -> None:
    set_predictions(nlp.get_pipe("spanwise"), [Entity("Org", ((0, 3),), 0.6), Entity("Place", ((0, 2),), 0.8)])  # type: ignore[arg-type]
    doc = nlp("New York Times")
    spans = spacy.displacy.render(doc, style="span", options={"spans_key": "spanwise"}, jupyter=False)
    assert "Org" in spans
    assert "Place" in spans
    ents = spacy.displacy.render(doc, style="ent", jupyter=False)
    assert "Place" in ents
    assert "Org" not in ents
