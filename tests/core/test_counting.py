"""Counts in messages: one thing is in the singular."""

from __future__ import annotations

import pytest

from spanwise.core.counting import counted, counted_phrase
from spanwise.formats import Ledger


@pytest.mark.parametrize(
    ("noun", "plural"),
    [("sentence", "sentences"), ("entity", "entities"), ("key", "keys"), ("epoch", "epochs"), ("gold entity", "gold entities")],
)
def test_nouns(noun: str, plural: str) -> None:
    assert [counted(count, noun) for count in (0, 1, 2, 1_000)] == [
        f"0 {plural}", f"1 {noun}", f"2 {plural}", f"1,000 {plural}",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("plural", "singular"),
    [
        ("duplicate entities, merged", "duplicate entity, merged"),
        ("sentence ids dropped: not stored by conll", "sentence id dropped: not stored by conll"),
        ("files other than .txt and .ann, not read (x.json)", "file other than .txt and .ann, not read (x.json)"),
        ("files that are named after no split", "file that is named after no split"),
        ("mentions that differ from their sentence in case", "mention that differs from its sentence in case"),
        ("entities whose text differs at their offsets", "entity whose text differs at its offsets"),
        ("words split into characters", "word split into characters"),
        ("metadata of tasks dropped: documents are written", "metadata of tasks dropped: documents are written"),
    ],
)
def test_phrases(plural: str, singular: str) -> None:
    assert counted_phrase(1, plural) == f"1 {singular}"
    assert counted_phrase(1_200, plural) == f"1,200 {plural}"


def test_notes_and_losses_of_a_ledger() -> None:
    ledger = Ledger()
    ledger.note("documents without words, skipped")
    ledger.note("words split at an entity boundary", 2)
    ledger.lose("entities", "nested")
    ledger.lose("relations", "across sentences", 3)
    assert ledger.note_lines == ["1 document without words, skipped", "2 words split at an entity boundary"]
    assert str(ledger) == "1 entity (nested), 3 relations (across sentences)"
