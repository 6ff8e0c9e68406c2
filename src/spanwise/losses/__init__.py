"""Functions from scores and gold to losses; any head may use them."""
