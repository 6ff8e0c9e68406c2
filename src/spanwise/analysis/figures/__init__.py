"""Figures in a common style, drawn with matplotlib (the extra ``analysis``)."""

from spanwise.core.errors import SpanwiseError

try:
    import matplotlib as matplotlib
except ImportError:
    raise SpanwiseError("figures require matplotlib; run pip install 'spanwise[analysis]'") from None
