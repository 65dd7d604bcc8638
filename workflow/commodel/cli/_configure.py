"""Configurations as people and programs read them: a table with both times, and what it comes down to.

The best configurations of a kernel measured where they are to run."""

import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from math import isnan
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import click

from commodel.advice.configurations import Configuration, Problem, Times, fastest
from commodel.advice.evidence import Evidence
from commodel.cli._output import progress, show, table
from commodel.errors import UserError, suggest
from commodel.files.safe_paths import SafePath
from commodel.measure.batch import measure_now
from commodel.models.families import family as family_named
from commodel.patterns.points import Setting
from commodel.plan.config import find, load_platform
from commodel.price.validity import PriceStatus
from commodel.records import Measure, Point
from commodel.results.raw_samples import read_samples, why_unmeasured
from commodel.units import format_seconds


@contextmanager
def folder_for(out: Path | None) -> Iterator[Path]:
    """Where tables and partitions are written: the user's folder, or one that goes away."""
    if out:
        out.mkdir(parents=True, exist_ok=True)
        yield out
        return
    with TemporaryDirectory(prefix="commodel-") as folder:
        yield Path(folder)


def deciding(evidence: Evidence, family: str | None) -> str:
    """The family whose prices rank configurations; one that is blind to sizes only if it is asked for."""
    families = list(evidence.by_family())
    if family not in (None, *families):
        raise UserError(f"no values of family '{family}'; {suggest(family, families)}")
    seeing = ["taulop"] if "taulop" in families else [name for name in families if family_named(name).uses_bytes]
    if not (family or seeing):
        raise UserError(f"found values of {', '.join(families)}, wanted a family that sees sizes, or --family")
    return family or seeing[0]


def tell(best: Configuration, family: str) -> None:
    """Where a terminal waits: of thousands of messages a layout may take seconds."""
    if sys.stderr.isatty():
        click.echo(f"{name_of(best)}: {best.way}, {format_seconds(best.total(family))}", err=True)


def show_ranked(configurations: list[Configuration], family: str, style: str, simulated: bool) -> None:
    rows = [_row(configuration, family) | {"simulated": simulated} for configuration in configurations]
    measured = [configuration for configuration in configurations if configuration.measured]
    if style != "table":
        more = map(_measured, configurations) if measured else [{}] * len(rows)
        show([row | columns for row, columns in zip(rows, more, strict=True)], style)
        return
    times = [name for name in rows[0] if name == "total" or name.startswith(("computation", "communication"))]
    shown = [row | {name: _shown(row[name]) for name in times} for row in rows]
    show([{name: row[name] for name in row if name not in ("simulated", "status")} for row in shown], style)
    declared = ["The speeds are declared, not measured (simulated)."] if simulated else []
    click.echo("\n" + "\n".join([*sentences(configurations, family), *declared]))
    if measured:
        beside = table([_beside(configuration, family) for configuration in measured])
        played = ["Messages alone were played there; computation is as declared."] if simulated else []
        click.echo("\n" + "\n".join([beside, "", *regrets(measured), *played]))


def _row(configuration: Configuration, family: str) -> dict[str, object]:
    others = {
        name: None if isnan(seconds) else seconds  # this family cannot price it
        for name, seconds in configuration.communication.items()
        if name != family
    }
    return {
        "layout": name_of(configuration),
        "ranks": configuration.ranks,
        "nodes": configuration.nodes,
        "partition": configuration.way,
        "computation": configuration.computation,
        f"communication {family}": configuration.communication[family],
        "status": configuration.status[family],
        "total": configuration.total(family),
        **{f"communication {name}": seconds for name, seconds in others.items()},
    }


def _shown(seconds: float | None) -> str | None:
    return None if seconds is None else format_seconds(seconds)


def _measured(configuration: Configuration) -> dict[str, float | None]:
    names = ("computation", "communication", "total")
    return {f"measured {name}": getattr(configuration.measured, name, None) for name in names}


def _beside(configuration: Configuration, family: str) -> dict[str, str]:
    """Each predicted time, and what was measured behind it."""
    predicted = _row(configuration, family) | {"communication": configuration.communication[family]}
    cells = {"layout": name_of(configuration)}
    for name, seconds in _measured(configuration).items():
        cells |= {(what := name.removeprefix("measured ")): _shown(predicted[what]), name: _shown(seconds)}
    return cells | {"measured/predicted": f"{configuration.measured.total / configuration.total(family):.2f}"}


def name_of(configuration: Configuration) -> str:
    return Path(configuration.layout.partition(":")[2]).stem


def sentences(configurations: list[Configuration], family: str) -> list[str]:
    """The best, and what it costs to look at computation alone."""
    best, computes = configurations[0], fastest(configurations)

    def text(configuration: Configuration) -> str:
        parts = configuration.computation, configuration.communication[family]
        return f"{format_seconds(configuration.total(family))} = {' + '.join(format_seconds(part) for part in parts)}"

    lines = [f"Fastest, communication included: {name_of(best)}, {text(best)} (by {family})."]
    if doubts := Counter(row.status[family] for row in configurations if row.status[family] != PriceStatus.OK.value):
        (doubt, _), number = doubts.most_common(1)[0], doubts.total()
        lines.append(f"{family} doubts {number} of {len(configurations)} prices: {doubt}.")
    if computes is best:
        return [*lines, "It computes fastest, too."]
    ratio = computes.total(family) / best.total(family)
    return [*lines, f"Fastest computation: {name_of(computes)}, {text(computes)}: {ratio:.2f} times as long."]


def regrets(measured: list[Configuration]) -> list[str]:
    """What the choice costs beside the fastest that was measured, and what the one that computes fastest would."""
    shortest = min(measured, key=lambda configuration: configuration.measured.total)
    choices = {"Communication included": measured[0], "By computation alone": fastest(measured)}

    def text(how: str, choice: Configuration) -> str:
        longer = 100 * (choice.measured.total / shortest.measured.total - 1)
        beside = "the fastest of these" if choice is shortest else f"{longer:.2g} % longer than {name_of(shortest)}"
        return f"{how}: {name_of(choice)}, measured to take {format_seconds(choice.measured.total)}, {beside}."

    return [text(how, choice) for how, choice in choices.items()]


REAL = Measure("window", 0.05, 6, 100, 5.0, 1, 1, 600.0)
SIMULATED = replace(REAL, min_samples=1, max_samples=1, warmup=0)  # the same at all times


def checked(
    configurations: Sequence[Configuration], count: int, problem: Problem, setting: Setting, platform: str
) -> list[Configuration]:
    """All of them, of which so many of the first ones are measured, and the one that computes fastest."""
    chosen = list(dict.fromkeys([*configurations[:count], fastest(configurations)]))
    points = {configuration: configuration.point(problem, setting) for configuration in chosen}
    with TemporaryDirectory(prefix="commodel-") as folder:
        raw = SafePath.at(Path(folder).resolve()) / "raw"
        raw.mkdir()
        simulated = load_platform(find("platform", platform)).simulated
        settings = SIMULATED if simulated else REAL
        measure_now("configurations", tuple(points.values()), platform, settings, raw, progress(False))
        return [
            replace(configuration, measured=_times(configuration, problem, points[configuration], raw))
            if configuration in points
            else configuration
            for configuration in configurations
        ]


def _times(configuration: Configuration, problem: Problem, point: Point, raw: SafePath) -> Times:
    if why := why_unmeasured(raw, point.id):
        raise UserError(f"{configuration.layout} was not measured: {why[0]}, {why[1]}")
    samples = [sample for sample in read_samples(raw / f"{point.id}.csv", point.id) if sample["valid"]]
    repeats = problem.repeats(configuration.tiling)
    computed = [sample["computation"] for sample in samples if "computation" in sample]
    return Times(
        repeats * median(computed) if computed else configuration.computation,
        repeats * median(sample["seconds"] for sample in samples),
    )
