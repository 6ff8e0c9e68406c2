"""Scores in messages and reports: people read percentages, files have fractions."""

from __future__ import annotations


def percent(share: float) -> str:
    """Format a share as a percentage with two decimals.

    >>> percent(0.5529), percent(1.0)
    ('55.29', '100.00')
    """
    return f"{100 * share:.2f}"
