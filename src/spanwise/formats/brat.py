"""brat: a folder of texts (``.txt``) with standoff annotations (``.ann``), or a single such pair.

Reading, one line of a ``.ann`` file at a time:

- ``T1⇥Disease 0 5;8 12⇥text``: an entity, with as many fragments as it has. Fragments that only white space parts (brat cuts
  at line ends) become one. An event's trigger is such a line too, and so an entity.
- ``R1⇥Cause Arg1:T1 Arg2:T2``: a relation, or a link where its ends lie in two sentences. Other names than Arg1 and Arg2 are
  kept in ``extra["roles"]``.
- ``A1⇥Negation T1``, ``M1`` (its old name), ``N1⇥Reference T1 Wikidata:Q30⇥name``, ``#1⇥AnnotatorNotes T1⇥words``: kept on the
  entity or relation they are about, as ``extra["attributes"]``, ``extra["references"]`` and ``extra["notes"]``.
- ``E1⇥Binding:T1 Theme:T2``, ``*⇥Equiv T1 T2`` and relations of events: kept as they are in ``extra["brat"]`` of the document's
  first sentence; the entities they name remember their number in ``extra["id"]``.

The text that a T line repeats is compared with the ``.txt``; it is the offsets that count. Other files are not read, and named.
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
from spanwise.files.reading import lines, read_text
from spanwise.formats.base import YES_OR_NO, Format, Ledger
from spanwise.formats.brat_writer import write
from spanwise.formats.shared.cutting import to_sentences
from spanwise.formats.shared.documents import Arrow, Document, Mention
from spanwise.formats.shared.sample import Sample
from spanwise.text.blanks import says

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
    path: Path, ledger: Ledger, /, *, split: bool = True, notes: bool = True, annotated: bool = True
) -> Iterator[Sentence]:  # fmt: skip
    """``split=False`` keeps each text as one sentence; ``notes=False`` leaves attributes, references and notes out.

    Without ``annotated`` all texts are read, also those without a ``.ann`` file.
    """
    kind, other = (".ann", ".txt") if annotated else (".txt", ".ann")
    if path.is_dir():
        files = list(_visible_files(path))
        if any(path.iterdir()) and not any(file.suffix == kind for file in files):
            raise FormatError(path, None, f"no {kind} file in this folder or below it")
    elif path.suffix in (kind, other):
        files = [path.with_suffix(kind)]
    else:
        raise FormatError(path, None, "brat is read from a folder, a .ann file or a .txt file")
    for file in files:
        if file.suffix == kind:
            where = file.relative_to(path) if path.is_dir() else Path(file.name)
            name = printable(where.with_suffix("").as_posix())
            yield from to_sentences(_document(name, file, ledger, notes, annotated), file, ledger, split=split)
    alone = [file for file in files if file.suffix == other and not file.with_suffix(kind).exists()]
    ledger.note(f"{other} files without a {kind}, passed over", len(alone))
    besides = [file for file in files if file.suffix not in (kind, other, ".conf")]  # .conf: brat's own settings
    ledger.note_files("files besides .txt and .ann", [printable(file.relative_to(path).as_posix()) for file in besides])


def _visible_files(path: Path) -> Iterator[Path]:
    """The files of a folder, those of a subfolder together, in the order of their names."""
    for folder, subfolders, names in os.walk(path, onerror=_refuse):
        subfolders[:] = sorted(name for name in subfolders if not name.startswith("."))
        yield from (Path(folder, name) for name in sorted(names) if not name.startswith(".") and not name.endswith("~"))


def _refuse(error: OSError) -> None:
    """A subfolder that cannot be opened is no reason to read the rest in silence."""
    raise error


def _document(name: str, path: Path, ledger: Ledger, notes: bool, annotated: bool) -> Document:
    for needed in (path, path.with_suffix(".txt")):
        if not needed.is_file():
            raise FormatError(path, None, f"{needed.name} is missing: brat keeps the text in .txt and its annotations in .ann")
    try:
        text = _text(path, ledger)
    except FormatError:
        if annotated:
            raise
        text = read_text(path.with_suffix(".txt"))  # the annotations cannot tell how they count
    if not annotated:
        return Document(name, text)
    found = _Annotations(path, text, ledger)
    for number, line in lines(path):
        if line.strip():
            found.add(number, line)
    return found.document(name, notes)


def _text(path: Path, ledger: Ledger) -> str:
    """The text that the offsets of a ``.ann`` file count in: a copy may have got Windows line ends after it was annotated."""
    text, annotations = read_text(path.with_suffix(".txt")), path.with_suffix(".ann")
    if "\r\n" not in text or not annotations.is_file():
        return text
    before = text.replace("\r\n", "\n")
    if _count_fitting(annotations, before) <= _count_fitting(annotations, text):
        return text
    ledger.note("texts with Windows line ends, of which the offsets count each as one character: read so")
    return before


def _count_fitting(path: Path, text: str) -> int:
    """How many T lines say the text that stands at their offsets."""
    count = 0
    for _, line in lines(path):
        match = _LINE.fullmatch(line)
        place = _TEXT_BOUND.fullmatch(match[2].strip()) if match and match[1][0] == "T" else None
        if match and place:
            count += says(text, _ranges(place[2]), match[3] or "")
    return count


class _Annotations:
    """The lines of one ``.ann`` file, gathered; what hangs on another line is hung there when all are known."""

    def __init__(self, path: Path, text: str, ledger: Ledger) -> None:
        self.path, self.text, self.ledger = path, text, ledger
        self.mentions: list[Mention] = []
        self.arrows: list[Arrow] = []
        self.others: list[dict[str, Any]] = []
        self.surfaces: list[list[str]] = []  # what each T line says its text is, perhaps over several lines
        self.expected, self.matched = "", 0  # what the last T line should say, and how many characters of that it does
        self.known: dict[str, dict[str, Any]] = {}  # by id, where attributes, references and notes are kept
        self.attached: list[tuple[str, str, dict[str, Any]]] = []
        self.last = ""

    def add(self, number: int, line: str) -> None:
        match = _LINE.fullmatch(line)
        if not match:
            self._continue_surface(number, line)
            return
        name, body, tail = match[1], match[2].strip(), match[3]
        kind = self.last = name[0]
        if kind == "T":
            understood = self._entity(name, body, tail, number)
        elif kind == "R":
            understood = self._relation(name, body, number)
        elif kind in "E*":
            understood = self._other(name, body, number)
        else:
            understood = self._attach(kind, name, body.split(None, 2), tail or "", number)
        if not understood:
            raise FormatError(self.path, number, f"not a line of brat, expected {_SHAPES[kind]}, found {_shown(line)}")

    def _keep(self, name: str, item: dict[str, Any], number: int) -> dict[str, Any]:
        if self.known.setdefault(name, item) is not item:
            raise FormatError(self.path, number, f"the id {name!r} is given twice")
        return item

    def _entity(self, name: str, body: str, tail: str | None, number: int) -> bool:
        match = _TEXT_BOUND.fullmatch(body)
        if not match:
            return False
        ranges = sorted(_ranges(match[2]))
        joined = [ranges[0]]
        for span in ranges[1:]:
            if joined[-1].end <= span.start and not self.text[joined[-1].end : span.start].strip():
                joined[-1] = Span(joined[-1].start, span.end)
                self.ledger.note("fragments that only white space parts, joined")
            else:
                joined.append(span)
        extra = self._keep(name, {}, number)
        self.mentions.append(Mention(name, match[1], tuple(joined), extra=extra, line=number))
        self.surfaces.append([] if tail is None else [tail])
        return True

    def _relation(self, name: str, body: str, number: int) -> bool:
        kind, *parts = body.split() or [""]
        ends = [match for part in parts if (match := _ARGUMENT.fullmatch(part))]
        if len(parts) != 2 or len(ends) != 2:
            return False
        if [end[1] for end in ends] == ["Arg2", "Arg1"]:
            ends.reverse()
        roles = [end[1] for end in ends]
        head, tail = (end[2] for end in ends)
        if "E" in (head[0], tail[0]):
            return self._other(name, body, number)
        extra = self._keep(name, {} if roles == ["Arg1", "Arg2"] else {"roles": roles}, number)
        self.arrows.append(Arrow(kind, head, tail, extra=extra, line=number))
        return True

    def _other(self, name: str, body: str, number: int) -> bool:
        """An event, an equivalence or a relation of events: kept as it is."""
        first, *parts = body.split() or [""]
        if name[0] == "E" and not all(map(_ARGUMENT.fullmatch, [first, *parts])):
            return False
        if name == "*" and (len(parts) < 2 or any(":" in part for part in parts)):
            return False
        item = {"id": name, "line": " ".join([first, *parts])}
        self.others.append(item if name == "*" else self._keep(name, item, number))
        return True

    def _attach(self, kind: str, name: str, parts: list[str], text: str, number: int) -> bool:
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
            self.ledger.note("attributes under their old letter, M", int(kind == "M"))
        self.attached.append((_ATTACHED[kind], parts[1], item))
        if kind != "#":
            self._keep(name, item, number)
        return True

    def _continue_surface(self, number: int, line: str) -> None:
        """Some tools break the repeated text of an entity where the text has a line end; the text itself tells."""
        surface = self.surfaces[-1] if self.last == "T" else []
        if len(surface) == 1:
            first, self.expected = _plain(surface[0]), _plain(self._text_of(self.mentions[-1]))
            self.matched = len(first) if self.expected.startswith(first) else -1
        piece = " " * (self.matched > 0) + _plain(line)
        if surface and self.matched >= 0 and self.expected.startswith(piece, self.matched):
            surface.append(line)
            self.matched += len(piece)
            self.ledger.note("repeated texts broken over lines, joined")
            return
        raise FormatError(self.path, number, f"not a line of brat, expected {_SHAPES['T']} or the like, found {_shown(line)}")

    def _text_of(self, mention: Mention) -> str:
        return " ".join(self.text[start:end] for start, end in mention.fragments)

    def document(self, name: str, notes: bool) -> Document:
        for mention, surface in zip(self.mentions, self.surfaces, strict=True):
            if surface and not says(self.text, mention.fragments, "\n".join(surface)):
                self.ledger.note("entities whose repeated text differs from the text at their offsets")
        for key, target, item in self.attached:
            if not notes:
                self.ledger.note("attributes, references and notes left out, as asked")
            elif target in self.known and (key == "notes" or target[0] in "TRE"):
                self.known[target].setdefault(key, []).append(item)
            else:
                self.ledger.lose(key, "on something that is not there, or that cannot have any")
        for item in self.others:
            for reference in re.split(r"[ :]", item["line"]):
                if reference[:1] == "T" and reference in self.known:
                    self.known[reference]["id"] = reference
        for mention in self.mentions:
            mention.extra = mention.extra or None
        for arrow in self.arrows:
            arrow.extra = arrow.extra or None
        return Document(name, self.text, self.mentions, self.arrows, {"brat": self.others} if self.others else None)


def _ranges(text: str) -> list[Span]:
    return [Span(*map(int, part.split(" "))) for part in text.split(";")]


def _plain(text: str) -> str:
    return " ".join(text.split())


def _shown(line: str) -> str:
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
    by_characters=True,
    summary="a folder of .txt files with standoff annotations in .ann files, or one such pair",
    read=read,
    write=write,
    sniff=sniff,
    holds=frozenset(("nested", "crossing", "discontinuous", "several types", "relations", "links")),
    keeps=frozenset(("documents",)),
    own_keys=frozenset(("attributes", "references", "notes", "roles", "id", "brat")),
    read_options={"split": YES_OR_NO, "notes": YES_OR_NO},
    read_from=frozenset(("folder", "file")),
    writes_folder=True,
)
