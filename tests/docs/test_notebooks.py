"""The notebooks of the documentation run, and their stored outputs are those of the present code.

Training is made small, so that texts and figures differ; the kinds of outputs must agree. Outputs of cells with
the tag ``exact`` do not depend on training and must be equal.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from doc_hooks import load_hook

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))
ADVICE = "outputs differ; run: jupyter execute --inplace docs/notebooks/*.ipynb"
SIZES = re.compile(r"SENTENCES, EPOCHS = \d+, \d+")


def outputs(cell: Any) -> list[Any]:
    """The outputs of a cell without warnings."""
    return [output for output in cell.get("outputs", ()) if output.get("name") != "stderr"]


def kinds(cell: Any) -> list[list[str]]:
    return [sorted(output["data"]) if "data" in output else [output["output_type"]] for output in outputs(cell)]


def contents(cell: Any) -> list[Any]:
    """The outputs of a cell, whether texts are stored as one string or as lines."""
    values = [output.get("data") or {"text": output["text"]} for output in outputs(cell)]
    return [{key: "".join(value) for key, value in output.items()} for output in values]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_and_its_outputs_are_current(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: Any
) -> None:
    nbformat = pytest.importorskip("nbformat")
    nbclient = pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    monkeypatch.setenv("TMPDIR", str(tmp_path))  # for the runs, which notebooks write to temporary folders
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    stored = nbformat.read(path, 4)
    current = nbformat.read(path, 4)
    assert SIZES.search(current.cells[1].source)
    current.cells[1].source = "SENTENCES, EPOCHS = 24, 1"
    client = nbclient.NotebookClient(
        current, timeout=None, kernel_name="python3", coalesce_streams=True, resources={"metadata": {"path": str(tmp_path)}}
    )
    client.execute()
    for before, after in zip(stored.cells, current.cells, strict=True):
        assert kinds(before) == kinds(after), ADVICE
        if "exact" in before.metadata.get("tags", ()):
            assert contents(before) == contents(after), ADVICE


def test_a_notebook_becomes_a_page(tmp_path: Path) -> None:
    html = {"output_type": "execute_result", "data": {"text/html": ["<b>\n", "x</b>"], "text/plain": "x"}}
    image = {"output_type": "display_data", "data": {"image/png": "QUJD\n", "text/plain": "x"}}
    lines = {"output_type": "stream", "name": "stdout", "text": ["a <b>\n", "\n", "\x1b[1mc\x1b[0m\n"]}
    warning = {"output_type": "stream", "name": "stderr", "text": "careful"}
    cells = [
        {"cell_type": "markdown", "source": ["# Title\n", "\n", "Text."]},
        {"cell_type": "code", "source": "f(1)", "outputs": [html, image, lines, warning]},
    ]
    path = tmp_path / "a.ipynb"
    path.write_text(json.dumps({"cells": cells}))
    hook = load_hook("notebooks")
    page = hook.notebook_page(path)
    assert page.startswith(
        '# Title\n\nThis page is a notebook: <a href="a.ipynb" download>download it</a>.\n\nText.\n\n```python\nf(1)\n```'
    )
    assert '<div class="cell-output"><b> x</b></div>' in page
    assert 'src="data:image/png;base64,QUJD"' in page
    assert "a &lt;b&gt;\n&#8203;\nc</code>" in page
    assert "careful" not in page
    assert hook.on_page_markdown("[a](x/a.ipynb) [b](https://x/b.ipynb)") == "[a](x/a.md) [b](https://x/b.ipynb)"
    cells[1]["outputs"] = [{"output_type": "error", "ename": "KeyError"}]
    path.write_text(json.dumps({"cells": cells}))
    with pytest.raises(ValueError, match="KeyError"):
        hook.notebook_page(path)
