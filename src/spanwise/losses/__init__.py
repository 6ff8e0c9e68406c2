"""Loss functions of scores and gold, for any head."""
