"""Train and score the systems of a table of the five papers, and print the published row next to ours.

python bench/papers/run.py sng:table2 --data DATA [--encoder minilm --small] [--seeds 1,2,3] --out FOLDER

DATA holds one folder per corpus. FOLDER gets the run folders and one small JSON file per cell (a system
on a corpus with a seed); cells with a file are not trained again. Cells that the data or the encoder does
not allow are skipped with a message. --only SUBSTRING trains the cells whose name contains it, so that
several machines can share a table; --report only prints. Without --small, the settings are the published
ones, which need the published encoder and hours of a GPU.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from cells import Table, run_cell, table_names

from spanwise.core.errors import SpanwiseError


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", choices=[*table_names(), "list"], metavar="NAME", help=", ".join(table_names()))
    parser.add_argument("--data", type=Path, default=Path("data"))
    parser.add_argument("--out", type=Path, default=Path("papers"))
    parser.add_argument("--runs", type=Path, help="Run folders; inside --out by default.")
    parser.add_argument("--encoder")
    parser.add_argument("--small", action="store_true", help="Rates, epochs and batches for a small encoder.")
    parser.add_argument("--seeds", type=lambda text: [int(seed) for seed in text.split(",")], default=[])
    parser.add_argument("--set", dest="overrides", action="append", default=[])
    parser.add_argument("--corpora", nargs="+", help="Only these corpora.")
    parser.add_argument("--only", default="", help="Only cells whose name contains this text.")
    parser.add_argument("--tag", default="", help="Name of a variant of the settings, stored and reported separately.")
    parser.add_argument("--report", action="store_true")
    parser.add_argument("--device", default="auto")
    arguments = parser.parse_args()
    if arguments.name == "list":
        for name in table_names():
            print(f"{name:24} {Table.read(name).title}")
        return
    table = Table.read(arguments.name)
    corpora = arguments.corpora or table.corpora
    cells = [cell for cell in table.cells(arguments.seeds) if arguments.only in cell.name and cell.corpus in corpora]
    for cell in cells:
        path = arguments.out / f"{prefix(table.owner(cell.system), arguments.tag)}{cell.name}.json"
        if path.is_file() or arguments.report:
            continue
        try:
            record = run_cell(
                table, cell, arguments.data, (arguments.runs or arguments.out / "runs") / arguments.tag,
                encoder=arguments.encoder, is_small=arguments.small, overrides=arguments.overrides, device=arguments.device,
            )  # fmt: skip
        except SpanwiseError as error:  # such as a depth that the encoder does not have
            print(f"{cell.name} is skipped: {error}")
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({**record, "encoder": arguments.encoder}) + "\n", encoding="utf-8")
    owners = {table.owner(system).name: table.owner(system) for system in table.systems}.values()
    paths = [path for owner in owners for path in sorted(arguments.out.glob(f"{prefix(owner, arguments.tag)}*.json"))]
    print(format_table(table, [json.loads(path.read_text(encoding="utf-8")) for path in paths]))


def prefix(table: Table, tag: str) -> str:
    """The start of the names of a table's records."""
    return f"{table.name.replace(':', '-')}{f'@{tag}' if tag else ''}--"


def format_table(table: Table, records: Sequence[dict[str, Any]]) -> str:
    """Format the published and our numbers as Markdown: ours are means and deviations over seeds or folds.

    If the table has a base system, the numbers of the others are differences to it with the same seed.
    """
    lines = [f"**{table.title}** ({table.name})" + (": published / ours" if table.published else ""), ""]
    lines.append(f"| corpus | system | {' | '.join(table.columns)} | ε | runs |")
    lines.append("|---|---|" + "---:|" * (len(table.columns) + 2))
    for corpus in table.corpora:
        for system in table.systems:
            group = [record for record in records if (record["corpus"], record["system"]) == (corpus, system)]
            published = table.published.get(corpus, {}).get(system, [None] * len(table.columns))
            if not group and not any(value is not None for value in published):
                continue
            base = {
                record["seed"]: record for record in records if (record["corpus"], record["system"]) == (corpus, table.base)
            }
            is_compared = bool(table.base) and system != table.base
            cells = []
            for value, path in zip(published, table.columns.values(), strict=True):
                numbers = [find(record, path) for record in group]
                if is_compared:
                    numbers = [difference(record, base.get(record["seed"]), path) for record in group]
                ours = _ours(numbers, table.scale, "+" if is_compared else "")
                cells.append(f"{'–' if value is None else f'{value:.2f}'} / {ours}" if table.published else ours)
            widths = {record.get("epsilon") for record in group}
            width = ", ".join("any" if w is None else str(w) for w in widths) or "–"
            lines.append(f"| {corpus} | {system} | {' | '.join(cells)} | {width} | {len(group)} |")
    return "\n".join([*lines, "", table.note]).rstrip()


def find(record: dict[str, Any], path: str) -> float | None:
    """Return the number at a path such as ``scores.micro.f1``; None if the record has none."""
    value: Any = record
    for name in path.split("."):
        value = value.get(name) if isinstance(value, dict) else None
    return None if value is None else float(value)


def difference(record: dict[str, Any], base: dict[str, Any] | None, path: str) -> float | None:
    """Return the number at a path minus that of another record; None if one of them has none."""
    value, other = find(record, path), None if base is None else find(base, path)
    return None if value is None or other is None else value - other


def _ours(values: Sequence[float | None], scale: float, sign: str) -> str:
    numbers = [scale * value for value in values if value is not None]
    if not numbers:
        return "–"
    return f"{fmean(numbers):{sign}.2f}" + (f" ± {stdev(numbers):.2f}" if len(numbers) > 1 else "")


if __name__ == "__main__":
    main()
