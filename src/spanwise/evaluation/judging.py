"""What kind of mistake each one is (after Bundling Learning for NER, 4.3.2).

Mistakes are told by what would mend them. A wrong prediction is mended into a gold entity that was not found, its partner, or
it must go; what no prediction can be mended into must be added. So every entity of gold and every prediction has one kind:

- ``correct``: type and words are right;
- ``type``: the words of the partner, another type;
- ``boundary``: the type of the partner, other words, at least one in common;
- ``both``: another type and other words, at least one in common;
- ``spurious``: a prediction without a partner;
- ``missed``: a gold entity without one.

An entity has one partner at most, and what is right is nobody's partner: an entity found in two pieces is one boundary error
and a spurious entity, and one too many inside a nested entity that was found is spurious. Where several could be
partners, the fewest corrections come first (``type`` before ``boundary`` before ``both``), then those that share most (the
words in common over all words of the two), then what comes first in the text and in the alphabet. The words between the
fragments of a discontinuous entity are not its own, so a fragment too many or too few is a wrong boundary like any other.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from spanwise.core.types import Entity, Sentence, Span, places_in
from spanwise.evaluation.alignment import Pair, homes
from spanwise.evaluation.scores import EntityItem, entity_items

MISTAKES = ("type", "boundary", "both", "spurious", "missed")
KINDS = ("correct", *MISTAKES)


@dataclass(frozen=True, slots=True)
class Claim:
    """An entity that gold or a system has: its spans in gold's words, and its text; of a system, its score if it gave one."""

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
class Judgement:
    """A gold entity and the prediction that is its partner; or either alone, where ``spurious`` or ``missed``.

    ``sentence`` is gold's, and ``number`` its place in gold. Where the predictions have other words than gold, ``predicted``
    has the spans of the gold words that it touches, and the text that it really has.
    """

    kind: str
    sentence: Sentence
    number: int
    gold: Claim | None
    predicted: Claim | None

    @property
    def claim(self) -> Claim:
        """The prediction, or the gold entity that was missed."""
        claim = self.predicted or self.gold
        assert claim is not None
        return claim

    def to_json(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "sentence": self.sentence.id,
            "number": self.number,
            "text": self.sentence.text,
            "gold": None if self.gold is None else self.gold.to_json(),
            "predicted": None if self.predicted is None else self.predicted.to_json(),
        }


def judge(both: Pair, numbers: Sequence[int]) -> list[Judgement]:
    """The judgements of a pair, in the order of the text; ``numbers`` are the places of its original sentences in gold."""
    right, found = entity_items(both.gold), entity_items(both.predicted)
    rows: list[tuple[str, EntityItem | None, EntityItem | None]] = [("correct", item, item) for item in right & found]
    rows += partners(right - found, found - right)
    rows += [("missed", item, None) for item in right - {row[1] for row in rows}]
    rows += [("spurious", None, item) for item in found - {row[2] for row in rows}]
    origin, scores = _Origin(both), best_scores(both.predicted)
    judgements = []
    for kind, gold, claim in rows:
        home = origin.sentence(gold or claim or ("", ()))
        own = None if gold is None else origin.claim(gold, home)
        other = None if claim is None else origin.claim(claim, home, scores.get(claim))
        judgements.append(Judgement(kind, both.originals[home], numbers[home], own, other))
    return sorted(judgements, key=lambda one: (one.number, one.claim.spans, one.claim.type, one.kind))


def partners(gold: Iterable[EntityItem], predicted: Iterable[EntityItem]) -> list[tuple[str, EntityItem, EntityItem]]:
    """Kind of mistake, gold entity and prediction of all partners among entities that are not right.

    >>> partners([("X", ((0, 3),))], [("X", ((0, 1),)), ("X", ((1, 3),))])
    [('boundary', ('X', ((0, 3),)), ('X', ((1, 3),)))]
    """
    claims = [(item, covered(item)) for item in predicted]
    candidates = []
    for right in gold:
        own = covered(right)
        for wrong, words in claims:
            if common := len(own & words):
                kind = 0 if own == words else 1 if right[0] == wrong[0] else 2
                candidates.append((kind, -common / len(own | words), right[1], wrong[1], right[0], wrong[0]))
    pairs, mended, used = [], set[EntityItem](), set[EntityItem]()
    for kind, _, right_spans, wrong_spans, right_type, wrong_type in sorted(candidates):
        right, wrong = (right_type, right_spans), (wrong_type, wrong_spans)
        if right not in mended and wrong not in used:
            mended.add(right)
            used.add(wrong)
            pairs.append((MISTAKES[kind], right, wrong))
    return pairs


def covered(item: EntityItem) -> frozenset[int]:
    """The words of an entity, those between its fragments left out."""
    return frozenset(places_in(item[1]))


def best_scores(sentence: Sentence | None) -> dict[EntityItem, float]:
    """The scores of the entities that have one; the highest where one is given twice."""
    scores: dict[EntityItem, float] = {}
    for entity in sentence.entities if sentence is not None else ():
        if entity.score is not None:
            item = (entity.type, entity.fragments)
            scores[item] = max(entity.score, scores.get(item, entity.score))
    return scores


class _Origin:
    """The entities of a pair in gold's own sentences, words and text, from which they may have been moved to characters."""

    def __init__(self, both: Pair) -> None:
        self._originals = both.originals
        is_plain = len(both.originals) == 1 and both.gold.words == both.originals[0].words
        self._homes = None if is_plain else homes(both.originals)

    def sentence(self, item: EntityItem) -> int:
        """The number of the sentence in which an entity begins."""
        return 0 if self._homes is None else self._homes[item[1][0][0]].sentence

    def claim(self, item: EntityItem, home: int, score: float | None = None) -> Claim:
        type, fragments = item
        if self._homes is None:
            return Claim(type, fragments, self._originals[0].text_of(Entity(type, fragments)), score)
        touched = sorted({place.word for start, end in fragments for place in self._homes[start:end] if place.sentence == home})
        spans = Entity(type, tuple(Span(word, word + 1) for word in touched)).fragments
        return Claim(type, spans, self._text(fragments), score)

    def _text(self, fragments: Iterable[Span]) -> str:
        assert self._homes is not None
        pieces = []
        for start, end in fragments:
            for number, places in groupby(self._homes[start:end], key=lambda place: place.sentence):
                at = [place.at for place in places]
                pieces.append(self._originals[number].text[at[0] : at[-1] + 1])
        return " ".join(pieces)
