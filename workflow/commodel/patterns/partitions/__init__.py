"""How much of a matrix each process gets, and which rectangle of it: one file a way to share, or to arrange."""
