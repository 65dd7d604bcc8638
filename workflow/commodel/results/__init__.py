"""What a results folder holds: who works in it, how far it is, and its samples as tables. Nothing is measured here."""
