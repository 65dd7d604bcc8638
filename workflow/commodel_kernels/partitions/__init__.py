"""Partitions of a matrix: the share of each process (`shares`), and its rectangle
(`arrangement`)."""
