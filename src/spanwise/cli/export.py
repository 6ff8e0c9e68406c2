"""``spanwise export``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from spanwise.export.onnx import Exported


def export(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A run folder.")],
    out: Annotated[Path, typer.Option("--out", metavar="FOLDER", help="The folder to write, new or empty.")],
    onnx: Annotated[bool, typer.Option("--onnx", help="As ONNX graphs, which predict without torch.")] = False,
    int8: Annotated[bool, typer.Option("--int8", help="With --onnx: the encoder's weights in 8 bits.")] = False,
    data: Annotated[
        Path | None,
        typer.Option("--data", metavar="DATA", help="With --onnx: compare on the test split of this data, F1 included."),
    ] = None,
) -> None:
    """Write a trained model without what only its training needed: checkpoints, and the branch of a bundle that is not used.

    With --onnx the model becomes graphs that onnxruntime computes; torch is needed for the export only. What they find is
    compared with what the model itself finds, on DATA or on sentences that come with the package.
    """
    from spanwise.core.errors import SpanwiseError

    if onnx:
        from spanwise.export.onnx import export_onnx

        for line in _lines(out, export_onnx(model, out, int8=int8, data=data)):
            typer.echo(line)
        return
    if int8 or data is not None:
        raise SpanwiseError(f"{'--int8' if int8 else '--data'} goes with --onnx")
    from spanwise.export.torch_folder import export as run
    from spanwise.models.model import size

    written = run(model, out)
    typer.echo(f"wrote {out}: {written.config.head['kind']}, {size(written):,} weights")


def _lines(out: Path, done: Exported) -> list[str]:
    lines = [f"wrote {out}: {done.kind} in ONNX, {done.precision}, {done.size / 1e6:.1f} MB"]
    where = f"{done.sentences:,} sentences of {done.data}"
    if done.is_same:
        lines.append(f"the same {done.found:,} entities in {where}, scores within {done.difference:.2g}")
    else:
        lines.append(
            f"{done.common:,} of the model's {done.found:,} entities and {done.extra:,} others in {where}, "
            f"scores within {done.difference:.2g}"
        )
    if done.f1 is not None:
        before, after = (100 * f1 for f1 in done.f1)
        lines.append(f"F1 {before:.2f} of the model, {after:.2f} in ONNX ({after - before:+.2f})")
    return lines
