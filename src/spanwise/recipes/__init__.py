"""Recipes: one YAML file per published system, and how they become a configuration."""
