"""The data that a model was trained on, as far as scores of the model depend on it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from spanwise.core.errors import SpanwiseError
from spanwise.files.reading import read_json
from spanwise.files.writing import write_json
from spanwise.runs.folder import RunFolder


@dataclass(frozen=True)
class Provenance:
    """The fingerprints of the splits of the training data, and the types that the model kept (``--keep-types``).

    The data does not annotate the kept types.
    """

    fingerprints: Mapping[str, str] = field(default_factory=dict)
    kept_types: tuple[str, ...] = ()

    @classmethod
    def read(cls, folder: Path) -> Provenance:
        """Read the report of a run or, in an exported model, its own file; empty if there is no valid one."""
        run = RunFolder(folder)
        try:
            record = read_json(run.report_file if run.is_finished else run.provenance_file)
            fingerprints = {str(split): str(values["fingerprint"]) for split, values in record["data"].items()}
            kept = tuple(str(type) for type in record["kept_types"]["types"]) if "kept_types" in record else ()
        except (SpanwiseError, KeyError, TypeError, ValueError, AttributeError):
            return cls()
        return cls(fingerprints, kept)

    def write(self, folder: Path) -> None:
        """Write the file of an exported model, with the keys of a report; nothing if the data is unknown."""
        if not self.fingerprints:
            return
        record: dict[str, Any] = {"data": {split: {"fingerprint": value} for split, value in self.fingerprints.items()}}
        if self.kept_types:
            record["kept_types"] = {"types": list(self.kept_types)}
        write_json(RunFolder(folder).provenance_file, record)
