"""The bundled corpus: English news and biomedicine, written for this project. ``README.md`` beside it says how."""

from __future__ import annotations

from pathlib import Path

from spanwise.core.types import Corpus

FOLDER = Path(__file__).parent / "newsmed"


def bundled_corpus() -> Corpus:
    """The corpus that comes with the package, in train, dev and test.

    >>> sorted(bundled_corpus())
    ['dev', 'test', 'train']
    """
    from spanwise.corpora.splits import read_corpus

    return read_corpus(FOLDER)
