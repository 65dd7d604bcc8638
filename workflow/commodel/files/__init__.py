"""Reading and writing files safely, those of strangers too. What lies where below a results folder, and in which
columns, is here as well: every stage asks `results.py` and `columns.py`.
"""
