"""Annotation in pipelines of Ray Data: ``dataset.map_batches(Annotator, ...)``.

``spanwise annotate --ray`` annotates files without any code. The same class works with Spark's
``mapInPandas`` and with ``map`` of the ``datasets`` library; see ``docs/scale.md``.
"""

from __future__ import annotations

from spanwise.annotation.annotator import Annotator, annotate_batches

__all__ = ["Annotator", "annotate_batches"]
