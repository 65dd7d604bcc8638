"""What `commodel speeds` needs beside its options: what a file of speeds already says, and the loop."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import click
import numpy as np

from commodel.cli._processes import Located, located
from commodel.errors import UserError
from commodel.files.paths import SafePath
from commodel.fit.speeds import Rows, Sample, rectangle, speeds
from commodel.measure.speeds import Kernel, measurer
from commodel.models.speeds import Speed, Speeds, read_speeds
from commodel.patterns.partitions.dynamic import Balance, dynamic
from commodel.records import Measure
from commodel.units import parse_count

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
        return speeds(list(dict.fromkeys(there.kinds)), run, *sizes, within, most)


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
