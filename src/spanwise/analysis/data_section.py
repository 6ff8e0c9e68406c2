"""Sections on the data and on the settings of the analysed run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from spanwise.analysis.section import Cell, Section, Table
from spanwise.core.types import Sentence
from spanwise.description import describe
from spanwise.description.counts import SplitCounts, quantiles, sort_by_count
from spanwise.description.findings import findings

COUNTS = (
    "sentences", "words", "documents", "entities", "nested", "crossing", "discontinuous", "same_span_two_types",
    "duplicate_entities", "relations", "links", "sentences_without_entities", "partially_annotated", "duplicate_sentences",
    "oov_density",
)  # fmt: skip
QUANTILES = ("median", "99%", "max")
MAX_FINDINGS = 5  # in the text


def data_section(splits: Mapping[str, Iterable[Sentence]]) -> Section:
    """Describe the data and list possible problems, as ``spanwise describe`` does."""
    description = describe(splits)
    counts = description.splits
    rows: list[tuple[Cell, ...]] = [(name, *(getattr(split, name) for split in counts.values())) for name in COUNTS]
    for attribute, label in (("widths", "entity width"), ("lengths", "sentence length")):
        rows += [(f"{label}, {name}", *(_quantile(split, attribute, name) for split in counts.values())) for name in QUANTILES]
    types = sort_by_count(sum((split.types for split in counts.values()), start=SplitCounts().types))
    problems = findings(description)
    text = "Counts of the data, as printed by “spanwise describe”."
    if problems:
        text += " Check these findings: " + "; ".join(finding.message for finding in problems[:MAX_FINDINGS]) + "."
    tables = {
        "splits": Table(("count", *counts), tuple(rows), "Counts of each split"),
        "types": Table(
            ("type", *counts),
            tuple((type, *(split.types[type] for split in counts.values())) for type in types),
            "Entities of each type",
        ),
        "findings": Table(
            ("finding", "example", "text"),
            tuple(
                (finding.message, example["id"], example["text"])
                for finding in problems
                for example in finding.examples[:1] or [{"id": "", "text": ""}]
            ),
            "Findings",
        ),
    }
    return Section("data", "Data", text, tables)


def settings_section(settings: Mapping[str, Any]) -> Section:
    """List the inputs and settings of the analysis."""
    rows = tuple((name, str(value) if value is not None else None) for name, value in settings.items())
    table = Table(("setting", "value"), rows, "Settings")
    return Section("settings", "Settings", "Inputs of this analysis, and the configuration of the model.", {"settings": table})


def _quantile(split: SplitCounts, attribute: str, name: str) -> int | None:
    values = quantiles(getattr(split, attribute))
    return values[name] if values else None
