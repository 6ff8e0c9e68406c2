"""A head for Spanwise that classifies spans by the mean of their words."""
