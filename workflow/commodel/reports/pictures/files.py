"""All charts of a report as files of their own, for slides and papers: SVG and PNG, with their titles."""

import re
from collections.abc import Iterator
from pathlib import Path

from commodel.files.atomic import whole, write_text
from commodel.reports.pictures.grids import grid, tiling
from commodel.reports.pictures.render import png, svg
from commodel.reports.pictures.specifications import lines, titled
from commodel.reports.shape import Chart, Front, Report

LONGEST_NAME = 80  # characters of a file's name
SIMULATED = " (simulated)"


def write_pictures(report: Report, folder: Path, every: bool = False) -> list[Path]:
    """Those of the first screen, or every chart. Names are of what is drawn: `what-to-use-mycluster.svg`."""
    folder.mkdir(parents=True, exist_ok=True)
    written, taken = [], set()
    for name, specification in pictures(report, every):
        stem = once(name, taken)
        svg_path, png_path = folder / f"{stem}.svg", folder / f"{stem}.png"
        write_text(svg_path, svg(specification))
        with whole(png_path) as stream:
            stream.write(png(specification))
        written += [svg_path, png_path]
    return written


def pictures(report: Report, every: bool = False) -> Iterator[tuple[str, dict]]:
    """Names and specifications, the first screen's first."""
    shown = set()
    for front in report.fronts:
        yield from maps(front)
        for chart in (front.scatter, front.times):
            if chart is not None:
                shown.add(chart.name)
                yield chart.name, drawn(chart)
    for chart in report.charts if every else ():
        if chart.name not in shown:
            yield chart.name, drawn(chart)
    for content in report.tilings if every else ():
        yield content.name, titled(tiling(content), content.title, content.note)


def maps(front: Front) -> Iterator[tuple[str, dict]]:
    mark = SIMULATED if front.simulated else ""
    for content in (front.use, front.trust):
        if content.cells:
            title = f"{content.title}: {front.platform}{mark}"
            yield f"{content.title} {front.platform}", titled(grid(content), title, content.note)


def drawn(chart: Chart) -> dict:
    return titled(lines(chart), chart.title, chart.note)


def once(name: str, taken: set[str]) -> str:
    """A file's name that no stranger chose: letters, digits and hyphens; a number behind one that is taken."""
    plain = (
        re.sub(r"[^a-z0-9]+", "-", name.lower().encode("ascii", "ignore").decode()).strip("-")[:LONGEST_NAME] or "chart"
    )
    stem, number = plain, 1
    while stem in taken:
        number += 1
        stem = f"{plain}-{number}"
    taken.add(stem)
    return stem
