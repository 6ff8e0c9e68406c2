"""The sentences with mistakes, each drawn with what gold and the system have in it, for a reader to search and filter."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from html import escape
from itertools import groupby

from spanwise.drawing import draw_sentence
from spanwise.evaluation.errors import Errors
from spanwise.evaluation.judging import MISTAKES, Claim, Judgement

MOST_BYTES = 2_500_000  # of HTML; what is beyond is in the tables


def error_browser(errors: Errors, colours: Mapping[str, str]) -> str:
    """Search box, filters and the list of sentences. Without scripts the list is whole and the controls are hidden."""
    cases, size, total = [], 0, 0
    for _, judgements in groupby(errors.judgements, key=lambda judgement: judgement.number):
        here = list(judgements)
        if any(judgement.kind in MISTAKES for judgement in here):
            total += 1
            if size < MOST_BYTES:
                case = _case(here, colours)
                size += len(case.encode())
                cases.append(case)
    if not cases:
        return '<p class="empty">There are no mistakes to show.</p>'
    cut = "" if len(cases) == total else f" Only the first {len(cases):,} of {total:,} sentences are here; the tables have all."
    types = sorted({claim.type for one in errors.mistakes for claim in (one.gold, one.predicted) if claim})
    return f"""
<p>Bars <b>above</b> the words are gold, bars <b>below</b> are predicted; what is right is pale. Fragments of one entity are
joined by a dashed line.{cut}</p>
<form class="controls" role="search" hidden>
<label>Search <input type="search" id="find" autocomplete="off" placeholder="words or sentence id"></label>
<label>Mistake <select id="kind"><option value="">any</option>{_options(MISTAKES)}</select></label>
<label>Type <select id="type"><option value="">any</option>{_options(types)}</select></label>
<output id="count" aria-live="polite"></output>
<span class="keys"><kbd>/</kbd> search <kbd>j</kbd> <kbd>k</kbd> next, previous <kbd>Esc</kbd> clear</span>
</form>
<div id="cases">{"".join(cases)}</div>
<button type="button" id="more" hidden>Show more</button>"""


def _options(values: Sequence[str]) -> str:
    # With its value beside its text, for a browser takes white space from the text.
    return "".join(f'<option value="{escape(value)}">{escape(value)}</option>' for value in values)


def _case(judgements: Sequence[Judgement], colours: Mapping[str, str]) -> str:
    gold, predicted = ([claim.entity for claim in side if claim] for side in zip(*map(_claims, judgements), strict=True))
    right = {judgement.claim.entity for judgement in judgements if judgement.kind == "correct"}
    sentence = replace(judgements[0].sentence, entities=tuple(gold), relations=(), links=())
    drawn = draw_sentence(sentence, colours, predicted=predicted, agreed=right)
    mistakes = "".join(_mistake(judgement) for judgement in judgements if judgement.kind in MISTAKES)
    return f'<article class="case" tabindex="-1"><h3>{escape(sentence.id)}</h3>{drawn}<ul>{mistakes}</ul></article>\n'


def _claims(judgement: Judgement) -> tuple[Claim | None, Claim | None]:
    return judgement.gold, judgement.predicted


def _mistake(judgement: Judgement) -> str:
    types = "".join(_attributes(judgement))
    said = " → ".join(_said(claim) for claim in _claims(judgement) if claim)
    return f"<li{types}><b>{judgement.kind}</b> {said}</li>"


def _attributes(judgement: Judgement) -> Iterator[str]:
    """What the filters ask for."""
    yield f" data-k={judgement.kind}"
    for name, claim in zip(("g", "p"), _claims(judgement), strict=True):
        if claim:
            yield f' data-{name}="{escape(claim.type)}"'


def _said(claim: Claim) -> str:
    score = "" if claim.score is None else f" {claim.score:.2f}"
    return f"<q><bdi>{escape(claim.text)}</bdi></q> <i><bdi>{escape(claim.type)}</bdi>{score}</i>"
