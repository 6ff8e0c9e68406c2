"""Texts of others on a terminal: control characters are escaped, so that they cannot change it."""

from __future__ import annotations

import re

# Control characters except tab and line feed (C0, DEL, C1), and the marks that reorder text.
_UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


def escape_controls(text: str) -> str:
    r"""Replace control characters by their Python escapes; tabs and line feeds stay.

    >>> print(escape_controls("a\x1b[31mb\u202ec\n"), end="")
    a\x1b[31mb\u202ec
    """
    return _UNSAFE.sub(lambda match: _escape(ord(match[0])), text)


def _escape(code: int) -> str:
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}"
