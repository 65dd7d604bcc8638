"""The Schedule, and everything that makes one out of names: algorithms, trees, layouts. Nothing here knows what a
message costs.
"""
