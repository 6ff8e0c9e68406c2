"""The folder of an exported model: two graphs, the tokenizer, and a record of what stands around the graphs."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict

from spanwise.config.validation import validate_settings
from spanwise.core.errors import SpanwiseError
from spanwise.decoding.soft_nms import SoftNms
from spanwise.encoders.numbers import FILE as VOCABULARY
from spanwise.encoders.rows import RowSettings
from spanwise.files.reading import read_json
from spanwise.runs.files import ONNX_RECORD

TOKENIZER, ENCODER, HEAD = "tokenizer.json", "encoder.onnx", "head.onnx"


class Chain(BaseModel):
    """What makes tags of their scores: transitions (from the row's tag to the column's) and those at either end."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    transitions: list[list[float]]
    start: list[float]
    end: list[float]
    is_crf: bool  # whether scores are those of a CRF; otherwise each word's softmax is the probability of its tag


class Record(BaseModel):
    """What the graphs do not know.

    ``encoder.onnx`` gives ``states``: a transformer's takes ``ids`` and ``seen`` [rows, length] and gives those of subwords;
    the static encoder's takes the arrays of ``Numbers.collate`` and gives those of words and, as ``sentences``, of sentences.
    ``head.onnx`` takes these and, of all the following, what it needs: the arrays of ``Rows.collate``; ``sentence``, ``start``
    and ``end`` of the spans to be judged; a ``threshold``. It gives the scores of tags [B, T, tags], or packed spans as
    ``Head.score`` does (sentence, start, end, label, score): one table, or those of entities, fragments and links.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    format: Literal[1] = 1
    gives: Literal["spans", "fragments", "tags"]
    precision: Literal["float32", "int8"]
    entities: tuple[str, ...]
    rows: RowSettings | None = None  # of a transformer's subwords; None for the static encoder
    unknown_id: int = 0  # the id of a word that the tokenizer does not see
    widths: tuple[int, ...] = ()  # of the spans to be judged, where the graph is told them
    threshold: float | None = None  # above which entities are proposed, where that can be chosen
    policy: str | SoftNms = "flat"
    fragments: tuple[str, ...] = ()  # types whose entities may have several
    chain: Chain | None = None


def read_record(folder: Path) -> Record:
    """The record of an exported model, all of whose files are there."""
    record = validate_settings(Record, read_json(folder / ONNX_RECORD), str(folder / ONNX_RECORD))
    missing = [name for name in (ENCODER, HEAD, TOKENIZER if record.rows else VOCABULARY) if not (folder / name).is_file()]
    if missing:
        raise SpanwiseError(f"{folder}: the exported model is not whole ({', '.join(missing)} missing)")
    return record
