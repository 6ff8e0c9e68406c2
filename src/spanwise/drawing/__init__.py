"""Sentences with their entities as HTML, for reports, predictions and pages. Needs nothing but Python."""

from spanwise.drawing.colours import type_colours
from spanwise.drawing.head import head
from spanwise.drawing.sentence import css, draw_sentence, script

__all__ = ["css", "draw_sentence", "head", "script", "type_colours"]
