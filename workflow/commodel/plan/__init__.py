"""From an experiment file to points and batches, and how long these will take."""
