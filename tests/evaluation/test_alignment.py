"""Scores do not depend on the tokenisation and sentence splitting of a text."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from spanwise import Entity, Link, Relation, Sentence
from spanwise.evaluation import evaluate

Words = list[list[str]]  # the words of each sentence of a document


@st.composite
def texts(draw: st.DrawFn) -> Words:
    word = st.text("abc", min_size=1, max_size=3)
    return draw(st.lists(st.lists(word, min_size=1, max_size=4), min_size=1, max_size=5))


def annotate(draw: st.DrawFn, document: Words) -> list[Sentence]:
    """Add random entities, relations, and links between sentences."""
    sentences = []
    for position, words in enumerate(document):
        entities = []
        for _ in range(draw(st.integers(0, 3))):
            inside = sorted(draw(st.sets(st.integers(0, len(words) - 1), min_size=1)))
            entities.append(Entity(draw(st.sampled_from("AB")), tuple((w, w + 1) for w in inside)))  # type: ignore[misc]
        sentences.append(Sentence(f"d-{position}", tuple(words), tuple(entities), document="d", position=position))
    filled = [s.position for s in sentences if s.entities]
    for number, s in enumerate(sentences):
        if s.entities and draw(st.booleans()):
            head, tail = (draw(st.integers(0, len(s.entities) - 1)) for _ in range(2))
            position = draw(st.sampled_from(filled))
            assert position is not None
            link_tail = draw(st.integers(0, len(sentences[position].entities) - 1))
            links = (Link("l", head, position, link_tail),) if position != number else ()
            sentences[number] = replace(s, relations=(Relation("r", head, tail),), links=links)
    return sentences


def resegment(draw: st.DrawFn, sentences: list[Sentence]) -> list[Sentence]:
    """Join some neighbouring sentences and split some words into characters."""
    runs: list[list[Sentence]] = []
    for s in sentences:
        if runs and draw(st.booleans()):
            runs[-1].append(s)
        else:
            runs.append([s])
    new_indices = {}  # new position and entity index of each entity
    for position, run in enumerate(runs):
        count = 0
        for s in run:
            for number in range(len(s.entities)):
                new_indices[s.position, number] = (position, count)
                count += 1
    return [_join(draw, position, run, new_indices) for position, run in enumerate(runs)]


def _join(draw: st.DrawFn, position: int, run: list[Sentence], new_indices: dict[Any, Any]) -> Sentence:
    words: list[str] = []
    text = ""
    entities, relations, links = [], [], []
    for s in run:
        starts = []  # the index of the first new word of each old word
        for word in s.words:
            starts.append(len(words))
            words += list(word) if draw(st.booleans()) else [word]
            text += word + draw(st.sampled_from(["", " ", "\n"]))
        starts.append(len(words))
        entities += [Entity(e.type, tuple((starts[a], starts[b]) for a, b in e.fragments)) for e in s.entities]  # type: ignore[misc]
        relations += [
            Relation(r.type, new_indices[s.position, r.head][1], new_indices[s.position, r.tail][1]) for r in s.relations
        ]
        for link in s.links:
            head, (target, tail) = new_indices[s.position, link.head][1], new_indices[link.position, link.tail]
            if target == position:
                relations.append(Relation(link.type, head, tail))
            else:
                links.append(Link(link.type, head, target, tail))
    return Sentence(
        f"d-{position}", tuple(words), tuple(entities), tuple(relations), tuple(links), text, document="d", position=position
    )


@settings(max_examples=100, deadline=None)
@given(st.data(), texts())
def test_scores_do_not_depend_on_segmentation(data: st.DataObject, document: Words) -> None:
    gold = data.draw(st.composite(annotate)(document))
    predicted = gold if data.draw(st.booleans()) else data.draw(st.composite(annotate)(document))
    resegmented_gold = data.draw(st.composite(resegment)(gold))
    resegmented_predicted = data.draw(st.composite(resegment)(predicted))
    expected, actual = evaluate(gold, predicted).to_json(), evaluate(resegmented_gold, resegmented_predicted).to_json()
    for name in ("micro", "macro", "types", "unlabelled", "relaxed", "confusion", "relations"):
        assert actual[name] == expected[name], name
    assert actual["sentences"] == len(resegmented_gold)
    assert actual["missing_sentences"] == 0
