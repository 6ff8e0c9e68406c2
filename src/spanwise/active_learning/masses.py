"""How much the words of a sentence would teach a model, from the probabilities of spans."""

from __future__ import annotations

from collections.abc import Mapping
from math import log2

from spanwise.core.types import Sentence


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
) -> dict[str, float]:  # fmt: skip
    """Share the uncertainty of each candidate span among its words.

    The entities of ``sentence`` are candidate spans, their scores probabilities. The mass of a span
    is the entropy of its probability, plus ``entity_weight`` times the probability. ``weights`` are
    of types that are wanted: their spans also count with the probability, times the weight, because
    a sentence that contains a rare type for sure is worth annotating.

    >>> from spanwise.core.types import Entity
    >>> sentence = Sentence("s", ("In", "Oslo"), (Entity("Place", ((1, 2),), 0.5),))
    >>> uncertainty_masses(sentence), uncertainty_masses(sentence, {"Place": 4.0})
    ({'oslo': 1.0}, {'oslo': 6.0})
    """
    masses: dict[str, float] = {}
    for entity in sentence.entities:
        probability = 1.0 if entity.score is None else entity.score
        weight = weights.get(entity.type, 0.0) if weights else 0.0
        mass = entropy(probability) * max(1.0, weight) + probability * (weight + entity_weight)
        words = [word.lower() for fragment in entity.fragments for word in sentence.words[fragment.start : fragment.end]]
        for word in words:
            masses[word] = masses.get(word, 0.0) + mass / len(words)
    return masses


def word_masses(sentence: Sentence) -> dict[str, float]:
    """A mass of 1 for every occurrence of a word, whatever a model thinks of it.

    >>> word_masses(Sentence("s", ("To", "be", "or", "not", "to", "be")))
    {'to': 2.0, 'be': 2.0, 'or': 1.0, 'not': 1.0}
    """
    masses: dict[str, float] = {}
    for word in sentence.words:
        masses[word.lower()] = masses.get(word.lower(), 0.0) + 1.0
    return masses
