"""Samples become parameter sets: probes for every family, measured points where there are no probes."""
