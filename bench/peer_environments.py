"""Virtual environments of the peers, with versions that work together."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

TORCH = "torch==2.13.0"
# eznlp is installed without its dependencies: its worker replaces five of them by empty modules.
REQUIREMENTS: Mapping[str, Sequence[Sequence[str]]] = {
    "spacy": [[TORCH, "spacy==3.8.18", "spacy-transformers==1.4.0"]],
    "gliner": [[TORCH, "gliner==0.2.29", "transformers==5.16.1"]],
    "flair": [[TORCH, "flair==0.15.1", "transformers==4.57.6"]],
    "span_marker": [[TORCH, "span-marker==1.8.1", "transformers==4.57.6"]],
    "edsnlp": [[TORCH, "edsnlp[ml]==0.23.0", "transformers==5.22.2"]],
    "eznlp": [
        [TORCH, "transformers==4.57.6", "spacy==3.8.18", "pandas==2.3.3", "matplotlib==3.11.2"],
        ["--no-deps", "eznlp==0.4.0"],
    ],
    "hf": [[TORCH, "transformers==5.22.2", "accelerate==1.15.0"]],
}


def create_environment(name: str, folder: Path) -> str:
    """Return the Python of an environment in a folder; create it unless a call before has finished it."""
    python = folder / name / "bin" / "python"
    installed = folder / name / "installed.txt"
    wanted = "".join(" ".join(packages) + "\n" for packages in REQUIREMENTS[name])
    if not installed.exists() or installed.read_text(encoding="utf-8") != wanted:
        print(f"Installing {name} into {folder / name}", flush=True)
        subprocess.run([sys.executable, "-m", "venv", "--clear", folder / name], check=True)
        for packages in REQUIREMENTS[name]:
            subprocess.run([python, "-m", "pip", "install", "--quiet", *packages], check=True)
        installed.write_text(wanted, encoding="utf-8")
    return str(python)
