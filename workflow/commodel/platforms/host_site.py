"""Machines without Slurm's commands as platform files: this one or its allocation (`describe_here`),
and hosts that ssh reaches (`describe_hosts`).

Each value in a file has a comment with its source. Cores are counted without hyper-threads, and
only those that this process may use.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from commodel.errors import UserError, make_printable
from commodel.platforms.allocations import Allocation, find_allocation
from commodel.platforms.cores import ProcessorCounts, count_processors
from commodel.platforms.launchers import resolve_agent
from commodel.platforms.mpi_libraries import find_kind
from commodel.platforms.slurm_site import Ask, choose_mpi, parse_nodes
from commodel.platforms.tools import run_tool
from commodel.units import format_count

SCHEMA = "# yaml-language-server: $schema=../../workflow/schemas/platform.schema.json"
REACH_SECONDS = 15.0  # that a host may take to answer
# Without a password, since there is nobody to type it for each host.
SSH_OPTIONS = ("-o", "BatchMode=yes", "-o", "ConnectTimeout=10")
MAX_HOSTS = 4096
MAX_CONNECTIONS = 16  # at the same time
HOST = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
# What a host is asked: its processors, whether it sees a file here, and its MPI.
QUESTION = """
cat /sys/devices/system/cpu/cpu[0-9]*/topology/thread_siblings_list | sort -u | wc -l
cat /sys/devices/system/cpu/cpu[0-9]*/topology/thread_siblings_list | wc -l
cat /sys/devices/system/cpu/cpu[0-9]*/topology/physical_package_id | sort -u | wc -l
test -e {marker} && echo shared || echo apart
{{ mpiexec --version || mpirun --version; }} 2>&1 | head -3
"""


@dataclass(frozen=True)
class Description:
    """A platform as a file, with the sizes for a first experiment, and lines on what was found."""

    name: str
    text: str
    nodes: int
    cores: int
    lines: Sequence[str] = ()


def describe_here(mpi: str, ask: Ask) -> Description:
    """Return the platform `here`: the allocation of this process, else this machine. `mpi` is the
    text of `describe_mpi`."""
    allocation = find_allocation()
    if allocation is None:
        return _describe_machine(mpi, count_processors())
    if allocation.scheduler == "Slurm":
        return _describe_slurm(mpi, allocation, ask)
    return _describe_job(mpi, allocation, count_processors())


def _describe_machine(mpi: str, counts: ProcessorCounts) -> Description:
    lines = [
        SCHEMA,
        "title: this machine",
        "launcher: local",
        "nodes: 1",
        f"cores: {counts.cores}  # {counts.text} (/sys/devices/system/cpu)",
        *_describe_mpi(mpi),
    ]
    found = f"this machine: {counts.text}; {mpi or 'no MPI on PATH'}"
    return Description("here", _join(lines), 1, counts.cores, [found])


def _describe_mpi(mpi: str) -> list[str]:
    if mpi:
        return [f"# {mpi} (mpiexec --version)"]
    return ["# Not learned: MPI: found no mpiexec on PATH. Load the module of one, or: make setup"]


def _describe_slurm(mpi: str, allocation: Allocation, ask: Ask) -> Description:
    """Return the nodes of a job of Slurm. Of nodes that differ, the smallest one counts."""
    listing, failure = ask("scontrol", "show", "node", "--oneliner", ",".join(allocation.hosts))
    if failure:
        raise UserError(f"scontrol show node: {failure}")
    kinds = parse_nodes(listing)
    if not kinds:
        raise UserError(f"scontrol show node: found none of {', '.join(allocation.hosts)}")
    smallest = min(kinds, key=lambda kind: kind.cores)
    unknown: list[str] = []
    plugin, reason = choose_mpi(mpi, ask, unknown)
    nodes = len(allocation.hosts)
    lines = [
        SCHEMA,
        "title: the nodes of this Slurm job",
        "launcher: slurm",
        f"nodes: {nodes}  # of this job ({allocation.source})",
        f"cores: {smallest.cores}  # {smallest.text} (scontrol show node)",
        "slurm:",
        f"  mpi: {plugin}  # {reason}",
        *(f"# Not learned: {text}" for text in unknown),
    ]
    found = f"{nodes} nodes of this Slurm job: {smallest.text}; srun --mpi={plugin}"
    return Description("here", _join(lines), nodes, smallest.cores, [found])


def _describe_job(mpi: str, allocation: Allocation, counts: ProcessorCounts) -> Description:
    """Return the hosts of a job of another scheduler. The file names none: each job has others."""
    slots = min(allocation.slots.values())
    # one slot may stand for a whole node
    cores = slots if slots > 1 else counts.cores
    source = allocation.source if slots > 1 else "/sys/devices/system/cpu of this node"
    nodes = len(allocation.hosts)
    lines = [
        SCHEMA,
        f"title: the hosts of a job of {allocation.scheduler}",
        "launcher: hosts",
        f"nodes: {nodes}  # of this job ({allocation.source})",
        f"cores: {cores}  # {source}",
        *_write_section(mpi, ()),
    ]
    hosts = format_count(nodes, "host")
    found = f"{hosts} of this {allocation.scheduler} job, {cores} ranks on each at most"
    return Description("here", _join(lines), nodes, cores, [found])


def _write_section(mpi: str, hosts: Sequence[str]) -> list[str]:
    kind = find_kind(mpi)
    value = "openmpi" if kind == "Open MPI" else "mpich"
    source = f"{mpi} (mpiexec --version)" if kind else "not learned: found no mpiexec on PATH"
    names = [f"  names: [{', '.join(hosts)}]"] if hosts else []
    without = [] if hosts else ["  # no names: the hosts are those of each job"]
    return ["hosts:", *names, *without, f"  mpi: {value}  # {source}"]


def _join(lines: Sequence[str]) -> str:
    return "\n".join(lines) + "\n"


@dataclass(frozen=True)
class Host:
    """What a host said about itself. `failure` says why it was not reached."""

    name: str
    counts: ProcessorCounts | None = None
    mpi: str = ""
    sees_folder: bool = False
    failure: str = ""


def describe_hosts(text: str, mpi: str, folder: Path, show: Callable[[str], None]) -> Description:
    """Return the platform `hosts` of those hosts in a list `a,b,c` that ssh reaches, each with a
    line. `folder` is where the project will be."""
    names = _split_names(text)
    agent = resolve_agent(os.environ.get("COMMODEL_AGENT", ""))
    command = [agent] if agent else ["ssh", *SSH_OPTIONS]
    existing = next(path for path in (folder, *folder.parents) if path.is_dir())
    marker = existing.resolve() / f".commodel-{os.getpid()}"
    marker.touch()
    try:
        with ThreadPoolExecutor(MAX_CONNECTIONS) as pool:
            show(f"{format_count(len(names), 'host')} tried by {Path(command[0]).name}")
            hosts = list(pool.map(lambda name: _ask_host(name, command, marker), names))
    finally:
        marker.unlink()
    reached = [host for host in hosts if host.counts]
    lines = [_describe_host(host, mpi) for host in hosts]
    if not reached:
        raise UserError(
            f"found none of {format_count(len(names), 'host')} by {command[0]}; {lines[0]}"
        )
    smallest = min(
        (host.counts for host in reached if host.counts), key=lambda counts: counts.cores
    )
    return Description(
        "hosts",
        _write_hosts(hosts, reached, smallest, mpi),
        len(reached),
        smallest.cores,
        lines,
    )


def _split_names(text: str) -> list[str]:
    names = [name.strip() for name in text.split(",") if name.strip()]
    wrong = [name for name in names if not HOST.fullmatch(name)]
    if wrong or not names:
        found = f"found '{make_printable(wrong[0], 60)}'" if wrong else "found no host"
        raise UserError(f"{found}, wanted names such as a1,a2", key="--hosts")
    repeated = [name for name in names if names.count(name) > 1]
    if repeated:
        raise UserError(f"found host '{repeated[0]}' twice", key="--hosts")
    if len(names) > MAX_HOSTS:
        raise UserError(f"found {len(names)} hosts, wanted at most {MAX_HOSTS}", key="--hosts")
    return names


def _ask_host(name: str, command: Sequence[str], marker: Path) -> Host:
    question = QUESTION.format(marker=shlex.quote(str(marker)))
    reply = run_tool([*command, name, f"sh -c {shlex.quote(question)}"], REACH_SECONDS)
    lines = reply.output.splitlines()
    numbers = [line.strip() for line in lines[:3]]
    if reply.failure or len(lines) < 4 or not all(map(str.isdigit, numbers)):
        errors = [line for line in reply.errors.splitlines() if line.strip()]
        why = errors[-1] if errors else reply.failure or f"found {' '.join(lines)!r}"
        return Host(name, failure=make_printable(why, 160))
    cores, threads, sockets = (max(int(number), 1) for number in numbers)
    version = " ".join(lines[4:])
    return Host(name, ProcessorCounts(cores, sockets, threads), version, lines[3] == "shared")


def _describe_host(host: Host, mpi: str) -> str:
    """Return a line on a host: why it was not reached, else its processors and what is missing."""
    if host.counts is None:
        return f"{host.name}: not reached: {host.failure}"
    return "; ".join([f"{host.name}: {host.counts.text}", *_list_obstacles(host, mpi)])


def _list_obstacles(host: Host, mpi: str) -> list[str]:
    kind, wanted = find_kind(host.mpi), find_kind(mpi)
    obstacles = [] if host.sees_folder else ["does not see this folder, so nothing can start there"]
    if wanted and kind != wanted:
        obstacles.append(f"its PATH has {kind or 'no MPI'}, wanted {wanted} as here")
    return obstacles


def _write_hosts(
    hosts: Sequence[Host], reached: Sequence[Host], smallest: ProcessorCounts, mpi: str
) -> str:
    larger = sorted({host.counts.cores for host in reached if host.counts} - {smallest.cores})
    also = f"; others have {', '.join(map(str, larger))}" if larger else ""
    lines = [
        SCHEMA,
        f"title: {len(reached)} hosts",
        "launcher: hosts",
        f"nodes: {len(reached)}  # reached by ssh",
        f"cores: {smallest.cores}  # {smallest.text} (/sys/devices/system/cpu){also}",
        *_write_section(mpi, [host.name for host in reached]),
        *(f"# {_describe_host(host, mpi)}" for host in hosts if host.counts is None),
        *(f"# {_describe_host(host, mpi)}" for host in reached if _list_obstacles(host, mpi)),
    ]
    return _join(lines)
