"""Write a corpus with corrections (``spanwise audit --apply``)."""

from __future__ import annotations

from pathlib import Path

from spanwise.audit.correction_files import read_corrected
from spanwise.audit.corrections import Changes, apply_suggestions, correct_corpus
from spanwise.audit.folder import AuditFolder
from spanwise.audit.suggestions import audited_part, is_suggestion_file, is_suggestion_table, read_suggestions, sentence_keys
from spanwise.core.errors import SpanwiseError
from spanwise.corpora.conversion import write_splits
from spanwise.corpora.splits import find_split_files, read_corpus
from spanwise.formats import Ledger
from spanwise.runs.outputs import check_output


def apply_corrections(
    corrections: Path, data: Path | None = None, out: Path | None = None, *, data_format: str | None = None,
    target_format: str | None = None, lossy: bool = False,
) -> tuple[Path, Changes, Ledger]:  # fmt: skip
    """Correct ``data`` and write it to ``out``; return the path, what changed, and losses of reading and writing.

    ``corrections`` is a list of suggestions, all of which are applied, or a file or folder of annotated
    sentences in any format, whose entities replace those of the data. The data is that of the audit in
    whose folder the corrections are, if none is given. Splits that were not audited are copied.
    """
    if not corrections.exists():
        raise SpanwiseError(f"{corrections}: no such file or folder")
    if AuditFolder(corrections).record_file.is_file():
        raise SpanwiseError(f"{corrections}: is the folder of an audit; pass a file in it, such as suggestions.json")
    if is_suggestion_table(corrections):
        raise SpanwiseError(
            f"{corrections}: a table of suggestions cannot be applied; delete those that you reject from suggestions.json, and "
            "pass that file"
        )
    record = AuditFolder(corrections.absolute().parent).read_record()
    if data is None:
        if record is None or record.data is None:
            raise SpanwiseError(f"{corrections}: not in the folder of an audit; pass the data that was audited as DATA")
        data, data_format = Path(record.data), data_format or record.format
    is_corpus = bool(find_split_files(data))
    if out is None:
        out = corrections.absolute().parent / ("corrected" if is_corpus else "corrected.jsonl")
    check_output(out, [data, corrections])

    ledger = Ledger()
    corpus = read_corpus(data, data_format, ledger)
    keys = sentence_keys(audited_part(corpus, None if record is None else record.split, data))
    if is_suggestion_file(corrections):
        suggestions = read_suggestions(corrections)
        try:
            entities = apply_suggestions(keys, suggestions)
        except SpanwiseError as error:
            raise SpanwiseError(f"{corrections}: {error}") from None
    else:
        entities = read_corrected(corrections, keys, ledger)
    corrected, changes = correct_corpus(corpus, keys, entities)
    splits = {**corpus.splits, **corrected.splits}
    write_splits(splits, out, target_format, source=data, ledger=ledger, lossy=lossy, reopen=lambda: splits)
    return out, changes, ledger
