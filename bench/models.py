"""Build the collection of models that ``bench/models.yaml`` lists: train each, and pack it as a wheel.

    python bench/models.py DATA [NAME...] [--runs DIR] [--out DIR] [--epochs N] [--device cpu|cuda|auto]

DATA is a folder with one folder per corpus. A finished run in ``--runs`` is not trained again, and an
interrupted one is resumed, so the command can be repeated. The quantisation of a transformer is chosen
on dev. A line per model gives the F1 on test before and after the export, and the size of the wheel.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

import spanwise
from spanwise.core.errors import unknown_name
from spanwise.integrations.package import Package, package
from spanwise.runs.folder import RunFolder

COLLECTION = Path(__file__).with_name("models.yaml")


@dataclass(frozen=True)
class Entry:
    """One model of the collection. ``data`` names the training data in the card."""

    name: str
    version: str
    recipe: str
    corpus: str
    data: str
    licence: str
    encoder: str
    epochs: int | None = None


def read_collection(path: Path = COLLECTION) -> dict[str, Entry]:
    """Read the entries; settings outside of ``models`` are those of all models."""
    content = yaml.safe_load(path.read_text(encoding="utf-8"))
    models = content.pop("models")
    return {name: Entry(name=name, **{**content, **settings}) for name, settings in models.items()}


def build(entry: Entry, data: Path, runs: Path, out: Path, **training: Any) -> Package:
    """Train a model unless its run is finished, and write its wheel."""
    corpus, run = data / entry.corpus, RunFolder(runs / entry.name)
    if not run.is_finished:
        settings = {"epochs": entry.epochs} if entry.epochs else {}
        run.path.parent.mkdir(parents=True, exist_ok=True)
        spanwise.train(
            corpus, run.path, recipe=entry.recipe, encoder=entry.encoder, resume=run.is_unfinished, log=_log,
            **{**settings, **training},
        )  # fmt: skip
    return package(
        run.path, out, name=entry.name, version=entry.version, data=corpus, corpus=entry.data, licence=entry.licence, log=_log
    )


def summary(name: str, packed: Package) -> str:
    export = packed.export
    assert export is not None
    assert export.f1 is not None
    before, after = (100 * f1 for f1 in export.f1)
    return f"{name:<14}{before:8.2f}{after:8.2f}  {export.precision:<8}{packed.size / 1e6:8.1f}  {packed.path}"


def _log(line: str) -> None:
    sys.stderr.write(f"{line}\n")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, metavar="DATA")
    parser.add_argument("names", nargs="*", metavar="NAME", help="models to build; all by default")
    parser.add_argument("--runs", type=Path, default=Path("runs/models"), metavar="DIR")
    parser.add_argument("--out", type=Path, default=Path("dist"), metavar="DIR")
    parser.add_argument("--epochs", type=int, metavar="N", help="instead of the epochs of the collection")
    parser.add_argument("--device", default="auto")
    options = parser.parse_args(arguments)
    collection = read_collection()
    try:
        for name in options.names:
            if name not in collection:
                raise unknown_name("model", name, collection)
        training = {"device": options.device, **({"epochs": options.epochs} if options.epochs else {})}
        print(f"{'model':<14}{'F1':>8}{'packed':>8}  {'weights':<8}{'MB':>8}  wheel")
        for name in options.names or collection:
            print(summary(name, build(collection[name], options.data, options.runs, options.out, **training)), flush=True)
    except spanwise.SpanwiseError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
