"""Plans: from an experiment's file to points and batches, with estimates of their durations. No
program is started here."""
