"""Runs Snakemake for a verb: its command line, its process and signals, and what of its chatter a user sees."""
