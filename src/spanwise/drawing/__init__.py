"""Draw sentences with their entities as HTML."""

from spanwise.drawing.colours import type_colours
from spanwise.drawing.page_head import page_head
from spanwise.drawing.sentence import css, draw_sentence, script

__all__ = ["css", "draw_sentence", "page_head", "script", "type_colours"]
