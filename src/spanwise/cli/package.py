"""``spanwise package``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from spanwise.cli.options import ThreadsOption, check_target


def package(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="Run folder, or exported folder.")],
    name: Annotated[str, typer.Option("--name", metavar="NAME", help="Name of package and model, such as en-biomed.")],
    version: Annotated[str, typer.Option("--version", metavar="VERSION", help="Version of the package, such as 0.1.0.")],
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Folder of the wheel; created if needed.")] = Path("dist"),
    format: Annotated[
        str | None,
        typer.Option("--format", metavar="int8|onnx|torch", help="Export to pack; int8 for transformers by default."),
    ] = None,
    data: Annotated[
        Path | None, typer.Option("--data", metavar="DATA", help="Data to compare predictions and F1 on, as in export.")
    ] = None,
    dev: Annotated[
        Path | None,
        typer.Option("--dev", metavar="FILE", help="Data to choose the quantisation on; the dev split of DATA by default."),
    ] = None,
    max_loss: Annotated[
        float | None, typer.Option("--max-loss", metavar="F1", help="F1 that int8 may lose on dev; 0.3 by default.")
    ] = None,
    corpus: Annotated[
        str | None, typer.Option("--corpus", metavar="TEXT", help="Name of the training data, for the model card.")
    ] = None,
    licence: Annotated[
        str | None, typer.Option("--licence", metavar="SPDX", help="Licence of the model, such as CC-BY-4.0.")
    ] = None,
    threads: ThreadsOption = None,
) -> None:
    """Build a wheel of a trained model, without a network.

    After `pip install`, `spanwise predict NAME` and `spanwise.load("NAME")` use the model, without
    torch unless it is packed in torch format. The wheel contains the exported model and its card.
    """
    from spanwise.cli.export import summarize
    from spanwise.integrations.package import check_licence, check_name, check_version
    from spanwise.integrations.package import package as run

    check_target(out, Path(model), data, dev)
    check_name(name), check_version(version), check_licence(licence)
    packed = run(
        model, out, name=name, version=version, format=format, data=data, dev=dev, max_loss=max_loss, corpus=corpus,
        licence=licence, log=typer.echo,
    )  # fmt: skip
    if packed.export is not None:
        for line in summarize("packed", packed.export):
            typer.echo(line)
    typer.echo(f"wrote {packed.path}, {packed.size / 1e6:.1f} MB")
    typer.echo(f"To use it, run\n    pip install {packed.path}\n    spanwise predict {packed.name} FILE.txt")
