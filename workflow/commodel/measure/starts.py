"""Starts of native programs (`starts_of`): the same ranks in the same places sweep many cases in one start.

`prepare` writes into the work folder what a start reads: its cases, the schedules, partitions and topologies that they
name, and the placement of ranks. An overlay network instantiates each tree once for all its cases. Programs start in
the work folder and all paths are relative to it, since smpirun accepts no path with a space.
"""

import csv
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import groupby
from pathlib import Path
from platform import node as this_machine

from commodel.errors import UserError
from commodel.files.atomic import write_text
from commodel.files.results_folder import WORK_FOLDER, pass_folder_name
from commodel.files.safe_paths import AnyPath, SafePath
from commodel.models.probes import PLAYER, probe
from commodel.patterns import rectangles
from commodel.patterns.build import schedule
from commodel.patterns.layouts import ACCELERATOR, cores_of, keeps_cores, kinds_of, nodes_written, place
from commodel.patterns.operations import MPI, base, given_of, operation, parameters, tiles
from commodel.patterns.schedule_files import write_play
from commodel.patterns.trees.files import mrnet
from commodel.patterns.trees.topologies import tree
from commodel.patterns.trees.tree import place_on_hosts
from commodel.patterns.written import is_written
from commodel.platforms import container
from commodel.platforms.build import programs
from commodel.platforms.launchers import Job, Launcher, front_end, toolchain
from commodel.platforms.platform import Platform
from commodel.platforms.simulated_networks import write_changing_network
from commodel.platforms.tools import find_build_root
from commodel.records import LIBRARY, Batch, Case, Plan, Point, digest

SUFFIX = ".partition"


def kernel_row(point: Point, computes: bool) -> dict[str, object]:
    """Return the row of the case file of a kernel's point, without its partition. Simulated kernels compute nothing."""
    named = given_of(point.operation)
    settings = {"id": point.id, "partition": point, "bytes": point.bytes}
    if operation(point.operation).program == "summa":
        iteration = named.get("iteration", -1)
        settings["iteration"] = "all" if iteration < 0 else iteration
        settings |= {"overlapped": int(named.get("overlapped", False)), "barrier": int(named.get("barrier", True))}
    return settings | {"compute": int(computes)}


def with_partition(row: dict[str, object], work: AnyPath) -> dict[str, object]:
    """Return the row with its partition as a file. Speeds are needed only by ranks that wait instead of computing."""
    point = row["partition"]
    path = work / f"{point.id}{SUFFIX}"
    tiling = tiles(point.operation, point.ranks)
    waits = row.get("overlapped") and not row["compute"]
    write_text(path, rectangles.write(tiling if waits else replace(tiling, speed=None)))
    return {**row, "partition": path.name}


HERE = "localhost"  # what nodes are called where all processes are on this machine
OWN_NAMES = {f"overlay-{name}": name for name in ("startup", "skew", "classes")}


def overlay_row(member: Point | Case) -> dict[str, object]:
    """Return the row of the case file of an overlay network, with the topology as its spec."""
    if isinstance(member, Case):
        requested = probe(member.probe).on_overlay(member.settings)
        settings = {"operation": requested.operation, "topology": requested.topology, "bytes": member.settings["bytes"]}
        named, waves = {"mode": requested.mode}, 1
    else:
        name = base(member.operation)
        settings = {"operation": OWN_NAMES.get(name, name), "topology": member.topology, "bytes": member.bytes}
        named, waves = parameters(member.operation, member.ranks, overlay=True), member.waves
    taken = {"filter": "sum", "compute": 0.0, "mode": "waves", "period": 0.0} | named
    return {"id": member.id, **settings, **taken, "waves": waves}


def with_topologies(rows: list[dict], work: AnyPath, hosts: Iterable[str]) -> list[dict]:
    """Return the rows with a file in place of each topology; node i of every tree is on host i."""
    hosts, files = list(hosts), {}
    for spec in dict.fromkeys(row["topology"] for row in rows):
        text = mrnet(place_on_hosts(tree(spec), hosts))
        files[spec] = f"{digest(text)}.top"
        write_text(work / files[spec], text)
    return [row | {"topology": files[row["topology"]]} for row in rows]


NODES_LISTED = 8  # nodes that the name of a file can list


@dataclass(frozen=True)
class Start:
    """Cases that one start of a program sweeps: the same ranks in the same places."""

    program: str
    ranks: int
    layout: str
    where: tuple[int, ...]  # the platform's nodes that the layout's stand for; empty: the first ones
    rows: tuple[dict[str, object], ...]  # of the case file

    @property
    def name(self) -> str:
        """The name of its files. Complex layouts, and many nodes, are distinguished by a digest."""
        nodes = nodes_written(self.where)
        on = f"-on{nodes if len(self.where) <= NODES_LISTED else digest(self.where)}" if nodes else ""
        layout, _, arguments = self.layout.partition(":")
        plain = re.fullmatch(r"[0-9x]*", arguments)
        return f"{self.program}-{self.ranks}r-{layout}{arguments if plain else f'-{digest(arguments)}'}{on}"

    @property
    def nodes(self) -> tuple[int, ...]:
        """The platform's node of every rank."""
        nodes = (int(node) for node in place(self.layout, self.ranks))
        return tuple(self.where[node] for node in nodes) if self.where else tuple(nodes)

    @property
    def kept(self) -> tuple[int, ...]:
        """The cores of every rank; empty if its layout does not define them."""
        return tuple(map(int, cores_of(self.layout, self.ranks))) if keeps_cores(self.layout) else ()

    @property
    def drives(self) -> tuple[bool, ...]:
        """Which ranks drive an accelerator; empty if its layout does not define it."""
        kinds = kinds_of(self.layout, self.ranks) if keeps_cores(self.layout) else None
        return tuple(kind == ACCELERATOR for kind in kinds) if kinds is not None else ()

    @property
    def ids(self) -> list[str]:
        return [str(row["id"]) for row in self.rows]

    def without(self, finished: set[str]) -> "Start":
        return replace(self, rows=tuple(row for row in self.rows if row["id"] not in finished))


@dataclass(frozen=True)
class Rig:
    """The common state of a batch's starts: the plan, the platform and its launcher, and the folder of samples."""

    plan: Plan
    platform: Platform
    how: Launcher
    starter: str
    names: tuple[str, ...]  # of the nodes, where they are known
    folder: SafePath
    passes: int
    inside: tuple[str, ...] = ()  # what starts the platform's container image, if it has one
    setting: str = ""  # of the job
    environment: Mapping[str, str] = field(default_factory=dict)  # environment variables for the MPI library

    @property
    def work(self) -> SafePath:
        """Where programs start, and what they read and print; gone when the batch is done."""
        return self.folder / WORK_FOLDER

    def pass_folder(self, number: int) -> SafePath:
        return self.folder / pass_folder_name(number)

    def hosts_of(self, start: Start) -> list[str]:
        """Return what the nodes of a start's ranks are called, as far as there are any; programs take samples nowhere
        else."""
        if self.how.simulated:
            return []
        return [self.names[node] for node in sorted(set(start.nodes))] if self.names else [this_machine()]

    def argv(self, job: Job) -> list[str]:
        """Return all ranks of a program with MPI, or an overlay's front-end alone."""
        return front_end(self.how, job) if self.platform.overlay else self.how.argv(job)

    def log(self, start: Start) -> SafePath:
        return self.work / f"{start.name}.log"


def in_image(rig: Rig) -> Rig:
    """Return the rig with the command that starts the platform's image, if it has one, after a check of the image."""
    if not rig.platform.image:
        return rig
    folder = rig.folder.resolve()
    work, image = folder / rig.work.name, rig.platform.image
    try:
        inside = container.fitting(image, container.runtime(), folder, work, rig.starter, rig.platform.slurm_mpi)
    except UserError as error:
        raise rig.platform.error(("container",), error.message) from None
    return replace(rig, inside=inside)


def starts_of(batch: Batch, work: AnyPath, substrate: str = MPI, simulated: bool = False) -> Iterator[Start]:
    """Yield the starts of a batch, whether its cases have been measured or not."""
    if substrate != MPI:
        yield from _of_overlay(batch, f"{substrate}-bench")
        return

    def of_case(case: Case) -> tuple:
        return probe(case.probe).runs, case.ranks, case.layout, case.where

    def of_point(point: Point) -> tuple:
        return point.ranks, point.layout, _program(point)

    for key, cases in groupby(sorted(batch.cases, key=of_case), key=of_case):
        yield Start(*key, tuple(_case_row(case, work) for case in cases))
    rows = {PLAYER: lambda point: _play_row(point, work), LIBRARY: _library_row}
    for (ranks, layout, program), points in groupby(sorted(batch.points, key=of_point), key=of_point):
        row = rows.get(program, lambda point: kernel_row(point, not simulated))
        yield Start(program, ranks, layout, (), tuple(map(row, points)))


def _program(point: Point) -> str:
    if not point.predictable:
        return LIBRARY
    return PLAYER if is_written(point.operation) else operation(point.operation).program or PLAYER


def _of_overlay(batch: Batch, program: str) -> Iterator[Start]:
    """Yield one start of the front-end for all cases with the same placement."""

    def place_of(member: Case | Point) -> tuple:
        return member.ranks, member.layout, member.where if isinstance(member, Case) else ()

    for where, members in groupby(sorted([*batch.cases, *batch.points], key=place_of), key=place_of):
        yield Start(program, *where, tuple(overlay_row(member) for member in members))


def _case_row(case: Case, work: AnyPath) -> dict[str, object]:
    return _play_row(case, work) if probe(case.probe).runs == PLAYER else {"id": case.id, **case.settings}


def _play_row(member: Point | Case, work: AnyPath) -> dict[str, object]:
    waves = member.waves if isinstance(member, Point) else 1
    return {"id": member.id, "schedule": work / f"{member.id}.play", "plays": member, "waves": waves}


def _library_row(point: Point) -> dict[str, object]:
    return {"id": point.id, "operation": point.operation, "bytes": point.bytes, "waves": point.waves}


def prepare(rig: Rig, start: Start, number: int) -> Job:
    """Return the command for one pass over the cases of a start, after writing all its inputs."""
    how, platform, work = rig.how, rig.platform, rig.work
    rows = [_prepared(row, work) for row in start.rows]
    if platform.overlay:
        hosts = (rig.names[node] if rig.names else HERE for node in start.nodes)
        rows = with_topologies(rows, work, hosts)
    with (work / f"{start.name}.cases").open("w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, rows[0], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    here = work.resolve()
    folder = (
        container.PROGRAMS if rig.inside else os.path.relpath(programs(find_build_root(), toolchain(platform)), here)
    )
    job = Job(
        platform=platform,
        starter=rig.starter,
        program=os.path.join(folder, start.program),
        inside=rig.inside,
        arguments=_arguments(rig, start, number),
        nodes=start.nodes,
        names=rig.names,
        kept=() if how.simulated else start.kept,
        drives=start.drives,
        network=_find_network(platform, work, here),
        hostfile=Path(f"{start.name}.hosts"),
        folder=here,
    )
    if platform.overlay:
        return job
    write_text(work / f"{start.name}.placement", job.placement)
    if job.kept:
        write_text(work / f"{start.name}.cores", job.cores)
    if how.hostfile:
        write_text(work / job.hostfile.name, job.hosts)
    return job


def _find_network(platform: Platform, work: AnyPath, here: Path) -> Path | None:
    """Return the file of a simulated network, as seen from the folder of the programs."""
    if platform.simgrid_file is None:
        return None
    changing = write_changing_network(platform.simgrid_file, work)
    return Path(changing.name) if changing else Path(os.path.relpath(platform.simgrid_file.resolve(), here))


def _arguments(rig: Rig, start: Start, number: int) -> tuple[str, ...]:
    """Return the case of a pass, with its share of the budgets and its own order."""
    settings = rig.plan.measure
    ranks = {"--placement": f"{start.name}.placement", "--sync": settings.sync}  # which an overlay's program has not
    arguments = {
        "--cases": f"{start.name}.cases",
        "--out": f"../{rig.pass_folder(number).name}",
        "--meta": f"../{start.name}.json",
        **({} if rig.platform.overlay else ranks),
        **({"--cores": f"{start.name}.cores"} if start.kept and not rig.how.simulated else {}),
        "--precision": settings.precision,
        "--min-samples": settings.min_samples,
        "--max-samples": max(settings.max_samples // rig.passes, settings.min_samples),
        # Simulated seconds are free.
        "--max-seconds": 1e9 if rig.how.simulated else settings.seconds / rig.passes,
        "--warmup": settings.warmup,
        "--seed": rig.plan.seed + number,
    }
    return tuple(str(part) for pair in arguments.items() for part in pair)


def _prepared(row: dict, work: AnyPath) -> dict:
    """Return the row of the case file, after writing the player's schedule and a kernel's partition."""
    if "partition" in row:
        return with_partition(row, work)
    if "plays" not in row:
        return row
    member = row["plays"]
    if isinstance(member, Case):
        pattern = probe(member.probe).pattern(member.settings)
        write_play(row["schedule"], pattern)
    else:
        pattern = schedule(member)
        write_play(row["schedule"], pattern, member.operation, member.bytes)
    return {
        "id": row["id"],
        "schedule": row["schedule"].name,
        "finish": "all" if pattern.root is None else pattern.root,
        "waves": row["waves"],
    }
