"""HTTP service of a model: a web page and a JSON API. Needs the extra ``serve``."""
