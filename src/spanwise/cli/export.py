"""``spanwise export``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from spanwise.cli.options import ThreadsOption, check_target
from spanwise.core.counting import counted

if TYPE_CHECKING:
    from spanwise.export.onnx import OnnxExport


def export(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="Run folder.")],
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Folder to write, new or empty.")],
    onnx: Annotated[bool, typer.Option("--onnx", help="Export ONNX graphs, which need no torch.")] = False,
    int8: Annotated[bool, typer.Option("--int8", help="Quantise the encoder to 8 bits; needs --onnx.")] = False,
    data: Annotated[
        Path | None,
        typer.Option("--data", metavar="DATA", help="Data to compare predictions and F1 on; needs --onnx."),
    ] = None,
    dev: Annotated[
        Path | None,
        typer.Option("--dev", metavar="FILE", help="Data to choose the quantisation on; the dev split of DATA by default."),
    ] = None,
    max_loss: Annotated[
        float | None, typer.Option("--max-loss", metavar="F1", help="F1 that --int8 may lose on dev; 0.3 by default.")
    ] = None,
    threads: ThreadsOption = None,
) -> None:
    """Export a trained model for prediction, in torch or ONNX.

    The exported model has no checkpoints and no unused branches. With --onnx, it runs in onnxruntime
    without torch. The export compares the predictions of both on the test split of DATA, or on the
    bundled corpus.

    With --int8, quantisations are scored on dev, the fastest first, until one loses at most
    --max-loss. If none does, the model stays in float32.
    """
    from spanwise.core.errors import SpanwiseError

    check_target(out, model, data, dev)
    for name, is_given in {"--dev": dev is not None, "--max-loss": max_loss is not None}.items():
        if is_given and not int8:
            raise SpanwiseError(f"{name} needs --int8")
    if onnx:
        from spanwise.export.onnx import MAX_LOSS, export_onnx

        loss = MAX_LOSS if max_loss is None else max_loss
        exported = export_onnx(model, out, int8=int8, data=data, dev=dev, max_loss=loss, log=typer.echo)
        for line in summarize(f"wrote {out}", exported):
            typer.echo(line)
        return
    if int8 or data is not None:
        raise SpanwiseError(f"{'--int8' if int8 else '--data'} needs --onnx")
    from spanwise.export.torch_folder import export as run
    from spanwise.models.model import count_parameters

    written = run(model, out)
    typer.echo(f"wrote {out}: {written.config.head['kind']}, {count_parameters(written):,} parameters")


def summarize(action: str, export: OnnxExport) -> list[str]:
    """Lines about an export: what was done, precision and size, and the comparison with the model."""
    quantization = export.quantization
    precision = export.precision if quantization is None or export.precision == "float32" else f"int8, {quantization.chosen}"
    lines = [f"{action}: {export.kind} in ONNX, {precision}, {export.size / 1e6:.1f} MB"]
    if quantization is not None and quantization.max_loss is None:
        lines.append(
            "note: no dev data, so all products are computed in blocks and the loss is unknown; pass --dev FILE, or --data "
            "with a dev split, to choose the fastest one that is exact enough"
        )
    elif quantization is not None and export.precision == "float32":
        lines.append(
            f"note: every quantisation loses more than {quantization.max_loss:g} F1 on dev, so the model stays in float32; "
            "to accept more, pass --max-loss"
        )
    where = f"{counted(export.sentences, 'sentence')} of {export.data}"
    scores = f"scores differ by at most {export.score_difference:.2g}"
    items = "entities and relations" if export.finds_relations else "entities"
    if export.is_same:
        lines.append(f"identical predictions: {export.entities:,} {items} in {where}, {scores}")
    else:
        lines.append(
            f"{export.common:,} of {export.entities:,} {items} equal, {export.extra:,} additional, in {where}, {scores}"
        )
    if export.f1 is not None:
        before, after = (100 * f1 for f1 in export.f1)
        name = "mean F1 of entities and relations" if export.finds_relations else "F1"
        lines.append(f"{name}: torch {before:.2f}, ONNX {after:.2f} ({after - before:+.2f})")
    return lines
