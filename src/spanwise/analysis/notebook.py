"""The sections of a report as Python objects, for notebooks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from spanwise.analysis.analyze import AnalysisInput, build_sections
from spanwise.analysis.section import Section
from spanwise.core.errors import SpanwiseError
from spanwise.core.types import Sentence


def sections(
    gold: Sequence[Sentence],
    predicted: Sequence[Sentence],
    train: Sequence[Sentence] | None = None,
    *,
    name: str = "system",
    against: Mapping[str, Sequence[Sentence]] | None = None,
) -> dict[str, Section]:
    """Return the sections of the report on predictions by name: ``scores``, ``errors``, ``buckets`` and others.

    A section has ``text``, ``tables`` and ``figures``. In a notebook, a figure as the last value of a cell
    is shown; nothing is drawn before. Use ``spanwise analyze`` for a report with everything, also with the
    sections that need a model.

    Args:
        gold: gold sentences.
        predicted: the same sentences with predictions, in the same order.
        train: training sentences, for attributes such as label consistency.
        name: name of the system, used in comparisons.
        against: predictions of other systems by name; adds the section ``difference``.

    >>> from spanwise.core.types import Entity
    >>> gold = [Sentence("s", ("in", "Oslo"), (Entity("Place", ((1, 2),)),))]
    >>> report = sections(gold, gold)
    >>> list(report)
    ['scores', 'errors', 'confusion', 'buckets', 'lengths', 'calibration', 'data', 'settings']
    >>> report["scores"].tables["types"].rows[0][:4]
    ('Place', 1.0, 1.0, 1.0)
    """
    if not gold:
        raise SpanwiseError("there are no gold sentences to analyse")
    others = {system: [list(run)] for system, run in (against or {}).items()}
    data = AnalysisInput(name, "gold", list(gold), list(predicted), train=train, other_systems=others)
    return {section.name: section for section in build_sections(data)}
