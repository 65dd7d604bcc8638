"""Times in JSON lines: {"operation": "bcast", "ranks": 8, "bytes": 1024, "us": 12.5}."""

import json
from pathlib import Path

from commodel.interchange import Format, ImportedTimes, PrintedTime, StatedProperties, read_source_rows
from commodel.records import Repetitions, Statistic


def read_file(path: Path, stated: StatedProperties) -> ImportedTimes:
    imported = ImportedTimes()
    for source_row, line in read_source_rows(path, stated):
        try:
            row = json.loads(line)
            numbers = [source_row.parse_whole(str(row[name])) for name in ("ranks", "bytes")]
            time = PrintedTime(float(row["us"]) * 1e-6, Statistic.LAST_RANK, Repetitions.MEAN)
            imported.add_collective(source_row, str(row["operation"]), "", *numbers, time)
        except (ValueError, TypeError, KeyError, RecursionError):
            raise source_row.error('wanted {"operation": …, "ranks": …, "bytes": …, "us": …}') from None
    return imported


FORMAT = Format("json-lines", "JSON lines", read_file, mark='^{"operation', examples=("times.jsonl -o times.csv",))
