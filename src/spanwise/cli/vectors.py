"""``spanwise vectors``: train, similar, analogies, convert."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from spanwise.cli.command import Command
from spanwise.cli.options import FromOrTextOption, print_ledger

if TYPE_CHECKING:
    from spanwise.vectors.looking import Lookup, Neighbours

vectors = typer.Typer(rich_markup_mode=None, add_completion=False)

VectorsArgument = Annotated[
    Path,
    typer.Argument(metavar="V", help="A folder of vectors, GloVe or word2vec text, word2vec's .bin, or .npy with its words."),
]
CountOption = Annotated[int, typer.Option("--count", min=1, help="How many words to show.")]


@vectors.callback(invoke_without_command=True)
def overview(context: typer.Context) -> None:
    """Learn word vectors from a corpus, look at them, convert them."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


@vectors.command(cls=Command)
def train(
    corpora: Annotated[
        list[Path],
        typer.Argument(metavar="CORPUS", help="Folders (their train split), files in any known format, or plain text (.txt)."),
    ],
    out: Annotated[Path, typer.Option("--out", metavar="V", help="The folder to write.")],
    dim: Annotated[int, typer.Option("--dim", min=1, help="Size of the vectors.")] = 300,
    window: Annotated[int, typer.Option("--window", min=1, help="Words to each side that count as near.")] = 15,
    x_max: Annotated[float, typer.Option("--x-max", min=1e-6, help="Count from which on pairs weigh the same.")] = 10,
    min_count: Annotated[int, typer.Option("--min-count", min=1, help="Rarer words get no vector.")] = 1,
    iterations: Annotated[int, typer.Option("--iterations", min=1, help="Times that each pair is visited.")] = 50,
    threads: Annotated[
        int | None, typer.Option("--threads", min=1, help="Cores to use; all if left out. The result is the same.")
    ] = None,
    seed: Annotated[int, typer.Option("--seed", min=0)] = 1,
    unit: Annotated[
        str,
        typer.Option(
            "--unit", metavar="words|characters", help="What gets a vector: words as the corpus has them, or characters."
        ),
    ] = "words",
    source_format: FromOrTextOption = None,
) -> None:
    """Learn GloVe vectors from the text of a corpus.

    Of a folder, only the train split is read. The same text, settings and seed give the same vectors, whatever
    the number of threads.
    """
    from spanwise.formats import Ledger
    from spanwise.training.vectors import train_vectors
    from spanwise.vectors.glove import GloveSettings

    settings = GloveSettings(dim=dim, window=window, x_max=x_max, min_count=min_count, iterations=iterations, seed=seed)
    ledger = Ledger()
    train_vectors(corpora, out, settings, unit=unit, format=source_format, threads=threads, ledger=ledger, log=typer.echo)
    print_ledger(ledger)
    typer.echo(f"wrote {out}")


@vectors.command(cls=Command)
def similar(
    source: VectorsArgument,
    word: Annotated[str, typer.Argument(metavar="WORD")],
    count: CountOption = 10,
) -> None:
    """Show the words whose vectors are nearest to a word's, with the cosine."""
    _show(_lookup(source).similar(word, count))


@vectors.command(cls=Command)
def analogies(
    source: VectorsArgument,
    a: Annotated[str, typer.Argument(metavar="A")],
    b: Annotated[str, typer.Argument(metavar="B")],
    c: Annotated[str, typer.Argument(metavar="C")],
    count: CountOption = 10,
) -> None:
    """Show the words that are to C what B is to A."""
    _show(_lookup(source).analogies(a, b, c, count))


@vectors.command(cls=Command)
def convert(
    source: VectorsArgument,
    target: Annotated[
        Path,
        typer.Argument(metavar="OUT", help=".txt: GloVe text, .vec: word2vec text, .bin: word2vec binary, none: a folder."),
    ],
) -> None:
    """Write vectors in another format, as the name of the output says."""
    from spanwise.files.writing import check_no_input
    from spanwise.vectors import files_of, read_vectors, write_vectors

    check_no_input(target, files_of(source))
    found = read_vectors(source)
    left_out = write_vectors(found, target)
    if left_out:
        typer.echo(f"note: {left_out:,} words that such a file cannot hold (a space or line end in them), left out", err=True)
    typer.echo(f"wrote {target} ({len(found.words) - left_out:,} words, {found.size} values each)")


def _lookup(source: Path) -> Lookup:
    from spanwise.vectors import read_vectors
    from spanwise.vectors.looking import Lookup

    return Lookup(read_vectors(source))


def _show(found: Neighbours) -> None:
    for word, cosine in found:
        typer.echo(f"{cosine:.4f}  {word}")
