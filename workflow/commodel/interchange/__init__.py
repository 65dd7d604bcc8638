"""Formats of other tools: one file each, `read` from files to a parameter set or to observations."""
