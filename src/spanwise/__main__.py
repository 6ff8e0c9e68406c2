"""``python -m spanwise`` is the same as ``spanwise``."""

from spanwise.cli import main

main()
