"""What data has besides its annotation (ids, tags of words, scores, unknown keys), and a note of what a format leaves out.

Entities, fragments, types and relations that a format cannot hold are losses, and writing is refused. What is said here is no
loss: it is written where the format has a place for it, and noted where it has none.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set

from spanwise.core.types import Entity, Extra, Link, Relation, Sentence
from spanwise.formats.base import Ledger

_NAMES = {
    "ids": "ids of sentences",
    "documents": "names of documents",
    "pos": "part-of-speech tags (sentences with them)",
    "scores": "scores of entities",
    "relation scores": "scores of relations",
    "keys": "keys of sentences",
    "entity keys": "keys of entities",
    "relation keys": "keys of relations",
}


def noted(
    sentences: Iterable[Sentence], format: str, keeps: Set[str], own_keys: Set[str], ledger: Ledger
) -> Iterator[Sentence]:
    """The same sentences; what they have and a format does not keep is noted as they pass.

    >>> ledger = Ledger()
    >>> sentences = [Sentence("s-0", ("Oslo",), (Entity("Place", ((0, 1),), score=0.5),))]
    >>> list(noted(sentences, "conll", {"pos"}, set(), ledger)) == sentences, dict(ledger.notes)
    (True, {'scores of entities left out: conll has no place for them': 1})
    """
    missing = {what: f"{name} left out: {format} has no place for them" for what, name in _NAMES.items() if what not in keeps}
    for number, sentence in enumerate(sentences):
        for what, note in missing.items():
            ledger.note(note, _count(what, sentence, number, keeps, own_keys))
        yield sentence


def _count(what: str, sentence: Sentence, number: int, keeps: Set[str], own_keys: Set[str]) -> int:
    relations: tuple[Relation | Link, ...] = (*sentence.relations, *sentence.links)
    match what:
        case "ids":
            return int(_has_own_id(sentence, number, "documents" in keeps))
        case "documents":
            return int(sentence.document is not None)
        case "pos":
            return int(sentence.pos is not None)
        case "scores":
            return _scores(sentence.entities)
        case "relation scores":
            return _scores(relations)
        case "keys":
            return _unknown(sentence.extra, own_keys)
        case "entity keys":
            return sum(_unknown(entity.extra, own_keys) for entity in sentence.entities)
        case _:
            return sum(_unknown(relation.extra, own_keys) for relation in relations)


def _has_own_id(sentence: Sentence, number: int, as_document: bool) -> bool:
    """True unless the id says no more than the sentence's place in its file or document, or stands for a document."""
    if as_document and sentence.document is None:
        return False
    made_up = (sentence.document, f"{sentence.document}-{sentence.position}")
    return sentence.id not in made_up and not sentence.id.endswith(f"-{number}")


def _scores(things: Iterable[Entity | Relation | Link]) -> int:
    return sum(thing.score is not None for thing in things)


def _unknown(extra: Extra | None, own_keys: Set[str]) -> int:
    return len(extra.keys() - own_keys) if extra else 0
