"""commodel report: write the workbook, the page or pictures."""

from pathlib import Path

import click

from commodel.cli._help import Verb, make_option_group
from commodel.cli._options import PATH, out_option
from commodel.cli._output import show_waiting
from commodel.errors import UserError, make_printable


class ReportVerb(Verb):
    """A command whose error about an argument names the option for the results."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        named = [word for word in args if not word.startswith("-")]
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption:
            raise
        except click.UsageError as error:
            extra = next((word for word in named if f"({word}" in error.message), "")
            if "unexpected extra argument" not in error.message or not extra:
                raise
            folder = Path(extra) if Path(extra).is_dir() else Path("results") / extra
            ctx.fail(
                f"found '{make_printable(extra, 60)}', wanted --in {make_printable(str(folder), 80)}"
            )


@click.command(
    cls=ReportVerb,
    examples=(
        "commodel report --in results/sample",
        "commodel report --in results/sample --pictures pictures",
    ),
)
@make_option_group(
    "Results to read",
    click.option(
        "--in",
        "folder",
        metavar="FOLDER",
        type=PATH,
        help="Results of an experiment, results/NAME.",
    ),
    click.option(
        "--anonymous", is_flag=True, help="Write numbers instead of the names of machines."
    ),
    click.option("--samples", is_flag=True, help="Add a sheet with every sample to the workbook."),
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
    folder: Path | None,
    out: Path | None,
    anonymous: bool,
    samples: bool,
    pictures: Path | None,
    every_chart: bool,
) -> None:
    # Click's own check of a required option would precede that of an argument, which names the
    # option.
    if folder is None:
        raise UserError("report: --in is missing, wanted --in results/NAME")
    if every_chart and not pictures:
        raise UserError("found --every-chart without --pictures, wanted --pictures FOLDER with it")
    with show_waiting("writing the report"):
        from commodel.api.campaigns import report as write_report  # slow to load: not for --help

        written = write_report(
            folder,
            out,
            anonymous=anonymous,
            samples=samples,
            pictures=pictures,
            every_chart=every_chart,
        )
    click.echo(written.text())
    for note in written.notes:
        click.echo(note, err=True)
