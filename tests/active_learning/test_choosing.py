"""Which units are chosen: by uncertainty, coverage of words, or at random; in bounded memory."""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator, Sequence

import pytest

from spanwise.active_learning.choosing import SHORTLIST, STRATEGIES, Criteria, Pool, choose, parse_preferred
from spanwise.active_learning.units import SeenTexts
from spanwise.core.errors import SpanwiseError
from spanwise.core.types import Entity, Sentence
from spanwise.decoding.thresholds import Thresholds
from spanwise.prediction.base import BasePredictor


class FakePredictor(BasePredictor):
    """Finds every capitalised word; the probability is the number that follows it: ``Oslo 0.5``."""

    types, default_threshold = ("Place", "Drug"), 0.5

    def predict_chunk(
        self, sentences: Sequence[Sentence], context: Sequence[Sentence], *, threshold: Thresholds, batch_size: int
    ) -> list[Sentence]:  # fmt: skip
        return [sentence.with_predictions(tuple(self._entities(sentence.words))) for sentence in sentences]

    def _entities(self, words: Sequence[str]) -> Iterator[Entity]:
        for index, word in enumerate(words):
            if word[0].isupper():
                yield Entity("Drug" if word.startswith("D") else "Place", ((index, index + 1),), float(words[index + 1]))


def pool(*texts: str, document: str | None = None) -> list[Sentence]:
    return [Sentence(f"s{number}", tuple(text.split()), document=document) for number, text in enumerate(texts)]


def numbers(sentences: Iterable[Sentence], criteria: Criteria, seen: Iterable[Sentence] = ()) -> list[int]:
    return [candidate.number for candidate in choose(FakePredictor(), sentences, criteria, Pool(SeenTexts(seen)))]


def test_uncertainty_prefers_probabilities_near_one_half_and_many_of_them() -> None:
    texts = pool("in Oslo 0.99", "in Oslo 0.5", "Oslo 0.6 and Lima 0.4", "nothing here", "in Oslo 0.8")
    assert numbers(texts, Criteria(3, "uncertainty")) == [2, 1, 4]


def test_both_avoids_the_same_uncertain_words() -> None:
    texts = pool("x Oslo 0.5 Oslo 0.5", "y Oslo 0.5 Oslo 0.45", "z Oslo 0.5 Oslo 0.48", "in Lima 0.5 Lima 0.6")
    assert numbers(texts, Criteria(2, "uncertainty")) == [0, 2]
    assert numbers(texts, Criteria(2, "both")) == [3, 0]


def test_diversity_covers_words_without_using_the_model() -> None:
    texts = pool("a b c Oslo 0.5", "a b c Oslo 0.5 0.5", "d e f", "a")
    assert set(numbers(texts, Criteria(2, "diversity"))) == {1, 2}


def test_random_depends_on_the_seed_only() -> None:
    texts = pool(*(f"word{number}" for number in range(50)))
    first = numbers(texts, Criteria(10, "random", seed=1))
    assert first == numbers(texts, Criteria(10, "random", seed=1))
    assert first != numbers(texts, Criteria(10, "random", seed=2))
    assert len(set(first)) == 10


def test_a_preferred_type_is_chosen_even_if_it_is_certain() -> None:
    texts = pool("Oslo 0.5 Lima 0.5", "x Dolo 0.95", "Oslo 0.5")
    assert numbers(texts, Criteria(1)) == [0]
    assert numbers(texts, Criteria(1, preferred={"Drug": 10.0})) == [1]


def test_per_word_prefers_short_sentences() -> None:
    texts = pool("Oslo 0.5 Lima 0.5 " + "and so on " * 10, "Rome 0.5")
    assert numbers(texts, Criteria(1)) == [0]
    assert numbers(texts, Criteria(1, per_word=True)) == [1]
    assert numbers(texts, Criteria(1, "uncertainty", per_word=True)) == [1]


def test_annotated_and_repeated_texts_are_skipped() -> None:
    texts = pool("in Oslo 0.5", "in Lima 0.5", "In  oslo 0.5", "in Rome 0.9")
    seen = [Sentence("old", ("in", "Lima", "0.", "5"))]  # the same text with other words
    units = Pool(SeenTexts(seen))
    chosen = choose(FakePredictor(), texts, Criteria(10), units)
    assert sorted(candidate.number for candidate in chosen) == [0, 3]
    assert (units.units, units.sentences, units.skipped) == (4, 4, 2)


def test_documents_are_chosen_as_a_whole() -> None:
    first, second = pool("Oslo 0.5", "Lima 0.5", document="d1"), pool("Rome 0.5", "nothing", document="d2")
    chosen = choose(FakePredictor(), [*second, *first], Criteria(1, unit="document"))
    assert [sentence.words[0] for sentence in chosen[0].sentences] == ["Oslo", "Lima"]
    # A document is skipped only if all of its sentences are annotated.
    assert numbers([*second, *first], Criteria(5, unit="document"), first[:1]) == [1, 0]
    assert numbers([*second, *first], Criteria(5, unit="document"), first) == [0]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_memory_is_bounded(strategy: str) -> None:
    alive: list[int] = []

    def read() -> Iterator[Sentence]:
        for number in range(12_000):
            if number % 4000 == 3999:
                alive.append(sum(type(thing) is Sentence for thing in gc.get_objects()))
            yield Sentence(f"s{number}", (f"Word{number}", f"0.{number % 9}1"))

    before = sum(type(thing) is Sentence for thing in gc.get_objects())
    assert len(choose(FakePredictor(), read(), Criteria(5, strategy))) == 5
    assert max(alive) - before < 2 * 2048 + 2 * 512 + 5 * SHORTLIST + 100, "chunks, their context and the shortlist"


def test_wrong_criteria_are_refused() -> None:
    for wrong in ({"strategy": "best"}, {"unit": "word"}, {"count": 0}, {"strategy": "random", "preferred": {"Drug": 1.0}}):
        with pytest.raises(SpanwiseError):
            Criteria(**wrong)  # type: ignore[arg-type]
    for text in ("Drug=", "=2", "Drug=-1", "Drug=x"):
        with pytest.raises(SpanwiseError, match="expected TYPE or TYPE=WEIGHT"):
            parse_preferred([text])
    with pytest.raises(SpanwiseError, match=r"unknown type 'Drugs' \(did you mean 'Drug'\?\)"):
        choose(FakePredictor(), pool("a"), Criteria(preferred={"Drugs": 1.0}))
