"""Prices beside measurements: errors, choices, and who is ahead."""
