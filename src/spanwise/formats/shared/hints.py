"""Hints about a file whose format cannot be detected."""

from __future__ import annotations

import re

from spanwise.core.tags import is_tag
from spanwise.files.encodings import marked_encoding
from spanwise.formats.conll_layout import suggest_columns
from spanwise.formats.shared.sample import Sample

_COMPRESSED = {b"\x1f\x8b": "gzip", b"PK\x03\x04": "zip", b"BZh": "bzip2", b"\xfd7zXZ": "xz", b"\x28\xb5\x2f\xfd": "zstd"}


def find_problem(sample: Sample) -> str | None:
    """Return why no format can read the file, if its first bytes show it."""
    for signature, name in _COMPRESSED.items():
        if sample.raw.startswith(signature):
            return f"is compressed ({name}); decompress it first"
    if encoding := marked_encoding(sample.raw):
        return f"is {encoding.upper()} text; pass --encoding {encoding}, or convert it to UTF-8"
    return None


def describe_content(sample: Sample) -> str:
    """Return a hint about the content of a file in no known format."""
    if sample.dicts:
        keys = dict.fromkeys(key for record in sample.dicts for key in record)
        return f"; its records have the keys {', '.join(f'{key!r:.40}' for key in list(keys)[:10])}{_suggest_keys(sample)}"
    first = sample.text.lstrip()[:1]
    if first and first in "[{" and sample.is_complete:
        return "; it starts like JSON, but is neither an array of records nor one record per line"
    if root := re.search(r"<([A-Za-z]\w*)", sample.text[:1000]) if first == "<" else None:
        return f"; it starts with <{root[1]:.40}>, but genia_xml has <set> and bioc_xml has <collection>"
    advice = suggest_columns(sample.lines)
    return f"; {advice}" if advice else ""


def _suggest_keys(sample: Sample) -> str:
    """Return the advice to read records with a list of words and a list of tags, or an empty string."""
    lists = {key: value for key, value in sample.dicts[0].items() if isinstance(value, list) and value}
    strings = {key: value for key, value in lists.items() if all(isinstance(item, str) for item in value)}
    for tags, values in strings.items():
        for tokens, words in strings.items():
            if tokens != tags and len(words) == len(values) and all(map(is_tag, values)):
                return f"; {tags!r:.40} looks like tags; use hf_dataset:tokens={tokens:.40},tags={tags:.40}"
    return ""
