"""The command line: one file per command, each a thin call into the library."""

from __future__ import annotations


def main() -> None:
    raise SystemExit("under construction")
