"""Random damage to files and JSON values."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Iterator
from typing import Any

NUMBERS = (b"-1", b"0", b"99999999999999999999", b"1e999", b"-0.5", b"9" * 5000, b"NaN", b"2147483648")
INSERTS = (
    b"\0", b"\xff", b"\xef\xbb\xbf", b"\r", b"\n", b"\n\n", b"\t", b" ", b'"', b"\\", b"\\ud800", b"[", b"]", b"{", b"}", b"," b":", b"|",
    b"<", b">", b"&lol;", b"#", b";", b"null", b"[" * 3000, b'{"a":' * 3000, b"<cons>" * 500, "👩\u200d🔬".encode(), "\u2028".encode(), b"T1", b"-DOCSTART-",
)  # fmt: skip


def flip_bit(raw: bytes, random: random.Random) -> bytes:
    index = random.randrange(len(raw))
    return raw[:index] + bytes([raw[index] ^ (1 << random.randrange(8))]) + raw[index + 1 :]


def truncate(raw: bytes, random: random.Random) -> bytes:
    return raw[: random.randrange(len(raw))]


def delete_piece(raw: bytes, random: random.Random) -> bytes:
    start, end = sorted(random.choices(range(len(raw)), k=2))
    return raw[:start] + raw[end:]


def repeat_piece(raw: bytes, random: random.Random) -> bytes:
    start, end, index = sorted(random.choices(range(len(raw)), k=3))
    return raw[:index] + raw[start:end] + raw[index:]


def insert(raw: bytes, random: random.Random) -> bytes:
    index = random.randrange(len(raw) + 1)
    return raw[:index] + random.choice(INSERTS) + raw[index:]


def shuffle_lines(raw: bytes, random: random.Random) -> bytes:
    lines = raw.splitlines(keepends=True)
    return b"".join(random.choices(lines, k=len(lines)))


def replace_number(raw: bytes, random: random.Random) -> bytes:
    numbers = list(re.finditer(rb"\d+", raw))
    if not numbers:
        return raw
    number = random.choice(numbers)
    return raw[: number.start()] + random.choice(NUMBERS) + raw[number.end() :]


def use_windows_line_breaks(raw: bytes, random: random.Random) -> bytes:
    return raw.replace(b"\n", b"\r\n")


def change_encoding(raw: bytes, random: random.Random) -> bytes:
    return raw.decode(errors="replace").encode(random.choice(("utf-16", "utf-32", "utf-8-sig", "gb18030")))


MUTATIONS: tuple[Callable[[bytes, random.Random], bytes], ...] = (
    flip_bit, truncate, delete_piece, repeat_piece, insert, insert, shuffle_lines, replace_number, replace_number,
    use_windows_line_breaks, change_encoding,
)  # fmt: skip


def mutate(raw: bytes, random: random.Random) -> bytes:
    """Damage a file one to three times."""
    for _ in range(random.randint(1, 3)):
        raw = random.choice(MUTATIONS)(raw, random) if raw else raw
    return raw


WRONG_VALUES = (
    None, True, -1, 0, 3, 10**30, 1.5, float("nan"), "", "x", "1", [], ["a"], [[1, 2]], {}, {"start": -5, "end": 99},
)  # fmt: skip


def items(value: Any) -> Iterator[tuple[Any, Any]]:
    """Yield every item of a nested JSON value as a container and a key."""
    for key in range(len(value)) if isinstance(value, list) else list(value) if isinstance(value, dict) else ():
        yield value, key
        yield from items(value[key])


def with_wrong_values(records: Any, choose: Callable[[tuple[Any, ...]], list[Any]]) -> Iterator[Any]:
    """Yield copies of JSON records with one item replaced by each of the chosen wrong values."""
    for number in range(len(list(items(records)))):
        for value in choose(WRONG_VALUES):
            changed = json.loads(json.dumps(records))
            container, key = list(items(changed))[number]
            container[key] = value
            yield changed
