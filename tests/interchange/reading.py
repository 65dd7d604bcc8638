"""A text as the file of a format, read: what all tests of figures from other tools begin with."""

from commodel.interchange import Given, read_times
from commodel.registry import discover

FORMATS = discover("interchange", "FORMAT")


def read(name, folder, text, **given):
    path = folder / "file.txt"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_times(FORMATS[name], [path], Given(**given))
