"""What is no annotation (ids, tags of words, scores, unknown keys): kept where the format says so, noted where it does not."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from spanwise import Entity, Relation, Sentence, convert, read, write
from spanwise.formats import Ledger, formats
from spanwise.formats.base import EVERYTHING
from spanwise.formats.registry import find, writer_for
from spanwise.formats.shared.keeping import _NAMES

SPECS = (
    *(name for name, format in formats().items() if format.write),
    "conll:pos=yes,ids=yes",
    "doccano:form=labels",
    "label_studio:kind=predictions",
)
READING = {"conll:pos=yes,ids=yes": "conll:pos=1"}
EVERY_SPEC = pytest.mark.parametrize("spec", SPECS)


def sentences(is_document: bool) -> list[Sentence]:
    """Two sentences that every format can hold, with everything that data may have besides."""
    pairs = (("rash", "from", "zinc"), ("pain", "from", "iron"))
    place: list[dict[str, Any]] = [{"document": "d", "position": n} if is_document else {} for n in (0, 1)]
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
            **place[number],
        )
        for number, words in enumerate(pairs)
    ]


def besides(found: Iterable[Sentence]) -> dict[str, Counter[str]]:
    """All there is of each kind."""
    counts: dict[str, Counter[str]] = {what: Counter() for what in EVERYTHING}
    for s in found:
        counts["ids"][s.id] += 1
        counts["documents"][str(s.document)] += 1
        counts["pos"][str(s.pos)] += s.pos is not None
        counts["keys"].update(json.dumps(item) for item in (s.extra or {}).items())
        for kind, things in (("", s.entities), ("relation ", s.relations)):
            counts[f"{kind}scores"].update(str(thing.score) for thing in things if thing.score is not None)
            counts[f"{kind or 'entity '}keys"].update(json.dumps(i) for thing in things for i in (thing.extra or {}).items())
    return counts


def kept_by(spec: str) -> frozenset[str]:
    format, options = writer_for(Path("x"), spec)
    return format.kept(options)


def needs(spec: str) -> None:
    if needed := {"docbin": "spacy", "hf_dataset": "pyarrow"}.get(spec):
        pytest.importorskip(needed)


@EVERY_SPEC
@pytest.mark.parametrize("is_document", [True, False], ids=["documents", "sentences"])
def test_what_is_kept_comes_back_and_the_rest_is_noted(spec: str, is_document: bool, tmp_path: Path) -> None:
    needs(spec)
    format, _ = find(spec)
    path = tmp_path / ("out" + (*format.extensions, "")[0])
    ledger = write(sentences(is_document), path, spec, lossy=True)
    before, after = besides(sentences(is_document)), besides(read(path, READING.get(spec, format.name)))
    kept = kept_by(spec)
    for what in EVERYTHING:
        noted = ledger.notes[f"{_NAMES[what]} left out: {format.name} has no place for them"]
        if what == "documents" and not is_document:
            assert noted == 0
        elif what == "documents" and what in kept:
            assert set(after[what]) == {"d"}
        elif what == "ids" and "documents" in kept:
            assert noted == (2 if is_document and what not in kept else 0)
        elif what in kept:
            without_losses = what not in ("relation scores", "relation keys") or "relations" in format.holds
            assert noted == 0
            assert after[what] == before[what] if without_losses else not after[what]
        else:
            assert noted == before[what].total()


@EVERY_SPEC
def test_data_without_any_of_it_is_written_without_a_note(spec: str, tmp_path: Path) -> None:
    needs(spec)
    plain = [Sentence(f"x-{n}", ("rash", "from", "zinc"), (Entity("Drug", ((2, 3),)),)) for n in range(2)]
    ledger = write(plain, tmp_path / "out", spec, lossy=True)
    assert not any("left out" in note for note in ledger.notes)


def test_words_of_keeps_are_known() -> None:
    assert _NAMES.keys() == EVERYTHING
    for spec in SPECS:
        assert kept_by(spec) <= EVERYTHING
    assert kept_by("jsonl") == EVERYTHING


def test_what_is_no_annotation_is_no_reason_to_refuse(tmp_path: Path) -> None:
    record = {"tokens": ["Oslo"], "entities": [{"type": "Place", "spans": [[0, 1]], "score": 0.9, "wiki": "Q585"}], "by": "me"}
    (tmp_path / "rich.jsonl").write_text(json.dumps(record))
    result = convert(tmp_path / "rich.jsonl", tmp_path / "out", target_format="brat")
    assert result.ledger.lost == 0
    assert result.ledger.notes == {
        "scores of entities left out: brat has no place for them": 1,
        "keys of sentences left out: brat has no place for them": 1,
        "keys of entities left out: brat has no place for them": 1,
    }


def test_brats_own_notes_are_kept_by_brat_and_noted_elsewhere(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("Oslo waits.")
    (tmp_path / "a.ann").write_text("T1\tPlace 0 4\tOslo\n#1\tAnnotatorNotes T1\tsure\n")
    assert not convert(tmp_path, tmp_path.with_name("again"), target_format="brat").ledger.notes
    notes = convert(tmp_path, tmp_path.with_name("a.conll")).ledger.notes
    assert notes["keys of entities left out: conll has no place for them"] == 1


@pytest.mark.parametrize("spec", ["doccano", "label_studio", "prodigy", "docbin", "dygie"])
def test_keys_of_later_sentences_go_to_the_document(spec: str, tmp_path: Path) -> None:
    needs(spec)
    given = [
        Sentence("d-0", ("a",), document="d", position=0, extra={"by": "me"}),
        Sentence("d-1", ("b",), document="d", position=1, extra={"by": "you", "at": 3}),
        Sentence("d-2", ("c",), document="d", position=2, extra={"by": "me"}),
    ]
    ledger = write(given, tmp_path / "out", spec)
    assert ledger.notes == {"keys of sentences left out: the document has another value for them": 1}
    assert next(iter(read(tmp_path / "out", spec))).extra == {"by": "me", "at": 3}


def test_a_ledger_can_be_added_to_another() -> None:
    one, other = Ledger(), Ledger()
    one.note("x")
    other.note("x", 2)
    other.lose("entities", "why")
    one.add(other)
    assert (one.notes, str(one)) == ({"x": 3}, "1 entity (why)")
