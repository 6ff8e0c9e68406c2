"""Integrations: spaCy pipelines and the Hugging Face hub."""
