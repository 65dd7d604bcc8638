"""A plan as text and tables for the user: a summary (`summarize_plan`), and a workbook
(`write_plan_workbook`)."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from itertools import chain
from pathlib import Path
from typing import Any

import xlsxwriter

from commodel.files.atomic import make_temporary_folder, write_atomically
from commodel.files.cache import MAX_COPY_BYTES
from commodel.models.probes import find_probe
from commodel.patterns.operations import has_size
from commodel.plan.batches import PROBE_SHARE
from commodel.plan.duration import SIMULATED_LIMIT_FACTOR, Durations, estimate_analysis
from commodel.records import Batch, Plan
from commodel.units import format_bytes, format_duration


def make_batch_rows(plan: Plan, remaining: Sequence[Batch] | None = None) -> list[dict[str, Any]]:
    """Return a row for each batch. If only a part of the work remains, a column has the number of
    new points and cases of each batch, and the durations are those of the new ones."""
    remaining_batches = {
        batch.name: batch for batch in (plan.batches if remaining is None else remaining)
    }
    is_partly_done = (
        remaining_batches != {batch.name: batch for batch in plan.batches} and remaining_batches
    )
    rows = []
    for batch in plan.batches:
        simulated = plan.platforms[batch.platform].simulated
        work = remaining_batches.get(batch.name) if is_partly_done else batch
        rows.append(
            {
                "batch": batch.name,
                "platform": batch.platform,
                "simulated": "yes" if simulated else "no",
                "nodes": batch.nodes,
                "points": len(batch.points),
                "probe cases": len(batch.cases),
                **({"new": len(work.ids) if work else 0} if is_partly_done else {}),
                "takes about": format_duration(work.seconds) if work else "",
                "time limit": "none" if simulated else format_duration(60.0 * batch.minutes),
            }
        )
    return rows


def make_point_rows(plan: Plan) -> list[dict[str, Any]]:
    names = ["platform", "operation", "algorithm", "topology", "layout", "ranks", "leaves", "bytes"]
    names += ["waves"] if any(point.waves > 1 for point in plan.points) else []
    rows = []
    for batch in plan.batches:
        for point in batch.points:
            columns = {name: getattr(point, name) for name in names}
            rows.append({"id": point.id, **columns, "batch": batch.name})
    return rows


def summarize_plan(
    plan: Plan,
    remaining: Sequence[Batch] | None = None,
    progress_lines: Iterable[str] = (),
    verbose: bool = False,
) -> list[str]:
    """Return the summary of a plan as lines: its size, durations, limits, and given
    `progress_lines`.

    `remaining` are the batches that a run still measures, with their new points and cases only.
    With `verbose`, the lines also have the models that need each probe.
    """
    remaining = plan.batches if remaining is None else remaining
    lines = [
        _describe_size(plan, remaining),
        *_describe_exceeded_limits(plan, remaining),
        *_describe_long_simulations(plan, remaining),
        *_describe_durations(plan, remaining or plan.batches, bool(remaining)),
    ]
    lines += progress_lines
    lines += [
        f"{merged} places these ranks on the same nodes as {measured}: such points are measured once, as {measured}"
        for merged, measured in plan.merged_layouts.items()
    ]
    lines += _describe_empty_points(plan)
    simulated = [name for name, platform in plan.platforms.items() if platform.simulated]
    lines += [f"simulated, not measured on hardware: {', '.join(simulated)}"] if simulated else []
    for name, file in plan.files.items():
        if not file.copy:
            file_size = (
                f"{name}: {format_bytes(file.bytes)}, of which the results keep the digest and no "
                "copy"
            )
            lines.append(
                f"{file_size} (limit {format_bytes(MAX_COPY_BYTES)}): keep the file to predict or play it again"
            )
    return (
        lines
        + (_describe_probes(plan, verbose) if remaining else [])
        + _describe_lacking_nodes(plan)
    )


def _describe_size(plan: Plan, remaining: Sequence[Batch]) -> str:
    """Return the number of points, cases and batches, or of the new ones if others are done."""
    total = _count_work(plan.batches)
    if not remaining:
        return f"{plan.experiment}: {total}; all are done already: a run measures nothing"
    if sum(len(batch.ids) for batch in remaining) == sum(len(batch.ids) for batch in plan.batches):
        return f"{plan.experiment}: {total}"
    seconds = sum(batch.seconds for batch in remaining)
    return (
        f"{plan.experiment}: {_count_work(remaining, 'new ')}, about {format_duration(seconds)}; "
        f"in all {total}"
    )


def _count_work(batches: Sequence[Batch], prefix: str = "") -> str:
    """Return the number of points and of probe cases in some batches, as text."""
    points = sum(len(batch.points) for batch in batches)
    cases = sum(len(batch.cases) for batch in batches)
    counts = [f"{points} {prefix}point{'' if points == 1 else 's'}"] if points or not cases else []
    counts += [f"{cases} {prefix}probe case{'' if cases == 1 else 's'}"] if cases else []
    return f"{' and '.join(counts)} in {len(batches)} batch{'' if len(batches) == 1 else 'es'}"


def _describe_durations(plan: Plan, batches: Sequence[Batch], is_new: bool) -> list[str]:
    """Return what measuring some batches takes, and the analysis after it."""
    real = [batch for batch in batches if not plan.platforms[batch.platform].simulated]
    node_hours = sum(batch.seconds * batch.nodes for batch in real) / 3600
    max_node_hours = sum(batch.minutes * batch.nodes for batch in real) / 60
    total_seconds = sum(batch.seconds for batch in batches)
    probe_seconds = sum(batch.seconds for batch in batches if batch.cases)
    verb = "measuring takes" if is_new else "measuring again would take"
    text = f"{verb} about {format_duration(total_seconds)} if batches run one after the other"
    if real:
        text += (
            f": {node_hours:.3g} node-hours on real machines, at most {max_node_hours:.3g} by the "
            "time limits of jobs"
        )
    lines = [text]
    if probe_seconds:
        share = (
            f"{probe_seconds / total_seconds:.0%} (if more than {PROBE_SHARE:.0%}, probes have "
            "fewer sizes)"
        )
        lines.append(f"of this, survey and probes take {format_duration(probe_seconds)}, {share}")
    analysis = format_duration(estimate_analysis(plan))
    return [*lines, f"fitting, predicting and reporting take about {analysis} on one core"]


def _describe_exceeded_limits(plan: Plan, batches: Sequence[Batch]) -> list[str]:
    """Return a warning if batches on real machines are estimated to exceed their time limits."""
    too_long = [
        batch
        for batch in batches
        if not plan.platforms[batch.platform].simulated and batch.seconds > 60.0 * batch.minutes
    ]
    if not too_long:
        return []
    seconds = sum(batch.seconds for batch in too_long)
    limit = sum(60.0 * batch.minutes for batch in too_long)
    names = f"{too_long[0].name} is" if len(too_long) == 1 else f"{len(too_long)} batches are"
    durations = f"take {format_duration(seconds)}, but the time limit is {format_duration(limit)}"
    consequence = (
        f"about {1 - limit / seconds:.0%} of the measurements will end as 'budget', that is, not "
        "measured"
    )
    remedy = "use fewer or smaller points, or a larger `batch: {budget: …}`"
    return [f"WARNING: {names} estimated to {durations}: {consequence}; {remedy}"]


def _describe_long_simulations(plan: Plan, batches: Sequence[Batch]) -> list[str]:
    """Return a warning for each simulated platform with points that exceed the time limit of a
    case."""
    limit = SIMULATED_LIMIT_FACTOR * plan.measure.timeout
    seconds: dict[str, list[float]] = {}
    for batch in batches:
        if plan.platforms[batch.platform].simulated and batch.seconds > limit:
            durations = Durations.of_platform(plan, batch.platform)
            estimates = [durations.estimate_point(point) for point in batch.points]
            seconds.setdefault(batch.platform, []).extend(
                value for value in estimates if value > limit
            )
    return [
        _describe_long_points(name, values, limit) for name, values in seconds.items() if values
    ]


def _describe_long_points(platform: str, seconds: Sequence[float], limit: float) -> str:
    count = "1 point is" if len(seconds) == 1 else f"{len(seconds)} points are"
    duration = (
        f"up to {format_duration(max(seconds))} to simulate, but the limit of a point is "
        f"{format_duration(limit)}"
    )
    consequence = "they end as 'timeout', that is, not measured"
    remedy = "use fewer ranks, smaller messages, or a larger `measure: {timeout: …}`"
    return f"WARNING: {count} estimated to take {duration} on {platform}: {consequence}; {remedy}"


def _describe_empty_points(plan: Plan) -> list[str]:
    """Return a note on points without data, if the operation has a size."""
    points = [point for point in plan.points if point.bytes == 0 and has_size(point.operation)]
    names = sorted({point.operation for point in points})
    if not names:
        return []
    count = f"{len(points)} point{'s' * (len(points) > 1)} of {', '.join(names)}"
    return [
        f"{count} with 0 bytes: no data move, so the times are the overhead of messages or of the library"
    ]


def _describe_probes(plan: Plan, verbose: bool) -> list[str]:
    """Return the models that need each probe; without `verbose`, the number of probes in one
    line."""
    if not plan.probes:
        return []
    if not verbose:
        count = f"{len(plan.probes)} probe{'s' * (len(plan.probes) > 1)}"
        return [
            f"{count} for {len(plan.models)} model{'s' * (len(plan.models) > 1)} (--verbose lists them)"
        ]
    return [
        f"probe {name}: {'for ' + ', '.join(families) if families else find_probe(name).title}"
        for name, families in plan.probes.items()
    ]


def _describe_lacking_nodes(plan: Plan) -> list[str]:
    """Return a line for each platform without the nodes or cores for some probes."""
    lines = []
    for platform in plan.platforms:
        batches = [batch for batch in plan.batches if batch.platform == platform]
        possible = {case.probe for batch in batches for case in batch.cases}
        missing = {
            name: needing
            for name, needing in plan.probes.items()
            if needing and name not in possible
        }
        if missing:
            models = ", ".join(dict.fromkeys(chain.from_iterable(missing.values())))
            word = "probe" if len(missing) == 1 else "probes"
            lines.append(
                f"platform {platform} lacks the nodes or cores for {word} {', '.join(missing)}: {models} may lack data"
                " there"
            )
    return lines


def write_plan_workbook(plan: Plan, path: Path) -> None:
    """Write a workbook with points and batches as filtered sheets."""
    with write_atomically(path) as stream, make_temporary_folder(path) as scratch:
        options = {"strings_to_formulas": False, "strings_to_urls": False, "tmpdir": scratch}
        with xlsxwriter.Workbook(stream, options) as book:
            # makes the file independent of the date
            book.set_properties({"created": datetime(2000, 1, 1)})
            bold = book.add_format({"bold": True})
            for title, rows in (
                ("Points", make_point_rows(plan)),
                ("Batches", make_batch_rows(plan)),
            ):
                sheet = book.add_worksheet(title)
                names = list(rows[0]) if rows else []
                sheet.write_row(0, 0, names, bold)
                for number, row in enumerate(rows, 1):
                    sheet.write_row(number, 0, list(row.values()))
                sheet.autofilter(0, 0, len(rows), max(len(names) - 1, 0))
                sheet.freeze_panes(1, 0)
                sheet.autofit()
