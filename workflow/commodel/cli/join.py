"""commodel join: parts of a long table, one after the other."""

from pathlib import Path

import click

from commodel.cli._output import waiting


@click.command()
@click.argument("parts", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--out", type=click.Path(path_type=Path), required=True, help="The table to write: .parquet or .csv.")
def join(parts: tuple[Path, ...], out: Path) -> None:
    """Put the Parquet files PARTS, such as `commodel price --part` writes, one after the other into one table."""
    from commodel.files.streams import read_stream, write_stream

    with waiting("joining"):
        write_stream(out, *read_stream(parts))
