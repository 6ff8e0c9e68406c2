"""Write the files of an audit."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from spanwise.analysis.writing import REPORT, TABLES, file_name, write_table
from spanwise.audit.browser import audit_page
from spanwise.audit.correction_files import sentences_to_correct
from spanwise.audit.edits import EditedFiles
from spanwise.audit.folder import AuditFolder
from spanwise.audit.result import Audit
from spanwise.audit.suggestions import write_csv_suggestions, write_json_suggestions
from spanwise.audit.tables import consistency_section
from spanwise.core.errors import SpanwiseError
from spanwise.files.writing import atomic_files, atomic_output, open_output
from spanwise.formats import Format, Ledger
from spanwise.formats.registry import output_format, write_as

TO_CORRECT = "to-correct"  # name of the sentences with suggestions; the format adds its extension


def correction_format(to: str) -> tuple[Format, dict[str, object]]:
    """The format of the sentences to correct; Label Studio gets predictions, which nobody has submitted yet."""
    format, options = output_format(Path(TO_CORRECT), to)
    return format, {"kind": "predictions", **options} if format.name == "label_studio" else options


def write_outputs(audit: Audit, folder: AuditFolder, to: str | None, log: Callable[[str], None]) -> list[Path]:
    """Write suggestions, tables and page, and with ``to`` the sentences to correct; return the paths of the files.

    Suggestions and sentences that a person has edited are kept.
    """
    edits = EditedFiles(folder)
    consistency = consistency_section([sentence for _, sentence in audit.keys.values()], list(audit.keys))
    with atomic_files(folder.path) as temporary:
        write_csv_suggestions(audit.suggestions, audit.keys, temporary / "suggestions.csv")
        write_json_suggestions(audit.suggestions, audit.keys, temporary / "suggestions.json")
        for file in (temporary / "suggestions.csv", temporary / "suggestions.json"):
            if _should_keep(folder.path / file.name, edits, log):
                file.unlink()
            else:
                edits.record(file)
        (temporary / TABLES).mkdir()
        for name, table in consistency.tables.items():
            write_table(table, temporary / TABLES / f"{file_name(consistency, name)}.csv")
        with open_output(temporary / REPORT) as page:
            page.write(audit_page(audit, consistency))
        names = [name for name in ("suggestions.csv", "suggestions.json", REPORT) if (temporary / name).exists()]
    written = [folder.path / name for name in names]
    return written if to is None else written + _write_corrections(audit, folder.path, to, edits, log)


def _write_corrections(audit: Audit, folder: Path, to: str, edits: EditedFiles, log: Callable[[str], None]) -> list[Path]:
    format, options = correction_format(to)
    path = folder / (TO_CORRECT if format.writes_folder else TO_CORRECT + format.extensions[0])
    if _should_keep(path, edits, log):
        return []
    sentences, ledger = sentences_to_correct(audit.keys, audit.suggestions, format.name), Ledger()
    with atomic_output(path, is_folder=format.writes_folder, may_replace=lambda old: True) as temporary:
        write_as(format, options, sentences, temporary, ledger)
        if ledger.lost:  # applied, the file would remove these annotations from the data
            advice = "run the audit again with --resume and another --to, such as jsonl, which supports everything"
            raise SpanwiseError(f"{path}: not written because {format.name} would drop {ledger}; {advice}")
        edits.record(temporary)
    return [path]


def _should_keep(path: Path, edits: EditedFiles, log: Callable[[str], None]) -> bool:
    is_edited = edits.has_edited(path.name)
    if is_edited:
        log(f"note: kept {path}, which was edited; move it away to write it again")
    return is_edited
