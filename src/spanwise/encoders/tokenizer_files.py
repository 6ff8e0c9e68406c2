"""A check of ``tokenizer.json`` from untrusted sources, before the library reads it."""

from __future__ import annotations

from pathlib import Path

from spanwise.core.errors import SpanwiseError
from spanwise.files.limits import SUBWORD_IDS
from spanwise.files.reading import read_json


def check_tokenizer_file(path: Path) -> None:
    """Refuse a tokenizer with absurd ids of subwords.

    The library lists all numbers that are not an id, which aborts the process if memory runs out.
    """
    if not path.is_file():
        return
    content = read_json(path)
    model, added = content.get("model"), content.get("added_tokens")
    vocabulary = model.get("vocab") if isinstance(model, dict) else None
    ids = list(vocabulary.values()) if isinstance(vocabulary, dict) else []
    ids += [token.get("id") for token in added if isinstance(token, dict)] if isinstance(added, list) else []
    largest = max((id for id in ids if isinstance(id, int)), default=0)
    if largest > SUBWORD_IDS:
        raise SpanwiseError(f"{path}: the subword id {largest} exceeds the limit of {SUBWORD_IDS:,}")
