"""Text output of MPIBlib: a row for each message size, `#msg time wtick reps ci`, in seconds, means over the
repetitions.

Neither the operation nor the number of ranks is in the file. A measurement between two processes is a full round trip:
it has the name `pingpong` and is halved.
"""

from pathlib import Path

from commodel.interchange import Format, Given, Readings, placed_lines


def times(path: Path, given: Given) -> Readings:
    readings, columns = Readings(), []
    for place, line in placed_lines(path, given):
        cells = line.lstrip("#").split()
        if line.startswith("#"):
            columns = cells if cells[:2] == ["msg", "time"] else columns
        elif cells and columns:
            row = place.row(columns, cells)
            if not given.operation:
                raise place.error("the file does not say what was measured; give --operation, e.g. bcast or pingpong")
            size, seconds = place.whole(row["msg"]), place.number(row["time"])
            if given.operation == "pingpong":
                readings.take_message(place, size, seconds / 2, "mean")
            else:
                readings.take(place, given.operation, "", 0, size, seconds, "mean")
    return readings


FORMAT = Format("mpiblib", "MPIBlib", times, asks=("operation",))
