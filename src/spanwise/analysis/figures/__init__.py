"""Figures, one module per kind, in one style. They need matplotlib (the extra ``analysis``) and leave its settings alone."""

from spanwise.core.errors import SpanwiseError

try:
    import matplotlib as matplotlib
except ImportError:
    raise SpanwiseError("figures need matplotlib: pip install 'spanwise[analysis]'") from None
