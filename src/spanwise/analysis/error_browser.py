"""A searchable list of the sentences with errors, drawn with gold and predicted entities."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from html import escape
from itertools import groupby

from spanwise.drawing import draw_sentence
from spanwise.evaluation.errors import ErrorAnalysis
from spanwise.evaluation.matching import ERROR_TYPES, Match, Mention

MAX_BYTES = 2_500_000  # of HTML; the tables list all errors


def error_browser(errors: ErrorAnalysis, colours: Mapping[str, str]) -> str:
    """Return the HTML of the search form and the sentences. Without JavaScript, the form is hidden."""
    cases, size, total = [], 0, 0
    for _, group in groupby(errors.matches, key=lambda match: match.sentence_index):
        matches = list(group)
        if any(match.outcome in ERROR_TYPES for match in matches):
            total += 1
            if size < MAX_BYTES:
                case = _case(matches, colours)
                size += len(case.encode())
                cases.append(case)
    if not cases:
        return '<p class="empty">There are no errors.</p>'
    note = "" if len(cases) == total else f" Only the first {len(cases):,} of {total:,} sentences are shown; see the tables."
    types = sorted({mention.type for match in errors.errors for mention in (match.gold, match.predicted) if mention})
    intro = f"""Bars <b>above</b> the words are gold entities, bars <b>below</b> are predictions; correct ones are pale. A
dashed line joins the fragments of a discontinuous entity.{note}"""
    return browser(intro, "Error type", ERROR_TYPES, types, cases)


def browser(intro: str, kind_name: str, kinds: Sequence[str], types: Sequence[str], cases: Sequence[str]) -> str:
    """The HTML of a searchable list of sentences: an introduction, filters by kind and type, and the ``cases``."""
    return f"""
<p>{intro}</p>
<form class="controls" role="search" hidden>
<label>Search <input type="search" id="query" autocomplete="off" placeholder="words or sentence id"></label>
<label>{kind_name} <select id="error"><option value="">any</option>{_options(kinds)}</select></label>
<label>Entity type <select id="type"><option value="">any</option>{_options(types)}</select></label>
<output id="count" aria-live="polite"></output>
<span class="keys"><kbd>/</kbd> search <kbd>j</kbd> <kbd>k</kbd> next, previous <kbd>Esc</kbd> clear</span>
</form>
<div id="cases">{"".join(cases)}</div>
<button type="button" id="more" hidden>Show more</button>"""


def _options(values: Sequence[str]) -> str:
    # An explicit value, because browsers strip white space from the text.
    return "".join(f'<option value="{escape(value)}">{escape(value)}</option>' for value in values)


def _case(matches: Sequence[Match], colours: Mapping[str, str]) -> str:
    gold = [match.gold.entity for match in matches if match.gold]
    predicted = [match.predicted.entity for match in matches if match.predicted]
    correct = {match.mention.entity for match in matches if match.outcome == "correct"}
    sentence = replace(matches[0].sentence, entities=tuple(gold), relations=(), links=())
    drawing = draw_sentence(sentence, colours, predicted=predicted, correct=correct)
    errors = "".join(_error(match) for match in matches if match.outcome in ERROR_TYPES)
    return f'<article class="case" tabindex="-1"><h3>{escape(sentence.id)}</h3>{drawing}<ul>{errors}</ul></article>\n'


def _error(match: Match) -> str:
    attributes = "".join(_attributes(match))
    mentions = " → ".join(_mention(mention) for mention in (match.gold, match.predicted) if mention)
    return f"<li{attributes}><b>{match.outcome}</b> {mentions}</li>"


def _attributes(match: Match) -> Iterator[str]:
    """Yield the data attributes that the filters use: error type, gold type, predicted type."""
    yield f" data-e={match.outcome}"
    for name, mention in (("g", match.gold), ("p", match.predicted)):
        if mention:
            yield f' data-{name}="{escape(mention.type)}"'


def _mention(mention: Mention) -> str:
    score = "" if mention.score is None else f" {mention.score:.2f}"
    return f"<q><bdi>{escape(mention.text)}</bdi></q> <i><bdi>{escape(mention.type)}</bdi>{score}</i>"
