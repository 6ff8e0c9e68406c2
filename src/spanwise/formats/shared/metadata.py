"""Metadata that is not annotation: ids, part-of-speech tags, scores and unknown keys.

Annotations that a format does not support are losses, and writing is refused. Metadata that it does
not store is only noted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set

from spanwise.core.types import Entity, Extra, Link, Relation, Sentence
from spanwise.formats.base import Ledger

_DESCRIPTIONS = {
    "ids": "sentence ids",
    "documents": "document names",
    "pos": "part-of-speech sequences",
    "scores": "entity scores",
    "relation scores": "relation scores",
    "keys": "sentence keys",
    "entity keys": "entity keys",
    "relation keys": "relation keys",
}


def note_dropped_metadata(
    sentences: Iterable[Sentence], format: str, stored: Set[str], extra_keys: Set[str], ledger: Ledger
) -> Iterator[Sentence]:
    """Yield the sentences unchanged and note the metadata that the format does not store.

    >>> ledger = Ledger()
    >>> sentences = [Sentence("s-0", ("Oslo",), (Entity("Place", ((0, 1),), score=0.5),))]
    >>> list(note_dropped_metadata(sentences, "conll", {"pos"}, set(), ledger)) == sentences, dict(ledger.notes)
    (True, {'entity scores dropped: not stored by conll': 1})
    """
    notes = {kind: dropped_note(kind, format) for kind in _DESCRIPTIONS if kind not in stored}
    for number, sentence in enumerate(sentences):
        for kind, note in notes.items():
            ledger.note(note, _count(kind, sentence, number, stored, extra_keys))
        yield sentence


def dropped_note(kind: str, format: str) -> str:
    """Return the note for metadata of a kind that a format does not store."""
    return f"{_DESCRIPTIONS[kind]} dropped: not stored by {format}"


def _count(kind: str, sentence: Sentence, number: int, stored: Set[str], extra_keys: Set[str]) -> int:
    relations: tuple[Relation | Link, ...] = (*sentence.relations, *sentence.links)
    match kind:
        case "ids":
            return int(_has_informative_id(sentence, number, "documents" in stored))
        case "documents":
            return int(sentence.document is not None)
        case "pos":
            return int(sentence.pos is not None)
        case "scores":
            return _count_scores(sentence.entities)
        case "relation scores":
            return _count_scores(relations)
        case "keys":
            return _count_keys(sentence.extra, extra_keys)
        case "entity keys":
            return sum(_count_keys(entity.extra, extra_keys) for entity in sentence.entities)
        case _:
            return sum(_count_keys(relation.extra, extra_keys) for relation in relations)


def _has_informative_id(sentence: Sentence, number: int, stores_documents: bool) -> bool:
    """Return False if the id only numbers the sentence in its file or document, or is stored as a document name."""
    if stores_documents and sentence.document is None:
        return False
    generated = (sentence.document, f"{sentence.document}-{sentence.position}")
    return sentence.id not in generated and not sentence.id.endswith(f"-{number}")


def _count_scores(annotations: Iterable[Entity | Relation | Link]) -> int:
    return sum(annotation.score is not None for annotation in annotations)


def _count_keys(extra: Extra | None, extra_keys: Set[str]) -> int:
    return len(extra.keys() - extra_keys) if extra else 0
