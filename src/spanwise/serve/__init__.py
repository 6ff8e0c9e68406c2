"""A model behind HTTP: a page for people, JSON for programs. ``server`` and ``app`` need FastAPI (the extra ``serve``)."""
