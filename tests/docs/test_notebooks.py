"""The notebooks of the documentation run, and their stored outputs are those of the present code.

Training is made small, so that texts and figures differ; the kinds of outputs must agree. Outputs of cells with
the tag ``exact`` do not depend on training and must be equal.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cases import in_case
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


@pytest.fixture
def kernel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A kernel for all notebooks: importing torch and the library takes most of the time of one."""
    pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    from jupyter_client.manager import KernelManager

    manager = KernelManager(kernel_name="python3")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TMPDIR", str(tmp_path_factory.mktemp("kernel")))  # for the runs of notebooks
        patch.setenv("OMP_NUM_THREADS", "1")
        manager.start_kernel(cwd=str(tmp_path_factory.mktemp("notebooks")))
    yield manager
    manager.shutdown_kernel(now=True)


def test_notebooks_run_and_their_outputs_are_current(kernel: Any, capfd: Any) -> None:
    for path in NOTEBOOKS:
        with in_case(path.stem):
            check_notebook(path, kernel)


def check_notebook(path: Path, kernel: Any) -> None:
    import nbclient
    import nbformat

    stored = nbformat.read(path, 4)
    current = nbformat.read(path, 4)
    assert SIZES.search(current.cells[1].source)
    current.cells[1].source = "SENTENCES, EPOCHS = 24, 1"
    current.cells.insert(0, nbformat.v4.new_code_cell("%reset -f"))  # no names of other notebooks
    nbclient.NotebookClient(current, km=kernel, timeout=None, coalesce_streams=True).execute()
    del current.cells[0]
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
