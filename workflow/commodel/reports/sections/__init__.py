"""The sections of a report, one subject a file. Each takes tables and parameter sets, and returns
sections or parts."""
