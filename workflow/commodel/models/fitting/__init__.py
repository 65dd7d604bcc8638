"""What several families fit with: tidy observations, regressions, curves, and searches for a
minimum."""
