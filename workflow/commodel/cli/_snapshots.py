"""What diff and history compare, whatever it is in."""

from pathlib import Path

from commodel.compare.snapshot import Snapshot, read


def snapshot(path: Path) -> Snapshot:
    if path.suffix == ".xlsx":
        from commodel.report.snapshots import snapshot as of_workbook  # slow to load

        return of_workbook(path)
    return read(path)
