"""``spanwise describe``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from spanwise.cli.options import EncodingOption, FromOption, JsonOption, check_target_file, print_ledger, show, with_encoding


def describe(
    data: Annotated[
        Path | None,
        typer.Argument(metavar="DATA|MODEL", help="File, folder with train/dev/test files, or model.", show_default=False),
    ] = None,
    source_format: FromOption = None,
    encoding: EncodingOption = None,
    json_file: JsonOption = None,
) -> None:
    """Describe annotated data or a trained model.

    For data, also lists likely annotation errors. Without DATA or MODEL, lists the models that are
    installed as packages.
    """
    source_format = with_encoding(source_format, encoding)
    check_target_file(json_file, data)
    if data is None:
        _list_models(json_file)
        return
    if not data.exists():
        from spanwise.runs.installed import installed_folder

        data = installed_folder(str(data)) or data
    if source_format is None and _is_model(data):
        _describe_model(data, json_file)
    else:
        _describe_data(data, source_format, json_file)


def _is_model(folder: Path) -> bool:
    """Whether a folder is a run folder, or only contains run folders (an error lists them)."""
    from spanwise.corpora.splits import find_split_files
    from spanwise.formats import can_detect
    from spanwise.runs.folder import RunFolder

    return RunFolder(folder).has_model or (
        bool(RunFolder(folder).runs()) and not find_split_files(folder) and not can_detect(folder)
    )


def _describe_data(data: Path, source_format: str | None, json_file: Path | None) -> None:
    from rich.console import Console

    from spanwise.corpora.splits import open_splits
    from spanwise.description import describe as run
    from spanwise.description import print_description
    from spanwise.formats import Ledger

    ledger = Ledger()
    description = run(open_splits(data, source_format, ledger))
    show(json_file, description.to_json, lambda: print_description(description, Console()))
    print_ledger(ledger)


def _describe_model(folder: Path, json_file: Path | None) -> None:
    from spanwise.prediction.describe import describe_folder

    description = describe_folder(folder)
    show(json_file, description.to_json, lambda: typer.echo("\n".join(description.lines())))


def _list_models(json_file: Path | None) -> None:
    from spanwise.runs.installed import installed_models

    def print_models() -> None:
        for model in models:
            typer.echo(f"{model.name} {model.version}\n    {', '.join(model.types)}\n    {model.folder}")
        if not models:
            typer.echo("no models are installed; spanwise package builds one, pip install installs it")

    models = installed_models()
    show(json_file, lambda: [model.to_json() for model in models], print_models)
