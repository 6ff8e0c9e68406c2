"""Every attribute of an entity, computed by hand."""

from __future__ import annotations

import pytest
from cases import limit_cpu

from spanwise import Entity, Sentence
from spanwise.evaluation import ATTRIBUTES, TrainIndex, pair
from spanwise.evaluation.attributes import entities_in_context

Spans = tuple[tuple[int, int], ...]


def sentence(text: str, *entities: tuple[str, Spans], id: str = "s") -> Sentence:
    return Sentence(id, tuple(text.split()), tuple(Entity(type, spans) for type, spans in entities))  # type: ignore[arg-type]


# "rain" occurs four times, twice as Weather and once as Title; "New York" twice, once as Place; "york" is a different word.
TRAIN = TrainIndex(
    [
        sentence("rain in New York and rain", ("Weather", ((0, 1),)), ("Place", ((2, 4),)), ("Weather", ((5, 6),))),
        sentence("Purple rain", ("Title", ((1, 2),)), ("Title", ((1, 2),)), id="duplicate"),
        sentence("rain near York", id="no entities"),
        sentence("New York New", id="no entities, too"),
        sentence("liver and heart failure", ("Disease", ((0, 1), (3, 4)))),
        sentence("liver failure"),
    ]
)


def values(name: str, gold: Sentence, predicted: Sentence | None = None, use_paper: bool = False) -> list[float | str]:
    """The attribute of each gold entity, or of each prediction, in order."""
    attribute = ATTRIBUTES[name]
    gold_entities, predicted_entities = entities_in_context(pair([gold], [predicted or gold]).pairs[0], TRAIN)
    value = attribute.paper_value if use_paper and attribute.paper_value else attribute.value
    entities = gold_entities if predicted is None else predicted_entities
    return [value(entity) for entity in entities.values()]


def test_entity_length_excludes_words_between_fragments() -> None:
    assert values("eLen", sentence("a b c d e", ("X", ((0, 1),)), ("X", ((0, 3),)), ("X", ((0, 1), (3, 5))))) == [1, 3, 3]


def test_sentence_length() -> None:
    assert values("tLen", sentence("a b c d e", ("X", ((0, 1),)))) == [5]


def test_consistency_is_the_share_of_occurrences_with_the_type() -> None:
    gold = sentence(
        "rain New York york liver failure sun",
        ("Weather", ((0, 1),)), ("Title", ((0, 1),)), ("Place", ((0, 1),)), ("Place", ((1, 3),)), ("Place", ((3, 4),)),
        ("Disease", ((4, 6),)), ("Weather", ((6, 7),)),
    )  # fmt: skip
    # "liver failure" occurs twice: annotated as two fragments, and contiguous without annotation.
    assert values("eCon", gold) == [2 / 4, 1 / 4, 0, 1 / 2, 0, 1 / 2, 0]


def test_the_papers_consistency_is_the_share_of_the_type() -> None:
    gold = sentence("sun rain", ("Weather", ((0, 1),)), ("Place", ((1, 2),)), ("Food", ((0, 1),)))
    assert values("eCon", gold, use_paper=True) == [2 / 5, 1 / 5, 0]


def test_density_counts_words_and_the_papers_density_counts_entities() -> None:
    gold = sentence("a b c d e f g h", ("X", ((0, 3),)), ("X", ((1, 2),)), ("Y", ((0, 1), (4, 5))), ("X", ((0, 3),)))
    assert values("eDen", gold) == [4 / 8] * 3  # the words a, b, c and e
    assert values("eDen", gold, use_paper=True) == [3 / 8] * 3  # duplicates are one entity


def test_density_of_a_prediction_uses_the_predicted_entities() -> None:
    gold, predicted = sentence("a b c d", ("X", ((0, 1),))), sentence("a b c d", ("X", ((1, 2),)), ("X", ((2, 4),)))
    assert values("eDen", gold, predicted) == [3 / 4] * 2
    assert values("eDen", gold) == [1 / 4]


def test_oov_density() -> None:
    assert values("oDen", sentence("rain in york today", ("X", ((0, 1),)))) == [2 / 4]


def test_frequency_counts_all_occurrences() -> None:
    gold = sentence(
        "rain York New York near liver failure sun",
        *(("X", (span,)) for span in ((0, 1), (1, 2), (2, 4), (2, 5), (5, 7), (7, 8))),
    )
    # "York near" does not occur, and "failure rain" only across a sentence boundary, which does not count.
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


def test_nesting_of_predictions_is_defined_by_gold() -> None:
    """“New York” in “New York University”, followed by a flat entity, as in DSpERT's section 4.4."""
    gold = sentence("to New York University last cold year", ("Org", ((1, 4),)), ("Place", ((1, 3),)), ("Date", ((4, 7),)))
    wrong = [
        ((2, 3), "nested"),  # inside the outer entity
        ((0, 4), "covering"),  # contains the inner entity
        ((0, 3), "covering"),
        ((1, 4), "covering"),  # the outer entity with a wrong type
        ((5, 6), "flat"),  # inside an entity that contains no others
        ((4, 7), "flat"),
        ((3, 7), "flat"),  # contains an entity that is not nested
        ((3, 4), "nested"),
    ]  # fmt: skip
    predicted = sentence(" ".join(gold.words), *(("Wrong", (span,)) for span, _ in wrong))
    assert values("nesting", gold, predicted) == [name for _, name in wrong]


def test_a_prediction_can_be_nested_and_covering() -> None:
    gold = sentence("a b c d e", ("X", ((0, 5),)), ("X", ((1, 2),)))
    assert values("nesting", gold, sentence("a b c d e", ("X", ((0, 3),)))) == ["both"]


@pytest.mark.parametrize("name", ["nesting", "oDen"])
def test_ten_thousand_entities_in_a_sentence_take_little_time(name: str) -> None:
    pairs = [[("X", ((4 * index, 4 * index + 3),)), ("X", ((4 * index, 4 * index + 2),))] for index in range(5_000)]
    gold = sentence("rain " * 20_000, *(entity for pair in pairs for entity in pair))
    with limit_cpu(5, name):
        nesting_or_shares = values(name, gold)
    assert nesting_or_shares == (["covering", "nested"] * 5_000 if name == "nesting" else [0] * 10_000)


def test_discontinuous() -> None:
    gold = sentence("a b c", ("X", ((0, 1), (2, 3))), ("X", ((0, 2),)))
    assert values("discontinuous", gold) == ["discontinuous", "continuous"]


def test_attributes_of_predictions_use_gold_words() -> None:
    gold = sentence("New-York has rain today", ("Place", ((0, 1),)))
    predicted = sentence("New - York has ra in today", ("Place", ((2, 3),)), ("Weather", ((4, 6),)), ("Weather", ((3, 5),)))
    assert values("eLen", gold, predicted) == [1, 1, 2]
    assert values("tLen", gold, predicted) == [4, 4, 4]
    assert values("frequency", gold, predicted) == [0, 4, 0]
    assert values("eDen", gold, predicted) == [3 / 4] * 3


def test_text_between_words_belongs_to_a_neighbouring_word() -> None:
    gold = Sentence("s", ("rain", "today"), text="…rain/today")
    predicted = Sentence("s", ("…", "rain", "/", "today"), (Entity("X", ((0, 1),)), Entity("X", ((2, 4),))))  # type: ignore[arg-type]
    assert values("frequency", gold, predicted) == [4, 0]
    assert values("eLen", gold, predicted) == [1, 2]


def test_joined_sentences_keep_their_lengths() -> None:
    gold = [sentence("sun and rain", ("Weather", ((0, 1),)), id="1"), sentence("rain", ("Weather", ((0, 1),)), id="2")]
    predicted = [sentence("sun and rain rain", ("Weather", ((0, 1),)), ("Weather", ((2, 4),)), ("Weather", ((3, 4),)), id="x")]
    (sentence_pair,) = pair(gold, predicted).pairs
    gold_entities, predicted_entities = entities_in_context(sentence_pair, TRAIN)
    assert [len(entity.context.words) for entity in gold_entities.values()] == [3, 1]
    # An entity that crosses a sentence boundary ends there.
    assert [(item.entity.words, len(item.context.words)) for item in predicted_entities.values()] == [
        ((0,), 3),
        ((2,), 3),
        ((0,), 1),
    ]
    assert [item.string for item in predicted_entities.values()] == [("sun",), ("rain",), ("rain",)]


@pytest.mark.parametrize("words", [("rain",), ("New", "York"), ("York",), ("New",), ("in", "New", "York"), ("rain", "rain")])
def test_occurrences_are_consecutive_words(words: tuple[str, ...]) -> None:
    texts = ["rain in New York and rain", "Purple rain", "rain near York", "New York New", "liver failure"]
    windows = [text.split()[n : n + len(words)] for text in texts for n in range(len(text.split()))]
    assert TRAIN.occurrences(words) == windows.count(list(words))
