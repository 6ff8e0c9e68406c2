"""Writing brat: one ``.txt`` and one ``.ann`` for each document, all numbers given anew."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NotRequired

from pydantic import TypeAdapter, ValidationError
from typing_extensions import TypedDict

from spanwise.core.types import Extra, Sentence, Span
from spanwise.files.writing import writing
from spanwise.formats.base import Ledger
from spanwise.formats.shared.documents import Document, to_documents
from spanwise.formats.shared.naming import DistinctNames


class _Note(TypedDict):
    type: str
    text: NotRequired[str]


class _Item(_Note):
    value: NotRequired[str]
    to: NotRequired[str]
    notes: NotRequired[list[_Note]]


class _Attached(TypedDict):
    attributes: NotRequired[list[_Item]]
    references: NotRequired[list[_Item]]
    notes: NotRequired[list[_Note]]
    roles: NotRequired[tuple[str, str]]


class _Other(_Attached):
    id: str
    line: str


_ATTACHED: TypeAdapter[_Attached] = TypeAdapter(_Attached)
_OTHERS: TypeAdapter[list[_Other]] = TypeAdapter(list[_Other])
_KINDS = {"E": "events", "R": "relations", "*": "equivalences"}
_ROLES = ("Arg1", "Arg2")
_LINE_END = re.compile(r"[\r\n]\s*")


def write(sentences: Iterable[Sentence], path: Path, ledger: Ledger, /) -> None:
    """Each document in files of its name (``a/b`` in the subfolder ``a``), as far as it can be a file's name."""
    names = _FileNames(ledger)
    for document in to_documents(sentences, ledger):
        name = names.of(document.id)
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        with writing(path / f"{name}.txt") as file:
            file.write(document.text)
        with writing(path / f"{name}.ann") as file:
            file.writelines(f"{line}\n" for line in _Lines(document, ledger).all())


class _Lines:
    """The lines of one ``.ann`` file."""

    def __init__(self, document: Document, ledger: Ledger) -> None:
        self.document, self.ledger = document, ledger
        self.counts: Counter[str] = Counter()

    def all(self) -> Iterator[str]:
        for mention in self.document.mentions:
            pieces = [piece for fragment in mention.fragments for piece in _lines_of(fragment, self.document.text)]
            places = ";".join(f"{start} {end}" for start, end in pieces)
            surface = " ".join(self.document.text[start:end] for start, end in pieces)
            yield f"{mention.id}\t{self._word(mention.type)} {places}\t{surface}"
            yield from self._attached(mention.id, _shaped(mention.extra, self.ledger))
        for arrow in self.document.arrows:
            name, extra = self._next("R"), _shaped(arrow.extra, self.ledger)
            first, second = map(self._word, extra.get("roles", _ROLES))
            if (second, first) == _ROLES:  # to brat this would turn the relation round
                first, second = _ROLES
            yield f"{name}\t{self._word(arrow.type)} {first}:{arrow.head} {second}:{arrow.tail}"
            yield from self._attached(name, extra)
        yield from self._others()

    def _next(self, kind: str) -> str:
        self.counts[kind] += 1
        return f"{kind}{self.counts[kind]}"

    def _attached(self, target: str, extra: _Attached) -> Iterator[str]:
        for item in extra.get("attributes", []):
            name, value = self._next("A"), self._flat(item.get("value", ""), "\t")
            yield f"{name}\t{self._word(item['type'])} {target} {value}".rstrip(" ")
            yield from self._notes(name, item.get("notes", []))
        for item in extra.get("references", []):
            name = self._next("N")
            to, text = self._flat(item.get("to", ""), "\t"), self._flat(item.get("text", ""))
            yield f"{name}\t{self._word(item['type'])} {target} {to or '_'}\t{text}"
            yield from self._notes(name, item.get("notes", []))
        yield from self._notes(target, extra.get("notes", []))

    def _notes(self, target: str, notes: list[_Note]) -> Iterator[str]:
        for note in notes:
            yield f"{self._next('#')}\t{self._word(note['type'])} {target}\t{self._flat(note.get('text', ''))}"

    def _others(self) -> Iterator[str]:
        """Events, equivalences and relations of events, as far as all they name is there."""
        try:
            others = _OTHERS.validate_python((self.document.extra or {}).get("brat", []))
        except ValidationError:
            self.ledger.note("keys left out: of a shape that brat does not have")
            return
        numbers = self._new_numbers()
        events = {item["id"]: item for item in others if re.fullmatch(r"E\S+", item["id"])}
        numbers |= {name: name for name in events}
        while gone := [name for name, item in events.items() if _renumbered(item, numbers) is None]:
            for name in gone:  # and with it, in the next round, the events that name it
                del events[name], numbers[name]
        for item in others:
            kind = item["id"][:1]
            line = _renumbered(item, numbers) if kind in _KINDS and (kind != "E" or events.get(item["id"]) is item) else None
            if line is None:
                self.ledger.lose(_KINDS.get(kind, "notes"), "naming something that is not in the data")
                continue
            name = self._next("R") if kind == "R" else item["id"]
            yield f"{name}\t{line}"
            if kind != "*":
                yield from self._attached(name, item)

    def _new_numbers(self) -> dict[str, str]:
        """The new number of each entity that remembers its old one, as far as the old one names it alone."""
        old = [(mention.extra or {}).get("id") for mention in self.document.mentions]
        counts = Counter(map(str, old))
        pairs = zip(old, self.document.mentions, strict=True)
        return {name: mention.id for name, mention in pairs if isinstance(name, str) and counts[name] == 1}

    def _word(self, text: str) -> str:
        """A name as brat can hold it: without white space."""
        safe = "_".join(text.split()) or "_"
        self.ledger.lose("names", "with white space, written with _ instead", int(safe != text))
        return safe

    def _flat(self, text: str, tab: str = "") -> str:
        """A text as it can stand in a line, or between two tabs."""
        safe = re.sub(rf"[\r\n{tab}]+", " ", text)
        self.ledger.note("line ends in what is said of an entity or relation, written as blanks", int(safe != text))
        return safe


def _lines_of(fragment: Span, text: str) -> Iterator[Span]:
    """The fragment without line ends: brat cuts there."""
    start = fragment.start
    for match in _LINE_END.finditer(text, *fragment):
        if line := text[start : match.start()].rstrip():
            yield Span(start, start + len(line))
        start = match.end()
    if start < fragment.end:
        yield Span(start, fragment.end)


def _shaped(extra: Extra | None, ledger: Ledger) -> _Attached:
    """What is known besides, where it has the shape in which the reader keeps it."""
    try:
        return _ATTACHED.validate_python(extra or {})
    except ValidationError:
        ledger.note("keys left out: of a shape that brat does not have")
        return {}


def _renumbered(item: _Other, numbers: dict[str, str]) -> str | None:
    """The line with new numbers; None where it names something that has none."""
    first, *rest = item["line"].split() or [""]
    parts = [] if item["id"].startswith("E") else [first]
    for part in rest if parts else [first, *rest]:
        role, colon, name = part.rpartition(":")
        if name not in numbers:
            return None
        parts.append(f"{role}{colon}{numbers[name]}")
    return " ".join(parts)


class _FileNames:
    """A file's name for each document: never outside the folder, never hidden, never one twice, fit for every system.

    >>> names = _FileNames(Ledger())
    >>> [names.of(name) for name in ("dev/a", "../../etc/a", "dev/a", "/b:c", "..")]
    ['dev/a', '_/_/etc/a', 'dev/a-2', 'b_c', '_']
    """

    def __init__(self, ledger: Ledger) -> None:
        self.ledger, self.distinct = ledger, DistinctNames(ledger, self._key)

    def of(self, document: str) -> str:
        *folders, last = [_safe(part) for part in document.split("/") if part] or ["_"]
        # Folders are told from files by their suffix alone, so that a document "a" and one "a.txt/b" go side by side.
        folders = [f"{name}_" if name.lower().endswith((".txt", ".ann")) else name for name in folders]
        name = "/".join([*folders, last]).encode()[:200].decode(errors="ignore").rstrip("/. ") or "_"
        self.ledger.note("documents whose id cannot be a file's name, renamed", int(name != document))
        return self.distinct.of(name)

    @staticmethod
    def _key(name: str) -> str:
        """Some file systems do not tell large letters from small ones."""
        return unicodedata.normalize("NFC", name).casefold()


def _safe(part: str) -> str:
    safe = "".join(c if c.isprintable() and c not in '<>:"|?*\\' else "_" for c in part).strip(". ") or "_"
    return f"{safe}_" if re.fullmatch(r"(con|prn|aux|nul|com\d|lpt\d)(\..*)?", safe, re.IGNORECASE) else safe
