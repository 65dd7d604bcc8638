"""What has to be started for a batch: the same ranks in the same places sweep many cases in a start of one program."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import groupby
from platform import node as this_machine

from commodel.errors import UserError
from commodel.files.paths import AnyPath, SafePath
from commodel.files.results import WORK, pass_name
from commodel.measure import kernels, overlay
from commodel.models.probes import PLAYER, probe
from commodel.patterns.layouts import ACCELERATOR, cores_of, keeps_cores, kinds_of, nodes_written, place
from commodel.patterns.operations import MPI, operation
from commodel.patterns.written import is_written
from commodel.platforms import container
from commodel.platforms.launchers import Job, Launcher, front_end
from commodel.platforms.platform import Platform
from commodel.records import LIBRARY, Batch, Case, Plan, Point, digest

NODES_LISTED = 8  # nodes that the name of a file can list


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
        """Of its files. A layout that says more than name and numbers is told from others by its digest, and so are
        many nodes."""
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
        """The cores that every rank keeps; empty where its layout says nothing of them."""
        return tuple(map(int, cores_of(self.layout, self.ranks))) if keeps_cores(self.layout) else ()

    @property
    def drives(self) -> tuple[bool, ...]:
        """Which ranks drive an accelerator; empty where its layout says nothing of them."""
        kinds = kinds_of(self.layout, self.ranks) if keeps_cores(self.layout) else None
        return tuple(kind == ACCELERATOR for kind in kinds) if kinds is not None else ()

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
    setting: str = ""  # of the job
    environment: Mapping[str, str] = field(default_factory=dict)  # what the MPI library is told by its environment

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

    def argv(self, job: Job) -> list[str]:
        """All ranks of a program with MPI, or an overlay's front-end alone."""
        return front_end(self.how, job) if self.platform.overlay else self.how.argv(job)

    def log(self, start: Start) -> SafePath:
        return self.work / f"{start.name}.log"


def in_image(rig: Rig) -> Rig:
    """With what starts the platform's image, if it has one, after a look whether that fits."""
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
    """What has to be started for a batch, whether it has been measured or not."""
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
        row = rows.get(program, lambda point: kernels.row(point, not simulated))
        yield Start(program, ranks, layout, (), tuple(map(row, points)))


def _program(point: Point) -> str:
    if not point.priced:
        return LIBRARY
    return PLAYER if is_written(point.operation) else operation(point.operation).program or PLAYER


def _of_overlay(batch: Batch, program: str) -> Iterator[Start]:
    """One front-end for all that is in the same places, whatever it measures there."""

    def place_of(member: Case | Point) -> tuple:
        return member.ranks, member.layout, member.where if isinstance(member, Case) else ()

    for where, members in groupby(sorted([*batch.cases, *batch.points], key=place_of), key=place_of):
        yield Start(program, *where, tuple(overlay.row(member) for member in members))


def _case_row(case: Case, work: AnyPath) -> dict[str, object]:
    return _play_row(case, work) if probe(case.probe).runs == PLAYER else {"id": case.id, **case.settings}


def _play_row(member: Point | Case, work: AnyPath) -> dict[str, object]:
    waves = member.waves if isinstance(member, Point) else 1
    return {"id": member.id, "schedule": work / f"{member.id}.play", "plays": member, "waves": waves}


def _library_row(point: Point) -> dict[str, object]:
    return {"id": point.id, "operation": point.operation, "bytes": point.bytes, "waves": point.waves}
