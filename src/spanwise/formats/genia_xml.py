"""The GENIA term corpus as XML: sentences with an element ``<cons sem="G#protein_molecule">`` for each term, one in another.

The words of a sentence are the white-space parts of each piece of text between two tags, so every border of a ``<cons>`` is a
border of a word: ``CD28`` and ``-mediated``. With ``types=five``, the way the corpus is used, ``G#DNA_…``, ``G#RNA_…``,
``G#protein_…``, ``G#cell_line`` and ``G#cell_type`` become the types DNA, RNA, protein, cell_line and cell_type; other types
and coordinated terms, ``sem="(AND G#x G#y)"``, are left out, what is typed inside them stays. With ``types=all`` the type is
``sem`` without ``G#``, and that of a coordinated term is ``AND(x,y)``.

An entity's attributes (``sem`` and ``lex``, the term's normal form) are kept in its ``extra``, and so are the ``parts`` of a
coordinated term that have a ``lex`` but no ``sem``. The file is read as it comes; its DTD is not looked for, and a file that
declares entities of its own is refused.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from xml.parsers import expat

from spanwise.core.errors import FormatError
from spanwise.core.types import Entity, Sentence, Span
from spanwise.files.json_arrays import CHUNK
from spanwise.files.names import default_id
from spanwise.formats.base import Format, Ledger, one_of
from spanwise.formats.shared.sample import Sample

_FIVE = re.compile(r"G#(?:(DNA|RNA|protein)(?:_.*)?|(cell_line|cell_type))")


def read(path: Path, ledger: Ledger, /, *, types: str = "five") -> Iterator[Sentence]:
    """``types="all"`` keeps every term under its own type."""
    reader = _Reader(path, ledger, types == "five")
    with path.open("rb") as file:
        while True:
            chunk = file.read(CHUNK)
            reader.feed(chunk)
            yield from reader.ready
            reader.ready.clear()
            if not chunk:
                return


@dataclass(slots=True)
class _Cons:
    """A ``<cons>`` that is open: its attributes and its first word."""

    attributes: dict[str, Any]
    sem: str
    start: int
    parts: list[dict[str, Any]] = field(default_factory=list)


class _Reader:
    """Follows the tags; sentences that are complete wait in ``ready``."""

    def __init__(self, path: Path, ledger: Ledger, five: bool) -> None:
        self.path, self.ledger, self.five = path, ledger, five
        self.ready: list[Sentence] = []
        self.copies: Counter[str] = Counter()  # how often each document was met
        self.articles = 0
        self.depth = 0
        self.name: str | None = None  # of the article; None before it is known
        self.suffix = ""
        self.position = 0
        self.in_name = self.in_article = self.in_sentence = False
        self.pieces: list[str] = []  # since the last tag
        self._clear()
        self.parser = expat.ParserCreate()
        self.parser.buffer_text = True
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self.pieces.append
        self.parser.EntityDeclHandler = self._refuse_declaration
        self.parser.SkippedEntityHandler = self._refuse_reference

    def feed(self, chunk: bytes) -> None:
        try:
            self.parser.Parse(chunk, not chunk)
        except expat.ExpatError as error:
            raise FormatError(self.path, error.lineno, f"not XML: {expat.ErrorString(error.code)}") from None
        except (ValueError, LookupError) as error:  # an encoding that nobody knows
            raise FormatError(self.path, self.parser.CurrentLineNumber, f"not XML: {error}") from None

    def _error(self, problem: str) -> FormatError:
        return FormatError(self.path, self.parser.CurrentLineNumber, problem)

    def _refuse_declaration(self, name: str, *declaration: object) -> None:
        raise self._error(f"declares the entity {name!r}: a file that defines its own entities is not read")

    def _refuse_reference(self, name: str, is_parameter: bool) -> None:
        if not is_parameter:
            raise self._error(f"the entity &{name}; is not defined")

    def _clear(self) -> None:
        self.texts: list[str] = []
        self.length = 0  # of these texts
        self.words: list[str] = []
        self.starts: list[int] = []
        self.open: list[_Cons] = []
        self.typed: list[_Cons] = []  # those of them that have a sem
        self.found: dict[Entity, None] = {}

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        self._take_text()
        self.depth += 1
        if self.depth == 1 and tag != "set":
            raise self._error(f"expected <set>, the root of a GENIA file, found <{tag}>")
        if tag == "article":
            self.in_article, self.name, self.suffix, self.position = True, None, "", 0
            self.articles += 1
        elif tag == "bibliomisc":
            self.in_name = True
        elif tag == "sentence":
            if not self.in_article or self.in_sentence or self.open:
                raise self._error("a <sentence> must stand in an <article>, and in no other <sentence> or <cons>")
            self.in_sentence = True
            self._clear()
        elif tag == "cons":
            self.open.append(_Cons(attributes, attributes.get("sem", "").strip(), len(self.words)))
            if self.open[-1].sem:
                self.typed.append(self.open[-1])

    def _end(self, tag: str) -> None:
        self._take_text()
        self.depth -= 1
        if tag == "article":
            self.in_article = False
        elif tag == "bibliomisc":
            self.in_name = False
        elif tag == "sentence":
            self._finish_sentence()
        elif tag == "cons":
            self._finish_cons(self.open.pop())

    def _take_text(self) -> None:
        text = "".join(self.pieces)
        self.pieces.clear()
        if self.in_sentence:
            for match in re.finditer(r"\S+", text):
                self.words.append(match.group())
                self.starts.append(self.length + match.start())
            self.texts.append(text)
            self.length += len(text)
        elif self.in_name:
            self._take_name(text.strip())
        else:
            self.ledger.lose("words", "outside of any sentence", len(text.split()))

    def _take_name(self, name: str) -> None:
        if name:
            self.copies[name] += 1
            copy = self.copies[name]
            self.name, self.suffix = name, "" if copy == 1 else "-dup" if copy == 2 else f"-dup{copy - 1}"
            self.ledger.note("articles that occur again, with -dup behind their id", int(copy > 1))

    def _finish_cons(self, cons: _Cons) -> None:
        span = Span(cons.start, len(self.words))
        if cons.sem:
            self.typed.pop()
        if not self.in_sentence or not span.width:
            why = "without words" if self.in_sentence else "outside of any sentence"
            self.ledger.lose("entities", why, int(bool(cons.sem)))
            return
        if not cons.sem:
            self.ledger.note("parts of coordinated terms, no entities by themselves")
            if self.typed:
                self.typed[-1].parts.append({**cons.attributes, "spans": [list(span)]})
            return
        kind = self._type(cons.sem)
        if kind is not None:
            entity = Entity(kind, (span,), extra=cons.attributes | ({"parts": cons.parts} if cons.parts else {}))
            self.ledger.note("entities given twice, merged", int(entity in self.found))
            self.found.setdefault(entity)

    def _type(self, sem: str) -> str | None:
        if not self.five:
            return full_type(sem)
        if sem.startswith("("):
            self.ledger.note("coordinated terms, left out")
            return None
        match = _FIVE.fullmatch(sem)
        if not match:
            self.ledger.note("entities of other than the five types, left out")
            return None
        return match[1] or match[2]

    def _finish_sentence(self) -> None:
        self.in_sentence = False
        name, position = self.name or default_id(self.path, self.articles - 1), self.position
        self.position += 1
        if not self.words:
            self.ledger.note("sentences without words, left out")
            return
        self.ready.append(
            Sentence(
                id=f"{name}-{position}{self.suffix}",
                words=tuple(self.words),
                entities=tuple(sorted(self.found, key=lambda entity: (entity.range, entity.type))),
                text="".join(self.texts),
                starts=tuple(self.starts),
                document=name + self.suffix,
                position=position,
            )
        )


def full_type(sem: str) -> str:
    """The type as it is, without the mark of the ontology and without white space.

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
    summary="the XML of the GENIA term corpus: nested terms, five types or all",
    read=read,
    sniff=sniff,
    extensions=(".xml",),
    holds=frozenset(("nested", "several types")),
    read_options={"types": one_of("five", "all")},
)
