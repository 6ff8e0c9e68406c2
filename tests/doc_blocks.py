"""Code blocks of Markdown pages, with the HTML comment before each.

A comment on its own line before a block changes how ``docs/test_blocks.py`` treats it:

- ``<!-- not run: REASON -->``: nothing is checked.
- ``<!-- parse only: REASON -->``: commands are parsed, Python is compiled.
- ``<!-- file: NAME -->``: the block is the content of a file that later blocks use.
- ``<!-- output -->``: the block is the output of the block before; ``…`` matches any text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

FENCE = re.compile(r"^( *)```(\w*)")
COMMENT = re.compile(r"^\s*<!-- (not run|parse only|file|output)(?:: (.+?))? -->$")


@dataclass(frozen=True)
class Block:
    language: str
    text: str
    line: int  # of the first line of the text, from 1
    mark: str = ""
    reason: str = ""

    @property
    def is_shell(self) -> bool:
        return self.language in ("bash", "console", "sh", "shell")


def parse_blocks(page: str) -> Iterator[Block]:
    """Yield the fenced blocks of a page.

    >>> list(parse_blocks("<!-- not run: slow -->\\n\\n```bash\\nmake\\n```\\n"))
    [Block(language='bash', text='make\\n', line=4, mark='not run', reason='slow')]
    """
    mark, reason = "", ""
    lines = iter(enumerate(page.splitlines(), 1))
    for number, line in lines:
        if comment := COMMENT.match(line):
            mark, reason = comment[1], comment[2] or ""
        elif fence := FENCE.match(line):
            indent, content = fence[1], []
            for _, inner in lines:
                if inner.strip() == "```":
                    break
                content.append(inner.removeprefix(indent))
            yield Block(fence[2], "".join(f"{inner}\n" for inner in content), number + 1, mark, reason)
            mark, reason = "", ""
        elif line.strip():
            mark, reason = "", ""


def matches(expected: str, actual: str) -> bool:
    """Whether an output is the expected one; ``…`` stands for any text. White space at line ends does not count.

    >>> matches("F1 … of\\n10", "F1 0.5 of \\n10\\n"), matches("F1 …", "F2 1")
    (True, False)
    """
    pattern = ".*?".join(map(re.escape, _stripped(expected).split("…")))
    return re.fullmatch(pattern, _stripped(actual), re.DOTALL) is not None


def _stripped(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.strip().splitlines())
