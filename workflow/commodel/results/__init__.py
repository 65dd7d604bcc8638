"""A results folder: what lies where, who works in it, how far it is, and its samples as tables."""
