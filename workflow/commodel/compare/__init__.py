"""Comparison of predictions with measurements: errors, choices, ranking, and weights of models.
Reports and advice only show these results."""
