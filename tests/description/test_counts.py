"""Statistics of one split, compared with values computed by hand and with their definitions."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from spanwise.core.types import Entity, Link, Relation, Sentence, Span
from spanwise.description.counts import SplitCounts, count_overlaps, quantile, quantiles, sort_by_count

WORDS = tuple("the port of Rotterdam in the south Netherlands grows fast".split())


def count(*sentences: Sentence) -> SplitCounts:
    counts = SplitCounts()
    for sentence in sentences:
        counts.add(sentence)
    return counts


def test_relations_of_concepts_are_counted() -> None:
    lines = [["CID", "C1", "D1"], ["CID", "C2", "D1"]]
    counts = count(
        Sentence("a", WORDS, extra={"concept_relations": lines}), Sentence("b", WORDS, extra={"concept_relations": 3})
    )
    assert (counts.relations, counts.concept_relations, counts.to_json()["concept_relations"]) == (0, 2, 2)


def test_partially_annotated_sentences_are_counted() -> None:
    marks = (None, (), ("Place",), (Span(0, 2),))
    counts = count(*(Sentence(str(index), WORDS, annotated=annotated) for index, annotated in enumerate(marks)))
    assert counts.to_json()["partially_annotated"] == counts.partially_annotated == 3


def entity(type: str, *fragments: tuple[int, int]) -> Entity:
    return Entity(type, tuple(Span(*fragment) for fragment in fragments))


def test_all_statistics_of_a_small_split() -> None:
    first = Sentence(
        "first",
        WORDS,
        entities=(
            entity("Facility", (0, 4)),
            entity("Place", (3, 4)),  # nested
            entity("Place", (3, 5)),  # crosses the facility, contains the place
            entity("Region", (5, 6), (7, 8)),  # discontinuous, three words wide
            entity("Region", (6, 7)),  # inside the range of the discontinuous one
        ),
        relations=(Relation("in", 0, 1), Relation("in", 1, 3), Relation("near", 1, 2)),
        links=(Link("same", 1, 4, 0),),
        document="d1",
        position=0,
    )
    second = Sentence("second", ("Oslo",), entities=(entity("City", (0, 1)), entity("Place", (0, 1)), entity("City", (0, 1))))
    third = Sentence("third", ("It", "rains"), document="d1", position=1)
    fourth = Sentence("fourth", ("It", "rains"), document="d2", position=0)
    counts = count(first, second, third, fourth)
    assert counts.to_json() == {
        "sentences": 4,
        "words": 15,
        "documents": 2,
        "entities": 8,
        "nested": 2,
        "crossing": 2,
        "discontinuous": 1,
        "same_span_two_types": 1,
        "duplicate_entities": 1,
        "relations": 3,
        "links": 1,
        "concept_relations": 0,
        "max_width": 4,
        "width_99": 4,
        # 1 1 1 1 1 2 3 4
        "entity_widths": {"min": 1, "25%": 1, "median": 1, "75%": 2, "95%": 4, "99%": 4, "max": 4},
        # 1 2 2 10
        "sentence_lengths": {"min": 1, "25%": 1, "median": 2, "75%": 2, "95%": 10, "99%": 10, "max": 10},
        "longest_sentence": {"id": "first", "words": 10},
        "sentences_without_entities": 2,
        "partially_annotated": 0,
        "duplicate_sentences": 0,  # set by describe
        "oov_density": None,
        "types": {"Place": 3, "City": 2, "Region": 2, "Facility": 1},
        "relation_types": {"in": 2, "near": 1, "same": 1},
    }


def test_an_empty_split() -> None:
    statistics = SplitCounts().to_json()
    assert statistics["longest_sentence"] is None
    assert statistics["entity_widths"] is None
    assert statistics["sentence_lengths"] is None
    assert {statistics[key] for key in ("sentences", "words", "entities", "max_width", "width_99", "documents")} == {0}


def test_the_longest_sentence_is_the_first_of_equal_length() -> None:
    assert count(Sentence("a", ())).longest_sentence == "a"
    assert count(Sentence("a", ()), Sentence("b", ("x",)), Sentence("c", ("y",))).longest_sentence == "b"


def test_spans_with_different_fragments_are_different() -> None:
    sentence = Sentence("s", WORDS, entities=(entity("A", (0, 1), (2, 3)), entity("B", (0, 3)), entity("C", (0, 1), (2, 3))))
    counts = count(sentence)
    assert counts.same_span_two_types == 1
    assert (counts.nested, counts.crossing) == (0, 0)  # all three have the same range


def test_three_types_on_one_span_are_one_span() -> None:
    sentence = Sentence("s", WORDS, entities=tuple(entity(type, (0, 2)) for type in "ABCA"))
    counts = count(sentence)
    assert (counts.same_span_two_types, counts.duplicate_entities) == (1, 1)


def test_width_99_ignores_one_percent() -> None:
    def split(wide: int) -> SplitCounts:
        narrow = Sentence("n", WORDS, entities=(entity("A", (0, 2)),))
        return count(*[narrow] * (200 - wide), *[Sentence("w", WORDS, entities=(entity("A", (0, 9)),))] * wide)

    assert split(2).width_99 == 2
    assert split(3).width_99 == 9


@given(st.lists(st.integers(0, 30), min_size=1), st.fractions(0, 1))
def test_quantile_is_the_smallest_value_that_covers_the_share(values: list[int], share: Fraction) -> None:
    covering = [v for v in values if sum(other <= v for other in values) >= share * len(values)]
    assert quantile(Counter(values), share) == min(covering)
    values_by_name = quantiles(Counter(values))
    assert values_by_name is not None
    assert (values_by_name["min"], values_by_name["max"]) == (min(values), max(values))


def test_sort_by_count_breaks_ties_by_name() -> None:
    assert list(sort_by_count({"b": 1, "a": 1, "c": 2})) == ["c", "a", "b"]


spans = st.tuples(st.integers(0, 12), st.integers(1, 8)).map(lambda pair: Span(pair[0], pair[0] + pair[1]))


@given(st.lists(spans, max_size=14))
def test_nested_and_crossing_match_their_definitions(ranges: list[Span]) -> None:
    nested = sum(any(other != span and other.contains(span) for other in ranges) for span in ranges)
    crossing = sum(any(other.crosses(span) for other in ranges) for span in ranges)
    assert count_overlaps(ranges) == (nested, crossing)


def test_many_entities_in_one_sentence_are_fast() -> None:
    # Steps (0, 2), (1, 3), (2, 4), …: all cross their neighbours. Comparing all pairs would take minutes.
    size = 50_000
    assert count_overlaps([Span(i, i + 2) for i in range(size)]) == (0, size)
