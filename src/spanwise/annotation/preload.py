"""Imported once by the server from which workers are forked, so that workers start fast and share memory."""

from __future__ import annotations

import transformers.models.auto
from transformers.models.bert import modeling_bert

import spanwise.annotation.engine
import spanwise.models.model
import spanwise.prediction.predictor

__all__ = ["modeling_bert", "spanwise", "transformers"]
