"""Samples become parameter sets: those of probes, or of measured collectives where there are no probes. What cannot be
told apart is marked here.
"""
