"""Rows of Hugging Face datasets as sentences: words, and tags that are strings or numbers."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from spanwise.core import tags as tagging
from spanwise.core.counting import counted
from spanwise.core.errors import FormatError
from spanwise.core.types import Entity, Sentence
from spanwise.files.names import default_id
from spanwise.formats.base import Ledger, fill_empty_words
from spanwise.formats.shared.records import id_or_default

POS = ("pos_tags", "pos")


def find_column(given: str | None, usual: tuple[str, ...], columns: list[str], option: str, path: Path) -> str:
    candidates = [name for name in ((given,) if given else usual) if name in columns]
    if not candidates:
        problem = f"no column {given!r}" if given else f"no column of {option} ({', '.join(usual)})"
        listed = ", ".join(map(repr, columns)) or "none"
        raise FormatError(path, None, f"{problem}; found {listed}; choose one with hf_dataset:{option}=NAME")
    return candidates[0]


def label_names(features: Any) -> dict[str, list[str]]:
    """Return the names of the numbers in each column, from the features of ``datasets``."""
    if not isinstance(features, dict):
        return {}
    named = {column: _names_in(feature) for column, feature in features.items()}
    return {column: names for column, names in named.items() if names}


def _names_in(feature: Any) -> list[str]:
    if isinstance(feature, list) and feature:
        return _names_in(feature[0])
    if not isinstance(feature, dict):
        return []
    names = feature.get("names")
    if isinstance(names, list) and all(isinstance(name, str) for name in names):
        return names
    return _names_in(feature.get("feature"))


class RowReader:
    """The reader of rows."""

    def __init__(
        self, path: Path, ledger: Ledger, tokens: str, tags: str, labels: dict[str, list[str]], untyped: str,
        with_annotations: bool,
    ) -> None:  # fmt: skip
        self.path, self.ledger, self.tokens, self.tags, self.labels = path, ledger, tokens, tags, labels
        self.untyped, self.with_annotations = untyped, with_annotations
        # Tags have prefixes (B-X) or not (X), as the names show, or else the first row with tags.
        self.decode: Callable[[list[str]], list[Entity]] | None = self._choose_decoder(labels.get(tags, ()))

    def read(self, row: dict[str, Any], number: int, line: int | None) -> Sentence:
        """Return the sentence of a row. Errors name its line, or its number in a file without lines."""
        try:
            return self._to_sentence(row, default_id(self.path, number))
        except ValueError as error:
            raise FormatError(self.path, line, str(error) if line else f"row {number + 1}: {error}") from None

    def _to_sentence(self, row: dict[str, Any], default_id: str) -> Sentence:
        words, values = row.pop(self.tokens, None), row.pop(self.tags, None)
        if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
            raise ValueError(f"{self.tokens}: expected a list of strings, found {words!r:.60}")
        id = row.pop("id") if isinstance(row.get("id"), str | int) else None
        others = {key: self._to_names(key, value) for key, value in row.items()}
        pos = next((others.pop(key) for key in POS if _are_strings(others.get(key), len(words))), None)
        extra = {key: value for key, value in others.items() if _is_json(value)}
        self.ledger.note("values that JSON cannot hold (such as bytes), dropped", len(others) - len(extra))
        return Sentence(
            id=id_or_default(id, default_id),
            words=fill_empty_words(words, self.ledger),
            entities=tuple(self._to_entities(values, len(words))) if self.with_annotations else (),
            pos=pos and tuple(pos),
            extra=extra or None,
        )

    def _to_entities(self, values: Any, count: int) -> list[Entity]:
        if values is None or (isinstance(values, list) and values and all(value in (None, -1) for value in values)):
            self.ledger.note("rows without tags")
            return []
        if not isinstance(values, list) or len(values) != count:
            actual = len(values) if isinstance(values, list) else repr(values)[:60]
            raise ValueError(f"{self.tags}: expected a list of {counted(count, 'tag')}, found {actual}")
        if any(type(value) is int for value in values) and self.tags not in self.labels:
            raise ValueError(
                f"{self.tags} has numbers without names; give the names in order, as in hf_dataset:names=O+B-PER+I-PER"
            )
        tags = self._to_names(self.tags, values)
        if not _are_strings(tags, count):
            known = self.labels.get(self.tags)
            expected = f"numbers below {len(known)}" if known else "strings"
            raise ValueError(f"{self.tags}: expected {expected}, found {values!r:.60}")
        self.decode = self.decode or self._choose_decoder(tags)
        return self.decode(tags) if self.decode else []

    def _choose_decoder(self, tags: Iterable[str]) -> Callable[[list[str]], list[Entity]] | None:
        inside = [tag for tag in tags if tag != "O"]
        if not inside:
            return None
        if tagging.are_untyped(inside):
            return self._decode_untyped
        return self._decode_prefixed if any(map(tagging.is_tag, inside)) else tagging.decode_runs

    def _decode_untyped(self, tags: list[str]) -> list[Entity]:
        entities = self._decode_prefixed([tagging.with_type(tag, self.untyped) for tag in tags])
        self.ledger.note(tagging.untyped_tags_note("hf_dataset", self.untyped), len(entities))
        return entities

    def _decode_prefixed(self, tags: list[str]) -> list[Entity]:
        entities, repairs = tagging.decode(tags)
        self.ledger.note(tagging.REPAIRED, repairs)
        return entities

    def _to_names(self, column: str, value: Any) -> Any:
        """Replace the numbers of a label column by their names, if they have any."""
        names = self.labels.get(column)
        if names is None:
            return value
        if isinstance(value, list):
            return [self._to_names(column, item) for item in value]
        return names[value] if type(value) is int and 0 <= value < len(names) else value


def _are_strings(value: Any, count: int) -> bool:
    return isinstance(value, list) and len(value) == count and all(isinstance(item, str) for item in value)


def _is_json(value: Any) -> bool:
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError):
        return False
    return True
