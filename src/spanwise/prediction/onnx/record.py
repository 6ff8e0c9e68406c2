"""Record of an exported model: the settings that prediction needs in addition to the graphs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, model_validator

from spanwise.config.settings import CalibrationSettings
from spanwise.config.validation import TypeNames, validate_settings
from spanwise.core.counting import counted
from spanwise.core.errors import SpanwiseError
from spanwise.decoding.decode import overlap_policy
from spanwise.decoding.soft_nms import SoftNms
from spanwise.encoders.joint_indexing import part_folder
from spanwise.encoders.subword_indexing import SubwordSettings
from spanwise.encoders.word_indexing import FILE as VOCABULARY
from spanwise.files.reading import read_json
from spanwise.runs.folder import RunFolder

TOKENIZER, ENCODER, HEAD, RELATIONS = "tokenizer.json", "encoder.onnx", "head.onnx", "relations.onnx"
FLOAT32 = "float32"
POLICIES = ("overlapping", "nested", "flat")
SpanWidth = Annotated[int, Field(ge=1, lt=1 << 31)]


class Transitions(BaseModel):
    """Transition scores between tags (from row to column), and at the start and end of a sentence."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    transitions: list[list[FiniteFloat]]
    start: list[FiniteFloat]
    end: list[FiniteFloat]
    is_crf: bool  # False: the softmax over a word's scores gives the probability of its tag

    @model_validator(mode="after")
    def _check_sizes(self) -> Self:
        if {len(self.start), len(self.end), *map(len, self.transitions)} != {len(self.transitions)}:
            raise ValueError("expected as many rows, columns, start scores and end scores as tags")
        return self


class TriedQuantization(BaseModel):
    """A quantisation and its scores on dev. F1 and its loss compared with float32 are in points of 100."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    name: str
    f1: FiniteFloat
    loss: FiniteFloat
    megabytes: FiniteFloat  # of the model
    # Per sentence; not stored, so that exports of the same model are equal.
    milliseconds: FiniteFloat | None = Field(default=None, exclude=True)


class QuantizationRecord(BaseModel):
    """How the quantisation of an exported model was chosen; without ``data``, by default.

    Of the ``tried`` ones, the first with a loss of at most ``max_loss`` was chosen, or float32.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    chosen: str
    data: str | None = None
    sentences: int = 0
    max_loss: FiniteFloat | None = None
    tried: tuple[TriedQuantization, ...] = ()

    @property
    def precision(self) -> Literal["float32", "int8"]:
        return "float32" if self.chosen == FLOAT32 else "int8"

    @property
    def summary(self) -> str:
        """The chosen quantisation and, if it was measured, its F1.

        >>> QuantizationRecord(chosen="all in blocks").summary
        'all in blocks'
        """
        scores = {tried.name: tried.f1 for tried in self.tried}
        if not {self.chosen, FLOAT32} <= scores.keys():
            return self.chosen
        f1, exact = scores[self.chosen], scores[FLOAT32]
        return f"{self.chosen} (F1 {f1:.2f}, float32 {exact:.2f}, on {counted(self.sentences, 'sentence')} of {self.data})"


class EncoderRecord(BaseModel):
    """Settings of an encoder: of a transformer (``subwords``), the static encoder, or a concatenation (``parts``).

    ``encoder.onnx`` returns ``states``. That of a transformer takes ``ids`` and ``seen`` [rows,
    length] and returns subword states. That of the static encoder takes the arrays of
    ``WordIndexer.collate`` and returns word states, and sentence states as ``sentences``. Each part
    of a concatenation has its own folder with its graph.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    subwords: SubwordSettings | None = None  # of a transformer
    unknown_id: int = 0  # of words without subwords
    parts: tuple[EncoderRecord, ...] = ()

    @model_validator(mode="after")
    def _check_kind(self) -> Self:
        if self.parts and self.subwords is not None:
            raise ValueError("expected subwords or parts, found both")
        return self

    def files(self) -> Iterator[str]:
        """The names of the files that the encoder needs."""
        for index, part in enumerate(self.parts):
            yield from (f"{part_folder(index)}/{name}" for name in part.files())
        if not self.parts:
            yield from (ENCODER, TOKENIZER if self.subwords else VOCABULARY)


class RelationRecord(BaseModel):
    """Settings of the relations between decoded entities, whose pairs ``relations.onnx`` scores."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    types: TypeNames = Field(min_length=1)
    threshold: Annotated[float, Field(gt=0, lt=1)]
    has_joint_scores: bool = False  # the score of a relation is multiplied by those of its entities


class Record(EncoderRecord):
    """Settings of an exported model.

    ``head.onnx`` takes the states of the encoder and any of: the other arrays that the encoder reads
    (those of the first part of a concatenation are named ``0.name``); ``sentence``, ``start`` and
    ``end`` of the candidate spans; a ``threshold``. It returns tag scores [B, T, tags], or packed
    spans as ``Head.score`` does (sentence, start, end, label, score): one table, or one each for
    entities, fragments and links.

    ``relations.onnx`` takes the same inputs as ``head.onnx`` with the decoded entities (``sentence``,
    ``start``, ``end``, ``label``) and pairs of them (``pair_first``, ``pair_second``), and returns the logits of
    all relation types [pairs, types].
    """

    format: Literal[1] = 1
    returns: Literal["spans", "fragments", "tags"]  # by head.onnx
    precision: Literal["float32", "int8"]
    entities: TypeNames = Field(min_length=1)
    span_widths: tuple[SpanWidth, ...] = ()  # of the candidate spans, if the graph takes them as input
    threshold: FiniteFloat | None = None  # default; None if the head has none
    policy: str | SoftNms = "flat"
    fragment_types: TypeNames = ()  # types with discontinuous entities
    tags: Transitions | None = None
    relations: RelationRecord | None = None
    quantization: QuantizationRecord | None = None  # of an export with --int8
    thresholds: dict[str, Annotated[float, Field(ge=0, le=1)]] | None = None  # by type, found on dev
    calibration: CalibrationSettings | None = None  # of scores, fitted on dev

    def files(self) -> Iterator[str]:
        yield from (*super().files(), HEAD, *((RELATIONS,) if self.relations is not None else ()))

    @model_validator(mode="after")
    def _check_consistency(self) -> Self:
        policy = overlap_policy(self.policy)
        if policy not in POLICIES:
            raise ValueError(f"policy: expected {', '.join(POLICIES)}, found {policy!r:.60}")
        if (self.returns == "tags") != (self.tags is not None):
            raise ValueError("tags: expected for a graph that returns tags, and for no other")
        if self.tags is not None and len(self.tags.start) != 2 * len(self.entities) + 1:
            expected = f"expected {2 * len(self.entities) + 1} for {counted(len(self.entities), 'type')}"
            raise ValueError(f"tags: {expected}, found {len(self.tags.start)}")
        return self


def read_record(folder: Path) -> Record:
    """Read the record of an exported model and check that all its files exist."""
    path = RunFolder(folder).onnx_file
    record = validate_settings(Record, read_json(path), str(path))
    missing = [name for name in record.files() if not (folder / name).is_file()]
    if missing:
        raise SpanwiseError(f"{folder}: the exported model is incomplete; missing {', '.join(missing)}")
    return record
