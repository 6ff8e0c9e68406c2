"""How a head declares its ONNX graph."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

import torch
from torch import Tensor

from spanwise.decoding.decode import Policy
from spanwise.encoders.base import TokenStates
from spanwise.heads.outputs import ScoredSpans

SPAN_COLUMNS = ("sentence", "start", "end", "label", "score", "log_odds")
Compute: TypeAlias = Callable[[TokenStates, Mapping[str, Tensor]], tuple[Tensor, ...]]


@dataclass(frozen=True)
class TagTransitions:
    """Scores of tag transitions, with which Viterbi runs outside the graph."""

    transitions: Tensor  # [tags, tags], from the row's tag to the column's
    start: Tensor
    end: Tensor
    is_crf: bool  # False: the softmax over a word's scores gives the probability of its tag


@dataclass(frozen=True, kw_only=True)
class RelationGraph:
    """The layer of a relation head that scores pairs of decoded entities, with the data to trace it.

    ``compute`` receives the states and these inputs: ``sentence``, ``start``, ``end`` and ``label`` of
    the entities [S], and ``pair_first`` and ``pair_second`` [P], which are indices of entities. It
    returns the logits of all relation types [P, R].
    """

    compute: Callable[[TokenStates, Mapping[str, Tensor]], Tensor]
    types: tuple[str, ...]
    threshold: float  # relations with a higher probability are predicted
    has_joint_scores: bool  # the score of a relation is multiplied by those of its entities


@dataclass(frozen=True, kw_only=True)
class OnnxGraph:
    """The data that ``spanwise export --onnx`` needs to trace a head and to decode the outputs of its graph.

    ``compute`` is traced. It receives the states and these inputs: ``sentence``, ``start`` and
    ``end`` of all spans whose width is in ``span_widths`` (empty tensors if there is none) and, with
    ``has_threshold_input``, a scalar ``threshold``. It returns the tensors named in ``outputs``:

    * ``returns="spans"``: the table of ``ScoredSpans``, which ``policy`` decodes;
    * ``returns="fragments"``: this, and the same tables of fragments and of links between them;
    * ``returns="tags"``: scores [B, T, tags], which ``tags`` decodes.
    """

    returns: Literal["spans", "fragments", "tags"]
    outputs: tuple[str, ...]
    compute: Compute
    policy: Policy
    max_width: int | None  # words of the widest span that is scored; None: any width
    span_widths: tuple[int, ...] = ()
    has_threshold_input: bool = False
    tags: TagTransitions | None = None
    fragment_types: tuple[str, ...] = ()
    relations: RelationGraph | None = None

    @classmethod
    def of_spans(
        cls, score: Callable[[TokenStates, Mapping[str, Tensor]], ScoredSpans], policy: Policy, max_width: int | None,
        *, span_widths: tuple[int, ...] = (), has_threshold_input: bool = False,
    ) -> OnnxGraph:  # fmt: skip
        """The graph of a head whose ``Head.score`` consists of tensor operations only."""
        return cls(
            returns="spans", outputs=span_outputs("spans"), compute=lambda states, inputs: span_table(score(states, inputs)),
            policy=policy, max_width=max_width, span_widths=span_widths, has_threshold_input=has_threshold_input,
        )  # fmt: skip


def span_outputs(table: str) -> tuple[str, ...]:
    """The names of the outputs for one table of scored spans.

    >>> span_outputs("links")
    ('links.sentence', 'links.start', 'links.end', 'links.label', 'links.score', 'links.log_odds')
    """
    return tuple(f"{table}.{column}" for column in SPAN_COLUMNS)


def span_table(spans: ScoredSpans) -> tuple[Tensor, ...]:
    """The tensors of ``SPAN_COLUMNS``; log-odds that a head does not compute are 0."""
    return (*spans.columns, torch.zeros_like(spans.score) if spans.log_odds is None else spans.log_odds)
