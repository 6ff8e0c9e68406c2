"""Running the graphs of an exported model, with checks of their inputs and outputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from spanwise.core.errors import SpanwiseError, first_line

COLUMNS = 6  # sentence, start, end, label, score, log-odds


class Graph:
    """A graph in an onnxruntime session. Errors name its file."""

    def __init__(self, path: Path, session: Any) -> None:
        self.path, self._session = path, session
        self.inputs = [value.name for value in session.get_inputs()]
        self.outputs = [value.name for value in session.get_outputs()]

    def select(self, arrays: Mapping[str, npt.NDArray[Any]]) -> dict[str, npt.NDArray[Any]]:
        """The inputs of the graph."""
        if missing := [name for name in self.inputs if name not in arrays]:
            raise self.error(f"needs the input {missing[0]!r}")
        return {name: arrays[name] for name in self.inputs}

    def run(self, arrays: Mapping[str, npt.NDArray[Any]]) -> list[npt.NDArray[Any]]:
        try:
            outputs: list[Any] = self._session.run(None, self.select(arrays))
        except SpanwiseError:
            raise
        except Exception as error:  # onnxruntime has its own exceptions, without a common base
            raise self.error(first_line(error)) from None
        if not all(isinstance(output, np.ndarray) for output in outputs):
            raise self.error("returns values that are not tensors")
        return outputs

    def check_tags(self, scores: Sequence[npt.NDArray[Any]], mask: npt.NDArray[np.bool_], tags: int) -> None:
        """Check that the graph returned finite scores [B, T, tags]."""
        shape = (*mask.shape, tags)
        if len(scores) != 1 or scores[0].shape != shape or scores[0].dtype.kind != "f":
            raise self.error(f"expected tag scores of shape {shape}, found {_describe(scores)}")
        if not np.isfinite(scores[0][mask]).all():
            raise self.error("computed scores that are not finite numbers")

    def check_spans(self, columns: Sequence[npt.NDArray[Any]], mask: npt.NDArray[np.bool_], types: Sequence[int]) -> None:
        """Check that the graph returned tables of spans inside the sentences; ``types`` is the number of types of each."""
        lengths = mask.sum(1)
        if len(columns) != COLUMNS * len(types) or any(column.ndim != 1 for column in columns):
            raise self.error(f"expected {COLUMNS * len(types)} columns of spans, found {_describe(columns)}")
        for number, count in enumerate(types):
            table = columns[COLUMNS * number : COLUMNS * (number + 1)]
            sentence, start, end, label, *scores = table
            if len({len(column) for column in table}) > 1 or any(column.dtype.kind != "i" for column in table[:4]):
                raise self.error(f"expected columns of equal length, found {_describe(table)}")
            if not all(np.isfinite(score).all() for score in scores):
                raise self.error("computed scores that are not finite numbers")
            if not len(sentence):
                continue
            is_inside = (sentence >= 0) & (sentence < len(lengths)) & (start >= 0) & (start < end)
            is_inside &= (label >= 0) & (label < count)
            if not is_inside.all() or (end > lengths[sentence]).any():
                raise self.error("returns spans outside the sentence, or of unknown types")

    def check_pairs(self, logits: Sequence[npt.NDArray[Any]], pairs: int, types: int) -> None:
        """Check that the graph returned finite logits [pairs, types]."""
        if len(logits) != 1 or logits[0].shape != (pairs, types) or logits[0].dtype.kind != "f":
            raise self.error(f"expected scores of shape {(pairs, types)}, found {_describe(logits)}")
        if not np.isfinite(logits[0]).all():
            raise self.error("computed scores that are not finite numbers")

    def error(self, problem: str) -> SpanwiseError:
        return SpanwiseError(f"{self.path}: the graph does not fit the exported model: {problem}")


def _describe(arrays: Sequence[npt.NDArray[Any]]) -> str:
    return ", ".join(f"{array.dtype}{list(array.shape)}" for array in arrays[:6]) or "nothing"
