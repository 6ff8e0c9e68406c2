"""Find the row that ends a process, such as one that needs more memory than there is.

A process notes in a file which rows it annotates. If it dies, the next process that gets the shard reads
the note. Processes also die for other reasons (somebody kills them), so a batch of rows is annotated row
by row only after two deaths in it, and a row is blamed only after two deaths at that row.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

LIMIT = 2  # deaths


@dataclass
class StartNote:
    """The rows in progress, and earlier deaths. Rows are named by their places in the input."""

    path: Path
    deaths: dict[tuple[int, int], int] = field(default_factory=dict)  # by first and last row of what was in progress

    @classmethod
    def read(cls, path: Path) -> StartNote:
        """Read the note of a shard; rows that were in progress count as a death."""
        note = cls(path)
        with suppress(OSError, ValueError, TypeError, KeyError):
            content = json.loads(path.read_bytes())
            note.deaths = {(first, last): count for first, last, count in content["deaths"]}
            first, last = content["rows"]
            note.deaths[first, last] = note.deaths.get((first, last), 0) + 1
        return note

    def start(self, first: int, last: int) -> None:
        """Note that the rows from ``first`` to ``last`` are in progress."""
        self._write([first, last])

    def stop(self) -> None:
        """Note that no rows are in progress: the process was interrupted and did not die."""
        if self.deaths:
            self._write(None)
        else:
            with suppress(OSError):
                self.path.unlink()

    def _write(self, rows: list[int] | None) -> None:
        deaths = [[*places, count] for places, count in self.deaths.items()]
        with suppress(OSError):  # it is only needed after a death
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self.path.write_text(json.dumps({"rows": rows, "deaths": deaths}), encoding="utf-8")

    def is_suspicious(self, places: Sequence[int]) -> bool:
        """Whether processes died repeatedly within these rows."""
        return any(self._are_inside(rows, places) and count >= LIMIT for rows, count in self.deaths.items())

    def blamed(self, places: Sequence[int]) -> dict[int, str]:
        """Rows, by index, at which processes died repeatedly."""
        reason = "the process died while it annotated this row"
        return {index: reason for index, place in enumerate(places) if self.deaths.get((place, place), 0) >= LIMIT}

    @staticmethod
    def _are_inside(rows: tuple[int, int], places: Sequence[int]) -> bool:
        return bool(places) and places[0] <= rows[0] and rows[1] <= places[-1]


def read_rows_in_progress(path: Path) -> tuple[int, int] | None:
    """The places of the first and last row that a process was annotating."""
    with suppress(OSError, ValueError, TypeError, KeyError):
        first, last = json.loads(path.read_bytes())["rows"]
        return first, last
    return None
