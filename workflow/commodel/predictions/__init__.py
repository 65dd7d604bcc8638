"""Predictions: predicted times with intervals, from parameter sets and patterns. An interval widens
beyond the probed range."""
