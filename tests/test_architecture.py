"""The table of subpackages in docs/architecture.md, compared with the import contract and the imports."""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "spanwise"


def read_table() -> dict[str, str]:
    """The subpackages of the table in order, each with the cell of its imports."""
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    return dict(re.findall(r"^\| `(\w+)` \| [^|]+ \| ?([^|]*?) ?\|$", page, re.MULTILINE))


def read_layers() -> list[set[str]]:
    """The layers of the import contract, from top to bottom."""
    with (ROOT / "pyproject.toml").open("rb") as file:
        contracts = tomllib.load(file)["tool"]["importlinter"]["contracts"]
    layers = next(contract["layers"] for contract in contracts if contract["type"] == "layers")
    return [{name.strip() for name in layer.split("|")} for layer in layers]


def imported_subpackages(name: str) -> set[str]:
    modules = set()
    for path in (PACKAGE / name).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module:
                modules.add(node.module)
            elif isinstance(node, ast.Import):
                modules.update(alias.name for alias in node.names)
    return {module.split(".")[1] for module in modules if module.startswith("spanwise.")} - {name}


def test_the_table_lists_every_room_in_the_order_of_the_contract() -> None:
    table, layers = list(read_table()), read_layers()
    assert sorted(table) == sorted(path.parent.name for path in PACKAGE.glob("*/__init__.py"))
    levels = [next(level for level, layer in enumerate(layers) if name in layer) for name in table]
    assert levels == sorted(levels)


def test_the_table_lists_every_import() -> None:
    table = read_table()
    subpackages = list(table)
    for index, name in enumerate(subpackages):
        below, cell = set(subpackages[index + 1 :]), table[name]
        allowed = below if cell == "all below" else {imported for imported in cell.split(", ") if imported}
        assert allowed <= below, name
        assert imported_subpackages(name) <= allowed, f"add the imports of {name} to the table in docs/architecture.md"
