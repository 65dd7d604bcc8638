"""Trees: their shapes, their construction by name, and their files and pictures."""
