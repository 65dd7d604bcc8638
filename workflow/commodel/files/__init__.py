"""Safe reading and writing of files, also of files from unknown sources. The names in a results
folder and the columns of its tables are defined here as well (`results_folder.py`, `tables.py`)."""
