"""commodel window: how many ranks may send to one at once, by the cluster model's equations."""

from pathlib import Path

import click

from commodel.cli._output import show, style_option
from commodel.errors import UserError
from commodel.files.quantities import expand
from commodel.units import format_seconds, parse_bytes, parse_count


@click.command()
@click.option("--params", type=click.Path(path_type=Path), required=True, help="Parameter set of family cluster.")
@click.option("--ranks", required=True, help="Number of ranks, the receiver among them: 16, or 2:64:*2.")
@click.option("--bytes", "sizes", required=True, help="What each sends: 1KiB, or 8:1MiB:*4.")
@style_option
def window(params: Path, ranks: str, sizes: str, style: str) -> None:
    """Compute the window of a gather that loses nothing and keeps its receiver busy.

    Also, for all senders at once: when the receiver's buffer is full, and what share of the packets gets through.

    \b
    commodel window --params params/published/cluster/fast-ethernet-16.yaml --ranks 16 --bytes 16KiB:1MiB:*4
    """
    from commodel.advice.gather_windows import gather_bounds
    from commodel.cli._advise import MOST_JOBS
    from commodel.models.parameter_sets import read_set

    parameters = read_set(params)
    if parameters.family != "cluster":
        raise UserError(f"found parameters of family '{parameters.family}', wanted cluster", file=params)
    counts = expand(ranks, lambda text: parse_count(text, 2))
    lengths = expand(sizes, parse_bytes)
    if len(counts) * len(lengths) > MOST_JOBS:
        raise UserError(f"these options mean {len(counts) * len(lengths)} jobs, wanted at most {MOST_JOBS}")
    jobs = [(count, size) for count in counts for size in lengths]
    rows = [{"ranks": count, "bytes": size, **gather_bounds(parameters, count, size)} for count, size in jobs]
    show([_row(row) for row in rows] if style == "table" else rows, style)


def _row(row: dict) -> dict:
    after, share, rule = (row.pop(name) for name in ("full_after", "through", "rule"))
    row["all at once"] = "-" if share is None else f"{100 * share:.0f} % get through"
    row["full after"] = "-" if after is None else format_seconds(after)
    return row | {"rule": rule}
