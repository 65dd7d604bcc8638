"""Runs one batch: starts the native programs through the platform's launcher, a few times, many cases each.

A case whose raw file is there is not measured again, so a batch that was killed goes on where it stopped.
"""

import csv
import os
import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path

from commodel.build import programs, refuse_foreign
from commodel.build import starter as starter_of
from commodel.config import Platform, load_platform
from commodel.errors import UserError, one_line
from commodel.holding import held
from commodel.launchers import Job, Launcher, launcher
from commodel.layouts import place
from commodel.operations import OPERATIONS
from commodel.patterns import schedule
from commodel.playfile import write_play
from commodel.probes import probe
from commodel.process import OUT_OF_TIME, run
from commodel.provenance import provenance
from commodel.records import Batch, Case, Plan, Point, digest
from commodel.tables import write_json, write_text
from commodel.toolchain import ROOT

Progress = Callable[[str], None]
# How a complaint looks: of the native programs, else of the launcher under them.
SAID = (re.compile(r"^error: |^[a-z_]+\.c:[0-9]+: "), re.compile(r"error|critical|fatal", re.IGNORECASE))


@dataclass(frozen=True)
class Start:
    """The cases that one start of one program sweeps: the same ranks in the same places."""

    program: str
    ranks: int
    layout: str
    where: tuple[int, ...]  # the platform's nodes that the layout's stand for; empty: the first ones
    rows: tuple[dict[str, object], ...]  # of the case file

    @property
    def name(self) -> str:
        """Of its files. A layout that says more than name and numbers is told from others by its digest."""
        on = "-on" + "+".join(map(str, self.where)) if self.where else ""
        layout, _, arguments = self.layout.partition(":")
        plain = re.fullmatch(r"[0-9x]*", arguments)
        return f"{self.program}-{self.ranks}r-{layout}{arguments if plain else f'-{digest(arguments)}'}{on}"

    @property
    def nodes(self) -> tuple[int, ...]:
        """The platform's node of every rank."""
        nodes = (int(node) for node in place(self.layout, self.ranks))
        return tuple(self.where[node] for node in nodes) if self.where else tuple(nodes)


def measure(plan: Plan, batch: Batch, folder: Path, progress: Progress) -> int:
    """Measures what is missing of a batch into `folder`; returns how many cases that was."""
    settings = plan.platforms[batch.platform]
    platform = load_platform(settings["file"])
    if platform.digest != settings["digest"]:
        raise UserError("the platform has changed since the plan was made; plan again", file=settings["file"])
    how = launcher(platform.launcher)
    starter = starter_of(how.toolchain, how.starters)
    if starter is None:
        raise UserError(
            f"no {' or '.join(how.starters)} found, which platform '{batch.platform}' needs; see commodel doctor"
        )
    refuse_foreign(ROOT, how.toolchain, starter)
    passes = 1 if how.simulated else int(plan.measure["passes"])
    site = Site(plan, platform, how, starter, folder, passes)
    with held(folder, "another measurement of this batch"):
        return _measure(site, batch, progress)


@dataclass(frozen=True)
class Site:
    """What all starts of a batch share: the plan, the platform and its launcher, and where samples go."""

    plan: Plan
    platform: Platform
    how: Launcher
    starter: str
    folder: Path
    passes: int

    @property
    def work(self) -> Path:
        """Where programs start, and what they read and print; gone when the batch is done."""
        return self.folder / ".work"

    def pass_folder(self, number: int) -> Path:
        return self.folder / f".pass-{number + 1}"


def _measure(site: Site, batch: Batch, progress: Progress) -> int:
    folder, work, passes = site.folder, site.work, site.passes
    shutil.rmtree(work, ignore_errors=True)  # left by a batch that was killed
    work.mkdir(parents=True)
    starts = (_unmeasured(start, folder) for start in _starts(batch, work))
    missing = [start for start in starts if start.rows]
    total = sum(len(start.rows) for start in missing)
    write_json(folder / "provenance.json", provenance(site.plan, batch))
    for number in range(passes):
        turn = f", pass {number + 1} of {passes}" if passes > 1 else ""
        done = 0
        for start in missing:
            progress(f"{batch.name}: {done} of {total} done{turn}, now {start.program} on {start.ranks} ranks")
            _run(site, start, number)
            done += len(start.rows)
    for start in missing:
        for row in start.rows:
            _join(site, row["id"])
    for number in range(passes):
        shutil.rmtree(site.pass_folder(number), ignore_errors=True)
    shutil.rmtree(work)
    progress(f"{batch.name}: {total} measured" + ("" if total else ", nothing was missing"))
    return total


def _join(site: Site, case: str) -> None:
    """One raw file of a case from those of its passes, with a column that tells them apart."""
    lines = []
    for number in range(site.passes):
        path = site.pass_folder(number) / f"{case}.csv"
        header, *samples = path.read_text(encoding="utf-8").splitlines()
        lines = lines or [header.replace("id,", "id,pass,", 1)]
        for line in samples:
            name, _, rest = line.partition(",")
            lines.append(f"{name},{number + 1},{rest}")
    write_text(site.folder / f"{case}.csv", "\n".join(lines) + "\n")


def _starts(batch: Batch, work: Path) -> Iterator[Start]:
    """What has to be started for a batch, whether it has been measured or not."""

    def start(case: Case) -> tuple:
        return probe(case.probe).runs, case.ranks, case.layout, case.where

    for key, cases in groupby(sorted(batch.cases, key=start), key=start):
        yield Start(*key, tuple({"id": case.id, **case.settings} for case in cases))
    by_place = sorted(batch.points, key=lambda point: (point.ranks, point.layout))
    for (ranks, layout), points in groupby(by_place, key=lambda point: (point.ranks, point.layout)):
        members = list(points)
        if played := [_play_row(point, work) for point in members if point.priced]:
            yield Start("player", ranks, layout, (), tuple(played))
        if own := [_library_row(point) for point in members if not point.priced]:
            yield Start("library", ranks, layout, (), tuple(own))


def _play_row(point: Point, work: Path) -> dict[str, object]:
    return {"id": point.id, "schedule": work / f"{point.id}.play", "point": point}


def _library_row(point: Point) -> dict[str, object]:
    return {"id": point.id, "operation": point.operation, "bytes": point.bytes}


def _unmeasured(start: Start, folder: Path) -> Start:
    return replace(start, rows=tuple(row for row in start.rows if not (folder / f"{row['id']}.csv").exists()))


def _run(site: Site, start: Start, number: int) -> None:
    """One pass over the cases of a start. A pass gets its share of the budgets, and an order of its own."""
    how, platform, work, settings = site.how, site.platform, site.work, site.plan.measure
    folder = site.pass_folder(number)
    # Programs start in the work folder and every path is relative to it: smpirun takes none with a space in it.
    files = {name: work / f"{start.name}.{name}" for name in ("cases", "placement", "hosts", "log")}
    rows = [_prepared(row) for row in start.rows]
    with files["cases"].open("w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, rows[0], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    write_text(files["placement"], "".join(f"{node}\n" for node in start.nodes))
    arguments = {
        "--cases": files["cases"].name,
        "--out": os.path.relpath(folder, work),
        "--meta": os.path.relpath(site.folder / f"{start.name}.json", work),
        "--placement": files["placement"].name,
        "--sync": settings["sync"],
        "--precision": settings["precision"],
        "--min-samples": settings["min_samples"],
        "--max-samples": max(settings["max_samples"] // site.passes, settings["min_samples"]),
        # Simulated seconds cost nobody anything.
        "--max-seconds": 1e9 if how.simulated else settings["seconds"] / site.passes,
        "--warmup": settings["warmup"],
        "--seed": site.plan.seed + number,
    }
    job = Job(
        platform=platform,
        starter=site.starter,
        program=os.path.relpath(programs(ROOT, how.toolchain) / start.program, work),
        arguments=tuple(str(part) for pair in arguments.items() for part in pair),
        nodes=start.nodes,
        layout=start.layout,
        network=Path(os.path.relpath(platform.simgrid_file, work)) if platform.simgrid_file else None,
        hostfile=Path(files["hosts"].name),
    )
    if how.hosts:
        write_text(files["hosts"], how.hosts(job))
    limit = 120 + 3 * len(rows) * (float(settings["seconds"]) + 1)
    code = run(how.argv(job), files["log"], limit)
    lost = [row["id"] for row in rows if not (folder / f"{row['id']}.csv").exists()]
    if code or lost:
        raise UserError(_complaint(files["log"], start, code, len(lost)))


def _prepared(row: dict) -> dict:
    """The row as the case file has it; the player's schedule is written out first."""
    if "point" not in row:
        return row
    point = row["point"]
    pattern = schedule(point)
    write_play(row["schedule"], pattern, OPERATIONS[point.operation], point.bytes)
    return {
        "id": row["id"],
        "schedule": row["schedule"].name,
        "finish": "all" if pattern.root is None else pattern.root,
    }


def _complaint(log: Path, start: Start, code: int, lost: int) -> str:
    """What went wrong with a start, in one line: the program's own words first."""
    lines = [line for line in log.read_text(encoding="utf-8", errors="replace").splitlines() if line.strip()]
    lines = lines or ["it printed nothing"]
    said = next((line for pattern in SAID for line in lines if pattern.search(line)), lines[-1])
    ended = "ran out of time" if code == OUT_OF_TIME else f"ended with code {code}"
    return f"{start.name} {ended}, {lost} of {len(start.rows)} cases not measured: {one_line(said)} (log: {log})"
