"""What has to be started for a batch: the same ranks in the same places sweep many cases in one start of one program.

Programs start in the work folder and every path is relative to it: smpirun takes none with a space in it.
"""

import csv
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from platform import node as this_machine

from commodel.files.atomic import write_text
from commodel.files.paths import AnyPath, SafePath
from commodel.files.results import WORK, pass_name
from commodel.models.probes import PLAYER, probe
from commodel.patterns.build import schedule
from commodel.patterns.layouts import place
from commodel.patterns.operations import OPERATIONS
from commodel.patterns.playfile import write_play
from commodel.platforms.build import programs
from commodel.platforms.container import PROGRAMS
from commodel.platforms.launchers import Job, Launcher
from commodel.platforms.platform import Platform
from commodel.platforms.tools import ROOT
from commodel.records import Batch, Case, Plan, Point, digest


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

    @property
    def ids(self) -> list[str]:
        return [str(row["id"]) for row in self.rows]

    def without(self, finished: set[str]) -> "Start":
        return replace(self, rows=tuple(row for row in self.rows if row["id"] not in finished))


@dataclass(frozen=True)
class Rig:
    """What all starts of a batch share: the plan, the platform and its launcher, and where samples go."""

    plan: Plan
    platform: Platform
    how: Launcher
    starter: str
    names: tuple[str, ...]  # of the nodes, where they are known
    folder: SafePath
    passes: int
    inside: tuple[str, ...] = ()  # what starts the platform's container image, if it has one

    @property
    def work(self) -> SafePath:
        """Where programs start, and what they read and print; gone when the batch is done."""
        return self.folder / WORK

    def pass_folder(self, number: int) -> SafePath:
        return self.folder / pass_name(number)

    def hosts_of(self, start: Start) -> list[str]:
        """What the nodes of a start's ranks are called, as far as there are any; programs take samples nowhere else."""
        if self.how.simulated:
            return []
        return [self.names[node] for node in sorted(set(start.nodes))] if self.names else [this_machine()]

    def log(self, start: Start) -> SafePath:
        return self.work / f"{start.name}.log"


def starts_of(batch: Batch, work: AnyPath) -> Iterator[Start]:
    """What has to be started for a batch, whether it has been measured or not."""

    def of_case(case: Case) -> tuple:
        return probe(case.probe).runs, case.ranks, case.layout, case.where

    def of_point(point: Point) -> tuple:
        return point.ranks, point.layout

    for key, cases in groupby(sorted(batch.cases, key=of_case), key=of_case):
        yield Start(*key, tuple(_case_row(case, work) for case in cases))
    for (ranks, layout), points in groupby(sorted(batch.points, key=of_point), key=of_point):
        members = list(points)
        if played := [_play_row(point, work) for point in members if point.priced]:
            yield Start(PLAYER, ranks, layout, (), tuple(played))
        if own := [_library_row(point) for point in members if not point.priced]:
            yield Start("library", ranks, layout, (), tuple(own))


def _case_row(case: Case, work: AnyPath) -> dict[str, object]:
    return _play_row(case, work) if probe(case.probe).runs == PLAYER else {"id": case.id, **case.settings}


def _play_row(member: Point | Case, work: AnyPath) -> dict[str, object]:
    return {"id": member.id, "schedule": work / f"{member.id}.play", "plays": member}


def _library_row(point: Point) -> dict[str, object]:
    return {"id": point.id, "operation": point.operation, "bytes": point.bytes}


def prepare(rig: Rig, start: Start, number: int) -> Job:
    """What to run for one pass over the cases of a start, with all that it reads written out."""
    how, platform, work = rig.how, rig.platform, rig.work
    rows = [_prepared(row) for row in start.rows]
    with (work / f"{start.name}.cases").open("w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, rows[0], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    here = work.resolve()
    folder = PROGRAMS if rig.inside else os.path.relpath(programs(ROOT, how.toolchain), here)
    job = Job(
        platform=platform,
        starter=rig.starter,
        program=os.path.join(folder, start.program),
        inside=rig.inside,
        arguments=_arguments(rig, start, number),
        nodes=start.nodes,
        names=rig.names,
        network=Path(os.path.relpath(platform.simgrid_file.resolve(), here)) if platform.simgrid_file else None,
        hostfile=Path(f"{start.name}.hosts"),
    )
    write_text(work / f"{start.name}.placement", job.placement)
    if how.hostfile:
        write_text(work / job.hostfile.name, job.hosts)
    return job


def _arguments(rig: Rig, start: Start, number: int) -> tuple[str, ...]:
    """A pass gets its share of the budgets, and an order of its own."""
    settings = rig.plan.measure
    arguments = {
        "--cases": f"{start.name}.cases",
        "--out": f"../{rig.pass_folder(number).name}",
        "--meta": f"../{start.name}.json",
        "--placement": f"{start.name}.placement",
        "--sync": settings.sync,
        "--precision": settings.precision,
        "--min-samples": settings.min_samples,
        "--max-samples": max(settings.max_samples // rig.passes, settings.min_samples),
        # Simulated seconds cost nobody anything.
        "--max-seconds": 1e9 if rig.how.simulated else settings.seconds / rig.passes,
        "--warmup": settings.warmup,
        "--seed": rig.plan.seed + number,
    }
    return tuple(str(part) for pair in arguments.items() for part in pair)


def _prepared(row: dict) -> dict:
    """The row as the case file has it; the player's schedule is written out first."""
    if "plays" not in row:
        return row
    member = row["plays"]
    if isinstance(member, Case):
        pattern = probe(member.probe).pattern(member.settings)
        write_play(row["schedule"], pattern)
    else:
        pattern = schedule(member)
        write_play(row["schedule"], pattern, OPERATIONS.get(member.operation), member.bytes)
    return {
        "id": row["id"],
        "schedule": row["schedule"].name,
        "finish": "all" if pattern.root is None else pattern.root,
    }
