"""A model inside Label Studio: labelling configuration, ML backend, and learning from new annotations."""
