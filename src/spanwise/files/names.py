"""File names as text."""

from __future__ import annotations

import os
from pathlib import Path


def printable(name: str) -> str:
    """Return a file name as text, with a replacement character for each undecodable byte.

    >>> printable("caf\\udce9")
    'caf\ufffd'
    """
    return os.fsencode(name).decode("utf-8", "replace")


def stem(path: Path) -> str:
    """Return the printable file name without its suffix."""
    return printable(path.stem)


def default_id(path: Path, index: int) -> str:
    """Return the default id of a sentence or document: the file's stem and its index in the file.

    >>> default_id(Path("corpus/train.conll"), 0)
    'train-0'
    """
    return f"{stem(path)}-{index}"


def is_hidden(path: Path) -> bool:
    """Return True for hidden files, files in hidden folders, and backup copies of editors.

    ``path`` is relative to the folder that is read.

    >>> is_hidden(Path(".cache/a.txt")), is_hidden(Path("a.txt~")), is_hidden(Path("data/a.txt"))
    (True, True, False)
    """
    return any(part.startswith(".") for part in path.parts) or path.name.endswith("~")
