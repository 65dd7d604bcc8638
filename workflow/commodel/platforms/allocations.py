"""The allocation in which this process runs (`find_allocation`): its hosts in the scheduler's order,
from what PBS, LSF, Grid Engine, Flux or Slurm tell a job script.

A file of hosts has a line for each slot (PBS, LSF) or for each host (Grid Engine); a host is listed
once here.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from commodel.errors import UserError, make_printable
from commodel.files.safe_reading import MIB, read_text
from commodel.platforms.slurm import expand_names
from commodel.platforms.tools import run_tool
from commodel.units import format_count, show_value

HOST = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:-]*")
FLUX_SECONDS = 30.0  # that `flux hostlist` may take
MAX_FILE_BYTES = 16 * MIB
MAX_SLOTS = 1 << 20  # of a host


@dataclass(frozen=True)
class Allocation:
    """The hosts of a job, each with its slots, in the order of the scheduler. No slots: unknown."""

    scheduler: str
    source: str  # the variable or command that has them
    slots: Mapping[str, int]

    @property
    def hosts(self) -> tuple[str, ...]:
        return tuple(self.slots)


def find_allocation(environment: Mapping[str, str] = os.environ) -> Allocation | None:
    """Return the allocation of this process; None outside of any. Inside a Flux instance within
    another job, it is that of Flux."""
    for scheduler, variable, read in SCHEDULERS:
        value = environment.get(variable, "")
        if not value:
            continue
        slots, source = read(value)
        if not slots:
            raise UserError(f"found no host, wanted those of a job of {scheduler}", key=source)
        return Allocation(scheduler, source, slots)
    return None


def require_allocation(nodes: int) -> Allocation:
    """Return the allocation of this process. Refuse one with fewer nodes."""
    allocation = find_allocation()
    if allocation is None:
        variables = ", ".join(dict.fromkeys(f"${variable}" for _, variable, _ in SCHEDULERS))
        raise UserError(
            "takes its hosts from an allocation, and this process is in none; wanted: run this "
            f"command in a job script (one of {variables} is set there), or `hosts: {{names: […]}}`"
        )
    if len(allocation.hosts) < nodes:
        raise UserError(
            f"found {format_count(len(allocation.hosts), 'host')} of {allocation.scheduler} ({allocation.source}), "
            f"wanted {nodes}"
        )
    return allocation


def _read_lines(path: str, variable: str) -> list[str]:
    text = read_text(Path(path), MAX_FILE_BYTES, f"the hosts of ${variable}")
    lines = [line.partition("#")[0].strip() for line in text.splitlines()]
    return [line for line in lines if line]


def _check_host(name: str, source: str) -> str:
    if not HOST.fullmatch(name):
        raise UserError(f"found {show_value(name)}, wanted the name of a host", key=source)
    return name


def _read_slot_file(variable: str) -> Callable[[str], tuple[dict[str, int], str]]:
    """Return the reader of a file with a line for each slot: `node1`, `node1`, `node2`."""

    def read(path: str) -> tuple[dict[str, int], str]:
        lines = _read_lines(path, variable)
        hosts = [_check_host(line.split()[0], f"${variable}") for line in lines]
        return dict(Counter(hosts)), f"${variable}"

    return read


def _read_grid_engine(path: str) -> tuple[dict[str, int], str]:
    """Read a line for each queue of a host: `node1 8 all.q@node1 UNDEFINED`."""
    slots: Counter[str] = Counter()
    for line in _read_lines(path, "PE_HOSTFILE"):
        host, *columns = line.split()
        count = columns[0] if columns else ""
        if not count.isdigit() or not 1 <= int(count) <= MAX_SLOTS:
            message = f"found {show_value(line)}, wanted a host and its number of slots"
            raise UserError(message, key="$PE_HOSTFILE")
        slots[_check_host(host, "$PE_HOSTFILE")] += int(count)
    return dict(slots), "$PE_HOSTFILE"


def _read_lsf_counts(text: str) -> tuple[dict[str, int], str]:
    """Read `node1 8 node2 8`."""
    words = text.split()
    slots: Counter[str] = Counter()
    for host, count in zip(words[::2], words[1::2], strict=False):
        if not count.isdigit():
            message = f"found {show_value(count)}, wanted a number of slots"
            raise UserError(message, key="$LSB_MCPU_HOSTS")
        slots[_check_host(host, "$LSB_MCPU_HOSTS")] += int(count)
    return dict(slots), "$LSB_MCPU_HOSTS"


def _read_flux(_: str) -> tuple[dict[str, int], str]:
    """Ask Flux for the hosts of this job, else of this instance: that is its source `local`."""
    source = "flux hostlist local"
    reply = run_tool(["flux", "hostlist", "--expand", "local"], FLUX_SECONDS)
    if reply.failure:
        why = make_printable(reply.errors.strip() or reply.failure)
        raise UserError(f"found no hosts: {why}", key=source)
    return dict.fromkeys((_check_host(name, source) for name in reply.output.split()), 0), source


def _read_slurm(node_list: str) -> tuple[dict[str, int], str]:
    return dict.fromkeys(expand_names(node_list), 0), "$SLURM_JOB_NODELIST"


# An instance of Flux may run inside a job of another scheduler, so its variables come first.
SCHEDULERS: tuple[tuple[str, str, Callable[[str], tuple[dict[str, int], str]]], ...] = (
    ("Flux", "FLUX_JOB_ID", _read_flux),
    ("Flux", "FLUX_URI", _read_flux),
    ("PBS", "PBS_NODEFILE", _read_slot_file("PBS_NODEFILE")),
    ("LSF", "LSB_DJOB_HOSTFILE", _read_slot_file("LSB_DJOB_HOSTFILE")),
    ("LSF", "LSB_MCPU_HOSTS", _read_lsf_counts),
    ("Grid Engine", "PE_HOSTFILE", _read_grid_engine),
    ("Slurm", "SLURM_JOB_NODELIST", _read_slurm),
)
