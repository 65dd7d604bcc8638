"""A plan as text and tables for the user: a summary (`summarize_plan`), and a workbook (`write_plan_workbook`)."""

from collections.abc import Callable, Iterable
from datetime import datetime
from pathlib import Path

import xlsxwriter

from commodel.files.atomic import make_temporary_folder, write_atomically
from commodel.files.cache import MAX_COPY_BYTES
from commodel.models.probes import find_probe
from commodel.plan.duration import estimate_analysis
from commodel.plan.planning import PROBE_SHARE
from commodel.records import Plan
from commodel.units import format_bytes, format_seconds


def make_batch_rows(plan: Plan) -> list[dict[str, object]]:
    return [
        {
            "batch": batch.name,
            "platform": batch.platform,
            "simulated": "yes" if plan.platforms[batch.platform].simulated else "no",
            "nodes": batch.nodes,
            "points": len(batch.points),
            "probe cases": len(batch.cases),
            "takes about": format_seconds(batch.seconds),
            "time limit": format_seconds(60.0 * batch.minutes),
        }
        for batch in plan.batches
    ]


def make_point_rows(plan: Plan) -> list[dict[str, object]]:
    names = ["platform", "operation", "algorithm", "topology", "layout", "ranks", "leaves", "bytes"]
    names += ["waves"] if any(point.waves > 1 for point in plan.points) else []
    return [
        {"id": point.id, **{name: getattr(point, name) for name in names}, "batch": batch.name}
        for batch in plan.batches
        for point in batch.points
    ]


def summarize_plan(plan: Plan, progress_lines: Iterable[str] = (), measured: bool = False) -> list[str]:
    """Return the summary of a plan as lines: its size, durations, given `progress_lines`, and the models that need each
    probe. `measured`: all its batches are done."""
    real = [batch for batch in plan.batches if not plan.platforms[batch.platform].simulated]
    node_hours = sum(batch.seconds * batch.nodes for batch in real) / 3600
    max_node_hours = sum(batch.minutes * batch.nodes for batch in real) / 60
    total_seconds = sum(batch.seconds for batch in plan.batches)
    probe_seconds = sum(batch.seconds for batch in plan.batches if batch.cases)
    cases = sum(len(batch.cases) for batch in plan.batches)
    simulated = [name for name, platform in plan.platforms.items() if platform.simulated]
    verb = "measuring again would take" if measured else "measuring takes"
    lines = [
        f"{plan.experiment}: {len(plan.points)} points and {cases} probe cases in {len(plan.batches)} batches",
        f"{verb} about {format_seconds(total_seconds)} if batches run one after the other"
        + (f": {node_hours:.3g} node-hours on real machines, limited to {max_node_hours:.3g}" if real else ""),
        *([_describe_probes(probe_seconds, total_seconds)] if probe_seconds else []),
        *progress_lines,
        f"fitting, predicting and reporting take about {format_seconds(estimate_analysis(plan))} on one core",
    ]
    lines += [f"simulated, not measured on hardware: {', '.join(simulated)}"] if simulated else []
    for name, file in plan.files.items():
        if not file.copy:
            file_size = f"{name}: {format_bytes(file.bytes)}, of which the results keep the digest and no copy"
            lines.append(
                f"{file_size} (limit {format_bytes(MAX_COPY_BYTES)}): keep the file to predict or play it again"
            )
    for name, families in plan.probes.items():
        lines.append(f"probe {name}: {'for ' + ', '.join(families) if families else find_probe(name).title}")
    for platform in plan.platforms:
        measured = {case.probe for batch in plan.batches if batch.platform == platform for case in batch.cases}
        for name, families in plan.probes.items():
            if families and name not in measured:
                needing = ", ".join(families)
                lines.append(
                    f"platform {platform} lacks the nodes or cores for probe {name}: {needing} may lack data there"
                )
    return lines


def _describe_probes(seconds: float, total_seconds: float) -> str:
    share = f"{seconds / total_seconds:.0%} (if more than {PROBE_SHARE:.0%}, probes have fewer sizes)"
    return f"of this, survey and probes take {format_seconds(seconds)}, {share}"


def write_plan_workbook(plan: Plan, path: Path, edited: Callable[[xlsxwriter.Workbook], None] | None = None) -> None:
    """Write a workbook with points and batches as filtered sheets, after the sheets that can be edited."""
    with write_atomically(path) as stream, make_temporary_folder(path) as scratch:
        options = {"strings_to_formulas": False, "strings_to_urls": False, "tmpdir": scratch}
        with xlsxwriter.Workbook(stream, options) as book:
            book.set_properties({"created": datetime(2000, 1, 1)})  # makes the file independent of the date
            if edited:
                edited(book)
            bold = book.add_format({"bold": True})
            for title, rows in (("Points", make_point_rows(plan)), ("Batches", make_batch_rows(plan))):
                sheet = book.add_worksheet(title)
                names = list(rows[0]) if rows else []
                sheet.write_row(0, 0, names, bold)
                for number, row in enumerate(rows, 1):
                    sheet.write_row(number, 0, list(row.values()))
                sheet.autofilter(0, 0, len(rows), max(len(names) - 1, 0))
                sheet.freeze_panes(1, 0)
                sheet.autofit()
