"""The matrix of an experiment: the combinations of each of its blocks (`list_combinations`), and
tables of them (`add_table`).

The combinations of a block are the product of its axes and zips, without the excluded ones, and
then the included ones. A combination is a dict from the keys of the YAML file to values, which the
planner interprets.

A block may also name a .tsv or .csv file with one combination per row. Columns have the names of
the YAML keys.
"""

import math
from collections.abc import Iterator, Mapping
from itertools import chain, product
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from commodel.errors import Mistakes, UserError, suggest_name
from commodel.files import expressions
from commodel.files.cache import find_input
from commodel.files.quantities import MAX_ENTRIES
from commodel.files.safe_paths import check_path
from commodel.files.tables import add_line_to_errors, read_rows
from commodel.plan.experiments import (
    AXES,
    PARAMETER_PREFIX,
    Block,
    Combination,
    Experiment,
    locate_errors,
)

MAX_COMBINATIONS = 2_000_000  # of an experiment
MAX_EXCLUSION_TESTS = 50_000_000  # evaluations of an exclusion for a combination
MAX_TOPOLOGIES = 1000  # different ones, since each is built when the plan is made
# values of omitted axes in expressions of `exclude`
DEFAULT_VALUES: dict[str, Any] = dict.fromkeys(("operation", "algorithm", "topology", "layout"), "")
DEFAULT_VALUES |= dict.fromkeys(("ranks", "nodes", "ranks_per_node", "bytes")) | {"waves": 1}

Values = dict[str, Any]
PlaceInFile = tuple[str | int, ...]


def list_combinations(block: Block) -> Iterator[tuple[Values, PlaceInFile]]:
    """Yield each combination with its path of keys in the block. The first axis varies slowest."""
    filters = [expressions.parse_expression(exclusion.where, AXES) for exclusion in block.exclude]
    for combination in _list_combinations(block):
        if not (filters and _is_excluded(block, filters, DEFAULT_VALUES | combination)):
            yield combination, ()
    for index, entry in enumerate(block.include):
        values = entry.model_dump(exclude_unset=True)
        values |= {
            PARAMETER_PREFIX + name: value for name, value in values.pop("parameters", {}).items()
        }
        yield _add_ranks(_add_parameters(values)), ("include", index)


def check_size(experiment: Experiment) -> None:
    """Raise an error if a matrix would take too long to expand. Excluded combinations count,
    too."""
    sizes = [count_combinations(block) for block in experiment.matrix]
    total = sum(sizes)
    if total > MAX_COMBINATIONS:
        raise experiment.error(
            ("matrix",), f"found {total} combinations, wanted at most {MAX_COMBINATIONS}"
        )
    tests = sum(
        count * len(block.exclude) for count, block in zip(sizes, experiment.matrix, strict=True)
    )
    if tests > MAX_EXCLUSION_TESTS:
        raise experiment.error(
            ("matrix",),
            f"found {tests} evaluations of exclude, wanted at most {MAX_EXCLUSION_TESTS}",
        )
    trees: set[str] = set()
    for block in experiment.matrix:
        for table in (block.axes, *block.zips.values()):
            trees.update(table.get("topology", ()))
        trees.update(entry.topology for entry in block.include)
    if len(trees) > MAX_TOPOLOGIES:
        raise experiment.error(
            ("matrix",), f"found {len(trees)} topologies, wanted at most {MAX_TOPOLOGIES}"
        )


def count_combinations(block: Block) -> int:
    """Return the number of combinations, including the excluded ones."""
    tables = [len(values) for values in block.axes.values()]
    tables += [len(next(iter(table.values()))) for table in block.zips.values()]
    return (math.prod(tables) if tables else 0) + len(block.include)


def _list_combinations(block: Block) -> Iterator[Values]:
    if not block.axes and not block.zips:
        return
    names = [*block.axes, *chain.from_iterable(block.zips.values())]
    # the values of an axis alone, those of a zip together
    columns = [list(zip(values)) for values in block.axes.values()]
    columns += [list(zip(*table.values(), strict=True)) for table in block.zips.values()]
    derived = "ranks" not in names and "nodes" in names and "ranks_per_node" in names
    for rows in product(*columns):
        combination = _add_parameters(dict(zip(names, chain.from_iterable(rows), strict=True)))
        yield _add_ranks(combination) if derived else combination


def _add_parameters(values: Values) -> Values:
    """Return the combination with the operation's parameters appended to its name, such as
    `summa:n=64`."""
    parameter_names = [name for name in values if name.startswith(PARAMETER_PREFIX)]
    if not parameter_names:
        return values
    axes = {name: value for name, value in values.items() if name not in parameter_names}
    arguments = (
        f":{name.removeprefix(PARAMETER_PREFIX)}={values[name]}" for name in parameter_names
    )
    return axes | {"operation": "".join([axes["operation"], *arguments])}


def _add_ranks(combination: Values) -> Values:
    """Return the combination with its ranks, the product of nodes and ranks per node if only these
    are given."""
    if "ranks" not in combination and "nodes" in combination and "ranks_per_node" in combination:
        combination["ranks"] = combination["nodes"] * combination["ranks_per_node"]
    return combination


def _is_excluded(block: Block, filters: list[expressions.Expression], values: Values) -> bool:
    for index, matches in enumerate(filters):
        with locate_errors(block, "exclude", index, "where"):
            if matches(values):
                return True
    return False


def locate_axis(block: Block, path: PlaceInFile, axis: str) -> PlaceInFile:
    """Return the path of keys of an axis in a block, or in an entry of its include, for an
    error."""
    if path:
        return (*path, axis)
    if axis in block.axes:
        return ("axes", axis)
    return next(
        (("zips", title, axis) for title, table in block.zips.items() if axis in table), (axis,)
    )


SEPARATORS = {".tsv": "\t", ".csv": ","}
TABLE_COLUMNS = [name for name in Combination.model_fields if f"{name}." != PARAMETER_PREFIX]


def add_table(block: Block, table: str) -> Block:
    """Return the block with the rows of its table after the combinations of include."""
    try:
        check_path(table)
        separator = SEPARATORS.get(Path(table).suffix)
        if separator is None:
            raise UserError(f"found '{table}', wanted a file .tsv or .csv")
        file = find_input(table)
        if not file.exists():
            raise UserError(f"found no file '{table}' in the project")
    except UserError as error:
        raise block.error(("table",), error.found) from None
    rows = read_rows(file, ("operation",), separator, unique_columns=True)
    for name in rows[0][1]:
        if name not in TABLE_COLUMNS and not name.startswith(PARAMETER_PREFIX):
            message = (
                "found an unknown column; "
                f"{suggest_name(name, [*TABLE_COLUMNS, f'{PARAMETER_PREFIX}NAME'])}"
            )
            raise UserError(message, file=file, line=1, key=name)
    if len(rows) > MAX_ENTRIES:
        raise UserError(f"found {len(rows):,} rows, wanted at most {MAX_ENTRIES:,}", file=file)
    combinations = {}
    mistakes = Mistakes()
    for line, cells in rows:
        row = {name: cell for name, cell in cells.items() if cell}
        with add_line_to_errors(file, line, mistakes):
            if row:  # spreadsheets may write rows of empty cells
                combinations[line] = _parse_combination(row)
    mistakes.raise_any()
    return block.with_rows(combinations)


def _parse_combination(row: Mapping[str, Any]) -> Combination:
    """Return the combination in the non-empty cells of a row. An error names the column."""
    axes = {name: value for name, value in row.items() if not name.startswith(PARAMETER_PREFIX)}
    parameters = {
        name.removeprefix(PARAMETER_PREFIX): value
        for name, value in row.items()
        if name not in axes
    }
    try:
        return Combination.model_validate(axes | ({"parameters": parameters} if parameters else {}))
    except ValidationError as errors:
        mistake = errors.errors(include_url=False)[0]
    column = ".".join(map(str, (*mistake["loc"], *mistake.get("ctx", {}).get("path", ()))))
    raise UserError(
        "found nothing, wanted a name" if mistake["type"] == "missing" else mistake["msg"],
        key=column,
    )
