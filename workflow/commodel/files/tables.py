"""Tables as CSV and Parquet: the schemas of all tables that stages write for each other, and their
reading and writing (`read_table`, `write_table`, `stream_rows`).

A schema has the type, the unit and the meaning of each column, and whether its cells may be blank.
Readers check it; writers and reports use it. In written tables, texts that a spreadsheet program
would take for a formula, or for the end of a row, are changed; numbers are not. `stream_rows` and
`read_rows` read tables of other sources, all cells as text.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from enum import Enum
from functools import partial
from math import nan
from typing import TYPE_CHECKING, Any, TypeVar

from commodel.errors import MAX_SHOWN_MISTAKES, Mistakes, UserError, make_printable
from commodel.files.atomic import MAX_FILE_BYTES, write_atomically
from commodel.files.safe_paths import AnyPath
from commodel.files.safe_reading import MIB, open_bounded, read_lines
from commodel.records import STOP_REASONS

if TYPE_CHECKING:
    import pandas as pd


def make_cells_safe(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a table with safe cells, for a file that a spreadsheet program may open."""
    changed = {}
    for name, column in frame.select_dtypes(include=["object", "string", "category"]).items():
        safe_cells = {value: make_cell_safe(value) for value in column.unique()}
        replaced = {value: safe for value, safe in safe_cells.items() if safe is not value}
        if replaced:
            changed[name] = column.replace(replaced)
    return frame.assign(**changed) if changed else frame


def make_cell_safe(value: object) -> object:
    """Return a cell that no spreadsheet program takes for a formula: a quote is put before such a
    text."""
    if not isinstance(value, str):
        return value
    if "\r" in value:  # pandas does not quote it, and readers end a row there
        value = value.replace("\r", " ")
    return f"'{value}" if value.startswith(("=", "+", "-", "@", "\t", " =")) else value


class Condition(Enum):
    """The condition under which a report shows a column: some rows are points of several waves, of
    named settings, with more processes than processors, of the recommended prediction, or of an MPI
    default whose algorithm is known."""

    ALWAYS = "always"
    WAVES = "waves"
    SETTINGS = "settings"
    OVERSUBSCRIBED = "oversubscribed"
    RECOMMENDED = "recommended"
    DEFAULT_ALGORITHM = "default algorithm"
    NEVER = "never"


# formats of `reports.elements.Column`
FORMATS = {str: "text", bool: "flag", int: "count", float: "number"}
# by the unit in files: the unit in reports, and the factor to it
SHOWN_UNITS = {"s": ("µs", 1e6), "B": ("B", 1.0)}
PERCENT = ("%", 100.0)  # unit and factor of shares


@dataclass(frozen=True)
class Field:
    """A column of a file, and its form in reports. A blank text is a value; a number or a flag may
    be blank only if `blank` is set."""

    name: str
    type: type  # str, bool, int (never below 0) or float
    unit: str = ""  # s or B; empty for names, counts and ratios
    blank: bool = False
    optional: bool = False  # some tables lack it
    # value in frames that are made without the column (`add_default_columns`)
    default: object = None
    pattern: str = ""  # regular expression of all texts; empty: any
    among: tuple[str, ...] = ()  # allowed texts; empty: any
    head: str = ""  # heading in reports, without the unit; empty: the name
    format: str = ""  # in reports; empty: that of its type
    note: str = ""  # its meaning, for readers of a report
    shown: Condition = Condition.ALWAYS
    # a report's cell is blank if this column of its row is blank, 0 or False; or SCHEDULE
    blank_without: str = ""

    @property
    def shown_format(self) -> str:
        return self.format or FORMATS[self.type]

    @property
    def shown_unit(self) -> tuple[str, float]:
        """The unit in which reports show the values, and the factor to it from that of the file."""
        return (
            PERCENT
            if self.format in ("percent", "signed")
            else SHOWN_UNITS.get(self.unit, ("", 1.0))
        )

    @property
    def title(self) -> str:
        """The column's heading in reports, with its unit."""
        unit, _ = self.shown_unit
        name = self.head or self.name.replace("_", " ")
        return f"{name} [{unit}]" if unit else name


Schema = tuple[Field, ...]
Cell = TypeVar("Cell")  # a parsed cell


def _split_fields(kind: type, names: str, **properties: Any) -> Schema:
    return tuple(Field(name, kind, **properties) for name in names.split())


def find_field(schema: Schema, name: str) -> Field:
    return next(field for field in schema if field.name == name)


def list_columns(schema: Schema, *types: type) -> list[str]:
    """Return the names of all columns, or of those with some types."""
    return [field.name for field in schema if not types or field.type in types]


def select_fields(schema: Schema, wanted: str, optional: bool = False) -> Schema:
    """Return the fields of the `wanted` columns; `optional` columns may be missing, and other
    columns are allowed."""
    return tuple(
        replace(field, optional=optional) for field in schema if field.name in wanted.split()
    )


_time_fields = partial(_split_fields, float, unit="s", blank=True)
_count_fields = partial(_split_fields, int, blank=True)
KINDS = ("probe", "point")

ALTERNATIVE = Field("alternative", str)  # an algorithm or a topology

OBSERVATIONS = (
    *_split_fields(str, "id batch platform"),
    *_split_fields(bool, "simulated"),
    *_split_fields(str, "kind", among=KINDS),
    *_split_fields(str, "name layout pair"),
    *_split_fields(int, "ranks pass sample"),
    *_split_fields(float, "seconds", unit="s"),
    *_time_fields("skew"),
    *_split_fields(bool, "valid"),
    *_split_fields(str, "stop", among=STOP_REASONS),
    # Settings of probes and points; each probe has some of them. The column tables in native/probes
    # explain them.
    replace(ALTERNATIVE, optional=True),
    # `setting` names the circumstances of the measurement, or is blank (`files/quantities.py`).
    # `where` has the nodes of a probe that does not run on the first ones, as 3+17.
    *_split_fields(str, "apart direction how level what path setting where", optional=True),
    *_count_fields("bytes", unit="B", optional=True),
    # The last four: the two nodes of a pair, the number of nodes, and the number of round trips.
    *_count_fields(
        "answer delay flows h height late messages n packets pairs procs senders each step ways one two nodes trips",
        optional=True,
    ),
    *_split_fields(float, "count", blank=True, optional=True),
    # `cpu` of a wave, all processes of an overlay network; `computation` of a kernel, without its
    # communication.
    *_time_fields("cpu computation", optional=True),
    # Of points of several waves: their number, and the latencies of the first and of the last wave
    # of a sample.
    *_count_fields("waves", optional=True),
    *_time_fields("first last", optional=True),
)
SUMMARY = (
    *_split_fields(str, "kind", among=KINDS),
    *_split_fields(str, "platform"),
    *_split_fields(bool, "simulated"),
    *_split_fields(str, "name id settings"),
    *_split_fields(int, "passes samples invalid"),
    *_split_fields(str, "stop", among=STOP_REASONS),
    *_time_fields("min median low high mean p95 max skew"),
    *_time_fields("cpu computation", optional=True),
    *_split_fields(str, "batch raw"),
    *_split_fields(str, "setting", optional=True),
)
# a row for each bin of a histogram, from `low` to `high`; `tail`: the bin of all outliers
DISTRIBUTIONS = (
    *_split_fields(str, "id platform"),
    *_split_fields(bool, "simulated"),
    *_split_fields(str, "pair"),
    *_split_fields(int, "bytes", unit="B"),
    *_split_fields(float, "low high", unit="s"),
    *_split_fields(int, "count"),
    *_split_fields(bool, "tail"),
    *_split_fields(str, "setting", optional=True),
)
UNMEASURED = (
    *_split_fields(str, "id batch platform"),
    *_split_fields(bool, "simulated"),
    *_split_fields(str, "kind", among=KINDS),
    *_split_fields(str, "name"),
    ALTERNATIVE,
    *_split_fields(str, "layout"),
    *_count_fields("ranks nodes leaves"),
    *_count_fields("bytes", unit="B"),
    *_count_fields("waves"),
    *_split_fields(str, "status reason"),
)
VALIDITY = Field("validity", str)
# Measured over predicted time of the messages, each sent alone.
RATIO = Field("single_message_ratio", float, blank=True)
PREDICTIONS = (
    *_split_fields(str, "point model"),
    *_time_fields("seconds"),
    # the prediction interval of the recommended prediction
    *_time_fields("low high", optional=True),
    *_time_fields("parameter_low parameter_high"),
    VALIDITY,
    RATIO,
    *_split_fields(bool, "held_out", optional=True),  # False if the model was fitted to the point
)
# of a matrix that is predicted without an experiment; texts that do not apply are blank
MATRIX_PREDICTIONS = (
    *_split_fields(str, "operation algorithm topology layout"),
    *_split_fields(int, "ranks"),
    *_split_fields(int, "bytes", unit="B"),
    *_split_fields(int, "waves"),  # if several, the column seconds has the time between two waves
    *_split_fields(str, "platform", optional=True),  # on whose nodes ranks are placed
    *_split_fields(str, "model parameters"),
    *_time_fields("seconds low high"),
    VALIDITY,
    *_time_fields("parameter_low parameter_high"),
    *_split_fields(str, "basis"),
    RATIO,
)
# The texts of `compare.comparison.Measurement`.
MEASUREMENT_PATTERN = (
    r"ok(, \d+ of \d+ passes)?(, uncertain by a factor of [0-9.,e+inf]+)?|not measured(: .+)?"
)
SCHEDULE = "a schedule"  # for `blank_without`: blank unless models can predict the row's pattern
HIDDEN = Condition.NEVER
_wave_fields = partial(_time_fields, default=nan, shown=Condition.WAVES)
_process_count_field = partial(
    Field, type=int, blank=True, default=nan, shown=Condition.OVERSUBSCRIBED
)
_schedule_field = partial(Field, blank_without=SCHEDULE)
_recommended_field = partial(
    Field, optional=True, blank_without="weights", shown=Condition.RECOMMENDED
)
_predicted_field = partial(_schedule_field, type=float, unit="s", blank=True)
COMPARISON = (
    *_split_fields(str, "point platform operation"),
    *_split_fields(str, "algorithm topology", shown=HIDDEN),
    ALTERNATIVE,
    *_split_fields(str, "layout"),
    Field("ranks", int),
    Field("leaves", int, note="of the topology; an algorithm has none", blank_without="leaves"),
    Field("bytes", int, "B"),
    Field("nodes", int, blank=True, default=nan, shown=HIDDEN),
    # Levels up to the farthest that ranks cross.
    Field("levels_crossed", str, default="", shown=HIDDEN),
    Field(
        "waves",
        int,
        default=1,
        shown=Condition.WAVES,
        note="if several: measured and predicted times are those between two waves",
    ),
    Field(
        "default_algorithm",
        str,
        optional=True,
        default="",
        head="by default rules",
        shown=Condition.DEFAULT_ALGORITHM,
        note="the algorithm of the MPI default by the default rules of the library's version; blank: unknown",
    ),
    Field("node_usage", str, shown=HIDDEN),
    Field("workload", str),
    Field("simulated", bool, format="text"),
    Field("batch", str, default="", note="measured in one allocation"),
    Field(
        "setting",
        str,
        default="",
        shown=Condition.SETTINGS,
        note="name of the circumstances of the measurement",
    ),
    Field(
        "fan_in",
        int,
        head="fan-in",
        note="most messages that one rank receives in one step",
        blank_without=SCHEDULE,
    ),
    *_time_fields("measured measured_low measured_high"),
    *_wave_fields(
        "first",
        head="first wave",
        note="median, from the common start to its end at the last rank; n/a: clock offsets are too uncertain",
    ),
    *_wave_fields(
        "last",
        head="last wave",
        note="median, from when the first rank began it to its end at the last rank",
    ),
    Field("samples", int),
    Field("invalid", int, note="samples discarded because a rank started late"),
    Field("stop", str, among=("", *STOP_REASONS), head="stopped by"),
    *_time_fields("skew"),
    # Blank if the programs did not report it, and in simulations.
    _process_count_field(
        "processes", note="on the host of the first rank", blank_without="processors"
    ),
    _process_count_field(
        "processors",
        note="of that host; if there are more processes, they take turns",
        blank_without="processors",
    ),
    Field("model", str),
    _predicted_field("seconds", head="predicted"),
    _predicted_field("low", head="predicted low"),
    _predicted_field("high", head="predicted high"),
    VALIDITY,
    replace(RATIO, default=nan, shown=HIDDEN),
    # The interval from the uncertainty of the parameters only.
    _predicted_field("parameter_low", default=nan, head="parameters low"),
    _predicted_field("parameter_high", default=nan, head="parameters high"),
    Field(
        "basis",
        str,
        head="interval basis",
        default="",
        note="data from which predicted low and high come",
    ),
    # How the recommended prediction was computed; blank in the rows of models.
    _recommended_field(
        "weights", str, default="", note="of the models in the stack, a weighted geometric mean"
    ),
    _recommended_field("stack", float, "s", default=nan, blank=True, note="before the correction"),
    _recommended_field(
        "correction",
        float,
        default=nan,
        blank=True,
        head="correction [×]",
        format="ratio",
        note="by measured points: predicted = stack × correction",
    ),
    _recommended_field(
        "interval_factor",
        float,
        default=nan,
        blank=True,
        head="interval factor [×]",
        format="ratio",
        note="high over predicted, and predicted over low: exp(f·σ)",
    ),
    _recommended_field(
        "deviation",
        float,
        default=nan,
        blank=True,
        head="σ",
        format="percent",
        note="standard deviation of ln(measured/predicted)",
    ),
    _recommended_field(
        "deviations",
        float,
        default=nan,
        blank=True,
        head="f [σ]",
        format="times",
        note="standard deviations from the prediction to the end of its interval",
    ),
    Field("measurement", str, pattern=MEASUREMENT_PATTERN),
    Field(
        "raw",
        str,
        default="",
        head="raw file",
        format="file",
        note="all its samples, of every pass; below the folder of the results",
    ),
    _schedule_field("relative_error", float, blank=True, format="signed"),
    _schedule_field("mu", float, blank=True, head="μ", format="ratio"),
    Field(
        "covered",
        bool,
        note="the measured median lies between predicted low and high",
        blank_without="mu",
    ),
    _schedule_field("held_out", bool, note="not used to fit the model"),
    _schedule_field(
        "best",
        bool,
        note="fastest measured alternative of its workload among those that the model predicts",
    ),
    _schedule_field("chosen", bool, note="the model chooses this alternative"),
    _schedule_field("tie", bool, note="chosen as the first of alternatives with equal predictions"),
    Field(
        "regret",
        float,
        blank=True,
        note="over the best alternative: the MPI default does not count",
        format="percent",
        blank_without="chosen",
    ),
    *_time_fields("library_default", shown=HIDDEN),
    *_time_fields("fastest", shown=HIDDEN),
)

MAX_EXACT_INTEGER = 2.0**53  # a float represents every whole number up to this one
WANTED_BY_TYPE = {
    str: "a text that the program writes into this column",
    int: "a whole number, not negative",
    float: "a number",
    bool: "True or False",
}
SEPARATORS = {",": "commas", "\t": "tabs"}
MAX_TABLE_BYTES = 4096 * MIB  # enough for 30 million samples
ROWS_PER_PIECE = 100_000  # rows that are read at once


def write_table(path: AnyPath, frame: pd.DataFrame) -> None:
    with write_atomically(path) as stream:
        make_cells_safe(frame).to_csv(stream, index=False)


def read_table(path: AnyPath, schema: Schema, rows: int | None = None) -> pd.DataFrame:
    """Return a CSV table with the columns of a schema, after checking every cell.

    Texts that look like numbers stay texts. Whole numbers are floats in a column with blanks. The
    types of further columns are chosen by pandas.
    """
    try:
        frame = _read_csv(path, schema, rows)
    except ValueError as error:  # such as a cell that is not of its column's type
        _refuse_cells(path, schema)
        raise UserError(f"cannot read the table: {error}", file=path) from None
    for field in schema:
        if field.name not in frame:
            if not field.optional:
                raise UserError(
                    f"found no column '{field.name}' among {', '.join(frame)}", file=path, line=1
                )
            continue
        column = frame[field.name].fillna("") if field.type is str else frame[field.name]
        if _find_wrong_cells(field, column).any():
            _refuse_cells(path, schema)
        if field.type is bool or (field.type is int and not column.isna().any()):
            column = column.astype(field.type)
        frame[field.name] = column
    return frame


def add_default_columns(frame: pd.DataFrame, schema: Schema) -> pd.DataFrame:
    """Add the columns with a default to a frame that was made without them."""
    missing = [field for field in schema if field.default is not None and field.name not in frame]
    return frame.assign(**{field.name: field.default for field in missing})


def _read_csv(path: AnyPath, schema: Schema, rows: int | None) -> pd.DataFrame:
    """Read a table in pieces, and store equal texts once.

    Most cells of large tables are names that occur often. The types of flags, and of columns
    outside of the schema, are chosen by pandas.
    """
    import pandas as pd  # here, because it takes longer to load than most verbs to run

    fields = [field for field in schema if field.type is not bool]
    types = {field.name: str if field.type is str else float for field in fields}
    shared: dict[str, str] = {}  # the one object of each text
    with open_bounded(path, MAX_TABLE_BYTES, "a smaller table") as stream:
        pieces = []
        for piece in pd.read_csv(stream, dtype=types, nrows=rows, chunksize=ROWS_PER_PIECE):
            texts = {
                name: _share_texts(piece[name], shared) for name in piece if types.get(name) is str
            }
            pieces.append(piece.assign(**texts))
        if len(pieces) > 1 and all(piece.dtypes.equals(pieces[0].dtypes) for piece in pieces):
            return pd.concat(pieces, ignore_index=True)
        if len(pieces) == 1:
            return pieces[0]
        stream.seek(0)  # pandas chose different types of a column in different pieces
        return pd.read_csv(stream, dtype=types, nrows=rows, low_memory=False)


def _share_texts(column: pd.Series, shared: dict[str, str]) -> pd.Series:
    """Return a column of texts in which equal ones are one object; blank cells are empty texts."""
    import numpy as np
    import pandas as pd

    codes, texts = pd.factorize(column)  # -1: blank
    by_code = np.array(
        [*(shared.setdefault(str(text), str(text)) for text in texts), ""], dtype=object
    )
    return pd.Series(by_code[codes], index=column.index, dtype=object)


def read_column_names(path: AnyPath) -> list[str]:
    """Return the column names of any CSV table."""
    return list(read_table(path, (), rows=0))


def _find_wrong_cells(field: Field, column: pd.Series) -> pd.Series:
    """Return for each cell of a column whether it violates its schema; numbers may still be
    texts."""
    import pandas as pd

    blank = column.isna()
    if field.type is str:
        if field.pattern:
            return ~column.fillna("").astype(str).str.fullmatch(field.pattern)
        return ~column.isin(field.among) if field.among else blank & False
    if field.type is bool:
        return ~column.isin((True, False, "True", "False")) & ~(blank & field.blank)
    numbers = pd.to_numeric(column, errors="coerce").astype(float)
    right = (
        numbers.between(0, MAX_EXACT_INTEGER) & (numbers % 1 == 0)
        if field.type is int
        else numbers.notna()
    )
    if field.unit:
        right &= numbers.abs() < math.inf
    return ~right & ~(blank & field.blank)


def _refuse_cells(path: AnyPath, schema: Schema) -> None:
    """Raise an error that lists the cells that violate their schema. The table is read again, as
    text."""
    import numpy as np
    import pandas as pd

    wrong_cells = []
    uncounted = 0
    with suppress(ValueError), open_bounded(path, MAX_TABLE_BYTES, "a smaller table") as stream:
        frame = pd.read_csv(stream, dtype=str)
        for field in (field for field in schema if field.name in frame):
            column = frame[field.name].fillna("") if field.type is str else frame[field.name]
            rows = np.flatnonzero(_find_wrong_cells(field, column).to_numpy())
            wanted = " or ".join(field.among) or WANTED_BY_TYPE[field.type]
            for row in rows[:MAX_SHOWN_MISTAKES].tolist():
                cell = column.iloc[row]
                shown = (
                    "nothing" if pd.isna(cell) or cell == "" else f"'{make_printable(cell, 60)}'"
                )
                wrong_cells.append((row, field.name, f"found {shown}, wanted {wanted}"))
            uncounted += max(len(rows) - MAX_SHOWN_MISTAKES, 0)
    wrong_cells.sort(key=lambda cell: cell[0])
    shown_cells = wrong_cells[:MAX_SHOWN_MISTAKES]
    mistakes = Mistakes()
    lines = _find_lines(path, [row for row, _, _ in shown_cells])
    for row, name, message in shown_cells:
        mistakes.add(UserError(message, file=path, line=lines.get(row), key=name))
    mistakes.count = len(wrong_cells) + uncounted
    mistakes.raise_any()


def _find_lines(path: AnyPath, rows: Collection[int]) -> dict[int, int]:
    """Return the number of the line on which each of the given rows ends. Blank lines are no rows,
    and cells may have several lines."""
    lines: dict[int, int] = {}
    with open_bounded(path, MAX_TABLE_BYTES, "a smaller table") as stream:
        reader = csv.reader(io.TextIOWrapper(stream, "utf-8-sig", newline=""))
        for row, number in enumerate(reader.line_num for cells in reader if cells):
            if row - 1 in rows:
                lines[row - 1] = number
            if len(lines) == len(set(rows)):
                break
    return lines


def stream_rows(
    path: AnyPath,
    wanted: tuple[str, ...],
    separator: str = ",",
    *,
    unique_columns: bool = False,
    advice: str = "",
) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield the rows of a CSV table from another source, as texts by column, each with its line
    number.

    Column names are read in any case, and are in lower case here. Each wanted column must occur
    exactly once; with `unique_columns`, no column may occur twice. `advice` is the end of the error
    about a missing column.
    """
    try:
        lines = (line + "\n" for _, line in read_lines(path, MAX_FILE_BYTES, "a smaller table"))
        reader = csv.DictReader(lines, delimiter=separator, restval="", skipinitialspace=True)
        found_names = [name.strip() for name in reader.fieldnames or ()]
        reader.fieldnames = names = [name.lower() for name in found_names]
        for name in wanted:
            if name not in names:
                hint = (
                    f"; wanted {SEPARATORS[separator]} between the cells"
                    if len(names) == 1
                    else advice
                )
                found_text = ", ".join(found_names) or "none"
                raise UserError(
                    f"found no column '{name}' among {found_text}{hint}", file=path, line=1
                )
        for name in names if unique_columns else wanted:
            if names.count(name) > 1:
                raise UserError(f"found the column '{name}' twice", file=path, line=1)
        row = None
        for row in reader:
            if row.pop(None, None):
                message = f"found more cells than the {len(names)} columns"
                raise UserError(message, file=path, line=reader.line_num)
            yield reader.line_num, {name: cell.strip() for name, cell in row.items()}
    except csv.Error as error:
        raise UserError(
            f"cannot read the table: {error}", file=path, line=reader.reader.line_num
        ) from None
    if row is None:
        raise UserError("found no rows below the column names", file=path)


def read_rows(
    path: AnyPath, wanted: tuple[str, ...], separator: str = ",", **options: Any
) -> list[tuple[int, dict[str, str]]]:
    """Return the rows of `stream_rows`, which has the same `options`, as a list."""
    return list(stream_rows(path, wanted, separator, **options))


def parse_cell(row: dict[str, str], column: str, parse: Callable[[str], Cell]) -> Cell:
    """Return the parsed cell of a row; an error names its column."""
    try:
        return parse(row[column])
    except UserError as error:
        raise UserError(error.found, key=column) from None


@contextmanager
def add_line_to_errors(
    file: AnyPath, line: int, mistakes: Mistakes | None = None
) -> Iterator[None]:
    """Add file and line to an error of the block, unless it names its file.

    With `mistakes`, the error is collected there, and the next line can be read.
    """
    try:
        yield
    except UserError as error:
        placed = (
            error
            if error.file is not None
            else UserError(error.found, file=file, line=line, key=error.key)
        )
        if mistakes is None:
            raise placed from None
        mistakes.add(placed)
