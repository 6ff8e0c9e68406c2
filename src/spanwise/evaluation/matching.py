"""Match predictions with gold entities and classify errors (after Bundling Learning for NER, section 4.3.2).

A wrong prediction is matched with the missed gold entity that it could be corrected to. Every gold
entity and every prediction gets one outcome:

- ``correct``: type and words are those of the gold entity;
- ``type``: the words of the matched gold entity, another type;
- ``boundary``: its type, other words, at least one in common;
- ``both``: another type and other words, at least one in common;
- ``spurious``: a prediction without a match;
- ``missed``: a gold entity without a match.

Matching is one to one, and correct entities are matched only with each other: an entity predicted in
two pieces is one boundary error and one spurious entity, and an extra prediction inside a correct
nested entity is spurious. Among several candidates, the error type with the fewest corrections comes
first (``type``, then ``boundary``, then ``both``), then the highest overlap (intersection over union of
words), then the order in the text and in the alphabet. The words between the fragments of a
discontinuous entity are not part of it, so a missing or additional fragment is a boundary error.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from spanwise.core.types import Entity, Sentence, Span, word_indices_in
from spanwise.evaluation.alignment import SentencePair, character_origins
from spanwise.evaluation.scores import EntityItem, entity_items

ERROR_TYPES = ("type", "boundary", "both", "spurious", "missed")
OUTCOMES = ("correct", *ERROR_TYPES)


@dataclass(frozen=True, slots=True)
class Mention:
    """A gold or predicted entity: its spans over gold's words, its text, and its score if it has one."""

    type: str
    spans: tuple[Span, ...]
    text: str
    score: float | None = None

    @property
    def entity(self) -> Entity:
        return Entity(self.type, self.spans, self.score)

    def to_json(self) -> dict[str, Any]:
        record = {"type": self.type, "spans": [list(span) for span in self.spans], "text": self.text}
        return record if self.score is None else {**record, "score": self.score}


@dataclass(frozen=True, slots=True)
class Match:
    """A gold entity and the prediction matched with it; one of them is None if ``spurious`` or ``missed``.

    ``sentence`` is the gold sentence and ``sentence_index`` its index in gold. If the predictions
    have another tokenisation, ``predicted`` has the spans of the gold words it touches, but its own text.
    """

    outcome: str
    sentence: Sentence
    sentence_index: int
    gold: Mention | None
    predicted: Mention | None

    @property
    def mention(self) -> Mention:
        """The prediction, or the gold entity if it was missed."""
        mention = self.predicted or self.gold
        assert mention is not None
        return mention

    def to_json(self) -> dict[str, Any]:
        return {
            "outcome": self.outcome,
            "sentence": self.sentence.id,
            "sentence_index": self.sentence_index,
            "text": self.sentence.text,
            "gold": None if self.gold is None else self.gold.to_json(),
            "predicted": None if self.predicted is None else self.predicted.to_json(),
        }


def match_entities(pair: SentencePair, sentence_indices: Sequence[int]) -> list[Match]:
    """Match the entities of a pair, in text order. ``sentence_indices`` are those of its originals in gold."""
    gold, predicted = entity_items(pair.gold), entity_items(pair.predicted)
    rows: list[tuple[str, EntityItem | None, EntityItem | None]] = [
        ("correct", item, item) for item in sorted(gold & predicted)
    ]
    rows += match_errors(gold - predicted, predicted - gold)
    rows += [("missed", item, None) for item in sorted(gold - {row[1] for row in rows})]
    rows += [("spurious", None, item) for item in sorted(predicted - {row[2] for row in rows})]
    originals, scores = _Originals(pair), best_scores(pair.predicted)
    matches = []
    for outcome, gold_item, predicted_item in rows:
        index = originals.sentence_index(gold_item or predicted_item or ("", ()))
        gold_mention = None if gold_item is None else originals.mention(gold_item, index)
        predicted_mention = (
            None if predicted_item is None else originals.mention(predicted_item, index, scores.get(predicted_item))
        )
        matches.append(Match(outcome, pair.originals[index], sentence_indices[index], gold_mention, predicted_mention))
    return sorted(matches, key=lambda match: (match.sentence_index, match.mention.spans, match.mention.type, match.outcome))


def match_errors(gold: Iterable[EntityItem], predicted: Iterable[EntityItem]) -> list[tuple[str, EntityItem, EntityItem]]:
    """Match missed gold entities with wrong predictions; return error type, gold entity and prediction.

    >>> match_errors([("X", ((0, 3),))], [("X", ((0, 1),)), ("X", ((1, 3),))])
    [('boundary', ('X', ((0, 3),)), ('X', ((1, 3),)))]
    """
    predictions = [(item, words_of(item)) for item in predicted]
    predictions_at: defaultdict[int, list[int]] = defaultdict(list)  # the indices of the predictions with each word
    for index, (_, words) in enumerate(predictions):
        for word in words:
            predictions_at[word].append(index)
    candidates = []
    for gold_item in gold:
        gold_words = words_of(gold_item)
        common_words = Counter(index for word in gold_words for index in predictions_at.get(word, ()))
        for index, common in common_words.items():
            predicted_item, words = predictions[index]
            union = len(gold_words) + len(words) - common
            error = 0 if common == union else 1 if gold_item[0] == predicted_item[0] else 2
            candidates.append((error, -common / union, gold_item[1], predicted_item[1], gold_item[0], predicted_item[0]))
    matches, matched_gold, matched_predicted = [], set[EntityItem](), set[EntityItem]()
    for error, _, gold_spans, predicted_spans, gold_type, predicted_type in sorted(candidates):
        gold_item, predicted_item = (gold_type, gold_spans), (predicted_type, predicted_spans)
        if gold_item not in matched_gold and predicted_item not in matched_predicted:
            matched_gold.add(gold_item)
            matched_predicted.add(predicted_item)
            matches.append((ERROR_TYPES[error], gold_item, predicted_item))
    return matches


def words_of(item: EntityItem) -> frozenset[int]:
    """Return the indices of an entity's words, without those between its fragments."""
    return frozenset(word_indices_in(item[1]))


def best_scores(sentence: Sentence | None) -> dict[EntityItem, float]:
    """Return the scores of the entities that have one; the highest score of duplicates."""
    scores: dict[EntityItem, float] = {}
    for entity in sentence.entities if sentence is not None else ():
        if entity.score is not None:
            item = (entity.type, entity.fragments)
            scores[item] = max(entity.score, scores.get(item, entity.score))
    return scores


class _Originals:
    """Map the entities of a pair, whose words may be characters, back to gold's sentences and words."""

    def __init__(self, pair: SentencePair) -> None:
        self._originals = pair.originals
        is_unchanged = len(pair.originals) == 1 and pair.gold.words == pair.originals[0].words
        self._origins = None if is_unchanged else character_origins(pair.originals)

    def sentence_index(self, item: EntityItem) -> int:
        """Return the index of the original sentence in which an entity starts."""
        return 0 if self._origins is None else self._origins[item[1][0][0]].sentence

    def mention(self, item: EntityItem, sentence_index: int, score: float | None = None) -> Mention:
        type, fragments = item
        if self._origins is None:
            return Mention(type, fragments, self._originals[0].text_of(Entity(type, fragments)), score)
        origins = (origin for start, end in fragments for origin in self._origins[start:end])
        words = sorted({origin.word for origin in origins if origin.sentence == sentence_index})
        spans = Entity(type, tuple(Span(word, word + 1) for word in words)).fragments
        return Mention(type, spans, self._text(fragments), score)

    def _text(self, fragments: Iterable[Span]) -> str:
        assert self._origins is not None
        pieces = []
        for start, end in fragments:
            for index, origins in groupby(self._origins[start:end], key=lambda origin: origin.sentence):
                offsets = [origin.offset for origin in origins]
                pieces.append(self._originals[index].text[offsets[0] : offsets[-1] + 1])
        return " ".join(pieces)
