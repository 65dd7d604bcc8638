"""Samples become parameter sets: those of probes, or of measured collectives where there are no probes. Values that the
data do not determine are marked here.
"""
