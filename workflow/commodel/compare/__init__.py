"""Prices beside measurements: errors, choices, who is ahead, and the vote. Reports and advice only show what stands
here.
"""
