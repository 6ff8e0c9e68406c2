"""Pages of the reference that are generated from the code: commands, recipes and settings.

MkDocs calls the functions ``on_…`` while it builds the site (see ``hooks`` in mkdocs.yml).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from html import escape
from pathlib import Path
from typing import Any

import typer

REPOSITORY_LINK = re.compile(r"\[([^\]]+)\]\(\.\./(?!reference|how-to|tutorials)[^)]*\)")

EXTERNAL_SCRIPT = '<script src="https://unpkg.com/iframe-worker/shim"></script>'


def on_files(files: Any, config: Any) -> Any:
    """Add the generated pages to those of the folder."""
    from mkdocs.structure.files import File

    for path, make in PAGES.items():
        files.append(File.generated(config, path, content=make()))
    return files


def on_page_markdown(markdown: str, page: Any, **options: Any) -> str:
    """Replace links of the top pages to files outside of docs/, which are not part of the site, by their text."""
    return markdown if "/" in page.file.src_uri else REPOSITORY_LINK.sub(r"\1", markdown)


def on_post_page(output: str, **options: Any) -> str:
    """Replace a script of the plugin `offline` that pages would load from another server."""
    return output.replace(EXTERNAL_SCRIPT, _frame_worker())


def on_post_template(output_content: str, **options: Any) -> str:
    """Replace it in pages without Markdown, such as 404.html."""
    return output_content.replace(EXTERNAL_SCRIPT, _frame_worker())


def _frame_worker() -> str:
    return f"<script>{Path(__file__).with_name('frame_worker.js').read_text(encoding='utf-8')}</script>"


def commands_page() -> str:
    """Return the page of all commands with their arguments and options."""
    from spanwise.cli import app

    root: Any = typer.main.get_command(app)
    lines = ["# Commands", "", "`spanwise COMMAND --help` prints the same text.", ""]
    for name, command in root.commands.items():
        lines += _command(command, f"spanwise {name}", 2)
    return "\n".join(lines) + "\n"


def _command(command: Any, name: str, level: int) -> Iterator[str]:
    context = command.context_class(command, info_name=name)
    usage = " ".join([name, *command.collect_usage_pieces(context)])
    yield from (f"{'#' * level} {name}", "", *_paragraphs(command.help or ""), "```text", usage, "```", "")
    children = getattr(command, "commands", {})
    rows = [parameter.get_help_record(context) for parameter in command.params]
    rows = [row for row in rows if row and "--help" not in row[0]]
    if rows and not children:
        yield from ("| argument or option | meaning |", "|---|---|")
        yield from (f"| {_code(' '.join(first.split()))} | {_cell(second)} |" for first, second in rows)
        yield ""
    for child, subcommand in children.items():
        yield from _command(subcommand, f"{name} {child}", level + 1)


def recipes_page() -> str:
    """Return the page of all recipes with title, paper and the settings that differ from the defaults."""
    from spanwise.recipes.catalog import configure, recipes
    from spanwise.recipes.explanation import explain_settings

    lines = [
        "# Recipes",
        "",
        "A recipe is a method with its settings. `spanwise train DATA --recipe NAME --out RUN` trains it;",
    ]
    lines += ["`spanwise recipes NAME` explains every setting. The tables list the values that differ from the"]
    lines += ["[defaults](settings.md), with the static encoder.", ""]
    for name in recipes():
        config = configure(name, encoder="static")
        lines += [f"## {name}", "", _prose(config.title or ""), ""]
        lines += [_prose(config.paper), ""] if config.paper else []
        changed = [
            setting for section in explain_settings(config) for setting in section.settings
            if setting.value != setting.default
        ]  # fmt: skip
        if changed:
            lines += ["| setting | value | default |", "|---|---|---|"]
            lines += [f"| `{row.key}` | {_code(row.value)} | {_code(row.default or 'required')} |" for row in changed]
            lines += [""]
    return "\n".join(lines) + "\n"


def settings_page() -> str:
    """Return the page of every setting of heads, encoders and training, with default and meaning."""
    from spanwise.recipes.catalog import configure, recipes
    from spanwise.recipes.explanation import SettingsSection, explain_settings

    sections: dict[str, SettingsSection] = {}
    for name in recipes():
        for encoder in ("static", "hf:NAME"):
            for section in explain_settings(configure(name, encoder=encoder)):
                sections.setdefault(_heading(section.title), section)
    lines = ["# Settings", "", "`spanwise train DATA --out RUN --set SECTION.KEY=VALUE` changes a setting; the option is"]
    lines += ["repeatable. `spanwise recipes NAME` shows the values of a recipe. Sections of heads and encoders inside"]
    lines += ["others have longer names, such as `head.entities.`. A setting that only one of a recipe's encoders or"]
    lines += ["heads has also has a short name, such as `encoder.context` for `encoder.parts.0.context`.", ""]
    for heading in sorted(sections, key=lambda heading: (_order(heading), heading)):
        lines += [f"## {heading}", "", "| setting | default | meaning |", "|---|---|---|"]
        lines += [
            f"| `{row.key}` | {_code(row.default or 'required')} | {_cell(row.meaning)} |" for row in sections[heading].settings
        ]
        lines += [""]
    return "\n".join(lines) + "\n"


def _heading(title: str) -> str:
    """The heading of a section: one per kind, as in ``head.span (spanner)`` and ``head (spanner)``.

    >>> _heading("head.span (spanner)"), _heading("training"), _heading("encoder.parts.1.glove")
    ('Head spanner', 'Training', 'Encoder glove')
    """
    place, _, kind = title.partition(" ")
    first, *inner = place.split(".")
    return " ".join([first.capitalize(), kind.strip("()") if kind else inner[-1] if inner else ""]).strip()


def _order(heading: str) -> int:
    return ("Training", "Head", "Encoder").index(heading.partition(" ")[0])


def _paragraphs(text: str) -> Iterator[str]:
    for paragraph in text.split("\n\n"):
        yield from (_prose(paragraph.strip()), "")


def _prose(text: str) -> str:
    return " ".join(text.replace("\b", "").replace("<", "&lt;").split())


def _code(text: str) -> str:
    return f"<code>{escape(text).replace('|', '&#124;')}</code>"


def _cell(text: str) -> str:
    return _prose(text).replace("|", "&#124;")


PAGES: dict[str, Callable[[], str]] = {
    "reference/commands.md": commands_page,
    "reference/recipes.md": recipes_page,
    "reference/settings.md": settings_page,
}
