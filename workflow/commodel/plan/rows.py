"""Single combinations as rows of a table that people edit: of a sheet of a workbook, or of a file .tsv or .csv that a
block of the matrix names. Its columns are called as the keys of a combination are in YAML."""

from collections.abc import Mapping
from pathlib import Path

from pydantic import ValidationError

from commodel.errors import Mistakes, UserError, suggest
from commodel.files.axes import MAX_ENTRIES
from commodel.files.kept import reached
from commodel.files.project import check_path
from commodel.files.tables import on_line, read_rows
from commodel.plan.experiments import PARAMETERS, Block, Combination

SEPARATORS = {".tsv": "\t", ".csv": ","}
COLUMNS = [name for name in Combination.model_fields if f"{name}." != PARAMETERS]


def with_table(block: Block) -> Block:
    """The block with the rows of its table behind the combinations that it includes itself."""
    try:
        check_path(block.table)
        separator = SEPARATORS.get(Path(block.table).suffix)
        if separator is None:
            raise UserError(f"found '{block.table}', wanted a file .tsv or .csv")
        if not (file := reached(block.table)).exists():
            raise UserError(f"found no file '{block.table}' in the project")
    except UserError as error:
        raise block.error(("table",), error.found) from None
    rows = read_rows(file, ("operation",), separator, once=True)
    for name in rows[0][1]:
        if name not in COLUMNS and not name.startswith(PARAMETERS):
            message = f"found an unknown column; {suggest(name, [*COLUMNS, f'{PARAMETERS}NAME'])}"
            raise UserError(message, file=file, line=1, key=name)
    if len(rows) > MAX_ENTRIES:
        raise UserError(f"found {len(rows):,} rows, wanted at most {MAX_ENTRIES:,}", file=file)
    combinations = {}
    mistakes = Mistakes()
    for line, cells in rows:
        row = {name: cell for name, cell in cells.items() if cell}
        with on_line(file, line, mistakes):
            if row:  # a spreadsheet may leave rows of separators
                combinations[line] = combination(row)
    mistakes.raise_any()
    return block.with_rows(combinations)


def combination(row: Mapping[str, object]) -> Combination:
    """What the cells of a row mean that hold something; a mistake names its column."""
    named = {name: value for name, value in row.items() if not name.startswith(PARAMETERS)}
    parameters = {name.removeprefix(PARAMETERS): value for name, value in row.items() if name not in named}
    try:
        return Combination.model_validate(named | ({"parameters": parameters} if parameters else {}))
    except ValidationError as errors:
        mistake = errors.errors(include_url=False)[0]
    column = ".".join(map(str, (*mistake["loc"], *mistake.get("ctx", {}).get("path", ()))))
    raise UserError("found nothing, wanted a name" if mistake["type"] == "missing" else mistake["msg"], key=column)
