"""Spanwise: span-based named entity recognition, flat, nested and discontinuous, with relations."""

from __future__ import annotations

__version__ = "0.1.0"
