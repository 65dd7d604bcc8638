"""From an experiment's file to points and batches, and how long these will take. Nothing is started here."""
