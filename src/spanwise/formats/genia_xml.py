"""XML of the GENIA term corpus: sentences with nested ``<cons sem="G#protein_molecule">`` elements.

Words are separated by whitespace and by tags, so each boundary of a ``<cons>`` is a word boundary:
``CD28`` and ``-mediated``.

With ``types=five``, the usual choice, ``G#DNA_…``, ``G#RNA_…``, ``G#protein_…``, ``G#cell_line`` and
``G#cell_type`` become the types DNA, RNA, protein, cell_line and cell_type. Other types and coordinated
terms, ``sem="(AND G#x G#y)"``, are skipped, but not the terms inside them. With ``types=all`` the type is
``sem`` without ``G#``; that of a coordinated term is ``AND(x,y)``.

The attributes of a term (``sem`` and ``lex``, its normal form) are stored in ``Entity.extra``, and so are the
``parts`` of a coordinated term that have a ``lex`` but no ``sem``. The DTD is not loaded. Files that
declare XML entities or attributes are rejected.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from spanwise.core.types import Entity, Sentence, Span
from spanwise.files.names import default_id
from spanwise.formats.base import Format, Ledger, one_of
from spanwise.formats.shared.sample import Sample
from spanwise.formats.shared.xml_parser import SafeXmlParser

_FIVE = re.compile(r"G#(?:(DNA|RNA|protein)(?:_.*)?|(cell_line|cell_type))")


def read(path: Path, ledger: Ledger, /, *, types: str = "five") -> Iterator[Sentence]:
    """Read sentences. ``types`` is "five" or "all"."""
    reader = _XmlReader(path, ledger, types == "five")
    with path.open("rb") as file:
        has_more = True
        while has_more:
            has_more = reader.parser.feed(file)
            yield from reader.ready
            reader.ready.clear()


@dataclass(slots=True)
class _Cons:
    """An open ``<cons>`` element: its attributes and its first word."""

    attributes: dict[str, Any]
    sem: str
    start: int
    parts: list[dict[str, Any]] = field(default_factory=list)


class _XmlReader:
    """The handler of XML events. Complete sentences are in ``ready``."""

    def __init__(self, path: Path, ledger: Ledger, only_five_types: bool) -> None:
        self.path, self.ledger, self.only_five_types = path, ledger, only_five_types
        self.ready: list[Sentence] = []
        self.id_counts: Counter[str] = Counter()  # of articles
        self.articles = 0
        self.depth = 0
        self.article_id: str | None = None
        self.suffix = ""  # of a repeated article
        self.position = 0
        self.in_id = self.in_article = self.in_sentence = False
        self.pieces: list[str] = []  # the text since the last tag
        self._start_sentence()
        self.parser = SafeXmlParser(path, self._start_element, self._end_element, self.pieces.append)
        self._error = self.parser.error

    def _start_sentence(self) -> None:
        self.texts: list[str] = []
        self.length = 0  # of the texts
        self.words: list[str] = []
        self.starts: list[int] = []
        self.open: list[_Cons] = []
        self.open_typed: list[_Cons] = []  # the open elements with a sem
        self.entities: dict[Entity, None] = {}

    def _start_element(self, tag: str, attributes: dict[str, str]) -> None:
        self._add_text()
        self.depth += 1
        if self.depth == 1 and tag != "set":
            raise self._error(f"expected the root element <set>, found <{tag}>")
        if tag == "article":
            self.in_article, self.article_id, self.suffix, self.position = True, None, "", 0
            self.articles += 1
        elif tag == "bibliomisc":
            self.in_id = True
        elif tag == "sentence":
            if not self.in_article or self.in_sentence or self.open:
                raise self._error("a <sentence> must be inside an <article> and outside other <sentence> and <cons> elements")
            self.in_sentence = True
            self._start_sentence()
        elif tag == "cons":
            self.open.append(_Cons(attributes, attributes.get("sem", "").strip(), len(self.words)))
            if self.open[-1].sem:
                self.open_typed.append(self.open[-1])

    def _end_element(self, tag: str) -> None:
        self._add_text()
        self.depth -= 1
        if tag == "article":
            self.in_article = False
        elif tag == "bibliomisc":
            self.in_id = False
        elif tag == "sentence":
            self._finish_sentence()
        elif tag == "cons":
            self._finish_cons(self.open.pop())

    def _add_text(self) -> None:
        text = "".join(self.pieces)
        self.pieces.clear()
        if self.in_sentence:
            for match in re.finditer(r"\S+", text):
                self.words.append(match.group())
                self.starts.append(self.length + match.start())
            self.texts.append(text)
            self.length += len(text)
        elif self.in_id:
            self._set_article_id(text.strip())
        else:
            self.ledger.lose("words", "outside a sentence", len(text.split()))

    def _set_article_id(self, id: str) -> None:
        if id:
            self.id_counts[id] += 1
            copy = self.id_counts[id]
            self.article_id, self.suffix = id, "" if copy == 1 else "-dup" if copy == 2 else f"-dup{copy - 1}"
            self.ledger.note("repeated articles, renamed with the suffix -dup", int(copy > 1))

    def _finish_cons(self, cons: _Cons) -> None:
        span = Span(cons.start, len(self.words))
        if cons.sem:
            self.open_typed.pop()
        if not self.in_sentence or not span.width:
            reason = "without words" if self.in_sentence else "outside a sentence"
            self.ledger.lose("entities", reason, int(bool(cons.sem)))
            return
        if not cons.sem:
            self.ledger.note("parts of coordinated terms, not read as entities")
            if self.open_typed:
                self.open_typed[-1].parts.append({**cons.attributes, "spans": [list(span)]})
            return
        type = self._to_type(cons.sem)
        if type is not None:
            entity = Entity(type, (span,), extra=cons.attributes | ({"parts": cons.parts} if cons.parts else {}))
            self.ledger.note("duplicate entities, merged", int(entity in self.entities))
            self.entities.setdefault(entity)

    def _to_type(self, sem: str) -> str | None:
        if not self.only_five_types:
            return full_type(sem)
        if sem.startswith("("):
            self.ledger.note("coordinated terms, skipped")
            return None
        match = _FIVE.fullmatch(sem)
        if not match:
            self.ledger.note("entities of types other than the five, skipped")
            return None
        return match[1] or match[2]

    def _finish_sentence(self) -> None:
        self.in_sentence = False
        document, position = self.article_id or default_id(self.path, self.articles - 1), self.position
        self.position += 1
        if not self.words:
            self.ledger.note("sentences without words, skipped")
            return
        self.ready.append(
            Sentence(
                id=f"{document}-{position}{self.suffix}",
                words=tuple(self.words),
                entities=tuple(sorted(self.entities, key=lambda entity: (entity.range, entity.type))),
                text="".join(self.texts),
                starts=tuple(self.starts),
                document=document + self.suffix,
                position=position,
            )
        )


def full_type(sem: str) -> str:
    """Return the full type, without the prefix of the ontology and without whitespace.

    >>> full_type("G#DNA_domain_or_region"), full_type("(AND G#cell_type (OR G#RNA_N/A G#virus))")
    ('DNA_domain_or_region', 'AND(cell_type,OR(RNA_N/A,virus))')
    """
    plain = " ".join(sem.replace("G#", "").split())
    return re.sub(r"\( ?([^ ()]+) ", r"\1(", plain).replace(" )", ")").replace(" ", ",") or sem


def sniff(sample: Sample) -> bool:
    head = sample.text.lstrip()
    return head.startswith("<") and bool(re.search(r"<set\b", head)) and "<article" in head and "<sentence" in head


FORMAT = Format(
    name="genia_xml",
    summary="XML of the GENIA term corpus: nested terms, five types or all",
    read=read,
    sniff=sniff,
    extensions=(".xml",),
    supports=frozenset(("nested", "several types")),
    read_options={"types": one_of("five", "all")},
)
