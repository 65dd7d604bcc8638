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
            operation, ranks, size, microseconds = str(row["operation"]), row["ranks"], row["bytes"], float(row["us"])
        except (ValueError, TypeError, KeyError, RecursionError):
            raise source_row.error('wanted {"operation": …, "ranks": …, "bytes": …, "us": …}') from None
        time = PrintedTime(microseconds * 1e-6, Statistic.LAST_RANK, Repetitions.MEAN)
        ranks, size = source_row.parse_whole(str(ranks)), source_row.parse_whole(str(size))
        imported.add_collective(source_row, operation, "", ranks, size, time)
    return imported


FORMAT = Format("json-lines", "JSON lines", read_file, examples=("times.jsonl -o times.csv",))
