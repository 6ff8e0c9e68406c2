"""A check of ``tokenizer.json`` from untrusted sources, before the library reads it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from spanwise.core.errors import SpanwiseError
from spanwise.files.limits import SUBWORD_IDS
from spanwise.files.reading import read_json


def check_tokenizer_file(path: Path) -> None:
    """Refuse a tokenizer with absurd ids of subwords, no unknown token, or a template of undefined special tokens.

    The library lists all numbers that are not an id, which aborts the process if memory runs out. It
    notices the other problems only when it reads a text.
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
    unknown = model.get("unk_token") if isinstance(model, dict) and model.get("type") == "WordPiece" else None
    if isinstance(unknown, str) and isinstance(vocabulary, dict) and unknown not in vocabulary:
        raise SpanwiseError(f"{path}: the unknown token {unknown} is not in the vocabulary")
    undefined = _undefined_tokens(content.get("post_processor"))
    if undefined:
        raise SpanwiseError(f"{path}: the template uses the special token {min(undefined)}, which it does not define")


def _undefined_tokens(processor: Any) -> set[str]:
    """The special tokens that templates use but do not define, also those of processors in a sequence."""
    if not isinstance(processor, dict):
        return set()
    inner = processor.get("processors")
    undefined = {name for part in inner for name in _undefined_tokens(part)} if isinstance(inner, list) else set()
    templates = [template for key in ("single", "pair") if isinstance(template := processor.get(key), list)]
    pieces = [piece for template in templates for piece in template if isinstance(piece, dict)]
    tokens = [piece["SpecialToken"] for piece in pieces if isinstance(piece.get("SpecialToken"), dict)]
    defined = processor.get("special_tokens")
    names = set(defined) if isinstance(defined, dict) else set()
    return undefined | ({str(token.get("id")) for token in tokens} - names)
