"""Every attribute of an entity, by hand."""

from __future__ import annotations

import pytest

from spanwise import Entity, Sentence
from spanwise.evaluation import ATTRIBUTES, TrainIndex, pair
from spanwise.evaluation.attributes import mentions

Spans = tuple[tuple[int, int], ...]


def sentence(text: str, *entities: tuple[str, Spans], id: str = "s") -> Sentence:
    return Sentence(id, tuple(text.split()), tuple(Entity(type, spans) for type, spans in entities))  # type: ignore[arg-type]


# "rain" stands there four times, twice as Weather and once as Title; "New York" twice, once as a Place; "york" is another word.
TRAIN = TrainIndex(
    [
        sentence("rain in New York and rain", ("Weather", ((0, 1),)), ("Place", ((2, 4),)), ("Weather", ((5, 6),))),
        sentence("Purple rain", ("Title", ((1, 2),)), ("Title", ((1, 2),)), id="given twice"),
        sentence("rain near York", id="no entities"),
        sentence("New York New", id="no entities either"),
        sentence("liver and heart failure", ("Disease", ((0, 1), (3, 4)))),
        sentence("liver failure"),
    ]
)


def values(name: str, gold: Sentence, found: Sentence | None = None, paper: bool = False) -> list[float | str]:
    """What an attribute says of each gold entity, or of each prediction, in order."""
    attribute = ATTRIBUTES[name]
    right, predicted = mentions(pair([gold], [gold if found is None else found]).pairs[0])
    value = attribute.literal if paper and attribute.literal else attribute.value
    return [value(mention, TRAIN) for mention in (right if found is None else predicted).values()]


def test_the_length_of_an_entity_leaves_out_what_is_between_its_fragments() -> None:
    assert values("eLen", sentence("a b c d e", ("X", ((0, 1),)), ("X", ((0, 3),)), ("X", ((0, 1), (3, 5))))) == [1, 3, 3]


def test_the_length_of_the_sentence() -> None:
    assert values("tLen", sentence("a b c d e", ("X", ((0, 1),)))) == [5]


def test_consistency_is_the_share_of_the_occurrences_with_the_label() -> None:
    gold = sentence(
        "rain New York york liver failure sun",
        ("Weather", ((0, 1),)), ("Title", ((0, 1),)), ("Place", ((0, 1),)), ("Place", ((1, 3),)), ("Place", ((3, 4),)),
        ("Disease", ((4, 6),)), ("Weather", ((6, 7),)),
    )  # fmt: skip
    # "liver failure" occurs twice: once as two fragments with a label, once in one piece without.
    assert values("eCon", gold) == [2 / 4, 1 / 4, 0, 1 / 2, 0, 1 / 2, 0]


def test_consistency_as_the_paper_writes_it_is_the_share_of_the_type() -> None:
    gold = sentence("sun rain", ("Weather", ((0, 1),)), ("Place", ((1, 2),)), ("Food", ((0, 1),)))
    assert values("eCon", gold, paper=True) == [2 / 5, 1 / 5, 0]


def test_density_counts_words_once_and_the_paper_counts_entities() -> None:
    gold = sentence("a b c d e f g h", ("X", ((0, 3),)), ("X", ((1, 2),)), ("Y", ((0, 1), (4, 5))), ("X", ((0, 3),)))
    assert values("eDen", gold) == [4 / 8] * 3  # the words a, b, c and e
    assert values("eDen", gold, paper=True) == [3 / 8] * 3  # what is given twice is one entity


def test_a_prediction_has_the_density_of_the_predictions() -> None:
    gold, found = sentence("a b c d", ("X", ((0, 1),))), sentence("a b c d", ("X", ((1, 2),)), ("X", ((2, 4),)))
    assert values("eDen", gold, found) == [3 / 4] * 2
    assert values("eDen", gold) == [1 / 4]


def test_oov_density() -> None:
    assert values("oDen", sentence("rain in york today", ("X", ((0, 1),)))) == [2 / 4]


def test_frequency_counts_what_is_not_annotated_too() -> None:
    gold = sentence(
        "rain York New York near liver failure sun",
        *(("X", (span,)) for span in ((0, 1), (1, 2), (2, 4), (2, 5), (5, 7), (7, 8))),
    )
    # "York near" stands in the training data nowhere, though the ends of two sentences would make a "failure rain".
    assert values("frequency", gold) == [4, 3, 2, 0, 2, 0]
    assert values("frequency", sentence("failure rain", ("X", ((0, 2),)))) == [0]
    assert TRAIN.occurrences(()) == 0


def test_seen_means_annotated_with_any_type() -> None:
    gold = sentence("rain York New York liver failure", *(("X", (span,)) for span in ((0, 1), (1, 2), (2, 4), (4, 6))))
    assert values("seen", gold) == ["seen", "unseen", "seen", "seen"]


def test_nesting_of_gold() -> None:
    gold = sentence(
        "a b c d e f g h",
        ("outer", ((0, 4),)), ("middle", ((0, 3),)), ("inner", ((1, 2),)), ("twin", ((1, 2),)), ("flat", ((5, 6),)),
        ("crossing", ((3, 5),)),
    )  # fmt: skip
    assert values("nesting", gold) == ["covering", "both", "nested", "nested", "flat", "flat"]


def test_nesting_of_predictions_is_told_by_gold() -> None:
    """“New York” in “New York University”, with a flat entity behind it, as in DSpERT's Section 4.4."""
    gold = sentence("to New York University last cold year", ("Org", ((1, 4),)), ("Place", ((1, 3),)), ("Date", ((4, 7),)))
    wrong = [
        ((2, 3), "nested"),  # inside the outer entity
        ((0, 4), "covering"),  # around the inner one
        ((0, 3), "covering"),
        ((1, 4), "covering"),  # the outer entity with a wrong type
        ((5, 6), "flat"),  # inside an entity that has none inside it
        ((4, 7), "flat"),
        ((3, 7), "flat"),  # around an entity that is in none
        ((3, 4), "nested"),
    ]  # fmt: skip
    found = sentence(" ".join(gold.words), *(("Wrong", (span,)) for span, _ in wrong))
    assert values("nesting", gold, found) == [name for _, name in wrong]


def test_both_nested_and_covering_as_a_prediction() -> None:
    gold = sentence("a b c d e", ("X", ((0, 5),)), ("X", ((1, 2),)))
    assert values("nesting", gold, sentence("a b c d e", ("X", ((0, 3),)))) == ["both"]


def test_discontinuous() -> None:
    gold = sentence("a b c", ("X", ((0, 1), (2, 3))), ("X", ((0, 2),)))
    assert values("discontinuous", gold) == ["discontinuous", "continuous"]


def test_predictions_in_other_words_are_measured_in_gold_s() -> None:
    gold = sentence("New-York has rain today", ("Place", ((0, 1),)))
    found = sentence("New - York has ra in today", ("Place", ((2, 3),)), ("Weather", ((4, 6),)), ("Weather", ((3, 5),)))
    assert values("eLen", gold, found) == [1, 1, 2]
    assert values("tLen", gold, found) == [4, 4, 4]
    assert values("frequency", gold, found) == [0, 4, 0]
    assert values("eDen", gold, found) == [3 / 4] * 3


def test_what_stands_between_words_goes_with_a_neighbour() -> None:
    gold = Sentence("s", ("rain", "today"), text="…rain/today")
    found = Sentence("s", ("…", "rain", "/", "today"), (Entity("X", ((0, 1),)), Entity("X", ((2, 4),))))  # type: ignore[arg-type]
    assert values("frequency", gold, found) == [4, 0]
    assert values("eLen", gold, found) == [1, 2]


def test_sentences_that_predictions_join_keep_their_lengths() -> None:
    gold = [sentence("sun and rain", ("Weather", ((0, 1),)), id="1"), sentence("rain", ("Weather", ((0, 1),)), id="2")]
    found = [sentence("sun and rain rain", ("Weather", ((0, 1),)), ("Weather", ((2, 4),)), ("Weather", ((3, 4),)), id="x")]
    (both,) = pair(gold, found).pairs
    right, predicted = mentions(both)
    assert [len(mention.context.words) for mention in right.values()] == [3, 1]
    # The one that reaches into the next sentence is cut there.
    assert [(mention.place.words, len(mention.context.words)) for mention in predicted.values()] == [
        ((0,), 3),
        ((2,), 3),
        ((0,), 1),
    ]
    assert [mention.string for mention in predicted.values()] == [("sun",), ("rain",), ("rain",)]


@pytest.mark.parametrize("words", [("rain",), ("New", "York"), ("York",), ("New",), ("in", "New", "York"), ("rain", "rain")])
def test_occurrences_are_windows(words: tuple[str, ...]) -> None:
    texts = ["rain in New York and rain", "Purple rain", "rain near York", "New York New", "liver failure"]
    windows = [text.split()[n : n + len(words)] for text in texts for n in range(len(text.split()))]
    assert TRAIN.occurrences(words) == windows.count(list(words))
