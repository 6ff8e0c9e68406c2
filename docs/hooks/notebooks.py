"""Pages of the notebooks in docs/notebooks, with the outputs that are stored in them.

Texts, code and outputs become Markdown, so that pages need no other script, style or server. Links of other
pages to a notebook lead to its page, which has a link to the notebook itself.
"""

from __future__ import annotations

import json
import re
from html import escape
from pathlib import Path
from typing import Any

FOLDER = "notebooks"
LINK = re.compile(r"(\]\((?!https?:)[^)\s]*)\.ipynb\)")
ESCAPES = re.compile(r"\x1b\[[\d;]*m")


def on_files(files: Any, config: Any) -> Any:
    """Add a page for each notebook; the notebook itself stays a file of the site."""
    from mkdocs.structure.files import File

    for path in notebooks(Path(config["docs_dir"])):
        files.append(File.generated(config, f"{FOLDER}/{path.stem}.md", content=notebook_page(path)))
    return files


def on_page_markdown(markdown: str, **options: Any) -> str:
    """Lead links to notebooks to their pages."""
    return LINK.sub(r"\1.md)", markdown)


def notebooks(docs: Path) -> list[Path]:
    """Return the notebooks of the documentation."""
    return sorted((docs / FOLDER).glob("*.ipynb"))


def notebook_page(path: Path) -> str:
    """Return a notebook as Markdown."""
    parts = []
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        source = _text(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(source)
        elif cell["cell_type"] == "code":
            parts.append(f"```python\n{source}\n```")
            parts += [_output(output) for output in cell["outputs"]]
    title, *rest = [part for part in parts if part]
    heading, _, intro = title.partition("\n")
    download = f'This page is a notebook: <a href="{path.name}" download>download it</a>.'
    return "\n\n".join([heading, download, intro.strip(), *rest]) + "\n"


def _output(output: dict[str, Any]) -> str:
    """Return an output as HTML or text: of several forms, the richest."""
    if output["output_type"] == "error":
        raise ValueError(f"a cell of the notebook failed: {output['ename']}")
    if output["output_type"] == "stream":
        return "" if output["name"] == "stderr" else _block(_text(output["text"]))
    data = output["data"]
    if "text/html" in data:
        return f'<div class="cell-output">{_text(data["text/html"])}</div>'.replace("\n", " ")
    if "image/png" in data:
        source = f"data:image/png;base64,{_text(data['image/png']).strip()}"
        return f'<img class="cell-output" alt="The figure that the cell draws." src="{source}">'
    return _block(_text(data.get("text/plain", "")))


def _block(text: str) -> str:
    """Return a text as a block without highlighting."""
    return f'<pre class="cell-output"><code>{escape(ESCAPES.sub("", text).strip())}</code></pre>'.replace("\n\n", "\n&#8203;\n")


def _text(source: str | list[str]) -> str:
    return source if isinstance(source, str) else "".join(source)
