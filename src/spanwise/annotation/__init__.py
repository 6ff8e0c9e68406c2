"""Bulk annotation: tables of texts in, the same tables with predicted entities and relations out."""
