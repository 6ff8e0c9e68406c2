"""The page of an audit: sentences with gold and suggestions, and the tables."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from html import escape

from spanwise.analysis.error_browser import browser
from spanwise.analysis.report import HtmlSection, report
from spanwise.analysis.section import Section
from spanwise.audit.candidates import KINDS
from spanwise.audit.corrections import apply_suggestions
from spanwise.audit.result import Audit
from spanwise.audit.suggestions import Suggestion
from spanwise.core.types import Entity, Sentence
from spanwise.drawing import draw_sentence, type_colours

MAX_BYTES = 2_500_000  # of drawings; the files list all suggestions

INTRO = """Bars <b>above</b> the words are gold entities, bars <b>below</b> are the suggestions; entities that stay are pale.
The score is the probability that gold is wrong, estimated from the models and the rest of the corpus. Sentences with the
most certain suggestions come first."""


def audit_page(audit: Audit, consistency: Section) -> str:
    """The HTML of the page."""
    counts = Counter(entity.type for split in audit.corpus for s in audit.corpus[split] for entity in s.entities)
    colours = type_colours(sorted(counts))
    headline = {"Suggestions": f"{len(audit.suggestions):,}"}
    headline |= {kind.capitalize(): f"{audit.counts[kind]:,}" for kind in KINDS}
    headline |= {"Gold entities": f"{counts.total():,}", "Sentences": f"{len(audit.keys):,}"}
    name = audit.corpus.name or "the corpus"
    pages: list[Section | HtmlSection] = [HtmlSection("suggestions", "Suggestions", _browser(audit, colours)), consistency]
    return report(f"Audit of {name}", headline, pages, {})


def _browser(audit: Audit, colours: Mapping[str, str]) -> str:
    warning = f"<p><b>Note:</b> {escape(audit.note)}.</p>" if audit.note else ""
    groups: defaultdict[str, list[Suggestion]] = defaultdict(list)
    for item in audit.suggestions:
        groups[item.sentence].append(item)
    if not groups:
        return warning or '<p class="empty">The models agree with all annotations.</p>'
    cases: list[str] = []
    size = 0
    for key, items in groups.items():
        if size < MAX_BYTES:
            cases.append(_case(key, audit.keys[key][1], items, colours))
            size += len(cases[-1].encode())
    note = "" if len(cases) == len(groups) else f" The first {len(cases):,} of {len(groups):,} sentences are shown."
    types = {entity.type for item in audit.suggestions for entity in (item.gold, item.suggestion) if entity is not None}
    return warning + browser(INTRO + note, "Kind", KINDS, sorted(types), cases)


def _case(key: str, sentence: Sentence, items: Sequence[Suggestion], colours: Mapping[str, str]) -> str:
    suggested = apply_suggestions({key: ("", sentence)}, items)[key]
    plain = replace(sentence, relations=(), links=())
    drawing = draw_sentence(plain, colours, predicted=suggested, correct=set(suggested) & set(sentence.entities))
    rows = "".join(_item(item, sentence) for item in items)
    return f'<article class="case" tabindex="-1"><h3>{escape(key)}</h3>{drawing}<ul>{rows}</ul></article>\n'


def _item(item: Suggestion, sentence: Sentence) -> str:
    """One suggestion; the data attributes are those that the filters of the page use."""
    attributes = f" data-e={item.kind}"
    mentions = []
    for name, entity in (("g", item.gold), ("p", item.suggestion)):
        if entity is not None:
            attributes += f' data-{name}="{escape(entity.type)}"'
            mentions.append(_mention(entity, sentence))
    evidence = escape(describe_evidence(item))
    return f"<li{attributes}><b>{item.kind}</b> {item.score:.2f} {' → '.join(mentions)} <small>{evidence}</small></li>"


def _mention(entity: Entity, sentence: Sentence) -> str:
    return f"<q><bdi>{escape(sentence.text_of(entity))}</bdi></q> <i><bdi>{escape(entity.type)}</bdi></i>"


def describe_evidence(item: Suggestion) -> str:
    """The reasons for a score: the probabilities of the models, and how the string is annotated elsewhere."""
    details, parts = item.details, []
    for name, word in (("gold_probability", "gold"), ("suggested_probability", "suggestion")):
        if details.get(name) not in (None, ""):
            parts.append(f"{word} {details[name]:.2f}")
    if details.get("occurs_elsewhere"):
        parts.append(f"annotated so in {details['annotated_elsewhere']} of {details['occurs_elsewhere']} other places")
    return ", ".join(parts)
