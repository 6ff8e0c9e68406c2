"""Pages of the reference that are generated from the code, and the navigation of the site."""

from __future__ import annotations

import re
from pathlib import Path
from types import ModuleType

import pytest
import yaml
from doc_hooks import load_hook
from doc_shell import root_command

from spanwise.heads import HEADS
from spanwise.recipes.catalog import recipes

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def reference() -> ModuleType:
    return load_hook("reference")


def test_marked_sentences_are_drawn() -> None:
    drawings = load_hook("drawings")
    block = '```json\n{"tokens": ["<i>", "Oslo"], "entities": [{"type": "Place", "spans": [[1, 2]]}]}\n```\n'
    page = drawings.on_page_markdown(f"A <!-- x -->\n\n<!-- drawn: A & B -->\n\n{block}\n\nB")
    assert "<em>Place</em>" in page
    assert "&lt;i&gt;" in page
    assert "<figcaption>A &amp; B</figcaption>" in page
    assert "```" not in page
    assert page.count("<style>") == 1
    assert drawings.on_page_markdown(block) == block


def test_the_page_of_commands_has_every_command_and_option(reference: ModuleType) -> None:
    page = reference.commands_page()
    for name, command in root_command().commands.items():
        if name == "vectors":
            continue
        section = page.split(f"\n## spanwise {name}\n")[1].split("\n## ")[0]
        options = {max(parameter.opts, key=len) for parameter in command.params} - {"--help"}
        assert [option for option in options if option.startswith("--") and option not in section] == []
    assert "\n### spanwise vectors train\n" in page


def test_the_page_of_recipes_has_every_recipe(reference: ModuleType) -> None:
    headings = re.findall(r"^## (.+)$", reference.recipes_page(), re.MULTILINE)
    assert headings == list(recipes())


def test_the_page_of_settings_explains_every_setting(reference: ModuleType) -> None:
    page = reference.settings_page()
    rows = re.findall(r"^\| `([\w.-]+)` \| <code>.*</code> \| (.*) \|$", page, re.MULTILINE)
    assert len(rows) > 150
    assert [key for key, meaning in rows if not meaning] == []
    assert set(re.findall(r"^## Head (.+)$", page, re.MULTILINE)) >= set(HEADS.builtin)
    assert {"training.epochs", "encoder.name", "encoder.word_size", "head.max_width"} <= {key for key, _ in rows}


def test_the_page_of_heads_has_every_head() -> None:
    page = (ROOT / "docs" / "reference" / "heads.md").read_text(encoding="utf-8")
    assert [kind for kind, path in HEADS.builtin.items() if f"::: {path.replace(':', '.')}\n" not in page] == []


def test_text_cannot_break_a_table(reference: ModuleType) -> None:
    assert reference._cell("a | <b>\nc") == "a &#124; &lt;b> c"
    assert reference._code("cpu|cuda <x>") == "<code>cpu&#124;cuda &lt;x&gt;</code>"


def test_every_page_is_in_the_navigation(reference: ModuleType) -> None:
    def pages(entry: object) -> list[str]:
        if isinstance(entry, str):
            return [entry]
        children = entry.values() if isinstance(entry, dict) else entry
        return [page for child in children for page in pages(child)]  # type: ignore[attr-defined]

    config = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
    folder = ROOT / "docs"
    written = {path.relative_to(folder).as_posix() for path in folder.rglob("*.md")}
    written |= {path.relative_to(folder).with_suffix(".md").as_posix() for path in folder.rglob("*.ipynb")}
    assert sorted(pages(config["nav"])) == sorted(written | set(reference.PAGES))
    assert config["strict"] is True
    assert config["theme"]["font"] is False  # fonts of other servers


def test_warnings_fail_the_build() -> None:
    """With --quiet, MkDocs neither prints nor counts warnings, so the strict mode has no effect."""
    commands = [line for line in (ROOT / "Makefile").read_text(encoding="utf-8").splitlines() if "mkdocs build" in line]
    assert len(commands) == 1
    assert not re.search(r"mkdocs build.*(\s-q\b|--quiet)", commands[0])


def test_links_between_pages_lead_to_pages_and_headings() -> None:
    """MkDocs checks this too, but is not installed for the tests."""
    folder = ROOT / "docs"
    for page in (*folder.rglob("*.md"), *ROOT.glob("*.md")):
        for target, anchor in re.findall(
            r"\]\((?!https?:|mailto:)([^)#\s]*)(?:#([^)\s]*))?\)", page.read_text(encoding="utf-8")
        ):
            path = (page.parent / target).resolve() if target else page
            is_generated = path.parent == folder / "reference" and path.name in ("commands.md", "recipes.md", "settings.md")
            assert is_generated or path.exists(), f"{page.name}: {target}"
            if anchor and path.suffix == ".md" and not is_generated:
                assert anchor in _anchors(path), f"{page.name}: {target}#{anchor}"


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 120


def _anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", heading).strip().lower()) for heading in headings}
