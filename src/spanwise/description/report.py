"""A description as tables and sentences for people; nothing in it depends on colour."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from spanwise.description.counts import SplitCounts, by_count, quantiles
from spanwise.description.describe import Description
from spanwise.description.findings import findings
from spanwise.description.overlap import Example, shown

TYPES = 30  # rows of a table of types; the rest is summed
EXAMPLES = 3
_LABEL, _COLUMN = 29, 14  # characters of the first column and of one split
_EXAMPLE_WIDTH = 40
_ALWAYS = ("sentences", "words", "entities", "  nested", "  crossing", "  discontinuous")

Rows = Iterator[tuple[str, ...]]


def print_description(description: Description, console: Console) -> None:
    """Print a table of the splits, the types by split, and what was found, the most important first."""
    splits = list(description.splits.items())
    if not splits:
        console.print(Text("nothing to describe"))
    at_once = max(1, (console.width - _LABEL) // _COLUMN)  # splits side by side; the others follow below
    for at in range(0, len(splits), at_once):
        group = dict(splits[at : at + at_once])
        _print_table(console, "", group, _figures(list(group.values())))
        _print_types(console, "entity types", {name: split.types for name, split in group.items()})
        _print_types(console, "relation types", {name: split.relation_types for name, split in group.items()})
    _print_findings(description, console)


def _figures(splits: list[SplitCounts]) -> Rows:
    plain = {
        "sentences": [split.sentences for split in splits],
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
        "sentences without entities": [split.sentences_without_entities for split in splits],
        "duplicate sentences": [split.duplicate_sentences for split in splits],
    }
    for label, counts in plain.items():
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
    found = quantiles(counter)
    return f"{found[key]:,}" if found else ""


def _print_types(console: Console, title: str, splits: dict[str, Counter[str]]) -> None:
    if any(splits.values()):
        _print_table(console, title, splits, _type_rows(list(splits.values())))


def _type_rows(splits: list[Counter[str]]) -> Rows:
    """The commonest types; the others in one row."""
    names = list(by_count(sum(splits, Counter())))
    # One type too many is shown rather than called "1 more".
    most = TYPES if len(names) > TYPES + 1 else len(names)
    for name in names[:most]:
        yield (shown(name), *(f"{counts[name]:,}" for counts in splits))
    if names[most:]:
        yield (f"{len(names) - most} more", *(f"{sum(counts[name] for name in names[most:]):,}" for counts in splits))


def _print_table(console: Console, title: str, splits: Mapping[str, object], rows: Rows) -> None:
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="bold")
    # Names may be cut, figures must not.
    room = max(_LABEL, console.width - _COLUMN * len(splits))
    table.add_column(Text(title), overflow="ellipsis", no_wrap=True, max_width=room)
    for name in splits:
        header = Text(shown(name))
        header.truncate(_COLUMN - 3, overflow="ellipsis")
        table.add_column(header, justify="right", no_wrap=True)
    for row in rows:
        table.add_row(*map(Text, row))
    console.print(table)
    console.print()


def _print_findings(description: Description, console: Console) -> None:
    found = findings(description)
    if not found:
        return
    console.print(Text("Worth a look", style="bold"))
    for finding in found:
        _print_indented(console, "- ", finding.message)
        if finding.examples:
            _print_indented(console, "  ", "e.g. " + ", ".join(map(_example, finding.examples[:EXAMPLES])))


def _print_indented(console: Console, mark: str, message: str) -> None:
    """The message wrapped, with its later lines as far in as the first."""
    for number, line in enumerate(Text(shown(message)).wrap(console, max(20, console.width - len(mark)))):
        line.rstrip()
        console.print(Text(mark if number == 0 else "  ").append(line), no_wrap=True, overflow="ignore", crop=False)


def _example(example: Example) -> str:
    text = Text(shown(example["text"]))
    text.truncate(_EXAMPLE_WIDTH, overflow="ellipsis")
    return f"{example['id']} “{text}”" if example["text"] else example["id"]
