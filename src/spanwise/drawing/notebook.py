"""Draw sentences as the HTML output of a notebook cell."""

from __future__ import annotations

from collections.abc import Sequence

from spanwise.core.counting import counted
from spanwise.core.types import Sentence
from spanwise.drawing.colours import type_colours
from spanwise.drawing.page import draw_relations
from spanwise.drawing.sentence import css, draw_sentence

MAX_SENTENCES = 100  # a cell with more is slow to draw

# The background is set because the theme of a notebook may differ from that of the system, which the drawing follows.
_STYLE = """
.spanwise-cell { --ink: #1f2430; --paper: #fff; --muted: #667085; background: var(--paper); padding: .5em .7em;
  font: 15px/1.45 system-ui, sans-serif; }
.spanwise-cell p { margin: 0 0 .5em; color: var(--ink); }
.spanwise-cell small { display: block; color: var(--muted); }
@media (prefers-color-scheme: dark) { .spanwise-cell { --ink: #e6e8ee; --paper: #16181d; --muted: #98a2b3; } }
"""


def draw_cell(sentences: Sequence[Sentence]) -> str:
    """Return sentences with their entities and relations as HTML in which all text is escaped.

    >>> draw_cell([Sentence("s", ("a", "<b>"))]).endswith('<p><span class=drawn>a &lt;b&gt;</span></p></div>')
    True
    """
    shown = sentences[:MAX_SENTENCES]
    colours = type_colours(sorted({entity.type for sentence in shown for entity in sentence.entities}))
    rows = [f"<p>{draw_sentence(sentence, colours)}{draw_relations(sentence)}</p>" for sentence in shown if sentence.words]
    if len(sentences) > len(shown):
        rows.append(f"<p><small>{counted(len(sentences) - len(shown), 'more sentence')}</small></p>")
    return f'<style>{css()}{_STYLE}</style><div class="spanwise-cell">{"".join(rows)}</div>'
