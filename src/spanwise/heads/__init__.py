"""The methods by the ``kind`` that a recipe names."""

from __future__ import annotations

from importlib import import_module

from spanwise.errors import unknown
from spanwise.heads.base import Head

_KINDS = {"seqner": ("seqner", "SeqNer"), "spanner": ("spanner", "SpanNer")}


def head_class(kind: str) -> type[Head]:
    """The class of a head."""
    if kind not in _KINDS:
        raise unknown("head", kind, _KINDS)
    module, name = _KINDS[kind]
    found: type[Head] = getattr(import_module(f"spanwise.heads.{module}"), name)
    return found
