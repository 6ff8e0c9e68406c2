"""File names as text."""

from __future__ import annotations

import os
from pathlib import Path


def printable(name: str) -> str:
    """A file's name as text: what the system could not decode in it is replaced.

    >>> printable("caf\\udce9")
    'caf\ufffd'
    """
    return os.fsencode(name).decode("utf-8", "replace")


def stem(path: Path) -> str:
    return printable(path.stem)


def default_id(path: Path, number: int) -> str:
    """The id of what has none: the file's name and its number among the sentences (or documents) of the file, from 0.

    >>> default_id(Path("corpus/train.conll"), 0)
    'train-0'
    """
    return f"{stem(path)}-{number}"
