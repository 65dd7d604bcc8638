"""A sheet that predicts: the closed forms of models over trees as formulas of a spreadsheet. Tests compare them with
our own predictions. Formulas consist of our names and of numbers, never of text from a parameter set or a report."""
