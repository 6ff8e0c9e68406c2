"""Spanwise: span-based recognition of flat, nested and discontinuous entities, and of relations."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from spanwise.core.errors import FormatError, SpanwiseError, SpanwiseWarning, missing_torch
from spanwise.core.types import Corpus, Entity, Link, Relation, Sentence, Span
from spanwise.core.version import __version__

if TYPE_CHECKING:
    from spanwise.annotation.run import annotate
    from spanwise.corpora.conversion import convert
    from spanwise.corpora.splits import read_corpus
    from spanwise.data import bundled_corpus
    from spanwise.description import describe
    from spanwise.evaluation import evaluate
    from spanwise.formats import Ledger, LossError, read, write
    from spanwise.prediction.load import load
    from spanwise.training.run import distill, train


__all__ = [
    "Corpus", "Entity", "FormatError", "Ledger", "Link", "LossError", "Relation", "Sentence", "Span", "SpanwiseError",
    "SpanwiseWarning", "__version__", "annotate", "bundled_corpus", "convert", "describe", "distill", "evaluate", "load",
    "read", "read_corpus", "train", "write",
]  # fmt: skip

# Imported on first use, so that `import spanwise` is fast.
_LAZY = {
    "annotate": "spanwise.annotation.run",
    "bundled_corpus": "spanwise.data",
    "convert": "spanwise.corpora.conversion",
    "Ledger": "spanwise.formats",
    "LossError": "spanwise.formats",
    "describe": "spanwise.description",
    "distill": "spanwise.training.run",
    "evaluate": "spanwise.evaluation",
    "load": "spanwise.prediction.load",
    "read": "spanwise.formats",
    "read_corpus": "spanwise.corpora.splits",
    "train": "spanwise.training.run",
    "write": "spanwise.formats",
}


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        try:
            return getattr(import_module(_LAZY[name]), name)
        except ModuleNotFoundError as error:
            raise missing_torch(error, f"spanwise.{name}") or error from None
    raise AttributeError(f"module 'spanwise' has no attribute {name!r}")


def __dir__() -> list[str]:
    """List the public names, also those that are imported on first use."""
    return sorted(__all__)
