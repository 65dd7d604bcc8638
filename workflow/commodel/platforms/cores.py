"""Processors of this machine, from Linux (`find_processor_levels`): which share a cache and a
socket, as levels of groups, innermost first. `count_processors` counts cores and sockets,
`measure_busy_processors` the busy processors."""

import os
import re
import time
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from commodel.errors import UserError
from commodel.files.safe_reading import read_text_or_empty
from commodel.hierarchy import Hierarchy

PROCESSORS = Path("/sys/devices/system/cpu")
STAT = Path("/proc/stat")
OBSERVATION_TIME = 0.2  # seconds over which busy processors are counted
IDLE_COLUMNS = (3, 4)  # columns of a line of /proc/stat: time idle, and time waiting for a disk


def find_processor_levels(folder: Path = PROCESSORS) -> Hierarchy:
    """Return levels of processors: `cache` (a common last-level cache), `socket` (one package).
    Empty if unknown."""
    numbers = sorted(
        int(path.name[3:])
        for path in folder.glob("cpu[0-9]*")
        if re.fullmatch("cpu[0-9]{1,6}", path.name)
    )
    online = [
        folder / f"cpu{number}"
        for number in numbers
        if (folder / f"cpu{number}" / "topology").is_dir()
    ]
    texts_by_level = {
        "cache": [_find_last_level_cache(processor) for processor in online],
        "socket": [
            read_text_or_empty(processor / "topology" / "physical_package_id")
            for processor in online
        ],
    }
    groups = {}
    for name, texts in texts_by_level.items():
        if texts and all(texts):
            groups[name] = list(map(texts.index, texts))
    try:
        return Hierarchy.of(groups)
    except UserError:  # a cache that spans sockets, as some virtual machines have it
        return Hierarchy()


def _find_last_level_cache(processor: Path) -> str:
    """Return the processors that share this one's cache of the highest level."""
    caches = {
        read_text_or_empty(cache / "level"): cache
        for cache in sorted(processor.glob("cache/index[0-9]"))
    }
    levels = [level for level in caches if level.isdigit()]
    return read_text_or_empty(caches[max(levels, key=int)] / "shared_cpu_list") if levels else ""


@dataclass(frozen=True)
class ProcessorCounts:
    """Numbers of a machine: cores of all its sockets, and processors, which are threads of
    cores."""

    cores: int
    sockets: int
    processors: int

    @property
    def text(self) -> str:
        sockets = f"{self.sockets} sockets" if self.sockets > 1 else "1 socket"
        threads = self.processors // self.cores
        of_threads = f", {threads} threads a core" if threads > 1 else ""
        return f"{sockets} of {self.cores // self.sockets} cores{of_threads}"


def count_processors(
    folder: Path = PROCESSORS, usable: Collection[int] | None = None
) -> ProcessorCounts:
    """Return the numbers of this machine, of the processors that this process may use. If the
    kernel says nothing about cores, each processor is one."""
    numbers = sorted(os.sched_getaffinity(0) if usable is None else usable)
    cores, sockets = set(), set()
    for number in numbers:
        topology = folder / f"cpu{number}" / "topology"
        siblings = read_text_or_empty(topology / "thread_siblings_list")
        cores.add(siblings or str(number))
        sockets.add(read_text_or_empty(topology / "physical_package_id"))
    return ProcessorCounts(len(cores), len(sockets), len(numbers))


def measure_busy_processors(stat: Path = STAT) -> float | None:
    """Return how many processors other processes keep busy while this one sleeps; None if unknown.

    The load average would include the workflow's own work of the last minute.
    """
    before = _read_ticks(stat)
    time.sleep(OBSERVATION_TIME)
    ticks = [current - earlier for current, earlier in zip(_read_ticks(stat), before, strict=False)]
    if sum(ticks) <= 0:
        return None
    return round(
        (os.cpu_count() or 1) * (1 - sum(ticks[column] for column in IDLE_COLUMNS) / sum(ticks)), 2
    )


def _read_ticks(stat: Path) -> list[int]:
    try:
        # the time of guests is also in the columns user and nice
        columns = stat.read_text(encoding="ascii").partition("\n")[0].split()[1:9]
        return [int(column) for column in columns] if len(columns) == 8 else []
    except (OSError, ValueError):
        return []
