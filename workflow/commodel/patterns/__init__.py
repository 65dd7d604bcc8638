"""Patterns of communication: the Schedule, and its construction from names of algorithms, trees and
layouts. No module here knows the time of a message.
"""
