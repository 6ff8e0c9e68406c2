"""Analyse a model or its predictions: figures, tables and an HTML report."""
