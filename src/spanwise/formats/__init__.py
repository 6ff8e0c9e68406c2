"""Formats of annotated text: one module per format, and a registry that detects them."""

from spanwise.formats.base import Format, Ledger
from spanwise.formats.registry import LossError, can_detect, detect, formats, is_companion, read, write

__all__ = ["Format", "Ledger", "LossError", "can_detect", "detect", "formats", "is_companion", "read", "write"]
