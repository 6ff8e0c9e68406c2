"""Models that are installed as Python packages, found by the entry point ``spanwise.models``.

The value of an entry point is the package whose folder holds the model. Its code, if it has any, is
not imported.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from spanwise.core.errors import SpanwiseError, did_you_mean
from spanwise.core.registry import Registry
from spanwise.files.reading import read_json
from spanwise.runs.folder import RunFolder

GROUP = "spanwise.models"


@dataclass(frozen=True)
class InstalledModel:
    """A model that is installed as a package. ``types`` are its entity types."""

    name: str
    version: str
    folder: Path
    types: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        return {**vars(self), "folder": str(self.folder), "types": list(self.types)}


def installed_models() -> list[InstalledModel]:
    """All installed models, by name."""
    return [_read_model(name) for name in _registry()]


def installed_folder(name: str) -> Path | None:
    """The folder of an installed model; None if there is none of this name.

    Names are compared as those of packages: ``en_biomed`` and ``EN-Biomed`` are ``en-biomed``.
    """
    registry, name = _registry(), normalize_name(name)
    if name not in registry:
        return None
    entry = registry.entry_point(name)
    try:
        spec = find_spec(entry.module)
    except (ImportError, ValueError):
        spec = None
    if spec is None or not spec.submodule_search_locations:
        raise SpanwiseError(f"installed model {name!r}: the package {entry.value} is missing; install it again")
    return Path(next(iter(spec.submodule_search_locations)))


def suggest_installed(name: str) -> str:
    """The end of an error about an unknown model: the installed ones, the closest first; empty if there are none."""
    names = list(_registry())
    hint = did_you_mean(normalize_name(name), names)
    return f"; no installed model has this name{hint}; installed: {', '.join(names)}" if names else ""


def normalize_name(name: str) -> str:
    """The normalised name of a package (PEP 503).

    >>> normalize_name("EN_Biomed")
    'en-biomed'
    """
    return re.sub(r"[-_.]+", "-", name).lower()


def _read_model(name: str) -> InstalledModel:
    folder, package = installed_folder(name), _registry().entry_point(name).dist
    assert folder is not None
    types = read_json(RunFolder(folder).labels_file).get("entities", ())
    return InstalledModel(name, package.version if package else "", folder, tuple(map(str, types)))


def _registry() -> Registry:
    """The registered models. Entry points are cached; this registry is not, because tests change ``sys.path``."""
    return Registry("model", GROUP, {})
