"""One batch: its programs are started, watched, and started again where they stopped."""
