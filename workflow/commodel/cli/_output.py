"""Rows as a table for people, or as JSON or CSV for programs."""

import csv
import io
import json
import shutil
import sys
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path

import click

from commodel.errors import UserError

Rows = Sequence[Mapping[str, object]]
style_option = click.option(
    "--format", "style", type=click.Choice(["table", "json", "csv"]), default="table", show_default=True, help="Output."
)

commutative_option = click.option(
    "--commutative", is_flag=True, help="Assume that the reductions of all programs commute: more rules."
)
same_types_option = click.option(
    "--same-types", is_flag=True, help="Assume that all ranks describe a message by one datatype: more rules."
)


def chosen_style(asked: str | None, out: Path | None, styles: Sequence[str]) -> str:
    """The one that was asked for, else that in which the file's name ends, else a table."""
    style = asked or (out.suffix[1:] if out and out.suffix[1:] in styles else "table")
    if style == "xlsx" and not out:
        raise UserError("a workbook needs a file: give -o NAME.xlsx")
    return style


def check_workbook(out: Path | None) -> None:
    if out is not None and out.suffix != ".xlsx":
        raise UserError(f"--out: found {out.name}, wanted a name that ends with .xlsx")


def table(rows: Rows) -> str:
    """Aligned columns, numbers to the right; on a terminal that is narrower than they are, a row below the other."""
    if not rows:
        return ""
    names = list(rows[0])
    texts = [[_text(row[name]) for name in names] for row in rows]
    widths = [max(len(text) for text in column) for column in zip(names, *texts, strict=True)]
    if sys.stdout.isatty() and sum(widths) + 2 * (len(widths) - 1) > (room := shutil.get_terminal_size().columns):
        return "\n\n".join(_upright(names, row, room) for row in texts)
    right = [all(isinstance(row[name], int | float) for row in rows) for name in names]

    def line(cells: Sequence[str]) -> str:
        padded = (cell.rjust(w) if r else cell.ljust(w) for cell, w, r in zip(cells, widths, right, strict=True))
        return "  ".join(padded).rstrip()

    return "\n".join([line(names), *(line(row) for row in texts)])


def _upright(names: Sequence[str], texts: Sequence[str], room: int) -> str:
    """A row as lines of a name and what it is, where it is anything."""
    margin = max(map(len, names)) + 2
    named = [(name, text) for name, text in zip(names, texts, strict=True) if text not in ("", "-")]
    wide = max(20, room - margin)
    pieces = [(name, textwrap.wrap(text, wide, break_on_hyphens=False) or [""]) for name, text in named]
    return "\n".join(
        f"{'' if at else name:{margin}}{piece}".rstrip() for name, lines in pieces for at, piece in enumerate(lines)
    )


def _text(value: object) -> str:
    if value is None or value != value:
        return "-"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def as_csv(rows: Rows) -> str:
    from commodel.files.cells import safe_cell

    stream = io.StringIO()
    if rows:
        writer = csv.DictWriter(stream, rows[0], lineterminator="\n")
        writer.writeheader()
        writer.writerows({name: safe_cell(value) for name, value in row.items()} for row in rows)
    return stream.getvalue().rstrip("\n")


def show(rows: Rows, style: str) -> None:
    click.echo(
        {"json": lambda: json.dumps(list(rows), indent=1), "csv": lambda: as_csv(rows), "table": lambda: table(rows)}[
            style
        ]()
    )


def emit(text: str, out: Path | None) -> None:
    """Text to a file, or to the screen where none is named."""
    from commodel.files.atomic import write_text

    if out:
        write_text(out, text + "\n")
    else:
        click.echo(text)
