"""Starts of the benchmark's front-end, which starts all other processes of an overlay network."""

import shlex
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any

from commodel.files.atomic import write_text
from commodel.files.safe_paths import AnyPath
from commodel.measure.program_starts import Start
from commodel.patterns.operations import fill_parameters, find_base_name
from commodel.patterns.trees.files import format_mrnet
from commodel.patterns.trees.topologies import make_tree
from commodel.patterns.trees.tree import place_on_hosts
from commodel.platforms.launchers import Job, Launcher
from commodel.records import Batch, Case, Point, compute_digest
from commodel_overlay.probe_cases import find_equivalent
from commodel_overlay.process_counts import join_counts

BENCHMARK_OPERATIONS = {f"overlay-{name}": name for name in ("startup", "skew", "classes")}
LOCAL_HOST = "localhost"  # name of the nodes if all processes run on this machine


def list_starts(batch: Batch, substrate: str) -> Iterator[Start]:
    """Yield one start of the front-end for all cases and points with the same placement."""

    def placement_key(member: Case | Point) -> tuple[int, str, tuple[int, ...]]:
        return member.ranks, member.layout, member.where if isinstance(member, Case) else ()

    members: list[Case | Point] = [*batch.cases, *batch.points]
    for (ranks, layout, where), group in groupby(
        sorted(members, key=placement_key), key=placement_key
    ):
        rows = tuple(make_row(member) for member in group)
        yield Start(f"{substrate}-bench", ranks, layout, where, rows)


def make_row(member: Point | Case) -> dict[str, Any]:
    """Return the row of the benchmark's case file, with the topology as its spec."""
    if isinstance(member, Case):
        requested = find_equivalent(member.probe, member.settings)
        assert requested is not None
        settings = {
            "operation": requested.operation,
            "topology": requested.topology,
            "bytes": member.settings["bytes"],
        }
        arguments: dict[str, Any] = {"mode": requested.mode}
        waves = 1
    else:
        name = find_base_name(member.operation)
        operation = BENCHMARK_OPERATIONS.get(name, name)
        settings = {"operation": operation, "topology": member.topology, "bytes": member.bytes}
        arguments, waves = fill_parameters(member.operation, member.ranks, "overlay"), member.waves
    defaults = {"filter": "sum", "compute": 0.0, "mode": "waves", "period": 0.0} | arguments
    return {"id": member.id, **settings, **defaults, "waves": waves}


def store_inputs(
    rows: list[dict[str, Any]], work: AnyPath, hosts: Iterable[str]
) -> list[dict[str, Any]]:
    """Write each topology to a file, and return the rows with the files' names. Node i of every
    tree is on host i; without hosts, all are on this machine."""
    files = {}
    host_names = list(hosts)
    for spec in dict.fromkeys(row["topology"] for row in rows):
        tree = make_tree(spec)
        text = format_mrnet(place_on_hosts(tree, host_names or [LOCAL_HOST] * tree.nodes))
        files[spec] = f"{compute_digest(text)}.top"
        write_text(work / files[spec], text)
    return [row | {"topology": files[row["topology"]]} for row in rows]


def make_argv(launcher: Launcher, job: Job) -> list[str]:
    """Return the argv of the front-end, on the node of rank 0.

    The front-end starts the other processes itself, by fork, or by a command that contains {host}
    and reaches a host.
    """
    reach = launcher.reach
    assert reach is not None, "a launcher that cannot reach hosts"
    reach_command = reach(job, "{host}")
    launch = ["--launch", " ".join(reach_command)] if reach_command else []
    command = [*job.command, *launch]
    host = job.names[job.nodes[0]] if job.names else ""
    return [*reach(job, host), *(map(shlex.quote, command) if launcher.remote_shell else command)]


def join_passes(pass_folders: Iterable[AnyPath], folder: AnyPath, case: str) -> None:
    """Join the counts of processes by depth, which the benchmark writes in each pass."""
    join_counts(pass_folders, folder, case)
