"""Reading and writing files safely, those of strangers too. Text, YAML, tables and what may stand in a cell."""
