"""The content of a results folder: its lock and plan (`campaign`), its progress, and its samples as
tables (`collection`). No module here measures."""
