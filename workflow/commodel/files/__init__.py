"""Reading and writing files safely, those of strangers too. What lies where below a results folder is here as well:
every stage asks `results.py` for its names.
"""
