"""``spanwise vectors``: train, similar, analogies, convert."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from spanwise.cli.command import Command
from spanwise.cli.options import EncodingOption, FromOrTextOption, print_ledger, with_encoding
from spanwise.core.counting import counted
from spanwise.core.terminal import escape_controls

if TYPE_CHECKING:
    from spanwise.vectors.neighbours import Lookup, Neighbours

vectors = typer.Typer(rich_markup_mode=None, add_completion=False)

VectorsArgument = Annotated[
    Path,
    typer.Argument(metavar="VECTORS", help="Vectors folder, GloVe or word2vec file, or .npy file with its words."),
]
CountOption = Annotated[int, typer.Option("--count", metavar="N", min=1, help="Number of words to show.")]


@vectors.callback(invoke_without_command=True)
def overview(context: typer.Context) -> None:
    """Train, query and convert word vectors."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


@vectors.command(cls=Command)
def train(
    corpora: Annotated[
        list[Path],
        typer.Argument(metavar="CORPUS", help="Folders (train split), files in any format, or plain text."),
    ],
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Folder to write.")],
    dim: Annotated[int, typer.Option("--dim", metavar="N", min=1, help="Dimension of the vectors.")] = 300,
    window: Annotated[int, typer.Option("--window", metavar="N", min=1, help="Context words on each side.")] = 15,
    x_max: Annotated[
        float, typer.Option("--x-max", metavar="X", min=1e-6, help="Co-occurrence count at which the weight reaches 1.")
    ] = 10,
    min_count: Annotated[int, typer.Option("--min-count", metavar="N", min=1, help="Minimum count of a word.")] = 1,
    iterations: Annotated[int, typer.Option("--iterations", metavar="N", min=1, help="Training iterations.")] = 50,
    optimizer: Annotated[
        str, typer.Option("--optimizer", metavar="published|adagrad", help="Optimiser of the authors' program, or AdaGrad.")
    ] = "published",
    threads: Annotated[
        int | None, typer.Option("--threads", metavar="N", min=1, help="CPU threads; all available cores by default.")
    ] = None,
    seed: Annotated[int, typer.Option("--seed", metavar="N", min=0, help="Random seed.")] = 1,
    unit: Annotated[
        str,
        typer.Option("--unit", metavar="words|characters", help="Train vectors of words or of characters."),
    ] = "words",
    source_format: FromOrTextOption = None,
    encoding: EncodingOption = None,
) -> None:
    """Train GloVe vectors on the text of a corpus.

    Only the train split of a folder is read. The result depends on the text, settings and seed, but
    not on the number of threads.
    """
    from spanwise.formats import Ledger
    from spanwise.training.vectors import train_vectors
    from spanwise.vectors.glove import GloveSettings

    source_format = with_encoding(source_format, encoding)
    settings = GloveSettings(dim, window, x_max, min_count, iterations, optimizer, seed)  # type: ignore[arg-type]
    ledger = Ledger()
    train_vectors(corpora, out, settings, unit=unit, format=source_format, threads=threads, ledger=ledger, log=typer.echo)
    print_ledger(ledger)
    typer.echo(f"wrote {out}")


@vectors.command(cls=Command)
def similar(
    source: VectorsArgument,
    word: Annotated[str, typer.Argument(metavar="WORD", help="Word to look up.")],
    count: CountOption = 10,
) -> None:
    """Show the words most similar to WORD, with their cosine similarity."""
    _print_neighbours(_lookup(source).similar(word, count))


@vectors.command(cls=Command)
def analogies(
    source: VectorsArgument,
    a: Annotated[str, typer.Argument(metavar="A", help="First word of the known pair.")],
    b: Annotated[str, typer.Argument(metavar="B", help="Second word of the known pair.")],
    c: Annotated[str, typer.Argument(metavar="C", help="First word of the new pair.")],
    count: CountOption = 10,
) -> None:
    """Show the words that relate to C as B relates to A."""
    _print_neighbours(_lookup(source).analogies(a, b, c, count))


@vectors.command(cls=Command)
def convert(
    source: VectorsArgument,
    target: Annotated[
        Path,
        typer.Argument(metavar="OUT", help=".txt (GloVe), .vec (word2vec text), .bin (word2vec binary), or a folder."),
    ],
) -> None:
    """Convert vectors to the format of the output's file name."""
    from spanwise.runs.outputs import check_output
    from spanwise.vectors import read_vectors, source_files, write_vectors

    check_output(target, source_files(source))
    converted = read_vectors(source)
    dropped = write_vectors(converted, target)
    if dropped:
        typer.echo(
            f"note: dropped {counted(dropped, 'word')} with spaces or line ends, which the format cannot represent", err=True
        )
    typer.echo(f"wrote {target} ({counted(len(converted.words) - dropped, 'word')}, {counted(converted.size, 'dimension')})")


def _lookup(source: Path) -> Lookup:
    from spanwise.vectors import read_vectors
    from spanwise.vectors.neighbours import Lookup

    return Lookup(read_vectors(source))


def _print_neighbours(neighbours: Neighbours) -> None:
    for word, cosine in neighbours:
        typer.echo(f"{cosine:.4f}  {escape_controls(word)}")
