"""Writer of brat: a ``.txt`` and a ``.ann`` file per document, with new ids."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NotRequired

from pydantic import ConfigDict, TypeAdapter, ValidationError, with_config
from typing_extensions import TypedDict

from spanwise.core.types import Extra, Sentence, Span
from spanwise.files.writing import open_output
from spanwise.formats.base import Ledger
from spanwise.formats.shared.documents import Document, to_documents
from spanwise.formats.shared.unique_names import UniqueNames


class _Note(TypedDict):
    type: str
    text: NotRequired[str]


class _Item(_Note):
    value: NotRequired[str]
    to: NotRequired[str]
    notes: NotRequired[list[_Note]]


@with_config(ConfigDict(defer_build=True))
class _Attached(TypedDict):
    attributes: NotRequired[list[_Item]]
    references: NotRequired[list[_Item]]
    notes: NotRequired[list[_Note]]
    roles: NotRequired[tuple[str, str]]


class _Other(_Attached):
    id: str
    line: str


_ATTACHED: TypeAdapter[_Attached] = TypeAdapter(_Attached)
_OTHERS: TypeAdapter[list[_Other]] = TypeAdapter(list[_Other], config=ConfigDict(defer_build=True))
_KINDS = {"E": "events", "R": "relations", "*": "equivalences"}
_ROLES = ("Arg1", "Arg2")
_LINE_END = re.compile(r"[\r\n]\s*")


def write(sentences: Iterable[Sentence], path: Path, ledger: Ledger, /) -> None:
    """Write each document to files named after its id; ``a/b`` is in the subfolder ``a``."""
    names = _FileNames(ledger)
    for document in to_documents(sentences, ledger):
        name = names.make_unique(document.id)
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        with open_output(path / f"{name}.txt") as file:
            file.write(document.text)
        with open_output(path / f"{name}.ann") as file:
            file.writelines(f"{line}\n" for line in _LineWriter(document, ledger).lines())


class _LineWriter:
    """The lines of one ``.ann`` file."""

    def __init__(self, document: Document, ledger: Ledger) -> None:
        self.document, self.ledger = document, ledger
        self.counts: Counter[str] = Counter()

    def lines(self) -> Iterator[str]:
        for mention in self.document.mentions:
            pieces = [piece for fragment in mention.fragments for piece in _split_lines(fragment, self.document.text)]
            offsets = ";".join(f"{start} {end}" for start, end in pieces)
            surface = " ".join(self.document.text[start:end] for start, end in pieces)
            yield f"{mention.id}\t{self._name(mention.type)} {offsets}\t{surface}"
            yield from self._attached_lines(mention.id, _validate_extra(mention.extra, self.ledger))
        for relation in self.document.relations:
            id, extra = self._next_id("R"), _validate_extra(relation.extra, self.ledger)
            first, second = map(self._name, extra.get("roles", _ROLES))
            if (second, first) == _ROLES:  # brat would read the relation in the other direction
                first, second = _ROLES
            yield f"{id}\t{self._name(relation.type)} {first}:{relation.head} {second}:{relation.tail}"
            yield from self._attached_lines(id, extra)
        yield from self._other_lines()

    def _next_id(self, kind: str) -> str:
        self.counts[kind] += 1
        return f"{kind}{self.counts[kind]}"

    def _attached_lines(self, target: str, extra: _Attached) -> Iterator[str]:
        for item in extra.get("attributes", []):
            id, value = self._next_id("A"), self._one_line(item.get("value", ""), "\t")
            yield f"{id}\t{self._name(item['type'])} {target} {value}".rstrip(" ")
            yield from self._note_lines(id, item.get("notes", []))
        for item in extra.get("references", []):
            id = self._next_id("N")
            to, text = self._one_line(item.get("to", ""), "\t"), self._one_line(item.get("text", ""))
            yield f"{id}\t{self._name(item['type'])} {target} {to or '_'}\t{text}"
            yield from self._note_lines(id, item.get("notes", []))
        yield from self._note_lines(target, extra.get("notes", []))

    def _note_lines(self, target: str, notes: list[_Note]) -> Iterator[str]:
        for note in notes:
            yield f"{self._next_id('#')}\t{self._name(note['type'])} {target}\t{self._one_line(note.get('text', ''))}"

    def _other_lines(self) -> Iterator[str]:
        """Yield events, equivalences and relations of events whose references all exist."""
        try:
            others = _OTHERS.validate_python((self.document.extra or {}).get("brat", []))
        except ValidationError:
            self.ledger.note("keys dropped: not in the shape of brat data")
            return
        new_ids = self._new_ids()
        events = {item["id"]: item for item in others if re.fullmatch(r"E\S+", item["id"])}
        new_ids |= {id: id for id in events}
        while invalid := [id for id, item in events.items() if _replace_ids(item, new_ids) is None]:
            for id in invalid:  # the next round removes the events that refer to it
                del events[id], new_ids[id]
        for item in others:
            kind = item["id"][:1]
            is_valid = kind in _KINDS and (kind != "E" or events.get(item["id"]) is item)
            line = _replace_ids(item, new_ids) if is_valid else None
            if line is None:
                self.ledger.lose(_KINDS.get(kind, "notes"), "that refer to something not in the data")
                continue
            id = self._next_id("R") if kind == "R" else item["id"]
            yield f"{id}\t{line}"
            if kind != "*":
                yield from self._attached_lines(id, item)

    def _new_ids(self) -> dict[str, str]:
        """Map the old ids of entities to new ones, if they are known and unique."""
        old_ids = [(mention.extra or {}).get("id") for mention in self.document.mentions]
        counts = Counter(map(str, old_ids))
        pairs = zip(old_ids, self.document.mentions, strict=True)
        return {old: mention.id for old, mention in pairs if isinstance(old, str) and counts[old] == 1}

    def _name(self, text: str) -> str:
        """Return the name without whitespace, which brat does not allow."""
        safe = "_".join(text.split()) or "_"
        self.ledger.lose("names", "with whitespace, replaced by _", int(safe != text))
        return safe

    def _one_line(self, text: str, tab: str = "") -> str:
        """Return the text without line breaks, and without tabs if ``tab`` is a tab."""
        safe = re.sub(rf"[\r\n{tab}]+", " ", text)
        self.ledger.note("line breaks in attributes, references or notes, replaced by spaces", int(safe != text))
        return safe


def _split_lines(fragment: Span, text: str) -> Iterator[Span]:
    """Split a fragment at line breaks, as brat does."""
    start = fragment.start
    for match in _LINE_END.finditer(text, *fragment):
        if line := text[start : match.start()].rstrip():
            yield Span(start, start + len(line))
        start = match.end()
    if start < fragment.end:
        yield Span(start, fragment.end)


def _validate_extra(extra: Extra | None, ledger: Ledger) -> _Attached:
    """Return the extra data if it has the shape that the reader produces; otherwise nothing."""
    try:
        return _ATTACHED.validate_python(extra or {})
    except ValidationError:
        ledger.note("keys dropped: not in the shape of brat data")
        return {}


def _replace_ids(item: _Other, new_ids: dict[str, str]) -> str | None:
    """Return the line with new ids; None if it refers to an unknown one."""
    first, *rest = item["line"].split() or [""]
    parts = [] if item["id"].startswith("E") else [first]
    for part in rest if parts else [first, *rest]:
        role, colon, id = part.rpartition(":")
        if id not in new_ids:
            return None
        parts.append(f"{role}{colon}{new_ids[id]}")
    return " ".join(parts)


class _FileNames:
    """Unique file names for documents, valid on all systems, never hidden and never outside the folder.

    >>> names = _FileNames(Ledger())
    >>> [names.make_unique(name) for name in ("dev/a", "../../etc/a", "dev/a", "/b:c", "..")]
    ['dev/a', '_/_/etc/a', 'dev/a-2', 'b_c', '_']
    """

    def __init__(self, ledger: Ledger) -> None:
        self.ledger, self.unique = ledger, UniqueNames(ledger, self._key)

    def make_unique(self, document: str) -> str:
        name = file_name(document)
        self.ledger.note("documents renamed because their id cannot be a file name", int(name != document))
        return self.unique.make_unique(name)

    @staticmethod
    def _key(name: str) -> str:
        """Return a key for file systems that ignore case."""
        return unicodedata.normalize("NFC", name).casefold()


def file_name(document: str) -> str:
    """The name of a document's files, unless an earlier document has the same name.

    >>> file_name("MEDLINE:1/b?")
    'MEDLINE_1/b_'
    """
    *folders, last = [_safe(part) for part in document.split("/") if part] or ["_"]
    # A folder must not have the suffix of a file: documents "a" and "a.txt/b" would collide.
    folders = [f"{name}_" if name.lower().endswith((".txt", ".ann")) else name for name in folders]
    return "/".join([*folders, last]).encode()[:200].decode(errors="ignore").rstrip("/. ") or "_"


def _safe(part: str) -> str:
    safe = "".join(c if c.isprintable() and c not in '<>:"|?*\\' else "_" for c in part).strip(". ") or "_"
    return f"{safe}_" if re.fullmatch(r"(con|prn|aux|nul|com\d|lpt\d)(\..*)?", safe, re.IGNORECASE) else safe
