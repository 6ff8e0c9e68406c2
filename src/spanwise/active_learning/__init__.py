"""Active learning: which sentences of a pool to annotate next."""
