"""Random damage to one file of a folder."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

HOSTILE: list[Any] = [
    None, True, -1, 0, 1, 2**31, 2**63, 1e308, -0.5, float("nan"), "", "x", "../../etc/passwd", "nan", "\x1b[31m", "ü" * 100,
    [], {}, [[]] * 3, [1, 2], {"kind": "bundle"}, {"a": {"b": {"c": {}}}}, ["a"] * 1000, "a" * 100_000, 10**9,
]  # fmt: skip
_KINDS = ("flip", "cut", "repeat", "reverse", "remove", "folder", "other model")


def damage(folder: Path, others: list[Path], chance: random.Random) -> str:
    """Damage one file of a folder and describe what was done. The file is replaced, not changed in place."""
    file = chance.choice(sorted(path for path in folder.rglob("*") if path.is_file()))
    name = file.relative_to(folder).as_posix()
    kind = chance.choice([*_KINDS, *["values"] * 10] if file.suffix in (".json", ".yaml") else _KINDS)
    data = file.read_bytes()
    file.unlink()
    if kind == "values":
        file.write_text(_with_other_values(data.decode(), file.suffix, chance), encoding="utf-8", errors="replace")
    elif kind == "folder":
        file.mkdir()
    elif kind == "other model":
        source = chance.choice(others) / name
        if source.is_file():
            shutil.copy(source, file)
    elif kind != "remove":
        file.write_bytes(_damaged_bytes(data, kind, chance))
    return f"{name}: {kind}"


def _damaged_bytes(data: bytes, kind: str, chance: random.Random) -> bytes:
    start = chance.randrange(len(data) + 1)
    if kind == "cut":
        return data[:start]
    if kind == "repeat":
        return data[:start] + data[start : start + 64] * chance.choice([2, 10, 1000]) + data[start:]
    if kind == "reverse":
        return data[::-1]
    flipped = bytearray(data)
    for _ in range(chance.choice([1, 1, 1, 8, 64]) if data else 0):
        # Headers are at the start of a file.
        flipped[chance.randrange(min(len(data), chance.choice([64, 512, len(data)])))] ^= 1 << chance.randrange(8)
    return bytes(flipped)


def _with_other_values(text: str, suffix: str, chance: random.Random) -> str:
    """Replace, remove or add values of a JSON or YAML text."""
    value = yaml.safe_load(text) if suffix == ".yaml" else json.loads(text)
    for _ in range(chance.choice([1, 1, 1, 2, 5])):
        value = _replace(value, chance.choice(list(_places(value, ()))), chance)
    return yaml.safe_dump(value) if suffix == ".yaml" else json.dumps(value)


def _places(value: Any, path: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    """Yield the path of keys and indices of every value; of lists only the first 20 items."""
    yield path
    if isinstance(value, dict):
        for key in value:
            yield from _places(value[key], (*path, key))
    elif isinstance(value, list):
        for index in range(min(len(value), 20)):
            yield from _places(value[index], (*path, index))


def _replace(value: Any, path: tuple[Any, ...], chance: random.Random) -> Any:
    if not path:
        if isinstance(value, bool | int | float) and chance.random() < 0.5:
            return chance.choice([-value, value + 1, value * 1000, value / 3, str(value)])
        return chance.choice(HOSTILE)
    key, *rest = path
    copy = dict(value) if isinstance(value, dict) else list(value)
    if not rest and chance.random() < 0.2:
        del copy[key]
    elif not rest and isinstance(copy, dict) and chance.random() < 0.2:
        copy[chance.choice(["extra", "__class__", "kind"])] = chance.choice(HOSTILE)
    else:
        copy[key] = _replace(copy[key], tuple(rest), chance)
    return copy
