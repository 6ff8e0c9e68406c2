"""What is left above a threshold, and that relations across sentences still name the same entities."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from spanwise import Entity, Link, Relation, Sentence
from spanwise.decoding.thresholds import Threshold
from spanwise.evaluation import apply_threshold, evaluate

WORDS = ("Oslo", "and", "York", "and", "Rome")


def place(word: int, score: float | None = None, type: str = "P") -> Entity:
    return Entity(type, ((word, word + 1),), score)  # type: ignore[arg-type]


def sentence(position: int, *entities: Entity, links: tuple[Link, ...] = (), document: str = "d") -> Sentence:
    return Sentence(f"{document}-{position}", WORDS, entities, links=links, document=document, position=position)


def test_a_link_still_leads_to_its_entity_when_another_goes() -> None:
    gold = [sentence(0, place(0), links=(Link("near", 0, 1, 0),)), sentence(1, place(2))]
    found = [
        sentence(0, place(4, 0.2), place(0, 0.9), links=(Link("near", 1, 1, 1),)),
        sentence(1, place(0, 0.1), place(2, 0.9), place(4, 0.9)),
    ]
    for threshold in (0.0, 0.15, 0.5):
        relations = evaluate(gold, apply_threshold(found, threshold)).relations
        assert relations is not None
        assert relations.strict.micro.f1 == 1.0, threshold
    first, second = apply_threshold(found, 0.5)
    assert (first.links, second.entities) == ((Link("near", 0, 1, 0),), (place(2), place(4)))


def test_a_link_goes_with_its_tail_and_by_its_own_score() -> None:
    links = (Link("a", 0, 1, 0), Link("b", 0, 1, 1, score=0.4), Link("c", 0, 1, 1, score=0.6), Link("lost", 0, 7, 3))
    found = [sentence(0, place(0, 0.9), links=links), sentence(1, place(0, 0.1), place(2, 0.9))]
    # One that leads to no sentence here stays as it is: it was predicted, and is wrong.
    assert next(apply_threshold(found, 0.5)).links == (Link("c", 0, 1, 0), Link("lost", 0, 7, 3))
    assert [link.type for link in next(apply_threshold(found, {"c": 0.7})).links] == ["a", "b", "lost"]


def test_documents_of_one_name_have_their_own_numbers() -> None:
    linked = sentence(0, place(0), links=(Link("near", 0, 1, 1),))
    found = [linked, sentence(1, place(0, 0.1), place(2)), linked, sentence(1, place(0, 0.9), place(2))]
    assert [s.links[0].tail for s in apply_threshold(found, 0.5) if s.links] == [0, 1]


def test_nothing_below_nothing_new() -> None:
    one = replace(sentence(0, place(0, 0.9), links=(Link("a", 0, 1, 0),)), relations=(Relation("r", 0, 0, score=0.8),))
    assert next(apply_threshold([one], 0.5)) is one
    assert next(apply_threshold([one], 0.85)).relations == ()


scores = st.sampled_from([None, 0.1, 0.5, 0.9])


@st.composite
def documents(draw: st.DrawFn) -> list[Sentence]:
    """Sentences of two documents, in any order, with entities of distinct types, and links among those of a document."""
    counts = {(name, number): draw(st.integers(0, 4)) for name in "de" for number in range(draw(st.integers(1, 3)))}
    found = []
    for name, position in draw(st.permutations(sorted(counts))):
        entities = [place(0, draw(scores), f"{name}{position}{n}") for n in range(counts[name, position])]
        ends = [(number, n) for (other, number), count in counts.items() if other == name for n in range(count)]
        links = [
            Link("l", draw(st.integers(0, len(entities) - 1)), *draw(st.sampled_from(ends)), score=draw(scores))
            for _ in range(draw(st.integers(0, 3)) if entities else 0)
        ]
        found.append(sentence(position, *entities, links=tuple(links), document=name))
    return found


def led(sentences: list[Sentence]) -> list[tuple[str, str, float | None]]:
    """The two entities of each link, by their types, and its score."""
    entities = {(s.document, s.position): s.entities for s in sentences}
    return [
        (s.entities[link.head].type, entities[s.document, link.position][link.tail].type, link.score)
        for s in sentences
        for link in s.links
    ]


@given(documents(), st.sampled_from([0.0, 0.3, 0.6]))
def test_links_name_what_they_named(sentences: list[Sentence], threshold: Threshold) -> None:
    assert isinstance(threshold, float)
    above = {e.type for s in sentences for e in s.entities if e.score is None or e.score >= threshold}
    expected = [
        (head, tail, score)
        for head, tail, score in led(sentences)
        if {head, tail} <= above and (score is None or score >= threshold)
    ]
    assert led(list(apply_threshold(sentences, threshold))) == expected
