"""brat: a folder of texts (``.txt``) with standoff annotations (``.ann``), or a single pair of files.

The lines of a ``.ann`` file:

- ``T1⇥Disease 0 5;8 12⇥text``: an entity with one or more fragments. Fragments separated only by
  whitespace are joined, because brat splits at line breaks. Event triggers are entities, too.
- ``R1⇥Cause Arg1:T1 Arg2:T2``: a relation, or a link if its ends are in two sentences. Role names other
  than Arg1 and Arg2 are stored in ``extra["roles"]``.
- ``A1⇥Negation T1``, ``M1`` (its old name), ``N1⇥Reference T1 Wikidata:Q30⇥name``, ``#1⇥AnnotatorNotes
  T1⇥words``: stored on their entity or relation in ``extra["attributes"]``, ``extra["references"]`` and
  ``extra["notes"]``.
- ``E1⇥Binding:T1 Theme:T2``, ``*⇥Equiv T1 T2`` and relations of events: stored unchanged in
  ``extra["brat"]`` of the document's first sentence. The entities that they refer to store their id in
  ``extra["id"]``.

The text of a T line is compared with the ``.txt``; the offsets are authoritative. Other files are not
read, and a note lists them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from spanwise.core.errors import FormatError
from spanwise.core.types import Sentence, Span
from spanwise.files.names import printable
from spanwise.files.reading import read_lines, read_text
from spanwise.formats.base import YES_OR_NO, Format, Ledger
from spanwise.formats.brat_writer import write
from spanwise.formats.shared.documents import Document, Mention, MentionRelation
from spanwise.formats.shared.sample import Sample
from spanwise.formats.shared.splitting import to_sentences
from spanwise.text.text_index import TextIndex

_LINE = re.compile(r"([TREAMN#]\S*|\*)\t([^\t]*)(?:\t(.*))?", re.DOTALL)
_RANGE = r"[0-9]{1,15} [0-9]{1,15}"
_TEXT_BOUND = re.compile(rf"(\S+) ({_RANGE}(?:;{_RANGE})*)")
_ARGUMENT = re.compile(r"(\S*):([^\s:]+)")
_SHAPES = {
    "T": "T1⇥TYPE START END⇥TEXT",
    "R": "R1⇥TYPE Arg1:T1 Arg2:T2",
    "E": "E1⇥TYPE:T1 ROLE:T2 …",
    "A": "A1⇥NAME T1 [VALUE]",
    "M": "M1⇥NAME T1 [VALUE]",
    "N": "N1⇥Reference T1 BASE:ENTRY⇥TEXT",
    "#": "#1⇥TYPE T1⇥TEXT",
    "*": "*⇥Equiv T1 T2 …",
}
_ATTACHED = {"A": "attributes", "M": "attributes", "N": "references", "#": "notes"}


def read(
    path: Path, ledger: Ledger, /, *, split: bool = True, notes: bool = True, with_annotations: bool = True
) -> Iterator[Sentence]:  # fmt: skip
    """Read documents.

    ``split=False`` keeps each text as one sentence. ``notes=False`` skips attributes, references and
    notes. ``with_annotations=False`` reads all texts, including those without a ``.ann`` file.
    """
    suffix, other = (".ann", ".txt") if with_annotations else (".txt", ".ann")
    if path.is_dir():
        files = list(_visible_files(path))
        if any(path.iterdir()) and not any(file.suffix == suffix for file in files):
            raise FormatError(path, None, f"no {suffix} file in this folder or its subfolders")
    elif path.suffix in (suffix, other):
        files = [path.with_suffix(suffix)]
    else:
        raise FormatError(path, None, "expected a folder, a .ann file or a .txt file")
    for file in files:
        if file.suffix == suffix:
            relative = file.relative_to(path) if path.is_dir() else Path(file.name)
            id = printable(relative.with_suffix("").as_posix())
            yield from to_sentences(_read_document(id, file, ledger, notes, with_annotations), file, ledger, split=split)
    unpaired = [file for file in files if file.suffix == other and not file.with_suffix(suffix).exists()]
    ledger.note(f"{other} files without a {suffix} file, skipped", len(unpaired))
    ignored = [file for file in files if file.suffix not in (suffix, other, ".conf")]  # .conf: settings of brat
    ledger.note_files("files other than .txt and .ann", [printable(file.relative_to(path).as_posix()) for file in ignored])


def _visible_files(path: Path) -> Iterator[Path]:
    """Yield the files of a folder and its subfolders, sorted by name."""
    for folder, subfolders, names in os.walk(path, onerror=_raise):
        subfolders[:] = sorted(name for name in subfolders if not name.startswith("."))
        yield from (Path(folder, name) for name in sorted(names) if not name.startswith(".") and not name.endswith("~"))


def _raise(error: OSError) -> None:
    """Fail on subfolders that cannot be opened, which ``os.walk`` would skip silently."""
    raise error


def _read_document(id: str, path: Path, ledger: Ledger, notes: bool, with_annotations: bool) -> Document:
    for needed in (path, path.with_suffix(".txt")):
        if not needed.is_file():
            raise FormatError(path, None, f"{needed.name} is missing; brat stores the text in .txt and the annotations in .ann")
    try:
        text = _read_text(path, ledger)
    except FormatError:
        if with_annotations:
            raise
        text = read_text(path.with_suffix(".txt"))  # the .ann file is invalid and cannot show how it counts line breaks
    if not with_annotations:
        return Document(id, text)
    annotations = _Annotations(path, text, ledger)
    for number, line in read_lines(path):
        if line.strip():
            annotations.add(number, line)
    return annotations.to_document(id, notes)


def _read_text(path: Path, ledger: Ledger) -> str:
    """Return the text with the line breaks that the offsets of the ``.ann`` file count.

    A text may have got Windows line breaks after it was annotated.
    """
    text, annotations = read_text(path.with_suffix(".txt")), path.with_suffix(".ann")
    if "\r\n" not in text or not annotations.is_file():
        return text
    unix_text = text.replace("\r\n", "\n")
    if _count_matches(annotations, unix_text) <= _count_matches(annotations, text):
        return text
    ledger.note("texts with Windows line breaks, counted as one character each")
    return unix_text


def _count_matches(path: Path, text: str) -> int:
    """Count the T lines whose text is at their offsets."""
    count, index = 0, TextIndex(text)
    for _, line in read_lines(path):
        match = _LINE.fullmatch(line)
        entity = _TEXT_BOUND.fullmatch(match[2].strip()) if match and match[1][0] == "T" else None
        if match and entity:
            count += index.matches(_parse_ranges(entity[2]), match[3] or "")
    return count


class _Annotations:
    """The lines of one ``.ann`` file. Attributes, references and notes are attached at the end."""

    def __init__(self, path: Path, text: str, ledger: Ledger) -> None:
        self.path, self.text, self.ledger = path, text, ledger
        self.index = TextIndex(text)
        self.mentions: list[Mention] = []
        self.relations: list[MentionRelation] = []
        self.others: list[dict[str, Any]] = []
        self.surfaces: list[list[str]] = []  # the text of each T line, which may continue on further lines
        self.expected, self.matched = "", 0  # the text of the last T line, and how many characters of it were read
        self.extra: dict[str, dict[str, Any]] = {}  # by id: the extra data that attributes, references and notes join
        self.attached: list[tuple[str, str, dict[str, Any]]] = []  # extra key, target id, item
        self.last_kind = ""

    def add(self, number: int, line: str) -> None:
        match = _LINE.fullmatch(line)
        if not match:
            self._continue_surface(number, line)
            return
        id, body, tail = match[1], match[2].strip(), match[3]
        kind = self.last_kind = id[0]
        if kind == "T":
            is_valid = self._add_entity(id, body, tail, number)
        elif kind == "R":
            is_valid = self._add_relation(id, body, number)
        elif kind in "E*":
            is_valid = self._add_other(id, body, number)
        else:
            is_valid = self._attach(kind, id, body.split(None, 2), tail or "", number)
        if not is_valid:
            raise FormatError(self.path, number, f"invalid line; expected {_SHAPES[kind]}, found {_shorten(line)}")

    def _register(self, id: str, extra: dict[str, Any], number: int) -> dict[str, Any]:
        if self.extra.setdefault(id, extra) is not extra:
            raise FormatError(self.path, number, f"duplicate id {id!r}")
        return extra

    def _add_entity(self, id: str, body: str, tail: str | None, number: int) -> bool:
        match = _TEXT_BOUND.fullmatch(body)
        if not match:
            return False
        ranges = sorted(_parse_ranges(match[2]))
        joined = [ranges[0]]
        for span in ranges[1:]:
            if joined[-1].end <= span.start and not self.index.strip(joined[-1].end, span.start):
                joined[-1] = Span(joined[-1].start, span.end)
                self.ledger.note("fragments separated only by whitespace, joined")
            else:
                joined.append(span)
        extra = self._register(id, {}, number)
        self.mentions.append(Mention(id, match[1], tuple(joined), extra=extra, line=number))
        self.surfaces.append([] if tail is None else [tail])
        return True

    def _add_relation(self, id: str, body: str, number: int) -> bool:
        type, *parts = body.split() or [""]
        ends = [match for part in parts if (match := _ARGUMENT.fullmatch(part))]
        if len(parts) != 2 or len(ends) != 2:
            return False
        if [end[1] for end in ends] == ["Arg2", "Arg1"]:
            ends.reverse()
        roles = [end[1] for end in ends]
        head, tail = (end[2] for end in ends)
        if "E" in (head[0], tail[0]):
            return self._add_other(id, body, number)
        extra = self._register(id, {} if roles == ["Arg1", "Arg2"] else {"roles": roles}, number)
        self.relations.append(MentionRelation(type, head, tail, extra=extra, line=number))
        return True

    def _add_other(self, id: str, body: str, number: int) -> bool:
        """Store an event, an equivalence or a relation of events unchanged."""
        first, *parts = body.split() or [""]
        if id[0] == "E" and not all(map(_ARGUMENT.fullmatch, [first, *parts])):
            return False
        if id == "*" and (len(parts) < 2 or any(":" in part for part in parts)):
            return False
        item = {"id": id, "line": " ".join([first, *parts])}
        self.others.append(item if id == "*" else self._register(id, item, number))
        return True

    def _attach(self, kind: str, id: str, parts: list[str], text: str, number: int) -> bool:
        if len(parts) < 2 or (kind in "N#" and len(parts) != (3 if kind == "N" else 2)):
            return False
        item: dict[str, Any] = {"type": parts[0]}
        if kind == "N":
            item["to"] = parts[2]
        elif len(parts) == 3:
            item["value"] = parts[2]
        if kind in "N#":
            item["text"] = text
        else:
            self.ledger.note("attributes with the old prefix M", int(kind == "M"))
        self.attached.append((_ATTACHED[kind], parts[1], item))
        if kind != "#":
            self._register(id, item, number)
        return True

    def _continue_surface(self, number: int, line: str) -> None:
        """Accept a line that continues the text of an entity, which some tools break at line breaks."""
        surface = self.surfaces[-1] if self.last_kind == "T" else []
        if len(surface) == 1:
            first, self.expected = _collapse(surface[0]), _collapse(self._text_of(self.mentions[-1]))
            self.matched = len(first) if self.expected.startswith(first) else -1
        piece = " " * (self.matched > 0) + _collapse(line)
        if surface and self.matched >= 0 and self.expected.startswith(piece, self.matched):
            surface.append(line)
            self.matched += len(piece)
            self.ledger.note("entity texts broken over several lines, joined")
            return
        raise FormatError(self.path, number, f"invalid line; expected {_SHAPES['T']} or similar, found {_shorten(line)}")

    def _text_of(self, mention: Mention) -> str:
        return " ".join(self.text[start:end] for start, end in mention.fragments)

    def to_document(self, id: str, notes: bool) -> Document:
        for mention, surface in zip(self.mentions, self.surfaces, strict=True):
            if surface and not self.index.matches(mention.fragments, "\n".join(surface)):
                self.ledger.note("entities whose text differs from the document at their offsets")
        for key, target, item in self.attached:
            if not notes:
                self.ledger.note("additions to entities (attributes, references, notes), skipped")
            elif target in self.extra and (key == "notes" or target[0] in "TRE"):
                self.extra[target].setdefault(key, []).append(item)
            else:
                self.ledger.lose(key, "with a target that is missing or cannot have any")
        for item in self.others:
            for reference in re.split(r"[ :]", item["line"]):
                if reference[:1] == "T" and reference in self.extra:
                    self.extra[reference]["id"] = reference
        for mention in self.mentions:
            mention.extra = mention.extra or None
        for relation in self.relations:
            relation.extra = relation.extra or None
        return Document(id, self.text, self.mentions, self.relations, {"brat": self.others} if self.others else None)


def _parse_ranges(text: str) -> list[Span]:
    return [Span(*map(int, part.split(" "))) for part in text.split(";")]


def _collapse(text: str) -> str:
    """Replace each run of whitespace by one space."""
    return " ".join(text.split())


def _shorten(line: str) -> str:
    return repr(line if len(line) < 60 else line[:57] + "…")


def sniff(sample: Sample) -> bool:
    if sample.is_folder:
        return any(file.suffix == ".ann" for file in _visible_files(sample.path))
    if sample.path.suffix == ".txt":
        return sample.path.with_suffix(".ann").is_file()
    filled = (line for line in sample.lines if line.strip())
    return sample.path.suffix == ".ann" and all(map(_LINE.fullmatch, islice(filled, 50)))


FORMAT = Format(
    name="brat",
    has_character_offsets=True,
    summary="a folder of .txt files with standoff annotations in .ann files, or one pair of files",
    read=read,
    write=write,
    sniff=sniff,
    supports=frozenset(("nested", "crossing", "discontinuous", "several types", "relations", "links")),
    metadata=frozenset(("documents",)),
    extra_keys=frozenset(("attributes", "references", "notes", "roles", "id", "brat")),
    read_options={"split": YES_OR_NO, "notes": YES_OR_NO},
    input_kinds=frozenset(("folder", "file")),
    writes_folder=True,
)
