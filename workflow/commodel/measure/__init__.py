"""Measurement of a batch: its programs are started, watched, and restarted where they stopped. No
sample is lost."""
