"""What is in a corpus, and what looks wrong with it."""

from spanwise.description.describe import Description, describe
from spanwise.description.report import print_description

__all__ = ["Description", "describe", "print_description"]
