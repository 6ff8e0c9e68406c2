"""PubTator: documents of a title and an abstract, with mentions by character and, sometimes, relations of concepts.

A document is ``PMID|t|title``, ``PMID|a|abstract``, then lines of columns parted by tabs, then a blank line. Offsets count
through title and abstract, which one character parts (here a line end). A document may lack its abstract.

- ``PMID⇥start⇥end⇥mention⇥type⇥concept``: an entity. The concept's id, which may be missing, is kept in
  ``Entity.extra["concept"]``, columns behind it (the parts of a composite mention) in ``Entity.extra["columns"]``.
- ``PMID⇥type⇥concept⇥concept``: a relation of *concepts*, not of mentions: it does not say which mentions it holds between, so
  it makes no ``Relation``. Such lines are kept, column by column, in ``extra["concept_relations"]`` of the document's first
  sentence and written back as they were.

Writing needs a title: the text up to its first line end. Later line ends, and tabs, become blanks. Relations between mentions
and discontinuous entities have no place here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import NotRequired

from pydantic import TypeAdapter, ValidationError
from typing_extensions import TypedDict

from spanwise.core.errors import FormatError
from spanwise.core.types import Extra, Sentence, Span
from spanwise.files.reading import lines
from spanwise.files.writing import writing
from spanwise.formats.base import YES_OR_NO, Format, Ledger
from spanwise.formats.shared.cutting import to_sentences
from spanwise.formats.shared.documents import Document, Mention, to_documents, without_discontinuous
from spanwise.formats.shared.sample import Sample
from spanwise.text.blanks import says

_TEXT = re.compile(r"([^|\t]+)\|([ta])\|(.*)", re.DOTALL)
_OFFSET = re.compile(r"[0-9]{1,15}")
_SHAPE = "PMID|t|…, PMID|a|…, PMID⇥start⇥end⇥mention⇥type[⇥concept] or PMID⇥relation⇥concept⇥concept"


class _Known(TypedDict):
    """What the reader keeps of a mention."""

    concept: NotRequired[str]
    columns: NotRequired[list[str]]


_KNOWN: TypeAdapter[_Known] = TypeAdapter(_Known)
_RELATIONS: TypeAdapter[list[list[str]]] = TypeAdapter(list[list[str]])


def read(path: Path, ledger: Ledger, /, *, split: bool = True, annotated: bool = True) -> Iterator[Sentence]:
    """``split=False`` keeps each title with its abstract as one sentence."""
    block: _Block | None = None
    for number, line in lines(path):
        opening = _TEXT.fullmatch(line)
        starts_another = opening is not None and opening[2] == "t"
        if block is not None and (starts_another or not line.strip()):
            yield from to_sentences(block.document(), path, ledger, line=block.line, split=split)
            block = None
        if opening is not None and starts_another:
            block = _Block(path, number, ledger, opening[1], opening[3])
        elif line.strip():
            if block is None:
                raise FormatError(path, number, f"a document begins with its title, PMID|t|…, found {line[:40]!r}")
            if annotated or opening is not None or "\t" not in line:  # what is no annotation is wrong in any case
                block.add(number, line, opening)
    if block is not None:
        yield from to_sentences(block.document(), path, ledger, line=block.line, split=split)


class _Block:
    """The lines of one document, gathered."""

    def __init__(self, path: Path, line: int, ledger: Ledger, name: str, title: str) -> None:
        self.path, self.line, self.ledger = path, line, ledger
        self.name, self.title, self.abstract = name, title, ""
        self.mentions: list[tuple[Mention, str]] = []
        self.relations: list[list[str]] = []
        self.has_abstract = False

    def add(self, number: int, line: str, text: re.Match[str] | None) -> None:
        name, *columns = [text[1]] if text else line.split("\t")
        if name != self.name:
            raise FormatError(self.path, number, f"a line of {name[:40]!r} in the document {self.name[:40]!r}")
        if text:
            if self.has_abstract:
                raise FormatError(self.path, number, f"document {self.name!r} has two abstracts")
            self.abstract, self.has_abstract = text[3], True
        elif len(columns) >= 4 and all(map(_OFFSET.fullmatch, columns[:2])) and columns[3]:
            span = Span(int(columns[0]), int(columns[1]))
            extra = self._known(columns[4:])
            mention = Mention(str(number), columns[3], (span,), extra=extra, line=number)
            self.mentions.append((mention, columns[2]))
        elif _is_relation(columns):
            self.relations.append(columns)
        else:
            raise FormatError(self.path, number, f"not a line of PubTator, expected {_SHAPE}")

    def _known(self, columns: list[str]) -> Extra | None:
        if not columns:
            return None
        concept = columns[0].strip()
        self.ledger.note("concept ids with blanks around them, trimmed", int(concept != columns[0]))
        return {"concept": concept, "columns": columns[1:]} if columns[1:] else {"concept": concept}

    def document(self) -> Document:
        text = f"{self.title}\n{self.abstract}" if self.abstract else self.title
        for mention, surface in self.mentions:
            if not says(text, mention.fragments, surface):
                self.ledger.note("entities whose repeated text differs from the text at their offsets")
        extra = {"concept_relations": self.relations} if self.relations else None
        return Document(self.name, text, [mention for mention, _ in self.mentions], extra=extra)


def _is_relation(columns: list[str]) -> bool:
    """True for a type and two concepts, perhaps with more behind them; the type is a word where a mention has a number."""
    return len(columns) >= 3 and all(columns[:3]) and columns[0][0].isalpha()


def write(sentences: Iterable[Sentence], path: Path, ledger: Ledger, /) -> None:
    with writing(path) as file:
        for whole in to_documents(sentences, ledger):
            document = without_discontinuous(whole, ledger)
            ledger.lose("relations", "between mentions: PubTator relates concepts", len(document.arrows))
            name = re.sub(r"[|\t\r\n\ufeff]", "_", document.id).strip() or "_"
            ledger.note("documents whose id PubTator cannot hold, renamed", int(name != document.id))
            file.writelines(f"{line}\n" for line in _document_lines(document, name, ledger))
            file.write("\n")


def _document_lines(document: Document, name: str, ledger: Ledger) -> Iterator[str]:
    title, _, abstract = document.text.partition("\n")
    ledger.note("line ends and tabs in the text, written as blanks", len(re.findall(r"[\t\r\n]", title + abstract)))
    yield f"{name}|t|{_column(title)}"
    yield f"{name}|a|{_column(abstract)}"
    for mention in document.mentions:
        ((start, end),) = mention.fragments
        end -= len(document.text[start:end]) - len(document.text[start:end].rstrip())  # a line end may be the text's last
        kind = _column(mention.type)
        ledger.lose("names", "with tabs or line ends, written with blanks instead", int(kind != mention.type))
        columns = [name, str(start), str(end), _column(document.text[start:end]), kind]
        yield "\t".join(columns + _known_columns(mention, ledger))
    try:
        relations = _RELATIONS.validate_python((document.extra or {}).get("concept_relations", []))
    except ValidationError:
        ledger.note("keys left out: of a shape that PubTator does not have")
        return
    for relation in relations:
        columns = [_column(column) for column in relation]
        if not _is_relation(columns) or columns != relation:
            ledger.note("keys left out: of a shape that PubTator does not have")
        else:
            yield "\t".join([name, *columns])


def _known_columns(mention: Mention, ledger: Ledger) -> list[str]:
    try:
        known = _KNOWN.validate_python(mention.extra or {})
    except ValidationError:
        ledger.note("keys left out: of a shape that PubTator does not have")
        return []
    columns = [known.get("concept", ""), *known.get("columns", [])]
    safe = [_column(column) for column in columns]
    ledger.note("concepts with tabs or line ends, written with blanks instead", int(safe != columns))
    return safe if any(safe) or "concept" in known else []


def _column(text: str) -> str:
    """The text with as many characters, on one line and between two tabs."""
    return re.sub(r"[\t\r\n]", " ", text)


def sniff(sample: Sample) -> bool:
    opening: re.Match[str] | None = None
    for line in islice(filter(str.strip, sample.lines), 20):
        match = _TEXT.fullmatch(line)
        if match is not None and match[2] == "t" and "\t" not in line:
            opening = match
        elif opening is None or not line.startswith((f"{opening[1]}|a|", f"{opening[1]}\t")):
            return False
    return opening is not None


FORMAT = Format(
    name="pubtator",
    by_characters=True,
    summary="PubTator: titles and abstracts with mentions by character and concept ids",
    read=read,
    write=write,
    sniff=sniff,
    extensions=(".pubtator",),
    holds=frozenset(("nested", "crossing", "several types")),
    keeps=frozenset(("documents",)),
    own_keys=frozenset(("concept", "columns", "concept_relations")),
    read_options={"split": YES_OR_NO},
)
