"""The data that a system was judged on, and the settings of the run that is analysed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from spanwise.analysis.part import Cell, Part, Table
from spanwise.core.types import Sentence
from spanwise.description import describe
from spanwise.description.counts import SplitCounts, by_count, quantiles
from spanwise.description.findings import findings

COUNTS = (
    "sentences", "words", "documents", "entities", "nested", "crossing", "discontinuous", "same_span_two_types",
    "duplicate_entities", "relations", "links", "sentences_without_entities", "duplicate_sentences", "oov_density",
)  # fmt: skip
MOST_FINDINGS = 5


def data_part(splits: Mapping[str, Iterable[Sentence]]) -> Part:
    """What is in the data and what looks wrong with it, as ``spanwise describe`` says it."""
    description = describe(splits)
    counts = description.splits
    rows: list[tuple[Cell, ...]] = [(name, *(getattr(split, name) for split in counts.values())) for name in COUNTS]
    for name in ("widths", "lengths"):
        what = "entity width" if name == "widths" else "sentence length"
        rows += [(f"{what}, {share}", *(_quantile(split, name, share) for split in counts.values())) for share in _SHARES]
    types = by_count(sum((split.types for split in counts.values()), start=SplitCounts().types))
    found = findings(description)
    text = "What `spanwise describe` says of the data."
    if found:
        text += " Worth a look: " + "; ".join(finding.message for finding in found[:MOST_FINDINGS]) + "."
    tables = {
        "splits": Table(("", *counts), tuple(rows)),
        "types": Table(("type", *counts), tuple((type, *(split.types[type] for split in counts.values())) for type in types)),
        "findings": Table(
            ("finding", "example", "text"),
            tuple(
                (finding.message, example["id"], example["text"])
                for finding in found
                for example in finding.examples[:1] or [{"id": "", "text": ""}]
            ),
        ),
    }
    return Part("data", "The data", text, tables)


def settings_part(settings: Mapping[str, Any]) -> Part:
    """Where the predictions came from."""
    rows = tuple((name, str(value) if value is not None else None) for name, value in settings.items())
    return Part("settings", "Settings of this run", "", {"settings": Table(("setting", "value"), rows)})


_SHARES = ("median", "99%", "max")


def _quantile(split: SplitCounts, name: str, share: str) -> int | None:
    found = quantiles(getattr(split, name))
    return found[share] if found else None
