"""Processes of a hybrid application from a table, `rank,node,cores,device`: on which node each sits, how many cores its
threads keep, and whether it drives a GPU, for which it keeps one core. How hosts become nodes is in patterns/hosts.py.

A process keeps neighbouring cores: on its node those behind the ones that lower ranks keep.
"""

import csv
from dataclasses import dataclass

import numpy as np

from commodel.errors import UserError
from commodel.files.cache import reached
from commodel.files.safe_paths import AnyPath
from commodel.files.safe_reading import MIB, read_lines, read_once
from commodel.patterns import hosts
from commodel.patterns.layouts import ACCELERATOR, CORE, Defaults, Layout
from commodel.units import MAX_COUNT, shown

FORM = "processes:PATH"
COLUMNS = ["rank", "node", "cores", "device"]
DEVICES = {"cpu": CORE, "gpu": ACCELERATOR}
MOST_CORES = 65536
MAX_BYTES = 64 * MIB


@dataclass(frozen=True, eq=False)
class Processes:
    hosts: hosts.Lines
    cores: np.ndarray
    kinds: np.ndarray


def full(arguments: str, defaults: Defaults) -> str:
    """Also a look whether the platform's nodes have as many cores as their processes keep."""
    path, numbers = hosts.split(arguments)
    processes = _read(reached(path))
    spec = arguments if numbers else hosts.full(path, processes.hosts, defaults.hosts)
    kept: dict[int, int] = {}
    for node, cores, (_, line) in zip(place(spec, len(processes.cores)), processes.cores, processes.hosts, strict=True):
        kept[node] = kept.get(node, 0) + int(cores)
        room = defaults.cores(int(node))
        if room and kept[node] > room:
            message = f"found {kept[node]} cores kept on node {node}, wanted at most its {room}"
            raise UserError(message, file=path, line=line)
    return spec


def place(arguments: str, ranks: int) -> np.ndarray:
    path, numbers = hosts.split(arguments)
    return hosts.nodes(path, numbers, _read(reached(path)).hosts, ranks)


def _of(arguments: str) -> Processes:
    return _read(reached(hosts.split(arguments)[0]))


@read_once(files=64)
def _read(path: AnyPath) -> Processes:
    lines = [(number, line) for number, line in read_lines(path, MAX_BYTES, "a table of processes") if line.strip()]
    places, cores, kinds = [], [], []
    if not lines or lines[0][1].strip() != ",".join(COLUMNS):
        found = shown(lines[0][1]) if lines else "an empty file"
        raise UserError(f"found {found}, wanted the header {','.join(COLUMNS)}", file=path, line=1)
    for number, line in lines[1:]:
        host, kept, device = _process(path, number, line, len(places))
        places.append((host, number))
        cores.append(kept)
        kinds.append(DEVICES[device])
    if not places:
        raise UserError("found no processes below the header", file=path)
    hosts.one_sort(places, path)
    return Processes(tuple(places), np.array(cores), np.array(kinds))


def _process(path: AnyPath, number: int, line: str, rank: int) -> tuple[str, int, str]:
    """Host, cores and device of the rank that is next."""

    def wrong(column: str, text: str, wanted: str) -> UserError:
        return UserError(f"column {column}: found {shown(text)}, wanted {wanted}", file=path, line=number)

    try:
        (cells,) = csv.reader([line], strict=True)
    except csv.Error as error:
        raise UserError(f"cannot be read as CSV: {error}", file=path, line=number) from None
    if len(cells) != len(COLUMNS):
        raise UserError(f"found {len(cells)} cells, wanted {len(COLUMNS)}: {','.join(COLUMNS)}", file=path, line=number)
    own, node, kept, device = (cell.strip() for cell in cells)
    if rank >= MAX_COUNT or own != str(rank):
        raise wrong("rank", own, f"{rank}: ranks are in order, from 0")
    host = hosts.HOST.fullmatch(node)
    if not host:
        raise wrong("node", node, "the number of a node or the name of a host")
    if device not in DEVICES:
        raise wrong("device", device, " or ".join(DEVICES))
    if not (kept.isascii() and kept.isdigit() and len(kept) < 9 and 1 <= int(kept) <= MOST_CORES):
        raise wrong("cores", kept, f"a whole number from 1 to {MOST_CORES}")
    if device == "gpu" and int(kept) != 1:
        raise wrong("cores", kept, "1: a process that drives a GPU keeps one core")
    return host[1], int(kept), device


LAYOUT = Layout(
    name="processes",
    form=FORM,
    title="node, cores and device of every process from a table rank,node,cores,device",
    place=place,
    full=full,
    kinds=lambda arguments, ranks: _of(arguments).kinds,
    cores=lambda arguments, ranks: _of(arguments).cores,
    ranks=lambda arguments: len(_of(arguments).cores),
)
