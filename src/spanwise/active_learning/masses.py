"""How much the words of a sentence would teach a model, from the probabilities of spans."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from math import log2

from spanwise.active_learning.candidates import Feature
from spanwise.core.types import Sentence

ENTITY_WEIGHT = 0.5  # of an entity that is certain, next to 1 of a span with the probability 0.5


def entropy(probability: float) -> float:
    """The uncertainty of a yes-or-no question in bits: 1 at a probability of 0.5, 0 at 0 and 1.

    >>> entropy(0.5), round(entropy(0.9), 3), entropy(1.0)
    (1.0, 0.469, 0.0)
    """
    if not 0 < probability < 1:
        return 0.0
    other = 1 - probability
    return -probability * log2(probability) - other * log2(other)


def uncertainty_masses(
    sentence: Sentence, weights: Mapping[str, float] | None = None, entity_weight: float = 0.0
) -> dict[Feature, float]:  # fmt: skip
    """Share the uncertainty of each candidate span among its words.

    The entities of ``sentence`` are candidate spans, their scores probabilities. The mass of a span
    is the entropy of its probability, plus ``entity_weight`` times the probability. Types in
    ``weights`` are wanted: their probability is always added, because a sentence that certainly has
    a rare type is worth annotating too.

    >>> from spanwise.core.types import Entity
    >>> sentence = Sentence("s", ("In", "Oslo"), (Entity("Place", ((1, 2),), 0.5),))
    >>> uncertainty_masses(sentence)
    {Feature(word='oslo', weight=1.0): 1.0}
    >>> uncertainty_masses(sentence, {"Place": 4.0})
    {Feature(word='oslo', weight=4.0): 1.5}
    """
    masses: dict[Feature, float] = {}
    for entity in sentence.entities:
        probability = 1.0 if entity.score is None else entity.score
        weight = (weights or {}).get(entity.type)
        mass = entropy(probability) + probability * (entity_weight if weight is None else 1.0)
        words = [word.lower() for fragment in entity.fragments for word in sentence.words[fragment.start : fragment.end]]
        for word in words:
            feature = Feature(word, 1.0 if weight is None else weight)
            masses[feature] = masses.get(feature, 0.0) + mass / len(words)
    return masses


def word_masses(sentence: Sentence) -> dict[Feature, float]:
    """A mass of 1 for every occurrence of a word; needs no model.

    >>> [(feature.word, mass) for feature, mass in word_masses(Sentence("s", ("To", "be", "or", "to"))).items()]
    [('to', 2.0), ('be', 1.0), ('or', 1.0)]
    """
    return {Feature(word): float(count) for word, count in Counter(word.lower() for word in sentence.words).items()}
