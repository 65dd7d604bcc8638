"""Trees: their shape, their builders by name, and the files and pictures that show them."""
