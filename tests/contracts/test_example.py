"""The example package of docs/extending.md."""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

import pytest

from spanwise.cli import main
from spanwise.heads import HEADS, head_class
from spanwise.recipes.catalog import configure, recipes
from spanwise.testing import check_head

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "custom-head"
PAGE = (ROOT / "docs" / "extending.md").read_text(encoding="utf-8")


def write_metadata(folder: Path) -> Path:
    """Write the metadata that pip would install for the example."""
    project = tomllib.loads((EXAMPLE / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    info = folder / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n")
    groups = project["entry-points"].items()
    lines = [line for group, names in groups for line in (f"[{group}]", *(f"{key} = {value}" for key, value in names.items()))]
    (info / "entry_points.txt").write_text("\n".join(lines) + "\n")
    return folder


@pytest.fixture
def _installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the example importable, as if it were installed."""
    for folder in (EXAMPLE / "src", write_metadata(tmp_path)):
        monkeypatch.syspath_prepend(str(folder))
    for name in ("_entries", "_loaded"):
        monkeypatch.delitem(HEADS.__dict__, name, raising=False)
    HEADS._loaded = {}


def test_the_page_contains_the_files_of_the_example() -> None:
    blocks: dict[str, list[str]] = {}
    path = ""
    for name, block in re.findall(r"^`([\w/.]+)`:$|^```(?:python|toml)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL):
        path = name or path
        if block:
            blocks.setdefault(path, []).append(block)
    assert set(blocks) == {str(file.relative_to(EXAMPLE)) for suffix in ("py", "toml") for file in EXAMPLE.rglob(f"*.{suffix}")}
    for path, parts in blocks.items():
        lines = [line for part in parts for line in part.splitlines() if line]
        assert lines == [line for line in (EXAMPLE / path).read_text(encoding="utf-8").splitlines() if line], path


@pytest.mark.usefixtures("_installed")
def test_the_example_is_a_recipe_and_keeps_the_contract(tmp_path: Path) -> None:
    assert "mean-span" in recipes()
    assert HEADS.plugins == ("mean-span",)
    assert "spanwise_mean_span.head" not in sys.modules  # listing imports nothing
    assert configure("mean-span").title == "Mean-pooled spans, a small example of a head"
    assert HEADS.name_of(head_class("mean-span")) == "mean-span"
    check_head("mean-span", tmp_path / "check")


@pytest.mark.usefixtures("_installed")
def test_the_command_line_lists_and_names_the_example(capsys: pytest.CaptureFixture[str]) -> None:
    outputs = []
    for arguments in (["recipes"], ["recipes", "mean-span"]):
        with pytest.raises(SystemExit) as end:
            main(arguments)
        assert not end.value.code
        outputs.append(capsys.readouterr().out)
    listing, settings = outputs
    assert "mean-span\n    Mean-pooled spans, a small example of a head\n    docs/extending.md\n" in listing
    assert re.search(r"^  head\.hidden +150\b", settings, re.MULTILINE)


def test_commands_of_the_readme_are_those_of_the_page() -> None:
    readme = (EXAMPLE / "README.md").read_text(encoding="utf-8")
    (commands,) = re.findall(r"^```bash\n(.*?)^```$", readme, re.MULTILINE | re.DOTALL)
    assert (
        commands.replace("pip install .", "pip install examples/custom-head").replace(
            "pytest tests", "pytest examples/custom-head/tests"
        )
        in PAGE
    )
