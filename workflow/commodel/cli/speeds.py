"""commodel speeds: measure how fast each kind of process runs a kernel, at sizes chosen where the speed bends.

What `commodel speeds` needs beside its options: what a file of speeds already says, and the loop."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import click
import numpy as np

from commodel.cli.partition import Located, located
from commodel.errors import UserError
from commodel.files.safe_paths import SafePath
from commodel.fit.speed_sampling import Rows, Sample, rectangle, sample_speeds
from commodel.measure.speeds import Kernel, measurer
from commodel.models.speeds import Speed, Speeds, read_speeds
from commodel.patterns.partitions.shares import Balance, dynamic
from commodel.records import Measure
from commodel.units import parse_count

PATH = click.Path(path_type=Path)


@click.command()
@click.option("--layout", required=True, help="Processes that compute at the same time, e.g. processes:PATH.")
@click.option("--platform", default="local", show_default=True, help="Where they run: a name or a file.")
@click.option("--ranks", type=click.IntRange(1, 1 << 20), help="Processes.  [default: as many as the layout says]")
@click.option(
    "--kernel", type=click.Choice(["gemm", "wave"]), default="gemm", show_default=True, help="What is computed."
)
@click.option("--block", type=click.IntRange(1, 4096), default=32, show_default=True, help="Elements a side, for gemm.")
@click.option("--sizes", default="16:4096", show_default=True, help="Smallest and largest area, in blocks or cells.")
@click.option("--within", default="5%", show_default=True, help="How far the curve may be off a straight line.")
@click.option("--most", type=click.IntRange(1, 1000), default=20, show_default=True, help="Sizes of each kind.")
@click.option("--seconds", type=click.FloatRange(0.01, 3600), default=0.5, show_default=True, help="For each size.")
@click.option("--precision", default="2%", show_default=True, help="Of the median's 95 % interval.")
@click.option("-o", "--out", type=PATH, required=True, help="File of speeds; other kernels and kinds in it are kept.")
def speeds(layout, platform, ranks, kernel, block, sizes, within, most, seconds, precision, out) -> None:
    """Build functional performance models: the speed of each kind of process over the size of its share.

    All processes of the layout compute at once, since they share memory; of each kind one is timed.
    `commodel partition` reads the file.

    \b
    commodel speeds --layout processes:mine.csv --kernel gemm --sizes 16:4096 -o mine.yaml
    """
    from commodel.cli._output import table
    from commodel.measure.speeds import Kernel
    from commodel.models.speeds import write_speeds
    from commodel.plan.config import find
    from commodel.units import parse_fraction

    speeds = kept_beside(out, find("platform", platform).stem)
    computed = Kernel(kernel, block if kernel == "gemm" else 1)
    if kernel in speeds.kernels and speeds.kernels[kernel].block != computed.block:
        raise UserError(f"found speeds of blocks of {speeds.kernels[kernel].block}, wanted those of {block}", file=out)
    settings = replace(SETTINGS, precision=parse_fraction(precision), seconds=seconds)
    rows = measured(layout, platform, ranks, computed, two_sizes(sizes), parse_fraction(within), most, settings)
    write_speeds(out, speeds.joined(kernel, computed.block, rows))
    names = ("size", "speed", "low", "high")
    shown = [{"kind": kind, **dict(zip(names, row, strict=True))} for kind in rows for row in rows[kind]]
    click.echo(f"{table(shown)}\n\n{out}: {len(shown)} speeds of {kernel}")


SETTINGS = Measure("barrier", 0.02, 6, 1000, 0.5, 1, 1, 60.0)
Run = Callable[[Mapping[str, int]], dict[str, Sample]]


def two_sizes(text: str) -> tuple[int, int]:
    smallest, colon, largest = text.partition(":")
    if not colon:
        raise UserError(f"--sizes: found '{text}', wanted SMALLEST:LARGEST, such as 16:4096")
    ends = parse_count(smallest, 1, 1 << 40), parse_count(largest, 1, 1 << 40)
    if ends[0] > ends[1]:
        raise UserError(f"--sizes: found {text}, wanted the smaller first")
    return ends


def kept_beside(out: Path, platform: str) -> Speeds:
    """What the file says so far."""
    if not out.exists():
        return Speeds({}, platform, source="measured by commodel speeds")
    kept = read_speeds(out)
    if kept.simulated:
        raise UserError("found speeds that are declared; wanted another file for measured ones", file=out)
    if kept.platform != platform:
        raise UserError(f"found speeds of platform '{kept.platform}', wanted '{platform}'", file=out)
    return kept


def measured(
    layout: str,
    platform: str,
    ranks: int | None,
    kernel: Kernel,
    sizes: tuple[int, int],
    within: float,
    most: int,
    settings: Measure,
) -> dict[str, Rows]:
    """The rows of every kind."""
    there = located(layout, platform, ranks)
    with _running(there, kernel, settings) as run:
        return sample_speeds(list(dict.fromkeys(there.kinds)), run, *sizes, within, most)


def balanced(there: Located, kernel: Kernel, side: int, within: float, settings: Measure) -> Balance:
    """Shares of a matrix that are balanced while they are measured. What a kind takes is timed at its largest share,
    while all processes compute as much."""
    kinds = np.array(there.kinds)
    with _running(there, kernel, settings) as run:

        def measure(shares: np.ndarray) -> np.ndarray:
            largest = {str(kind): int(shares[kinds == kind].max()) for kind in dict.fromkeys(there.kinds)}
            samples = run({kind: share for kind, share in largest.items() if share})
            return np.array(
                [share / samples[kind][0] if share else 0.0 for kind, share in zip(kinds, shares, strict=True)]
            )

        return dynamic(len(kinds), side * side, measure, Speed.of, within)


@contextmanager
def _running(there: Located, kernel: Kernel, settings: Measure) -> Iterator[Run]:
    """What measures, and says so round by round."""
    with TemporaryDirectory(prefix="commodel-speeds-") as folder:
        place = SafePath.at(Path(folder).resolve())
        run = measurer(there.platform, there.layout, there.kinds, kernel, settings, rectangle, place)

        def aloud(asked: Mapping[str, int]) -> dict[str, Sample]:
            samples = run(asked)
            text = ", ".join(f"{kind} at {size}: {samples[kind][0]:.4g}/s" for kind, size in asked.items())
            click.echo(text, err=True)
            return samples

        yield aloud
