"""The content of a results folder: who works in it (`campaign`), its progress, and its samples as tables
(`collection`). Nothing is measured here."""
