"""Spanwise inside other libraries: spaCy pipelines, the Hugging Face hub."""
