"""Printed report of a description, as tables and sentences that do not rely on colour."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from spanwise.description.counts import SplitCounts, quantiles, sort_by_count
from spanwise.description.describe import Description
from spanwise.description.duplicates import Example, printable_line
from spanwise.description.findings import findings

TYPES = 30  # rows of a table of types; other types are summed
MAX_EXAMPLES = 3
_LABEL, _COLUMN = 29, 14  # characters of the first column and of one split
_EXAMPLE_WIDTH = 40
_ALWAYS = ("sentences", "words", "entities", "  nested", "  crossing", "  discontinuous")

Rows = Iterator[tuple[str, ...]]


def print_description(description: Description, console: Console) -> None:
    """Print statistics per split, types per split, and findings, most important first."""
    splits = list(description.splits.items())
    if not splits:
        console.print(Text("no splits to describe"))
    columns = max(1, (console.width - _LABEL) // _COLUMN)  # splits side by side; other splits follow below
    for start in range(0, len(splits), columns):
        group = dict(splits[start : start + columns])
        _print_table(console, "", group, _statistics(list(group.values())))
        _print_types(console, "entity types", {name: split.types for name, split in group.items()})
        _print_types(console, "relation types", {name: split.relation_types for name, split in group.items()})
    _print_findings(description, console)


def _statistics(splits: list[SplitCounts]) -> Rows:
    rows = {
        "sentences": [split.sentences for split in splits],
        "  annotated partially": [split.partially_annotated for split in splits],
        "words": [split.words for split in splits],
        "documents": [split.documents for split in splits],
        "entities": [split.entities for split in splits],
        "  nested": [split.nested for split in splits],
        "  crossing": [split.crossing for split in splits],
        "  discontinuous": [split.discontinuous for split in splits],
        "  spans with several types": [split.same_span_two_types for split in splits],
        "  duplicate entities": [split.duplicate_entities for split in splits],
        "relations": [split.relations for split in splits],
        "relations across sentences": [split.links for split in splits],
        "relations of concepts": [split.concept_relations for split in splits],
        "sentences without entities": [split.sentences_without_entities for split in splits],
        "duplicate sentences": [split.duplicate_sentences for split in splits],
    }
    for label, counts in rows.items():
        if label in _ALWAYS or any(counts):
            yield (label, *(f"{count:,}" for count in counts))
    for label, key, values in (
        ("entity width, median", "median", [split.widths for split in splits]),
        ("  99% of them up to", "99%", [split.widths for split in splits]),
        ("  widest", "max", [split.widths for split in splits]),
        ("sentence length, median", "median", [split.lengths for split in splits]),
        ("  99% of them up to", "99%", [split.lengths for split in splits]),
        ("  longest", "max", [split.lengths for split in splits]),
    ):
        if any(values):
            yield (label, *(_quantile(counter, key) for counter in values))
    if any(split.oov_density is not None for split in splits):
        yield ("words not in train", *("" if s.oov_density is None else f"{s.oov_density:.1%}" for s in splits))


def _quantile(counter: Mapping[int, int], key: str) -> str:
    values = quantiles(counter)
    return f"{values[key]:,}" if values else ""


def _print_types(console: Console, title: str, splits: dict[str, Counter[str]]) -> None:
    if any(splits.values()):
        _print_table(console, title, splits, _type_rows(list(splits.values())))


def _type_rows(splits: list[Counter[str]]) -> Rows:
    """Yield the most frequent types, and one row for the others."""
    names = list(sort_by_count(sum(splits, Counter())))
    # A single remaining type gets its row instead of a row "1 more".
    limit = TYPES if len(names) > TYPES + 1 else len(names)
    for name in names[:limit]:
        yield (printable_line(name), *(f"{counts[name]:,}" for counts in splits))
    if names[limit:]:
        yield (f"{len(names) - limit} more", *(f"{sum(counts[name] for name in names[limit:]):,}" for counts in splits))


def _print_table(console: Console, title: str, splits: Mapping[str, object], rows: Rows) -> None:
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="bold")
    # Names may be truncated, numbers must not.
    max_width = max(_LABEL, console.width - _COLUMN * len(splits))
    table.add_column(Text(title), overflow="ellipsis", no_wrap=True, max_width=max_width)
    for name in splits:
        header = Text(printable_line(name))
        header.truncate(_COLUMN - 3, overflow="ellipsis")
        table.add_column(header, justify="right", no_wrap=True)
    for row in rows:
        table.add_row(*map(Text, row))
    console.print(table)
    console.print()


def _print_findings(description: Description, console: Console) -> None:
    to_print = findings(description)
    if not to_print:
        return
    console.print(Text("Findings", style="bold"))
    for finding in to_print:
        _print_indented(console, "- ", finding.message)
        if finding.examples:
            _print_indented(console, "  ", "e.g. " + ", ".join(map(_format_example, finding.examples[:MAX_EXAMPLES])))


def _print_indented(console: Console, mark: str, message: str) -> None:
    """Print a wrapped message with a hanging indent."""
    for index, line in enumerate(Text(printable_line(message)).wrap(console, max(20, console.width - len(mark)))):
        line.rstrip()
        console.print(Text(mark if index == 0 else "  ").append(line), no_wrap=True, overflow="ignore", crop=False)


def _format_example(example: Example) -> str:
    text = Text(printable_line(example["text"]))
    text.truncate(_EXAMPLE_WIDTH, overflow="ellipsis")
    return f"{example['id']} “{text}”" if example["text"] else example["id"]
