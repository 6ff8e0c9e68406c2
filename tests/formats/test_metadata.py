"""Metadata (ids, part-of-speech tags, scores, unknown keys): stored or noted as dropped, as the format declares."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from samples import NEEDS

from spanwise import Entity, Relation, Sentence, convert, read, write
from spanwise.formats import Format, Ledger, formats
from spanwise.formats.base import ALL_METADATA
from spanwise.formats.registry import find_format, output_format
from spanwise.formats.shared.metadata import dropped_note

SPECS = tuple(
    spec
    for spec in (
        *(name for name, format in formats().items() if format.write),
        "conll:pos=yes,ids=yes",
        "doccano:form=labels",
        "label_studio:kind=predictions",
    )
    if spec not in NEEDS or find_spec(NEEDS[spec])
)
READ_SPECS = {"conll:pos=yes,ids=yes": "conll:pos=1"}


def sentences(is_document: bool) -> list[Sentence]:
    """Return two sentences that every format supports, with all kinds of metadata."""
    texts = (("rash", "from", "zinc"), ("pain", "from", "iron"))
    locations: list[dict[str, Any]] = [{"document": "d", "position": n} if is_document else {} for n in (0, 1)]
    return [
        Sentence(
            f"own {number}",
            words,
            (
                Entity("Adverse-Effect", ((0, 1),), 0.25 + number / 8, {"seen": f"here {number}"}),
                Entity("Drug", ((2, 3),), 0.5 + number / 8, {"wiki": f"Q{number}"}),
            ),
            (Relation("Adverse-Effect", 0, 1, 0.75 + number / 8, {"sure": f"yes {number}"}),),
            pos=("NN", "IN", f"NN{number}"),
            extra={f"source {number}": "map"},
            **locations[number],
        )
        for number, words in enumerate(texts)
    ]


def metadata(sentences: Iterable[Sentence]) -> dict[str, Counter[str]]:
    """Return the metadata of sentences by kind."""
    values: dict[str, Counter[str]] = {kind: Counter() for kind in ALL_METADATA}
    for s in sentences:
        values["ids"][s.id] += 1
        values["documents"][str(s.document)] += 1
        values["pos"][str(s.pos)] += s.pos is not None
        values["keys"].update(json.dumps(item) for item in (s.extra or {}).items())
        for prefix, items in (("", s.entities), ("relation ", s.relations)):
            values[f"{prefix}scores"].update(str(item.score) for item in items if item.score is not None)
            keys = (json.dumps(pair) for item in items for pair in (item.extra or {}).items())
            values[f"{prefix or 'entity '}keys"].update(keys)
    return values


def stored_by(spec: str) -> frozenset[str]:
    format, options = output_format(Path("x"), spec)
    return format.stored_metadata(options)


def expect_stored_or_noted(spec: str, is_document: bool, folder: Path) -> None:
    format, _ = find_format(spec)
    folder.mkdir(parents=True)
    path = folder / ("out" + (*format.extensions, "")[0])
    ledger = write(sentences(is_document), path, spec, lossy=True)
    before, after = metadata(sentences(is_document)), metadata(read(path, READ_SPECS.get(spec, format.name)))
    for kind in ALL_METADATA:
        expect_kind(format, kind, stored_by(spec), is_document, before[kind], after[kind], ledger)


def expect_kind(
    format: Format,
    kind: str,
    stored: frozenset[str],
    is_document: bool,
    before: Counter[str],
    after: Counter[str],
    ledger: Ledger,
) -> None:
    noted = ledger.notes[dropped_note(kind, format.name)]
    case = f"{format.name}, {kind}, {'documents' if is_document else 'sentences'}"
    if kind == "documents" and not is_document:
        assert noted == 0, case
    elif kind == "documents" and kind in stored:
        assert set(after) == {"d"}, case
    elif kind == "ids" and "documents" in stored:
        assert noted == (2 if is_document and kind not in stored else 0), case
    elif kind in stored:
        has_annotation = kind not in ("relation scores", "relation keys") or "relations" in format.supports
        assert noted == 0, case
        assert after == before if has_annotation else not after, case
    else:
        assert noted == before.total(), case


def test_metadata_is_stored_or_noted(tmp_path: Path) -> None:
    for number, spec in enumerate(SPECS):
        for is_document in (True, False):
            expect_stored_or_noted(spec, is_document, tmp_path / f"{number}-{is_document}")


def test_no_note_without_metadata(tmp_path: Path) -> None:
    plain = [Sentence(f"x-{n}", ("rash", "from", "zinc"), (Entity("Drug", ((2, 3),)),)) for n in range(2)]
    for number, spec in enumerate(SPECS):
        ledger = write(plain, tmp_path / f"out{number}", spec, lossy=True)
        assert not any("dropped" in note for note in ledger.notes), spec


def test_kinds_of_metadata_are_known() -> None:
    for kind in ALL_METADATA:
        assert dropped_note(kind, "x").endswith(" dropped: not stored by x")
    for spec in SPECS:
        assert stored_by(spec) <= ALL_METADATA, spec
    assert stored_by("jsonl") == ALL_METADATA


def test_metadata_is_no_reason_to_refuse(tmp_path: Path) -> None:
    record = {"tokens": ["Oslo"], "entities": [{"type": "Place", "spans": [[0, 1]], "score": 0.9, "wiki": "Q585"}], "by": "me"}
    (tmp_path / "rich.jsonl").write_text(json.dumps(record))
    result = convert(tmp_path / "rich.jsonl", tmp_path / "out", target_format="brat")
    assert result.ledger.lost == 0
    assert result.ledger.notes == {
        "entity scores dropped: not stored by brat": 1,
        "sentence keys dropped: not stored by brat": 1,
        "entity keys dropped: not stored by brat": 1,
    }


def test_notes_of_brat_are_stored_by_brat_only(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("Oslo waits.")
    (tmp_path / "a.ann").write_text("T1\tPlace 0 4\tOslo\n#1\tAnnotatorNotes T1\tsure\n")
    assert not convert(tmp_path, tmp_path.with_name("again"), target_format="brat").ledger.notes
    notes = convert(tmp_path, tmp_path.with_name("a.conll")).ledger.notes
    assert notes["entity keys dropped: not stored by conll"] == 1


@pytest.mark.parametrize("spec", ["doccano", "label_studio", "prodigy", "docbin", "dygie"])
def test_keys_of_later_sentences_join_the_document(spec: str, tmp_path: Path) -> None:
    if spec not in SPECS:
        pytest.skip(f"{NEEDS[spec]} is not installed")
    document = [
        Sentence("d-0", ("a",), document="d", position=0, extra={"by": "me"}),
        Sentence("d-1", ("b",), document="d", position=1, extra={"by": "you", "at": 3}),
        Sentence("d-2", ("c",), document="d", position=2, extra={"by": "me"}),
    ]
    ledger = write(document, tmp_path / "out", spec)
    assert ledger.notes == {"sentence keys dropped: the document has a different value": 1}
    assert next(iter(read(tmp_path / "out", spec))).extra == {"by": "me", "at": 3}


def test_ledgers_can_be_added() -> None:
    total, other = Ledger(), Ledger()
    total.note("x")
    other.note("x", 2)
    other.lose("entities", "why")
    total.add(other)
    assert (total.notes, str(total)) == ({"x": 3}, "1 entity (why)")
