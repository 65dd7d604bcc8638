"""A sheet that predicts: the closed forms of families over trees as formulas of a spreadsheet, held against our own
predictions by tests. Formulas are made of our names and of numbers, never of text that a set or a report brings."""
