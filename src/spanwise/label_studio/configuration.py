"""The labelling configuration of a Label Studio project: XML that names the text, its labels and its relations."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any
from xml.sax.saxutils import quoteattr

from spanwise.core.errors import SpanwiseError
from spanwise.corpora.splits import open_splits
from spanwise.drawing import type_colours
from spanwise.formats import Ledger
from spanwise.formats.shared.xml_parser import SafeXmlParser
from spanwise.prediction.load import load
from spanwise.runs.folder import RunFolder

# Tags in lower case, as in the ``type`` of a result.
TEXT_TAGS = ("text", "hypertext")
LABELS_TAGS = ("labels", "hypertextlabels")
MAX_CHARACTERS = 1_000_000
_NAME = Path("labelling configuration")  # in place of a file name in errors


@dataclass(frozen=True)
class LabelsTag:
    """A tag that labels parts of a text: ``<Labels name="label" toName="text">``."""

    name: str
    kind: str  # "labels" or "hypertextlabels"
    labels: tuple[str, ...]


@dataclass(frozen=True)
class Configuration:
    """The first text of a project that can be labelled, and its labels.

    >>> configuration = parse_configuration(write_configuration(["Person"], ["lives_in"]))
    >>> configuration.text_name, configuration.key, configuration.types, configuration.relations
    ('text', 'text', ('Person',), frozenset({'lives_in'}))
    """

    text_name: str  # the name of the tag <Text> or <HyperText>
    key: str  # of the text in the data of a task
    is_html: bool
    tags: tuple[LabelsTag, ...]
    relations: frozenset[str] = frozenset()

    @property
    def types(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(label for tag in self.tags for label in tag.labels))

    def tag_of(self, type: str) -> LabelsTag | None:
        """Return the first tag with a label, or None."""
        return next((tag for tag in self.tags if type in tag.labels), None)


def read_types(source: Path, format: str | None = None, ledger: Ledger | None = None) -> tuple[list[str], list[str]]:
    """Return the types of entities and of relations of a corpus or a run folder, in alphabetical order."""
    run = RunFolder(source)
    if format is None and run.is_run:
        predictor = load(source)
        return list(predictor.types), list(predictor.relation_types)
    types: set[str] = set()
    relations: set[str] = set()
    for sentences in open_splits(source, format, ledger).values():
        for sentence in sentences:
            types |= {entity.type for entity in sentence.entities}
            relations |= {relation.type for relation in sentence.relations} | {link.type for link in sentence.links}
    if not types:
        raise SpanwiseError(f"{source}: has no entities; a labelling configuration needs at least one type")
    return sorted(types), sorted(relations)


def write_configuration(types: Sequence[str], relations: Sequence[str] = ()) -> str:
    """Return a configuration with a label and colour for each type, for tasks as ``--to label_studio`` writes them."""
    for name in (*types, *relations):
        _check_name(name)
    colours = type_colours(types)
    lines = ["<View>"]
    if relations:
        lines += ["  <Relations>", *(f"    <Relation value={quoteattr(name)}/>" for name in relations), "  </Relations>"]
    labels = (f'    <Label value={quoteattr(name)} background="{colours[name]}"/>' for name in types)
    lines += ['  <Labels name="label" toName="text">', *labels, "  </Labels>", '  <Text name="text" value="$text"/>']
    return "\n".join([*lines, "</View>", ""])


def _check_name(name: str) -> None:
    if not name.strip() or not name.isprintable() or name != name.strip():
        raise SpanwiseError(f"{name!r}: Label Studio needs labels of printable characters, without spaces at the ends")


@lru_cache(maxsize=16)  # Label Studio sends the configuration with every request
def parse_configuration(xml: str) -> Configuration:
    """Parse a configuration; raise ``SpanwiseError`` if it has no text with labels.

    Entity declarations, which can expand to any size, are refused.
    """
    if len(xml) > MAX_CHARACTERS:
        raise SpanwiseError(f"{_NAME}: has {len(xml):,} characters; the limit is {MAX_CHARACTERS:,}")
    elements = _Elements()
    parser = SafeXmlParser(_NAME, elements.start, elements.end, lambda text: None)
    with io.BytesIO(xml.encode(errors="replace")) as file:
        while parser.feed(file):
            pass
    return elements.configuration()


class _Elements:
    """The texts, labels and relations of a configuration."""

    def __init__(self) -> None:
        self._open: list[tuple[str, dict[str, str]]] = []
        self._texts: list[tuple[str, dict[str, str]]] = []
        self._labels: list[tuple[str, dict[str, str], list[str]]] = []
        self._relations: list[str] = []

    def start(self, name: str, attributes: dict[str, str]) -> None:
        name = name.lower()
        if name in TEXT_TAGS:
            self._texts.append((name, attributes))
        elif name in LABELS_TAGS:
            self._labels.append((name, attributes, []))
        elif name == "label" and self._is_inside(LABELS_TAGS):
            # An annotation has the alias of a label, if there is one.
            self._labels[-1][2].append(attributes.get("alias") or attributes.get("value", ""))
        elif name == "relation" and self._is_inside(("relations",)):
            self._relations.append(attributes.get("value", ""))
        self._open.append((name, attributes))

    def end(self, name: str) -> None:
        self._open.pop()

    def _is_inside(self, names: Sequence[str]) -> bool:
        return any(name in names for name, _ in self._open)

    def configuration(self) -> Configuration:
        for kind, text in self._texts:
            tags = tuple(
                LabelsTag(attributes["name"], labels_kind, tuple(filter(None, labels)))
                for labels_kind, attributes, labels in self._labels
                if attributes.get("name") and text.get("name") in _names(attributes.get("toName")) and any(labels)
            )
            if tags:
                relations = frozenset(filter(None, self._relations))
                return Configuration(text["name"], _text_key(text), kind == "hypertext", tags, relations)
        raise SpanwiseError(f"{_NAME}: expected <Text> or <HyperText> with <Labels> for it, each with a name and a <Label>")


def _names(names: str | None) -> list[str]:
    return [name.strip() for name in (names or "").split(",") if name.strip()]


def _text_key(attributes: dict[str, Any]) -> str:
    """Return the key of the text in the data of a task."""
    name, value = attributes["name"], attributes.get("value", "")
    if not value.startswith("$") or len(value) < 2:
        raise SpanwiseError(f'{_NAME}: {name}: expected value="$KEY", the key of the text in the data of a task')
    if attributes.get("valueType", attributes.get("valuetype", "text")).lower() == "url":
        raise SpanwiseError(f"{_NAME}: {name}: texts at URLs are not supported; import the texts themselves")
    return str(value[1:])
