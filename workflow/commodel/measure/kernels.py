"""What the native kernels read: a row of the case file for a point, and its partition as explicit rectangles."""

from dataclasses import replace

from commodel.files.atomic import write_text
from commodel.files.paths import AnyPath
from commodel.patterns import rectanglefile
from commodel.patterns.operations import given_of, operation, tiles
from commodel.records import Point

SUFFIX = ".partition"


def row(point: Point, computes: bool) -> dict[str, object]:
    """Of the case file, with the point in the place of its partition. Where time is simulated nothing is computed."""
    named = given_of(point.operation)
    settings = {"id": point.id, "partition": point, "bytes": point.bytes}
    if operation(point.operation).program == "summa":
        iteration = named.get("iteration", -1)
        settings["iteration"] = "all" if iteration < 0 else iteration
        settings |= {"overlapped": int(named.get("overlapped", False)), "barrier": int(named.get("barrier", True))}
    return settings | {"compute": int(computes)}


def with_partition(row: dict[str, object], work: AnyPath) -> dict[str, object]:
    """The row as the case file has it, with its partition written out. How fast ranks are is for those that only
    wait."""
    point = row["partition"]
    path = work / f"{point.id}{SUFFIX}"
    tiling = tiles(point.operation, point.ranks)
    waits = row.get("overlapped") and not row["compute"]
    write_text(path, rectanglefile.write(tiling if waits else replace(tiling, speed=None)))
    return {**row, "partition": path.name}
