"""Checks for heads of other packages: ``check_head`` runs the whole contract on a tiny corpus."""

from spanwise.testing.contract import check_head

__all__ = ["check_head"]
