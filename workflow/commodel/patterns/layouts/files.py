"""Layouts from files: a rank file, or a table of the processes of a hybrid application.

A rank file is Open MPI's, with lines `rank 0=host slot=0`, whose slots are ignored. Or it has one
node per line, in the order of the ranks. A table of processes, `rank,node,cores,device`, has for
each process its node, the number of its cores, and its device. A process is bound to adjacent cores
of its node, after those of lower ranks.

A process that drives a GPU has one core, or 0: then it gets a core that is left over, or shares
those of the others. The device `gpu` is a GPU that no other process has, `gpu:0` the first GPU of
the node, which processes may share.

Hosts that are integers (or Open MPI's +n0, +n1, …) are node numbers. Other hosts are numbered in
order of appearance, unless the platform names its nodes. Then the full spec ends with the node
numbers, as in file:ranks.txt@2,0,1.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from commodel.errors import UserError, suggest_name
from commodel.files.cache import find_input
from commodel.files.safe_paths import AnyPath
from commodel.files.safe_reading import MIB, cache_reads, read_lines
from commodel.files.tables import add_line_to_errors, parse_cell, stream_rows
from commodel.patterns.arguments import Argument, Kind, parse_whole_number
from commodel.patterns.layouts import ACCELERATOR, CORE, Layout, PlatformDefaults
from commodel.patterns.rank_tables import order_by_rank, read_rank
from commodel.units import MAX_COUNT, format_count

HOST = re.compile(r"(?:\+n(?=[0-9]+$))?([A-Za-z0-9_.-]{1,253})")
NUMBER = re.compile(r"[0-9]{1,8}")
NODES = re.compile(r"(.+)@([0-9]{1,8}(?:,[0-9]{1,8})*)")
RANK = re.compile(r"rank\s+([0-9]{1,8})\s*=\s*(\S+)(?:\s+slots?\s*=\s*\S+)?")
COLUMNS = ("rank", "node", "cores", "device")
DEVICE = re.compile(r"cpu|gpu(?::([0-9]{1,3}))?")
MAX_CORES = 65536
MAX_BYTES = 256 * MIB


@dataclass(frozen=True)
class Process:
    host: str
    cores: int = 1
    drives_gpu: bool = False
    gpu: int | None = None  # its number on the node, if the file has it

    @property
    def device(self) -> str:
        return ACCELERATOR if self.drives_gpu else CORE


@dataclass(frozen=True, eq=False)
class ProcessLines:
    """The processes of a file in the order of their ranks, each with its line."""

    path: AnyPath
    rows: list[tuple[int, Process]]

    @classmethod
    def of(cls, path: AnyPath, rows: Iterator[tuple[int, int, Process]]) -> "ProcessLines":
        """Return the processes of rows (line, rank, process). Refuse hosts by name together with
        hosts by number."""
        processes = cls(path, order_by_rank(path, rows))
        by_number = [bool(NUMBER.fullmatch(process.host)) for _, process in processes.rows]
        for (line, process), is_number in zip(processes.rows, by_number, strict=True):
            if is_number != by_number[0]:
                message = f"found '{process.host}', wanted all hosts by name or all by number"
                raise UserError(message, file=path, line=line)
        return processes

    @property
    def hosts(self) -> dict[str, int]:
        """Every host in the order of its first line in the file, with that line."""
        hosts: dict[str, int] = {}
        for line, process in sorted(self.rows, key=lambda row: row[0]):
            hosts.setdefault(process.host, line)
        return hosts

    def find_nodes(self, names: tuple[str, ...]) -> str:
        """Return the node numbers of the hosts on a platform with these node names; empty if the
        hosts are numbers."""
        if not names or all(NUMBER.fullmatch(host) for host in self.hosts):
            return ""
        number = {name: str(node) for node, name in enumerate(names)}
        for host, line in self.hosts.items():
            if host not in number:
                message = (
                    f"found host '{host}', which the platform does not have; "
                    f"{suggest_name(host, number)}"
                )
                raise UserError(message, file=self.path, line=line)
        return ",".join(number[host] for host in self.hosts)

    def place(self, numbers: str, ranks: int) -> np.ndarray:
        """Return the node of every rank; `numbers` are the nodes of the hosts, if a full spec has
        them."""
        hosts = self.hosts
        host_nodes = numbers.split(",")
        for host, line in hosts.items():
            if NUMBER.fullmatch(host) and int(host) >= MAX_COUNT:
                raise UserError(
                    f"found node {host}, wanted one below {MAX_COUNT}", file=self.path, line=line
                )
        if len(self.rows) != ranks:
            raise UserError(f"found {len(self.rows)} ranks, wanted {ranks}", file=self.path)
        if numbers and len(host_nodes) != len(hosts):
            raise UserError(
                f"found {len(hosts)} hosts, but '@{numbers}' numbers {len(host_nodes)}",
                file=self.path,
            )
        if not numbers:
            host_nodes = [
                host if NUMBER.fullmatch(host) else str(node) for node, host in enumerate(hosts)
            ]
        nodes = dict(zip(hosts, map(int, host_nodes), strict=True))
        return np.array([nodes[process.host] for _, process in self.rows])

    def number_gpus(self) -> np.ndarray:
        """Return the number of each process's GPU on its node, -1 without one. Processes that the
        file gives no number get a GPU each, in the order of ranks."""
        given: dict[str, int] = {}
        numbers = []
        for _, process in self.rows:
            number = -1
            if process.drives_gpu:
                number = given.setdefault(process.host, 0)
                given[process.host] += 1
            numbers.append(number if process.gpu is None else process.gpu)
        return np.array(numbers)

    def check_devices(self) -> None:
        """Refuse a node with GPUs of which only some are numbered."""
        numbered: dict[str, bool] = {}
        for line, process in self.rows:
            is_numbered = process.gpu is not None
            if process.drives_gpu and numbered.setdefault(process.host, is_numbered) != is_numbered:
                message = (
                    f"found devices gpu and gpu:N on node {process.host}, wanted a number for all "
                    "of them, or for none"
                )
                raise UserError(message, file=self.path, line=line, key="device")

    def check_cores(self, node: np.ndarray, defaults: PlatformDefaults) -> None:
        """Refuse a node whose processes use more cores or GPUs than it has."""
        used = np.zeros(int(node.max()) + 1, dtype=int)
        gpus = self.number_gpus()
        for number, gpu, (line, process) in zip(
            node.tolist(), gpus.tolist(), self.rows, strict=True
        ):
            used[number] += process.cores
            most = defaults.count_gpus(number)
            if most is not None and gpu >= most:
                found = f"gpu:{gpu}" if process.gpu is not None else f"{gpu + 1} times device gpu"
                message = (
                    f"found {found} on node {number}, wanted at most {format_count(most, 'GPU')}, "
                    "as the platform has there; processes share a GPU as gpu:0"
                )
                raise UserError(message, file=self.path, line=line, key="device")
            cores = defaults.cores(number)
            if 0 < cores < used[number]:
                message = (
                    f"found {used[number]} cores in use on node {number}, wanted at most its "
                    f"{cores}"
                )
                raise UserError(message, file=self.path, line=line)


@cache_reads(files=16)
def _read_rank_file(path: AnyPath) -> ProcessLines:
    return ProcessLines.of(path, _parse_rank_file(path))


def _parse_rank_file(path: AnyPath) -> Iterator[tuple[int, int, Process]]:
    with_ranks = None  # whether lines name their rank; None: unknown
    ranks = 0
    for line, content in read_lines(path, MAX_BYTES, "a rank file"):
        text = content.split("#", 1)[0].strip()
        if not text:
            continue
        match = RANK.fullmatch(text)
        host = HOST.fullmatch(match[2] if match else text)
        if not host or with_ranks not in (None, bool(match)):
            wanted = (
                "'rank N=HOST slot=…' in every line, or only a host or node number in every line"
            )
            raise UserError(f"found '{text}', wanted {wanted}", file=path, line=line)
        with_ranks = bool(match)
        with add_line_to_errors(path, line):
            yield line, read_rank(match[1] if match else str(ranks)), Process(host[1])
        ranks += 1


@cache_reads(files=64)
def _read_table(path: AnyPath) -> ProcessLines:
    processes = ProcessLines.of(path, _parse_table(path))
    processes.check_devices()
    return processes


def _parse_table(path: AnyPath) -> Iterator[tuple[int, int, Process]]:
    for line, row in stream_rows(path, COLUMNS, unique_columns=True):
        if any(row.values()):
            with add_line_to_errors(path, line):
                host = parse_cell(row, "node", _read_host)
                device = parse_cell(row, "device", _read_device)
                drives_gpu = device[0] != "cpu"
                cores = parse_cell(row, "cores", _read_gpu_cores if drives_gpu else _read_cores)
                rank = parse_cell(row, "rank", read_rank)
                gpu = int(device[1]) if device[1] else None
                yield line, rank, Process(host, cores, drives_gpu, gpu)


def _read_host(text: str) -> str:
    match = HOST.fullmatch(text)
    if not match:
        raise UserError(f"found '{text}', wanted the number of a node or the name of a host")
    return match[1]


def _read_device(text: str) -> re.Match[str]:
    """Return the device and, as its group, the number of a GPU."""
    match = DEVICE.fullmatch(text)
    if not match:
        raise UserError(f"found '{text}', wanted cpu, gpu, or a GPU by its number, such as gpu:0")
    return match


def _read_cores(text: str) -> int:
    cores = parse_whole_number(text, f"a whole number from 1 to {MAX_CORES}")
    if cores > MAX_CORES:
        raise UserError(f"found {cores}, wanted at most {MAX_CORES} for a cpu")
    return cores


def _read_gpu_cores(text: str) -> int:
    cores = parse_whole_number(text, "1, or 0 without a core of its own, for a gpu", 0)
    if cores > 1:
        raise UserError(f"found {cores}, wanted at most 1 for a gpu")
    return cores


ReadColumn = Callable[[list[tuple[int, Process]]], np.ndarray]


def _make_file_layout(
    name: str,
    title: str,
    read: Callable[[AnyPath], ProcessLines],
    kinds: ReadColumn | None = None,
    cores: ReadColumn | None = None,
    gpus: Callable[[ProcessLines], np.ndarray] | None = None,
) -> Layout:
    """Return a layout whose argument is a path; a full spec adds the nodes of its hosts."""

    def read_argument(argument: str) -> tuple[ProcessLines, str]:
        match = NODES.fullmatch(argument)
        return read(find_input(match[1] if match else argument)), match[2] if match else ""

    def complete(argument: str, defaults: PlatformDefaults) -> str:
        processes, numbers = read_argument(argument)
        added = "" if numbers else processes.find_nodes(defaults.hosts)
        if name == "processes" and (defaults.max_cores or defaults.gpus):
            processes.check_cores(processes.place(numbers or added, len(processes.rows)), defaults)
        return f"{argument}@{added}" if added else argument

    def place(ranks: int, argument: str) -> np.ndarray:
        processes, numbers = read_argument(argument)
        return processes.place(numbers, ranks)

    def make_column(make: ReadColumn | None) -> Callable[[int, str], np.ndarray] | None:
        if make is None:
            return None
        return lambda ranks, argument: make(read_argument(argument)[0].rows)

    def list_gpus(ranks: int, argument: str) -> np.ndarray:
        assert gpus is not None
        return gpus(read_argument(argument)[0])

    return Layout(
        name,
        title,
        (Argument("PATH", Kind.PATH, str),),
        place=place,
        complete=complete,
        ranks=lambda argument: len(read_argument(argument)[0].rows),
        kinds=make_column(kinds),
        cores=make_column(cores),
        gpus=list_gpus if gpus else None,
    )


LAYOUT = (
    _make_file_layout(
        "file",
        "node of every rank from a file: Open MPI's rankfile, or one node per line",
        _read_rank_file,
    ),
    _make_file_layout(
        "processes",
        "node, cores and device of every process from a table rank,node,cores,device",
        _read_table,
        kinds=lambda rows: np.array([process.device for _, process in rows]),
        cores=lambda rows: np.array([process.cores for _, process in rows]),
        gpus=ProcessLines.number_gpus,
    ),
)
