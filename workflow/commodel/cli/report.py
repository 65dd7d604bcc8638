"""commodel report: write the workbook, the page or pictures."""

from pathlib import Path

import click

from commodel.cli._help import VerbCommand, make_option_group
from commodel.cli._options import PATH, out_option
from commodel.cli._output import show_waiting
from commodel.errors import UserError, make_printable


@click.command(
    cls=VerbCommand,
    examples=(
        "commodel report --in results/sample",
        "commodel report imported",
    ),
    arguments={"FOLDER": "The same as --in; also a folder of imported measurements."},
)
@click.argument("given", metavar="[FOLDER]", type=PATH, required=False)
@make_option_group(
    "Results to read",
    click.option(
        "--in",
        "folder",
        metavar="FOLDER",
        type=PATH,
        help="Results of an experiment, results/NAME, or imported measurements.",
    ),
    click.option(
        "--anonymous", is_flag=True, help="Write numbers instead of the names of machines."
    ),
    click.option("--samples", is_flag=True, help="Add a sheet with every sample to the workbook."),
    click.option(
        "--so-far", is_flag=True, help="Write only the page, of a campaign that still measures."
    ),
)
@make_option_group(
    "Output",
    out_option("Folder of the report.  [default: reports/NAME]"),
    click.option(
        "--pictures",
        type=PATH,
        help="Write the charts here, as SVG and PNG; the report only with --out.",
    ),
    click.option(
        "--every-chart",
        is_flag=True,
        help="Write all charts of the page, not only of its first screen.",
    ),
)
def report(
    given: Path | None,
    folder: Path | None,
    out: Path | None,
    anonymous: bool,
    samples: bool,
    so_far: bool,
    pictures: Path | None,
    every_chart: bool,
) -> None:
    source = _choose_folder(given, folder)
    if every_chart and not pictures:
        raise UserError("found --every-chart without --pictures, wanted --pictures FOLDER with it")
    others = {"--anonymous": anonymous, "--samples": samples, "--pictures": pictures}
    given_names = [name for name, is_given in others.items() if is_given]
    if so_far and given_names:
        raise UserError(f"found --so-far with {given_names[0]}, wanted the page only")
    with show_waiting("writing the report"):
        from commodel.api.campaigns import report as write_report  # slow to load: not for --help

        written = write_report(
            source,
            out,
            anonymous=anonymous,
            samples=samples,
            so_far=so_far,
            pictures=pictures,
            every_chart=every_chart,
        )
    click.echo(written.text())
    for note in written.notes:
        click.echo(note, err=True)


def _choose_folder(given: Path | None, folder: Path | None) -> Path:
    """Return the folder of an argument or of --in; refuse both, and the name of an experiment."""
    if given and folder:
        raise UserError(f"found {make_printable(given, 60)} and --in, wanted one folder")
    if folder is None and given is None:
        raise UserError("report: --in is missing, wanted --in results/NAME")
    if given and not given.is_dir():
        shown, results = make_printable(given, 60), make_printable(Path("results") / given, 80)
        raise UserError(f"found '{shown}', wanted --in {results}")
    return folder or given or Path()
