"""Limit the processor time of each host: a cgroup (version 1 or 2) with a CPU quota for each.

Hosts are distributed over the processors, so that no host depends on the load of another one. Hosts
have a high weight, so that other load of the machine hardly slows them down."""

import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

PERIOD = 20_000  # microseconds; a quota below 1000 is refused by the kernel
WEIGHTS = {1: ("cpu.shares", 1 << 18), 2: ("cpu.weight", 10_000)}  # the most that there is


@dataclass(frozen=True)
class Controller:
    """The cgroup folder and version in which CPU quotas can be set."""

    folder: Path
    version: int

    def limit(self, group: Path, share: float) -> None:
        quota = round(share * PERIOD)
        if self.version == 2:
            (group / "cpu.max").write_text(f"{quota} {PERIOD}")
        else:
            (group / "cpu.cfs_period_us").write_text(str(PERIOD))
            (group / "cpu.cfs_quota_us").write_text(str(quota))


def controller() -> Controller | None:
    """Return the cgroup controller of CPU quotas, or None if this machine has no writable one."""
    for line in Path("/proc/mounts").read_text().splitlines():
        _, folder, kind, options, *_ = line.split()
        at = Path(folder)
        if not os.access(at, os.W_OK):
            continue
        if kind == "cgroup" and "cpu" in options.split(","):
            return Controller(at, 1)
        if kind == "cgroup2" and "cpu" in (at / "cgroup.subtree_control").read_text().split():
            return Controller(at, 2)
    return None


@contextmanager
def shares(folder: Path, of: Mapping[str, float]) -> Iterator[dict[str, str]]:
    """Yield settings of the agent that run all processes of a host with the host's share of one
    processor."""
    limits = controller()
    if limits is None:
        raise RuntimeError("no cgroup of this machine lets us limit processors")
    parent = limits.folder / f"commodel-lab-{os.getpid()}"
    processors = sorted(os.sched_getaffinity(0))
    groups = [parent / host for host in of]
    parent.mkdir()
    try:
        if limits.version == 2:
            (parent / "cgroup.subtree_control").write_text("+cpu")
        name, weight = WEIGHTS[limits.version]
        (parent / name).write_text(str(weight))
        for group, share in zip(groups, of.values(), strict=True):
            group.mkdir()
            limits.limit(group, share)
        cases = "".join(
            f"{host}) cpu={processors[n % len(processors)]} ;;\n" for n, host in enumerate(of)
        )
        join = folder / "join"
        join.write_text(
            f'#!/bin/sh\nhost=$(hostname)\ncase $host in\n{cases}esac\necho $$ >"{parent}/$host/cgroup.procs"\n'
            'exec taskset -c "$cpu" "$@"\n'
        )
        join.chmod(0o755)
        yield {"LAB_PRIORITY": str(join)}
    finally:
        for group in (*groups, parent):
            _remove(group)


def _remove(group: Path) -> None:
    """Remove a cgroup, once its last processes have ended."""
    for _ in range(200):
        try:
            group.rmdir()
            return
        except FileNotFoundError:
            return
        except OSError:
            time.sleep(0.05)
    raise RuntimeError(f"{group}: something still runs there")
