"""Annotated text in the formats people have: one file each, one registry that tells them apart."""

from spanwise.formats.base import Format, Ledger
from spanwise.formats.registry import LossError, detect, formats, is_known, read, write

__all__ = ["Format", "Ledger", "LossError", "detect", "formats", "is_known", "read", "write"]
