"""One YAML file per published system. No code lives here."""
