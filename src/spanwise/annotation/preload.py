"""Imported once by the server from which workers are forked, so that workers start fast and share memory."""

from __future__ import annotations

import spanwise.annotation.engine
import spanwise.models.model
import spanwise.prediction.predictor

__all__ = ["spanwise"]
