"""Writes a report as one self-contained page. Style and script are files of their own in this
folder."""
