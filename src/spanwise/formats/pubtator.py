"""PubTator: titles and abstracts with character offsets, and sometimes relations of concepts.

A document is ``PMID|t|title``, ``PMID|a|abstract``, then tab-separated lines, then a blank line. Offsets
count title and abstract with one character between them (here a line break). The abstract is optional.

- ``PMID⇥start⇥end⇥mention⇥type⇥concept``: an entity. The optional concept id is stored in
  ``Entity.extra["concept"]``, further columns (the parts of a composite mention) in
  ``Entity.extra["columns"]``.
- ``PMID⇥type⇥concept⇥concept``: a relation of *concepts*. It does not name mentions, so it is not a
  ``Relation``. Such lines are stored in ``extra["concept_relations"]`` of the document's first sentence
  and written back unchanged.

The writer uses the text up to the first line break as the title. Later line breaks and tabs become
spaces. Relations between mentions and discontinuous entities are not supported.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import NotRequired

from pydantic import ConfigDict, TypeAdapter, ValidationError, with_config
from typing_extensions import TypedDict

from spanwise.core.errors import FormatError
from spanwise.core.types import Extra, Sentence, Span
from spanwise.files.reading import read_lines
from spanwise.files.writing import open_output
from spanwise.formats.base import YES_OR_NO, Format, Ledger
from spanwise.formats.shared.documents import CONCEPT_RELATIONS, Document, Mention, drop_discontinuous, to_documents
from spanwise.formats.shared.sample import Sample
from spanwise.formats.shared.splitting import to_sentences
from spanwise.text.text_index import TextIndex

_TEXT = re.compile(r"([^|\t]+)\|([ta])\|(.*)", re.DOTALL)
_OFFSET = re.compile(r"[0-9]{1,15}")
_SHAPE = "PMID|t|…, PMID|a|…, PMID⇥start⇥end⇥mention⇥type[⇥concept] or PMID⇥relation⇥concept⇥concept"


@with_config(ConfigDict(defer_build=True))
class _MentionExtra(TypedDict):
    """The extra data of a mention."""

    concept: NotRequired[str]
    columns: NotRequired[list[str]]


_MENTION_EXTRA: TypeAdapter[_MentionExtra] = TypeAdapter(_MentionExtra)
_RELATIONS: TypeAdapter[list[list[str]]] = TypeAdapter(list[list[str]], config=ConfigDict(defer_build=True))


def read(path: Path, ledger: Ledger, /, *, split: bool = True, with_annotations: bool = True) -> Iterator[Sentence]:
    """Read documents. ``split=False`` keeps a title and its abstract as one sentence."""
    block: _Block | None = None
    for number, line in read_lines(path):
        opening = _TEXT.fullmatch(line)
        is_title = opening is not None and opening[2] == "t"
        if block is not None and (is_title or not line.strip()):
            yield from to_sentences(block.to_document(), path, ledger, line=block.line, split=split)
            block = None
        if opening is not None and is_title:
            block = _Block(path, number, ledger, opening[1], opening[3])
        elif line.strip():
            if block is None:
                raise FormatError(path, number, f"expected a title (PMID|t|…), found {line[:40]!r}")
            if with_annotations or opening is not None or "\t" not in line:  # lines without tabs are not annotations
                block.add(number, line, opening)
    if block is not None:
        yield from to_sentences(block.to_document(), path, ledger, line=block.line, split=split)


class _Block:
    """The lines of one document."""

    def __init__(self, path: Path, line: int, ledger: Ledger, id: str, title: str) -> None:
        self.path, self.line, self.ledger = path, line, ledger
        self.id, self.title, self.abstract = id, title, ""
        self.mentions: list[tuple[Mention, str]] = []
        self.relations: list[list[str]] = []
        self.has_abstract = False

    def add(self, number: int, line: str, text: re.Match[str] | None) -> None:
        id, *columns = [text[1]] if text else line.split("\t")
        if id != self.id:
            raise FormatError(self.path, number, f"a line of document {id[:40]!r} in document {self.id[:40]!r}")
        if text:
            if self.has_abstract:
                raise FormatError(self.path, number, f"document {self.id!r} has two abstracts")
            self.abstract, self.has_abstract = text[3], True
        elif len(columns) >= 4 and all(map(_OFFSET.fullmatch, columns[:2])) and columns[3]:
            span = Span(int(columns[0]), int(columns[1]))
            extra = self._mention_extra(columns[4:])
            mention = Mention(str(number), columns[3], (span,), extra=extra, line=number)
            self.mentions.append((mention, columns[2]))
        elif _is_relation(columns):
            self.relations.append(columns)
        else:
            raise FormatError(self.path, number, f"invalid line; expected {_SHAPE}")

    def _mention_extra(self, columns: list[str]) -> Extra | None:
        if not columns:
            return None
        concept = columns[0].strip()
        self.ledger.note("concept ids with surrounding spaces, trimmed", int(concept != columns[0]))
        return {"concept": concept, "columns": columns[1:]} if columns[1:] else {"concept": concept}

    def to_document(self) -> Document:
        text = f"{self.title}\n{self.abstract}" if self.abstract else self.title
        index = TextIndex(text)
        for mention, surface in self.mentions:
            if not index.matches(mention.fragments, surface):
                self.ledger.note("entities whose text differs from the document at their offsets")
        self.ledger.note(CONCEPT_RELATIONS, len(self.relations))
        extra = {"concept_relations": self.relations} if self.relations else None
        return Document(self.id, text, [mention for mention, _ in self.mentions], extra=extra)


def _is_relation(columns: list[str]) -> bool:
    """Return True for a type and two concepts. The type is a word, in the column where a mention has its start."""
    return len(columns) >= 3 and all(columns[:3]) and columns[0][0].isalpha()


def write(sentences: Iterable[Sentence], path: Path, ledger: Ledger, /) -> None:
    with open_output(path) as file:
        for document in (drop_discontinuous(document, ledger) for document in to_documents(sentences, ledger)):
            ledger.lose("relations", "between mentions; PubTator relates concepts", len(document.relations))
            id = re.sub(r"[|\t\r\n\ufeff]", "_", document.id).strip() or "_"
            ledger.note("documents renamed because PubTator does not allow their id", int(id != document.id))
            file.writelines(f"{line}\n" for line in _document_lines(document, id, ledger))
            file.write("\n")


def _document_lines(document: Document, id: str, ledger: Ledger) -> Iterator[str]:
    title, _, abstract = document.text.partition("\n")
    ledger.note("line breaks and tabs in the text, replaced by spaces", len(re.findall(r"[\t\r\n]", title + abstract)))
    yield f"{id}|t|{_to_column(title)}"
    yield f"{id}|a|{_to_column(abstract)}"
    for mention in document.mentions:
        ((start, end),) = mention.fragments
        end -= len(document.text[start:end]) - len(document.text[start:end].rstrip())  # a trailing line break
        type = _to_column(mention.type)
        ledger.lose("names", "with tabs or line breaks, replaced by spaces", int(type != mention.type))
        columns = [id, str(start), str(end), _to_column(document.text[start:end]), type]
        yield "\t".join(columns + _concept_columns(mention, ledger))
    try:
        relations = _RELATIONS.validate_python((document.extra or {}).get("concept_relations", []))
    except ValidationError:
        ledger.note("keys dropped: not in the shape of PubTator data")
        return
    for relation in relations:
        columns = [_to_column(column) for column in relation]
        if not _is_relation(columns) or columns != relation:
            ledger.note("keys dropped: not in the shape of PubTator data")
        else:
            yield "\t".join([id, *columns])


def _concept_columns(mention: Mention, ledger: Ledger) -> list[str]:
    try:
        extra = _MENTION_EXTRA.validate_python(mention.extra or {})
    except ValidationError:
        ledger.note("keys dropped: not in the shape of PubTator data")
        return []
    columns = [extra.get("concept", ""), *extra.get("columns", [])]
    safe = [_to_column(column) for column in columns]
    ledger.note("concepts with tabs or line breaks, replaced by spaces", int(safe != columns))
    return safe if any(safe) or "concept" in extra else []


def _to_column(text: str) -> str:
    """Replace tabs and line breaks by spaces, which keeps all offsets."""
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
    has_character_offsets=True,
    summary="PubTator: titles and abstracts with character offsets and concept ids",
    read=read,
    write=write,
    sniff=sniff,
    extensions=(".pubtator",),
    supports=frozenset(("nested", "crossing", "several types")),
    metadata=frozenset(("documents",)),
    extra_keys=frozenset(("concept", "columns", "concept_relations")),
    read_options={"split": YES_OR_NO},
)
