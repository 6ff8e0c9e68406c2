"""BioC XML: collections of documents with passages, annotations and relations, read as a stream.

``shared/bioc.py`` describes how documents are read. ``source``, ``date``, ``key`` and infons of the
collection are stored in ``extra["collection"]`` of its first document. The DTD is not loaded, and files
that declare XML entities are refused. Infons are text in XML: other values are written as JSON.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any

from spanwise.core.types import Sentence
from spanwise.files.names import default_id
from spanwise.files.writing import open_output, to_json
from spanwise.formats.base import YES_OR_NO, Format, Ledger
from spanwise.formats.shared.bioc import METADATA, SUPPORTS, to_document
from spanwise.formats.shared.bioc_writer import collection_of, to_record
from spanwise.formats.shared.documents import Document, to_documents
from spanwise.formats.shared.sample import Sample
from spanwise.formats.shared.splitting import to_sentences
from spanwise.formats.shared.xml_parser import SafeXmlParser

_TEXTS = ("source", "date", "key", "id", "offset", "text", "infon")
_ANNOTATED = ("annotation", "relation")
# The elements that are allowed inside each element.
_CHILDREN: dict[str, frozenset[str]] = {
    "collection": frozenset(("source", "date", "key", "infon", "document")),
    "document": frozenset(("id", "infon", "passage", *_ANNOTATED)),
    "passage": frozenset(("infon", "offset", "text", "sentence", *_ANNOTATED)),
    "sentence": frozenset(("infon", "offset", "text", *_ANNOTATED)),
    "annotation": frozenset(("infon", "location", "text")),
    "relation": frozenset(("infon", "node")),
    "location": frozenset(),
    "node": frozenset(),
    **dict.fromkeys(_TEXTS, frozenset()),
}
_INVALID = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def read(path: Path, ledger: Ledger, /, *, split: bool = True, with_annotations: bool = True) -> Iterator[Sentence]:
    """Read documents. ``split=False`` keeps each document as one sentence."""
    reader = _XmlReader(path, ledger)
    count = 0
    with path.open("rb") as file:
        is_open = True
        while is_open:
            is_open = reader.parser.feed(file)
            for line, record, collection in reader.ready:
                id = default_id(path, count)
                document, sentences = to_document(record, collection, id, path, line, ledger, with_annotations)
                yield from to_sentences(document, path, ledger, line=line, split=split, sentences=sentences)
                count += 1
            reader.ready.clear()


class _XmlReader:
    """The handler of XML events. Complete documents are in ``ready``."""

    def __init__(self, path: Path, ledger: Ledger) -> None:
        self.ledger = ledger
        self.ready: list[tuple[int, dict[str, Any], dict[str, Any] | None]] = []
        self.open: list[tuple[str, dict[str, Any]]] = []
        self.skipped = 0  # the depth inside an unknown element
        self.line = 0  # of the current document
        self.pieces: list[str] = []
        self.is_first = True
        self.parser = SafeXmlParser(path, self._start, self._end, self.pieces.append)

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        self.pieces.clear()
        if not self.open and tag != "collection":
            raise self.parser.error(f"expected the root element <collection>, found <{tag[:60]}>")
        if self.skipped or (self.open and tag not in _CHILDREN[self.open[-1][0]]):
            self.ledger.note("unknown XML elements, skipped", int(not self.skipped))
            self.skipped += 1
            return
        if tag == "document":
            self.line = self.parser.line
        self.open.append((tag, dict(attributes)))

    def _end(self, tag: str) -> None:
        if self.skipped:
            self.skipped -= 1
            self.pieces.clear()
            return
        _, item = self.open.pop()
        text = "".join(self.pieces)
        self.pieces.clear()
        parent = self.open[-1][1] if self.open else {}
        if tag == "document":
            collection = self.open[-1][1] if self.is_first else None
            self.ready.append((self.line, item, dict(collection) if collection else None))
            self.is_first = False
        elif tag == "infon":
            parent.setdefault("infons", {})[item.get("key", "")] = text
        elif tag == "offset":
            parent["offset"] = self._number(text, "an offset")
        elif tag in _TEXTS:
            parent[tag] = text
        elif tag == "location":
            numbers = {key: self._number(item.get(key, ""), f"the {key} of a location") for key in ("offset", "length")}
            parent.setdefault("locations", []).append(numbers)
        elif tag != "collection":
            if tag in ("passage", "sentence") and "offset" not in item:
                raise self.parser.error(f"a <{tag}> has no <offset>")
            parent.setdefault(f"{tag}s", []).append(item)
        if tag == "document":
            item.setdefault("passages", [])

    def _number(self, text: str, description: str) -> int:
        if not re.fullmatch(r"\s*[0-9]{1,15}\s*", text):
            raise self.parser.error(f"expected a number as {description}, found {text[:40]!r}")
        return int(text)


def write(sentences: Iterable[Sentence], path: Path, ledger: Ledger, /) -> None:
    documents = to_documents(sentences, ledger)
    first = next(documents, None)
    collection = collection_of(first, ledger)
    xml = _XmlWriter(ledger)
    with open_output(path) as file:
        file.write('<?xml version="1.0" encoding="UTF-8"?>\n<!DOCTYPE collection SYSTEM "BioC.dtd">\n<collection>\n')
        for tag in ("source", "date", "key"):
            file.write(f"{xml.element(tag, collection[tag])}\n")
        file.write("".join(f"{line}\n" for line in xml.infons(collection["infons"])))
        for document in chain([first] if first else [], documents):
            file.writelines(f"{line}\n" for line in xml.document(document))
        file.write("</collection>\n")


class _XmlWriter:
    """Writes records as lines of XML."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger

    def document(self, document: Document) -> Iterator[str]:
        self.ledger.lose("words", "characters that XML does not allow, replaced by U+FFFD", _count_invalid(document.text))
        types = [mention.type for mention in document.mentions] + [relation.type for relation in document.relations]
        self.ledger.lose("names", "with characters that XML does not allow", sum(map(bool, map(_INVALID.search, types))))
        record = to_record(document, self.ledger)
        yield "<document>"
        yield self.element("id", record["id"])
        yield from self.infons(record["infons"])
        for passage in record["passages"]:
            yield "<passage>"
            yield from self.infons(passage["infons"])
            yield self.element("offset", passage["offset"])
            yield self.element("text", passage["text"])
            yield from self._annotations(passage["annotations"])
            yield "</passage>"
        yield from self._annotations(record["annotations"])
        for relation in record["relations"]:
            yield f"<relation{self._id(relation)}>"
            yield from self.infons(relation.get("infons") or {})
            for node in relation.get("nodes") or ():
                yield f"<node refid={self._quote(node['refid'])} role={self._quote(node.get('role') or '')}/>"
            yield "</relation>"
        yield "</document>"

    def _annotations(self, annotations: list[dict[str, Any]]) -> Iterator[str]:
        for annotation in annotations:
            yield f"<annotation{self._id(annotation)}>"
            yield from self.infons(annotation["infons"])
            for location in annotation["locations"]:
                yield f'<location offset="{location["offset"]}" length="{location["length"]}"/>'
            yield self.element("text", annotation["text"])
            yield "</annotation>"

    def infons(self, infons: dict[str, Any]) -> Iterator[str]:
        for key, value in infons.items():
            yield f"<infon key={self._quote(key)}>{self._escape(value)}</infon>"

    def element(self, tag: str, content: Any) -> str:
        return f"<{tag}>{self._escape(content)}</{tag}>"

    def _id(self, item: dict[str, Any]) -> str:
        return "" if item.get("id") in (None, "") else f" id={self._quote(item['id'])}"

    def _escape(self, value: Any) -> str:
        from xml.sax.saxutils import escape  # imports urllib and ssl

        return escape(_clean(value if isinstance(value, str) else to_json(value)), {"\r": "&#13;"})

    def _quote(self, value: Any) -> str:
        from xml.sax.saxutils import quoteattr

        return quoteattr(_clean(str(value)))


def _clean(text: str) -> str:
    """Replace characters that XML does not allow; offsets stay the same."""
    return _INVALID.sub(lambda match: " " if match.group().isspace() else "\ufffd", text)


def _count_invalid(text: str) -> int:
    return sum(not match.isspace() for match in _INVALID.findall(text))


def sniff(sample: Sample) -> bool:
    head = sample.text.lstrip()
    return head.startswith("<") and bool(re.search(r"<collection[\s>]", head)) and "<document>" in head


FORMAT = Format(
    name="bioc_xml",
    has_character_offsets=True,
    summary="BioC XML: documents with passages, annotations and relations",
    read=read,
    write=write,
    sniff=sniff,
    extensions=(".xml",),
    supports=SUPPORTS,
    metadata=METADATA,
    read_options={"split": YES_OR_NO},
)
