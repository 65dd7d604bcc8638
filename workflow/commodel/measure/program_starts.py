"""Starts of native programs (`list_starts`). One start measures many cases with the same ranks and
placement.

`prepare_start` writes the inputs of a start into the work folder: its cases, the schedules and
other files that they name, and the placement of ranks. Programs start in the work folder and all
paths are relative to it, since smpirun accepts no path with a space.
"""

import csv
import importlib
import os
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import groupby
from pathlib import Path
from platform import node as this_machine
from typing import Any, Protocol, cast

from commodel.errors import UserError
from commodel.files.atomic import write_text
from commodel.files.results_folder import WORK_FOLDER, pass_folder_name
from commodel.files.safe_paths import AnyPath, SafePath
from commodel.models.probes import PLAYER, find_probe
from commodel.patterns.build import build_schedule
from commodel.patterns.layouts import (
    assigns_cores,
    format_nodes,
    list_cores,
    list_gpus,
    place_ranks,
)
from commodel.patterns.operations import (
    CaseFile,
    find_operation,
)
from commodel.patterns.pattern_files import is_pattern_file
from commodel.patterns.schedule_files import write_player_table
from commodel.platforms import container
from commodel.platforms.build import get_program_folder
from commodel.platforms.launchers import Job, Launcher, get_toolchain
from commodel.platforms.platform import Platform
from commodel.platforms.simulated_networks import has_traces, write_network_with_traces
from commodel.platforms.tools import find_build_root
from commodel.records import ENOUGH_EQUAL_SAMPLES, LIBRARY, Batch, Case, Plan, Point, compute_digest
from commodel.substrates import MPI, find_substrate

MAX_LISTED_NODES = 8  # nodes that the name of a file can list


@dataclass(frozen=True)
class Start:
    """Cases that one start of a program measures, with the same ranks and placement."""

    program: str
    ranks: int
    layout: str
    where: tuple[int, ...]  # the platform's node for each node of the layout; empty: the first ones
    rows: tuple[dict[str, Any], ...]  # of the case file
    # of each case: its simulation takes long, and each sample would be the same
    single_sample: bool = False

    @property
    def name(self) -> str:
        """The name of the start's files. Complex layouts and many nodes are replaced by a
        digest."""
        layout, _, arguments = self.layout.partition(":")
        layout += (
            arguments if re.fullmatch(r"[0-9x]*", arguments) else f"-{compute_digest(arguments)}"
        )
        nodes = format_nodes(self.where)
        if nodes:
            layout += (
                f"-on{nodes if len(self.where) <= MAX_LISTED_NODES else compute_digest(self.where)}"
            )
        return f"{self.program}-{self.ranks}r-{layout}"

    @property
    def nodes(self) -> tuple[int, ...]:
        """The platform's node of every rank."""
        nodes = (int(node) for node in place_ranks(self.layout, self.ranks))
        return tuple(self.where[node] for node in nodes) if self.where else tuple(nodes)

    @property
    def cores_per_rank(self) -> tuple[int, ...]:
        """The number of cores of each rank; empty if the layout does not define it."""
        return (
            tuple(map(int, list_cores(self.layout, self.ranks)))
            if assigns_cores(self.layout)
            else ()
        )

    @property
    def gpus(self) -> tuple[int, ...]:
        """The number of each rank's GPU on its node, -1 without one; empty if the layout does not
        define it."""
        return list_gpus(self.layout, self.ranks)

    @property
    def ids(self) -> list[str]:
        return [str(row["id"]) for row in self.rows]

    def without(self, finished: set[str]) -> "Start":
        return replace(self, rows=tuple(row for row in self.rows if row["id"] not in finished))


class SubstrateStarts(Protocol):
    """The functions of the module that starts programs of another substrate than MPI
    (`Substrate.starts`)."""

    def list_starts(self, batch: Batch, substrate: str) -> Iterator[Start]:
        """Yield the starts of all cases and points of a batch."""
        ...

    def store_inputs(
        self, rows: list[dict[str, Any]], work: AnyPath, hosts: list[str]
    ) -> list[dict[str, Any]]:
        """Write what the rows of a start refer to, and return the rows of the case file.

        `hosts` has the host of each rank; it is empty if all are on this machine.
        """
        ...

    def make_argv(self, launcher: Launcher, job: Job) -> list[str]:
        """Return the command of a start."""
        ...

    def join_passes(self, pass_folders: list[SafePath], folder: SafePath, case: str) -> None:
        """Join further tables that a program wrote in each pass over a case, if it writes any."""
        ...


def load_starts(substrate: str) -> SubstrateStarts:
    """Return the module that starts the programs of a substrate."""
    return cast(SubstrateStarts, importlib.import_module(find_substrate(substrate).starts))


@dataclass(frozen=True)
class StartContext:
    """The common state of a batch's starts: the plan, the platform and its launcher, and the folder
    of samples."""

    plan: Plan
    platform: Platform
    launcher: Launcher
    starter: str
    names: tuple[str, ...]  # of the nodes; empty if unknown
    folder: SafePath
    passes: int
    # starts the platform's container image; empty without an image
    image_command: tuple[str, ...] = ()
    setting: str = ""  # name of the circumstances of the measurement
    # environment variables for the MPI library
    environment: Mapping[str, str] = field(default_factory=dict)

    @property
    def work(self) -> SafePath:
        """The folder where programs start, with their inputs and logs. It is removed when the batch
        is done."""
        return self.folder / WORK_FOLDER

    def pass_folder(self, number: int) -> SafePath:
        return self.folder / pass_folder_name(number)

    @property
    def pass_folders(self) -> list[SafePath]:
        return list(map(self.pass_folder, range(self.passes)))

    def hosts_of(self, start: Start) -> list[str]:
        """Return the host names of a start's ranks: this machine's name if all run here, none in a
        simulation."""
        if self.launcher.simulated:
            return []
        return (
            [self.names[node] for node in sorted(set(start.nodes))]
            if self.names
            else [this_machine()]
        )

    def argv(self, job: Job) -> list[str]:
        """Return the command that starts all processes of a program."""
        if self.platform.uses_mpi:
            return self.launcher.argv(job)
        return load_starts(self.platform.substrate).make_argv(self.launcher, job)

    def log(self, start: Start) -> SafePath:
        return self.work / f"{start.name}.log"


def add_image_command(context: StartContext) -> StartContext:
    """Check the platform's image, and return the context with the command that starts it. Without
    an image, the context is unchanged."""
    if not context.platform.image:
        return context
    folder = context.folder.resolve()
    work, image = folder / context.work.name, context.platform.image
    try:
        image_command = container.make_checked_prefix(
            image,
            container.find_runtime(),
            folder,
            work,
            context.starter,
            context.platform.slurm_mpi,
        )
    except UserError as error:
        raise context.platform.error(("container",), error.message) from None
    return replace(context, image_command=image_command)


def list_starts(
    batch: Batch,
    work: AnyPath,
    substrate: str = MPI,
    simulated: bool = False,
    large: Collection[str] = (),
) -> Iterator[Start]:
    """Yield the starts of all cases and points of a batch. Those of `large` points, given by their
    ids, are the last ones, so that all others are measured first."""
    if substrate != MPI:
        yield from load_starts(substrate).list_starts(batch, substrate)
        return

    def case_key(case: Case) -> tuple[str, int, str, tuple[int, ...]]:
        return find_probe(case.probe).program_name, case.ranks, case.layout, case.where

    def point_key(point: Point) -> tuple[bool, int, str, str]:
        return point.id in large, point.ranks, point.layout, _select_program(point)

    for (program, ranks, layout, where), cases in groupby(
        sorted(batch.cases, key=case_key), key=case_key
    ):
        yield Start(
            program, ranks, layout, where, tuple(_make_case_row(case, work) for case in cases)
        )
    rows = {PLAYER: lambda point: _make_player_row(point, work), LIBRARY: _make_library_row}
    for (is_large, ranks, layout, program), points in groupby(
        sorted(batch.points, key=point_key), key=point_key
    ):
        row = rows.get(program, lambda point: _make_program_row(point, not simulated))
        yield Start(program, ranks, layout, (), tuple(map(row, points)), is_large)


def _select_program(point: Point) -> str:
    if not point.predictable:
        return LIBRARY
    return (
        PLAYER
        if is_pattern_file(point.operation)
        else find_operation(point.operation).program or PLAYER
    )


def _make_case_row(case: Case, work: AnyPath) -> dict[str, Any]:
    is_played = find_probe(case.probe).program_name == PLAYER
    return _make_player_row(case, work) if is_played else {"id": case.id, **case.settings}


def _make_player_row(member: Point | Case, work: AnyPath) -> dict[str, Any]:
    waves = member.waves if isinstance(member, Point) else 1
    return {
        "id": member.id,
        "schedule": work / f"{member.id}.play",
        "plays": member,
        "waves": waves,
    }


def _make_program_row(point: Point, computes: bool) -> dict[str, Any]:
    """Return the row of a point that a program of its operation measures. In a simulation ranks
    compute nothing."""
    make_columns = find_operation(point.operation).case
    assert make_columns is not None, f"{point.operation} has a program and no cases"
    return {"id": point.id, **make_columns(point, computes)}


def _make_library_row(point: Point) -> dict[str, Any]:
    return {
        "id": point.id,
        "operation": point.operation,
        "bytes": point.bytes,
        "waves": point.waves,
    }


def prepare_start(context: StartContext, start: Start, number: int) -> Job:
    """Return the command for one pass over the cases of a start, after writing all its inputs."""
    launcher, platform, work = context.launcher, context.platform, context.work
    rows = [_store_inputs(row, work) for row in start.rows]
    if not platform.uses_mpi:
        hosts = [context.names[node] for node in start.nodes] if context.names else []
        rows = load_starts(platform.substrate).store_inputs(rows, work, hosts)
    with (work / f"{start.name}.cases").open("w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, rows[0], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    folder = work.resolve()
    programs_folder = (
        container.IMAGE_PROGRAMS
        if context.image_command
        else os.path.relpath(get_program_folder(find_build_root(), get_toolchain(platform)), folder)
    )
    job = Job(
        platform=platform,
        starter=context.starter,
        program=os.path.join(programs_folder, start.program),
        image_command=context.image_command,
        arguments=_list_arguments(context, start, number),
        nodes=start.nodes,
        names=context.names,
        cores_per_rank=() if launcher.simulated else start.cores_per_rank,
        gpus=start.gpus,
        network=_find_network(platform, work, folder),
        hostfile=Path(f"{start.name}.hosts"),
        folder=folder,
    )
    if not platform.uses_mpi:
        return job
    write_text(work / f"{start.name}.placement", job.placement)
    if job.cores_per_rank:
        write_text(work / f"{start.name}.cores", job.cores)
    if launcher.hostfile:
        write_text(work / job.hostfile.name, job.hosts)
    return job


def _find_network(platform: Platform, work: AnyPath, folder: Path) -> Path | None:
    """Return the path of the simulated network's file, relative to the folder of the programs."""
    if platform.simgrid_file is None:
        return None
    with_traces = write_network_with_traces(platform.simgrid_file, work)
    return (
        Path(with_traces.name)
        if with_traces
        else Path(os.path.relpath(platform.simgrid_file.resolve(), folder))
    )


def _list_arguments(context: StartContext, start: Start, number: int) -> tuple[str, ...]:
    """Return the arguments of the program for one pass: its share of the budgets, and the seed of
    its order of cases."""
    settings = context.plan.measure
    arguments: dict[str, str | float] = {
        "--cases": f"{start.name}.cases",
        "--out": f"../{context.pass_folder(number).name}",
        "--meta": f"../{start.name}.json",
    }
    if context.platform.uses_mpi:
        arguments |= {"--placement": f"{start.name}.placement", "--sync": settings.sync}
    if start.cores_per_rank and not context.launcher.simulated:
        arguments["--cores"] = f"{start.name}.cores"
    min_samples = settings.min_samples
    max_samples = max(settings.max_samples // context.passes, min_samples)
    if start.single_sample:
        min_samples = max_samples = 1
    arguments |= {
        "--precision": settings.precision,
        "--min-samples": min_samples,
        "--max-samples": max_samples,
        # The budget limits real time, not simulated time.
        "--max-seconds": 1e9 if context.launcher.simulated else settings.seconds / context.passes,
        "--warmup": 1 if start.single_sample else settings.warmup,
        "--seed": context.plan.seed + number,
    }
    network = context.platform.simgrid_file
    if network is not None and not has_traces(network):
        arguments |= {"--enough-equal": ENOUGH_EQUAL_SAMPLES, "--warmup": 1}
    return tuple(str(part) for pair in arguments.items() for part in pair)


def store_case_files(row: dict[str, Any], work: AnyPath) -> dict[str, Any]:
    """Write the files that a row of a case file refers to, and return the row with their names."""
    stored = dict(row)
    for name, value in row.items():
        if isinstance(value, CaseFile):
            path = work / f"{row['id']}{value.suffix}"
            write_text(path, value.make_text())
            stored[name] = path.name
    return stored


def _store_inputs(row: dict[str, Any], work: AnyPath) -> dict[str, Any]:
    """Write the schedule or other files that a row refers to, and return the row of the case
    file."""
    if "plays" not in row:
        return store_case_files(row, work)
    member, path = row["plays"], row["schedule"]
    if isinstance(member, Case):
        make_pattern = find_probe(member.probe).pattern
        schedule = make_pattern(member.settings) if make_pattern else None
        assert schedule is not None, "a probe that the player plays"
        write_player_table(path, schedule)
    else:
        schedule = build_schedule(member)
        write_player_table(path, schedule, member.operation, member.bytes)
    finish = "all" if schedule.root is None else schedule.root
    return {"id": row["id"], "schedule": path.name, "finish": finish, "waves": row["waves"]}
