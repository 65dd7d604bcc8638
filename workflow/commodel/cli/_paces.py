"""What `commodel calibrate` found out: what it says of it, and the sets and the record that it leaves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import isfinite

import click

from commodel.cli._calibrate import Asked, Source, now
from commodel.cli._output import show
from commodel.compare.calibration import Calibrated, Taken
from commodel.errors import UserError
from commodel.files.paths import AnyPath
from commodel.files.sets import write_parameters
from commodel.price.pace import Factor
from commodel.results.calibrations import Calibration, NotedFactor, NotedPace, NotedPoint, write_calibration
from commodel.units import format_seconds


def tell(
    calibrations: Sequence[Calibrated],
    complaints: Mapping[str, str],
    used: Sequence[Taken],
    kept: Sequence[Taken],
    style: str,
) -> None:
    """A row a family."""
    for complaint in complaints.values():
        click.echo(f"commodel: left out: {complaint}", err=True)
    if not calibrations:
        raise UserError("no set could be moved to this job")
    show([_row(entry, style) for entry in calibrations], style)
    if style == "table":
        seconds = sum(entry.seconds for entry in (*used, *kept))
        counts = f"factors from {len(used)} points, errors at {len(kept)} others"
        click.echo(f"\n{counts}; to run each once takes {format_seconds(seconds)}")


def _row(entry: Calibrated, style: str) -> dict[str, object]:
    if style == "table":
        together = entry.pace.together
        per_byte = "the same: not told apart" if together else entry.pace.per_byte.text
        errors = {"μ before": entry.before, "μ after": entry.after, "at": entry.checked}
        return {"family": entry.moved.family, "latency ×": entry.pace.latency.text, "per byte ×": per_byte, **errors}
    noted = _noted(entry)
    flat = {
        f"{name}_{end}": getattr(getattr(noted, name), end) if getattr(noted, name).known else None
        for name in ("latency", "per_byte")
        for end in ("value", "low", "high")
    }
    rest = {name: getattr(noted, name) for name in ("together", "points", "scatter", "before", "after", "checked")}
    return {"family": entry.moved.family, **flat, **rest}


def _noted(entry: Calibrated) -> NotedPace:
    pace = entry.pace
    factors = (_factor(factor) for factor in (pace.latency, pace.per_byte))
    errors = (error if isfinite(error) else None for error in (entry.before, entry.after))
    return NotedPace(*factors, pace.together, pace.points, pace.scatter, *errors, entry.checked)


def _factor(factor: Factor) -> NotedFactor:
    return NotedFactor(factor.value, factor.low, factor.high, factor.known)


def write(
    source: Source,
    asked: Asked,
    used: Sequence[Taken],
    kept: Sequence[Taken],
    calibrations: Sequence[Calibrated],
    folder: AnyPath,
) -> None:
    """The sets; what was measured is told last, so that without it a folder is not finished."""
    for moved in (entry.moved for entry in calibrations):
        here = replace(moved, platform=asked.site.name, simulated=moved.simulated or asked.simulated)
        write_parameters(folder / f"{moved.family}.yaml", here)
    points = [(entry, True) for entry in used] + [(entry, False) for entry in kept]
    calibration = Calibration(
        asked.setting,
        source.platform or asked.site.name,
        asked.site.name,
        asked.simulated,
        now().isoformat(timespec="seconds"),
        tuple(_point(entry, flag) for entry, flag in points),
        {entry.moved.family: _noted(entry) for entry in calibrations},
    )
    write_calibration(folder, calibration)


def _point(entry: Taken, used: bool) -> NotedPoint:
    point, elsewhere = entry.witness.point, entry.witness.seconds
    where = (point.operation, point.choice, point.layout, point.ranks, point.bytes)
    return NotedPoint(*where, entry.seconds, elsewhere if isfinite(elsewhere) else None, used)
