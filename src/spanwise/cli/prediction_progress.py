"""Progress and summary of a prediction."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from spanwise.core.counting import counted

if TYPE_CHECKING:
    from spanwise.core.types import Sentence


class PredictionProgress:
    """Counts predicted sentences and entities, and shows a bar on a terminal."""

    def __init__(self) -> None:
        self.started = time.perf_counter()
        self.sentences = self.entities = self.relations = 0

    @contextmanager
    def show(self, *, is_visible: bool) -> Iterator[None]:
        """Show a bar on standard error while sentences are predicted."""
        from spanwise.runtime.progress import ProgressBar, listen

        done = 0

        def text() -> str:
            return f"{counted(done, 'sentence')}, {done / (time.perf_counter() - self.started):,.0f} sentences/s"

        def advance(count: int) -> None:
            nonlocal done
            done += count
            bar.show(done, text)

        with ProgressBar(None, is_visible=is_visible) as bar, listen(advance):
            yield

    def count(self, predicted: Iterable[Sentence]) -> Iterator[Sentence]:
        """Yield the sentences and count them."""
        for sentence in predicted:
            self.sentences += 1
            self.entities += len(sentence.entities)
            self.relations += len(sentence.relations)
            yield sentence

    @property
    def summary(self) -> str:
        relations = f", {counted(self.relations, 'relation')}" if self.relations else ""
        seconds = time.perf_counter() - self.started
        return f"{counted(self.sentences, 'sentence')}, {counted(self.entities, 'entity')}{relations}, {seconds:.1f} s"


def can_show_bar(has_output_file: bool) -> bool:
    """Whether a bar does not mix with predictions that are printed to the same terminal."""
    return has_output_file or not sys.stdout.isatty()
