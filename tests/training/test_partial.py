"""Training on partially annotated data."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest
from tiny import corpus, fit, model

from spanwise import Corpus, Sentence, SpanwiseError
from spanwise.corpora.splits import fingerprint
from spanwise.decoding.decode import Predictions
from spanwise.heads.spanner import SpanNer
from spanwise.training.lessons import Lessons
from spanwise.training.partial_checks import check_partial
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
        run = fit(tmp_path / str(is_marked), remove_entities(corpus(90), is_marked=is_marked), recipe=recipe, epochs=5, overrides=WORDS_ONLY,
                  log=lines.append)  # fmt: skip
        recalls[is_marked] = run.scores["dev"]["micro"]["recall"]
        note = "note: 90 of 90 training sentences are annotated partially: their open spans are ignored, except in 90 without"
        assert any(line.startswith(note) for line in lines) == is_marked
    assert recalls[True] > recalls[False] + 0.2


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
    lessons = Lessons([opinion], [])
    student = model("static", "spanner", data=data)
    (taught,) = lessons.sentences(Corpus({"train": (sentence,)}), student)
    assert taught.annotated is None
    assert student.head.target_spans(taught).mass.tolist() == pytest.approx([0.8])  # type: ignore[operator]
    tagger = model("static", "seqner", data=data)  # learns no probabilities, so the spans stay open
    assert lessons.sentences(Corpus({"train": (sentence,)}), tagger)[0].annotated == ()
