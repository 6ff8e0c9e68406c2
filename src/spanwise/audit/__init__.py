"""Likely errors in annotations, found by cross-validated models and by comparing equal strings."""
