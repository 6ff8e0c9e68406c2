"""Train and score the systems of tables of the five papers, and print the published rows next to ours.

python bench/papers/run.py sng:table2 --data DATA [--encoder minilm --small] [--seeds 1,2,3] --out FOLDER
python bench/papers/run.py all --jobs 8 --data DATA --encoder minilm --small --out FOLDER

DATA holds one folder per corpus. FOLDER gets the run folders and one small JSON file per cell (a system
on a corpus with a seed); cells with a file are not trained again, and interrupted ones are resumed. Cells
that the data or the encoder does not allow are skipped with a message. --jobs trains several cells in
parallel, each with its output in a file in FOLDER/logs; all systems get their first seed before the second,
so that an interrupted table is complete for fewer seeds. --only SUBSTRING trains the cells whose name
contains it, so that several machines can share a table; --report only prints. Without --small, the settings
are the published ones, which need the published encoder and hours of a GPU. The exit code is 1 if a cell
failed, or if none could be trained.

Models that share a GPU compute at the same time only with NVIDIA's multi-process service; otherwise they take
turns. Start it before this program: nvidia-cuda-mps-control -d
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import traceback
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import redirect_stderr, redirect_stdout
from functools import partial
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from cells import FOLDER, Cell, Table, run_cell, table_names

from spanwise.core.errors import SpanwiseError
from spanwise.files.writing import atomic_output
from spanwise.runtime.processes import process_context

Cells = Mapping[Path, tuple[Table, Cell]]  # by the file of the record
MODELS = "transformers.models"
PRELOADED = ["cells", "spanwise.encoders.concat", f"{MODELS}.auto.modeling_auto", f"{MODELS}.bert.modeling_bert"]


def main() -> None:
    arguments = make_parser().parse_args()
    if "list" in arguments.names:
        for name in table_names():
            print(f"{name:24} {Table.read(name).title}")
        return
    tables = [Table.read(name) for name in (table_names() if "all" in arguments.names else arguments.names)]
    results = [] if arguments.report else list(train_cells(find_cells(tables, arguments), arguments))
    has_records = False
    for table in tables:
        owners = {table.owner(system).name: table.owner(system) for system in table.systems}.values()
        paths = [path for owner in owners for path in sorted(arguments.out.glob(f"{prefix(owner, arguments.tag)}*.json"))]
        print(format_table(table, [json.loads(path.read_text(encoding="utf-8")) for path in paths]), end="\n\n")
        has_records |= bool(paths)
    if "failed" in results or (results and not has_records):
        sys.exit(1)


def make_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = [*table_names(), "all", "list"]
    parser.add_argument("names", nargs="+", choices=names, metavar="NAME", help=", ".join(names))
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
    parser.add_argument("--jobs", type=int, default=1, help="Cells to train at the same time.")
    parser.add_argument("--device", default="auto")
    return parser


def find_cells(tables: Sequence[Table], arguments: argparse.Namespace) -> Cells:
    """The cells to train. Several tables may show the same cell, which is trained once."""
    cells = {}
    for table in tables:
        for cell in table.cells(arguments.seeds):
            if arguments.only in cell.name and cell.corpus in (arguments.corpora or table.corpora):
                path = arguments.out / f"{prefix(table.owner(cell.system), arguments.tag)}{cell.name}.json"
                cells[path] = (table, cell)
    if not cells:
        raise SystemExit("no cell of these tables has the corpus and the name that --corpora and --only select")
    open_cells = [(path, cell) for path, cell in cells.items() if not path.is_file()]
    return dict(sorted(open_cells, key=lambda item: item[1][1].seed))


def train_cells(cells: Cells, arguments: argparse.Namespace) -> Iterator[str]:
    """Train cells and write their records; yield for each whether it is trained, skipped or failed."""
    if arguments.jobs == 1:
        for path, (table, cell) in cells.items():
            yield train_cell(path, table, cell, arguments)
        return
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    with ProcessPoolExecutor(arguments.jobs, mp_context=cell_context(), max_tasks_per_child=1) as pool:
        task = partial(train_in_background, arguments=arguments)
        futures = {pool.submit(task, path, *cell): path for path, cell in cells.items()}
        try:
            for future in as_completed(futures):
                result, last_line = future.result()
                print(f"{futures[future].stem}: {result}" + (f": {last_line}" if result != "trained" else ""), flush=True)
                yield result
        except BaseException:  # such as Ctrl-C: start no other cell
            pool.shutdown(cancel_futures=True)
            raise


def cell_context() -> Any:
    """The way processes of cells are started: forked from a server that has imported everything, which saves seconds."""
    # The server searches the paths of the environment, and not those of this process.
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (str(FOLDER), os.environ.get("PYTHONPATH"))))
    return process_context(PRELOADED)


def train_in_background(path: Path, table: Table, cell: Cell, arguments: argparse.Namespace) -> tuple[str, str]:
    """Train a cell with its output in a file; return the result and the last line of the file."""
    log = arguments.out / "logs" / f"{path.stem}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("w", encoding="utf-8", buffering=1) as file, redirect_stdout(file), redirect_stderr(file):
        result = train_cell(path, table, cell, arguments)
    return result, log.read_text(encoding="utf-8").rstrip().rsplit("\n", 1)[-1]


def train_cell(path: Path, table: Table, cell: Cell, arguments: argparse.Namespace) -> str:
    """Train a cell and write its record."""
    try:
        record = run_cell(
            table, cell, arguments.data, (arguments.runs or arguments.out / "runs") / arguments.tag,
            encoder=arguments.encoder, is_small=arguments.small, overrides=arguments.overrides, device=arguments.device,
        )  # fmt: skip
    except SpanwiseError as error:  # such as a depth that the encoder does not have
        print(f"{cell.name} is skipped: {error}")
        return "skipped"
    except Exception:  # such as a lack of memory: the other cells are still trained
        print(f"{cell.name} failed:")
        traceback.print_exc()
        return "failed"
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_output(path) as temporary:  # a part of a record would count as a trained cell
        temporary.write_text(json.dumps(record) + "\n", encoding="utf-8")
    return "trained"


def prefix(table: Table, tag: str) -> str:
    """The start of the names of a table's records."""
    return f"{table.name.replace(':', '-')}{f'@{tag}' if tag else ''}--"


def format_table(table: Table, records: Sequence[dict[str, Any]]) -> str:
    """Format the published and our numbers as Markdown: ours are means and deviations over seeds or folds.

    If the table has a base system, the numbers of the others are differences to it with the same seed. A published
    number is a mean or a pair of mean and deviation.
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
                cells.append(f"{_published(value)} / {ours}" if table.published else ours)
            widths = {record.get("epsilon") for record in group}
            width = ", ".join("any" if w is None else str(w) for w in widths) or "–"
            lines.append(f"| {corpus} | {system} | {' | '.join(cells)} | {width} | {len(group)} |")
    encoders = sorted({record["encoder"] for record in records if record.get("encoder")})
    note = " ".join(
        [*([f"Encoder of our runs: {', '.join(encoders)}."] if encoders else []), *([table.note] if table.note else [])]
    )
    return "\n".join([*lines, "", note]).rstrip()


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


def _published(value: float | Sequence[float] | None) -> str:
    numbers = [value] if isinstance(value, float | int) else value or ()
    return " ± ".join(f"{number:.2f}" for number in numbers) or "–"


def _ours(values: Sequence[float | None], scale: float, sign: str) -> str:
    numbers = [scale * value for value in values if value is not None]
    if not numbers:
        return "–"
    return f"{fmean(numbers):{sign}.2f}" + (f" ± {stdev(numbers):.2f}" if len(numbers) > 1 else "")


if __name__ == "__main__":
    main()
