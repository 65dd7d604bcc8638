"""Fits: from samples of probes, or from measured collectives, to parameter sets. Values that the
data do not determine are marked."""
