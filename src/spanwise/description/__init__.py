"""Statistics of a corpus and problems in it."""

from spanwise.description.describe import Description, describe
from spanwise.description.report import print_description

__all__ = ["Description", "describe", "print_description"]
