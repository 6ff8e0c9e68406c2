"""HTTP service of a model: a web page and a JSON API. ``server`` and ``app`` need FastAPI (extra ``serve``)."""
