"""The Python functions that notebooks and verbs call: load, run, predict, advise, fit and report.
They take numbers, or text with units, and return DataFrames, charts and small result types."""
