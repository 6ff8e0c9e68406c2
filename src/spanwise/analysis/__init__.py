"""Why a model fails: figures, tables and one report, from predictions alone or with the model that made them."""
