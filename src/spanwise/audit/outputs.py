"""Write the files of an audit."""

from __future__ import annotations

import shutil
from pathlib import Path

from spanwise.analysis.writing import REPORT, TABLES, file_name, write_table
from spanwise.audit.browser import audit_page
from spanwise.audit.correction_files import sentences_to_correct
from spanwise.audit.result import Audit
from spanwise.audit.suggestions import write_csv_suggestions, write_json_suggestions
from spanwise.audit.tables import consistency_section
from spanwise.files.writing import atomic_files, atomic_output, open_output
from spanwise.formats import Format, Ledger
from spanwise.formats.registry import output_format, write_as

TO_CORRECT = "to-correct"  # name of the sentences with suggestions; the format adds its extension


def correction_format(to: str) -> tuple[Format, dict[str, object]]:
    """The format of the sentences to correct; Label Studio gets predictions, which nobody has submitted yet."""
    format, options = output_format(Path(TO_CORRECT), to)
    return format, {"kind": "predictions", **options} if format.name == "label_studio" else options


def write_outputs(audit: Audit, folder: Path, to: str | None) -> Path | None:
    """Write suggestions, tables and page, and with ``to`` the sentences to correct; return the path of these."""
    consistency = consistency_section([sentence for _, sentence in audit.keys.values()], list(audit.keys))
    with atomic_files(folder) as temporary:
        write_json_suggestions(audit.suggestions, audit.keys, temporary / "suggestions.json")
        write_csv_suggestions(audit.suggestions, audit.keys, temporary / "suggestions.csv")
        (temporary / TABLES).mkdir()
        for name, table in consistency.tables.items():
            write_table(table, temporary / TABLES / f"{file_name(consistency, name)}.csv")
        with open_output(temporary / REPORT) as file:
            file.write(audit_page(audit, consistency))
    return None if to is None else _write_corrections(audit, folder, to)


def _write_corrections(audit: Audit, folder: Path, to: str) -> Path:
    format, options = correction_format(to)
    path = folder / (TO_CORRECT if format.writes_folder else TO_CORRECT + format.extensions[0])
    sentences = sentences_to_correct(audit.keys, audit.suggestions, format.name)
    if format.writes_folder and path.is_dir():
        shutil.rmtree(path)
    with atomic_output(path, is_folder=format.writes_folder) as temporary:
        write_as(format, options, sentences, temporary, Ledger())
    return path
