"""Any CSV table of measured collectives, with a time in each row. Options NAME=COLUMN or
NAME=COLUMN:UNIT name its columns.

The names are operation, algorithm, layout, ranks, bytes, seconds, statistic and repetitions; a
column of the same name needs no option. Names are in any case. Cells may have their own units;
times in a column of another name than `seconds` need a unit. The operation `pingpong` is a full
round trip, and is halved.
"""

from pathlib import Path

from commodel.errors import UserError, suggest_name
from commodel.files.quantities import parse_repetitions, parse_statistic
from commodel.files.tables import add_line_to_errors, parse_cell, read_rows
from commodel.interchange import (
    COMMON_OPTIONS,
    Format,
    ImportedTimes,
    PrintedTime,
    SourceRow,
    StatedProperties,
)
from commodel.records import LIBRARY, Repetitions, Statistic
from commodel.units import (
    BYTE_UNITS,
    TIME_UNITS,
    parse_bare_number,
    parse_bytes,
    parse_count,
    parse_seconds,
)

NAMES = (
    "operation",
    "algorithm",
    "layout",
    "ranks",
    "bytes",
    "seconds",
    "statistic",
    "repetitions",
)
UNITS = {"seconds": TIME_UNITS, "bytes": BYTE_UNITS}


def read_file(path: Path, stated: StatedProperties) -> ImportedTimes:
    columns = _parse_column_options(stated.columns)
    needed = [] if stated.operation else ["operation"]
    wanted = [columns.get(name, (name, ""))[0] for name in (*needed, "seconds")]
    imported = ImportedTimes()
    requested = (*wanted, *(column for column, _ in columns.values()))
    for number, row in read_rows(path, requested, advice="; name it by --column NAME=COLUMN"):
        texts = {}
        for name in NAMES:
            column, unit = columns.get(name, (name, ""))
            unit = unit or ("s" if name == column == "seconds" else "")
            texts[name] = row.get(column, "") + (
                unit if parse_bare_number(row.get(column, "")) is not None else ""
            )
        with add_line_to_errors(path, number):
            if parse_bare_number(texts["seconds"]):
                column = columns["seconds"][0]
                complaint = (
                    f"found '{texts['seconds']}' without a unit; name it, e.g. --column "
                    f"seconds={column}:us"
                )
                raise UserError(complaint, key=column)
            _add_row(imported, SourceRow(path, number, stated, layout=texts["layout"]), texts)
    return imported


def _add_row(imported: ImportedTimes, source_row: SourceRow, texts: dict[str, str]) -> None:
    from commodel.patterns.algorithms import find_algorithm
    from commodel.patterns.operations import canonicalize_operation, has_size

    name = source_row.stated.operation or texts["operation"]
    seconds = parse_cell(texts, "seconds", parse_seconds)
    repetitions = Repetitions.UNKNOWN
    if texts["repetitions"]:
        repetitions = parse_cell(texts, "repetitions", parse_repetitions)
    if name == "pingpong":
        imported.add_message(
            source_row, parse_cell(texts, "bytes", parse_bytes), seconds / 2, repetitions
        )
        return
    time = PrintedTime(seconds, _choose_statistic(source_row, texts), repetitions)
    name = canonicalize_operation(name)
    chosen = source_row.stated.algorithm or texts["algorithm"]
    if chosen and chosen != LIBRARY:
        find_algorithm(name, chosen)
    is_known = source_row.choose_ranks(0) > 0
    ranks = parse_cell(texts, "ranks", parse_count) if texts["ranks"] or not is_known else 0
    size = parse_cell(texts, "bytes", parse_bytes) if has_size(name) else 0
    imported.add_collective(source_row, name, chosen, ranks, size, time)


def _choose_statistic(source_row: SourceRow, texts: dict[str, str]) -> Statistic:
    """Return the statistic of a row, else that of the user; refuse two that differ."""
    found = (
        parse_cell(texts, "statistic", parse_statistic) if texts["statistic"] else Statistic.UNKNOWN
    )
    stated = Statistic(source_row.stated.statistic or Statistic.UNKNOWN)
    if Statistic.UNKNOWN in (found, stated):
        return stated if found is Statistic.UNKNOWN else found
    if found is not stated:
        raise UserError(
            f"found '{found}' and --statistic '{stated}'; leave --statistic out", key="statistic"
        )
    return found


def _parse_column_options(settings: tuple[str, ...]) -> dict[str, tuple[str, str]]:
    """Return column and unit by name, from the texts NAME=COLUMN or NAME=COLUMN:UNIT."""
    columns = {}
    for setting in settings:
        name, equals, column = (part.strip() for part in setting.partition("="))
        if not equals or not column:
            raise UserError(
                f"found '{setting}', wanted NAME=COLUMN or NAME=COLUMN:UNIT", key="--column"
            )
        if name not in NAMES:
            raise UserError(
                f"no column is called '{name}' here; {suggest_name(name, NAMES)}", key="--column"
            )
        column, _, unit = column.partition(":")
        if unit and unit not in UNITS.get(name, ()):
            hint = suggest_name(unit, UNITS[name]) if name in UNITS else f"{name} has no unit"
            raise UserError(f"found the unit '{unit}' of {name}; {hint}", key="--column")
        columns[name] = (column.strip().lower(), unit)
    return columns


FORMAT = Format(
    "csv",
    "a CSV table",
    read_file,
    mark=r"(?i)\A(?=(.*,)? *operation *(,|\r?$))(?=(.*,)? *seconds *(,|\r?$))",
    options=(*COMMON_OPTIONS, "operation", "statistic", "columns"),
    examples=(
        "collectives.csv -o times.csv",
        "bcast.csv --operation bcast --column seconds=time:us -o times.csv",
    ),
)
