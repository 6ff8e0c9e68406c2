"""What the first prediction of a process imports: heavy modules that it does not need take most of its time."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tiny import model

from spanwise.export.onnx import export_onnx

TEXT = "oslo was quiet.\n"
# Imported by the transformers library, or needed only for training and figures.
HEAVY = (
    "accelerate", "huggingface_hub", "jinja2", "matplotlib", "numba", "pandas", "PIL", "pyarrow", "requests", "rich", "scipy",
    "sklearn", "sympy", "torch._dynamo", "torch._inductor", "torch.distributed.tensor", "torch.onnx.ops", "transformers",
)  # fmt: skip


def heavy_imports(run: Path, folder: Path, *more: str) -> list[str]:
    """Predict one sentence in a new process, and return which heavy modules it has imported."""
    text, output = folder / "one.txt", folder / "out.jsonl"
    text.write_text(TEXT, encoding="utf-8")
    program = f"""
import atexit, gc, sys
from spanwise.cli import main
atexit.register(lambda: print(gc.isenabled(), gc.get_freeze_count() > 0))
try:
    main(["predict", {str(run)!r}, {str(text)!r}, "--output", {str(output)!r}, "--device", "cpu"])
except SystemExit as exited:
    assert not exited.code, exited.code
print(*(name for name in {(*HEAVY, *more)!r} if name in sys.modules))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert output.read_text().count("\n") == 1
    *_, names, collection = done.stdout.splitlines()
    assert collection == "True True"  # collection continues after loading, and has nothing to search at exit
    return names.split()


@pytest.mark.parametrize("encoder", ["static", "tiny_bert"])
def test_prediction_with_torch_imports_nothing_else_that_is_heavy(
    request: pytest.FixtureRequest, tmp_path: Path, encoder: str
) -> None:
    source = encoder if encoder == "static" else request.getfixturevalue(encoder)
    model(source, "global-pointer").save(tmp_path / "run")
    assert heavy_imports(tmp_path / "run", tmp_path) == []


def test_prediction_with_onnx_imports_neither_torch_nor_the_network(tiny_bert: Path, tmp_path: Path) -> None:
    model(tiny_bert, "global-pointer").save(tmp_path / "run")
    export_onnx(tmp_path / "run", tmp_path / "model")
    unused = ("torch", "safetensors", "urllib.request", "ssl", "yaml", "numpy.ma", "spanwise.cli.train")
    assert heavy_imports(tmp_path / "model", tmp_path, *unused) == []
