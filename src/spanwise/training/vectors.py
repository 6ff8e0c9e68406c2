"""Train word vectors on corpora and write them to a folder."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from itertools import chain
from pathlib import Path
from typing import get_args

from spanwise.core.errors import SpanwiseError, unknown_name
from spanwise.files.writing import atomic_output, write_json
from spanwise.formats import Ledger
from spanwise.inputs.vector_text import Unit, corpus_text
from spanwise.runs.outputs import check_output
from spanwise.runtime.threads import available_threads
from spanwise.vectors.glove import DEFAULTS, GloveResult, GloveSettings, learn_vectors
from spanwise.vectors.store import write_folder


def train_vectors(
    corpora: Sequence[Path],
    out: Path,
    settings: GloveSettings = DEFAULTS,
    *,
    unit: str = "words",
    format: str | None = None,
    threads: int | None = None,
    ledger: Ledger | None = None,
    log: Callable[[str], None] = lambda line: None,
) -> GloveResult:
    """Train vectors on the text of corpora and write them to a new or empty folder.

    ``training.json`` in the folder has the settings, the size of the text, and the loss of each iteration.
    """
    check_output(out, corpora)
    settings = settings if settings.seed is not None else replace(settings, seed=1)
    if unit not in get_args(Unit):
        raise unknown_name("unit", unit, get_args(Unit))
    for path in corpora:
        if not path.exists():
            raise SpanwiseError(f"{path}: no such file or folder")
    text = chain.from_iterable(corpus_text(path, format, ledger, unit) for path in corpora)  # type: ignore[arg-type]
    with atomic_output(out, is_folder=True) as folder:
        learned = learn_vectors(text, settings, threads=threads or available_threads(), log=log)
        write_folder(learned.vectors, folder)
        record = {
            "settings": asdict(settings), "unit": unit, "corpora": [path.name for path in corpora],
            "words": learned.words, "distinct_words": len(learned.vectors.words), "pairs": learned.pairs,
            "losses": learned.losses, "seconds": round(learned.seconds, 3),
        }  # fmt: skip
        write_json(folder / "training.json", record)
    return learned
