"""Files that are read together with another file: the texts of brat annotations and of tables, the names of tags."""

from __future__ import annotations

from pathlib import Path

TABLES_OF_TEXTS = ("texts.csv", "texts.tsv")
DATASET_INFO = "dataset_info.json"  # of Hugging Face datasets
_PAIRS = {".ann": ".txt", ".txt": ".ann"}
_TABLES = (".csv", ".tsv")
_JSON = (".json", ".jsonl")


def companion_files(path: Path) -> list[Path]:
    """Return the existing files that may be read together with a file, without the file itself."""
    suffix = path.suffix.lower()
    if path.suffix in _PAIRS:
        files = [path.with_suffix(_PAIRS[path.suffix])]
    elif suffix in _TABLES:
        files = [*(path.with_name(name) for name in TABLES_OF_TEXTS if name != path.name), *sorted(path.parent.glob("*.txt"))]
    elif suffix in _JSON and path.name != DATASET_INFO:
        files = [path.with_name(DATASET_INFO)]
    else:
        files = []
    return [file for file in files if file.is_file()]
