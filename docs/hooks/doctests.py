"""Show the examples of docstrings as code: an extension of Griffe, which reads docstrings for the site."""

from __future__ import annotations

import re
from typing import Any

from griffe import Extension, Object

EXAMPLE = re.compile(r"^( *)>>> .*(?:\n\1\S.*)*", re.MULTILINE)


class DoctestBlocks(Extension):
    """Puts lines that start with ``>>>``, and their output, into code blocks."""

    def on_object(self, *, obj: Object, **options: Any) -> None:
        if obj.docstring and ">>>" in obj.docstring.value:
            obj.docstring.value = EXAMPLE.sub(_as_block, obj.docstring.value)


def _as_block(match: re.Match[str]) -> str:
    indent = match[1]
    return f"\n{indent}```pycon\n{match[0]}\n{indent}```\n"
