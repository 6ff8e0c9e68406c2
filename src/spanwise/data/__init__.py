"""The bundled corpus NewsMed: English news and biomedical text, described in ``newsmed/README.md``."""

from __future__ import annotations

from pathlib import Path

from spanwise.core.types import Corpus

FOLDER = Path(__file__).parent / "newsmed"


def bundled_corpus() -> Corpus:
    """Return the bundled corpus with its splits train, dev and test.

    >>> sorted(bundled_corpus())
    ['dev', 'test', 'train']
    """
    from spanwise.corpora.splits import read_corpus

    return read_corpus(FOLDER)
