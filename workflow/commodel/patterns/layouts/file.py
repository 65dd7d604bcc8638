"""An explicit placement from a file: Open MPI's rankfile, `rank 0=host slot=0` a line, or a node a line, rank by rank.

Hosts that are whole numbers (or Open MPI's +n0, +n1, …) are those nodes. Others are numbered as they appear, unless the
platform knows its nodes by name: then the full spec ends with the nodes that they are, as in file:ranks.txt@2,0,1.
Slots are not looked at.
"""

import os
import re
from functools import lru_cache

import numpy as np

from commodel.errors import UserError, suggest
from commodel.files.text import MIB, open_file, read_lines
from commodel.patterns.layouts import Defaults, Layout
from commodel.units import MAX_COUNT

FORM = "file:PATH"
RANK = re.compile(r"rank\s+([0-9]{1,8})\s*=\s*(\S+)(?:\s+slots?\s*=\s*\S+)?")
HOST = re.compile(r"(?:\+n(?=[0-9]+$))?([A-Za-z0-9_.-]{1,253})")
NUMBER = re.compile(r"[0-9]{1,8}")
NODES = re.compile(r"(.+)@([0-9]{1,8}(?:,[0-9]{1,8})*)")
MAX_BYTES = 256 * MIB

Lines = tuple[tuple[str, int], ...]  # of every rank: its host, and the line that says so


def full(arguments: str, defaults: Defaults) -> str:
    if not defaults.hosts or NODES.fullmatch(arguments):
        return arguments
    hosts = _hosts(_read(arguments))
    if all(NUMBER.fullmatch(host) for host in hosts):
        return arguments
    number = {name: str(node) for node, name in enumerate(defaults.hosts)}
    for host, line in hosts.items():
        if host not in number:
            message = f"found host '{host}', which the platform does not have; {suggest(host, number)}"
            raise UserError(message, file=arguments, line=line)
    return f"{arguments}@{','.join(number[host] for host in hosts)}"


def place(arguments: str, ranks: int) -> np.ndarray:
    match = NODES.fullmatch(arguments)
    path = match[1] if match else arguments
    lines = _read(path)
    hosts = _hosts(lines)
    for host, line in hosts.items():
        if NUMBER.fullmatch(host) and int(host) >= MAX_COUNT:
            raise UserError(f"found node {host}, wanted one below {MAX_COUNT}", file=path, line=line)
    if len(lines) != ranks:
        raise UserError(f"found {len(lines)} ranks, wanted {ranks}", file=path)
    if match:
        nodes = dict(zip(hosts, map(int, match[2].split(",")), strict=False))
    else:
        nodes = {host: int(host) if NUMBER.fullmatch(host) else node for node, host in enumerate(hosts)}
    if len(nodes) != len(hosts):
        raise UserError(f"found {len(hosts)} hosts, but 'file:{arguments}' numbers {len(nodes)}", file=path)
    return np.array([nodes[host] for host, _ in lines])


def _hosts(lines: Lines) -> dict[str, int]:
    """Every host in the order of its first appearance, with that line."""
    hosts: dict[str, int] = {}
    for host, line in sorted(lines, key=lambda entry: entry[1]):
        hosts.setdefault(host, line)
    return hosts


def _read(path: str) -> Lines:
    with open_file(path) as stream:
        about = os.fstat(stream.fileno())
    return _parsed(path, about.st_mtime_ns, about.st_size)


@lru_cache(maxsize=16)
def _parsed(path: str, changed: int, size: int) -> Lines:
    """Read once for all points, as long as the file stays as it is."""
    ranks: dict[int, tuple[str, int]] = {}
    numbered = None  # whether lines say which rank they are about
    for number, line in read_lines(path, MAX_BYTES, "a rank file"):
        text = line.split("#", 1)[0].strip()
        if not text:
            continue
        match = RANK.fullmatch(text)
        host = HOST.fullmatch(match[2] if match else text)
        if not host or numbered not in (None, bool(match)):
            wanted = "'rank N=HOST slot=…' in every line, or a host or the number of a node alone"
            raise UserError(f"found '{text}', wanted {wanted}", file=path, line=number)
        numbered = bool(match)
        rank = int(match[1]) if match else len(ranks)
        if rank in ranks:
            raise UserError(f"found rank {rank} again, first on line {ranks[rank][1]}", file=path, line=number)
        if rank >= MAX_COUNT:
            raise UserError(f"found rank {rank}, wanted one below {MAX_COUNT}", file=path, line=number)
        ranks[rank] = (host[1], number)
    if not ranks:
        raise UserError("found no ranks", file=path)
    for rank, (_, line) in ranks.items():
        if rank >= len(ranks):
            lost = next(number for number in range(len(ranks)) if number not in ranks)
            raise UserError(f"found rank {rank}, but none {lost}", file=path, line=line)
    hosts = {host: bool(NUMBER.fullmatch(host)) for host, _ in ranks.values()}
    if len(set(hosts.values())) > 1:
        odd = next(entry for entry in ranks.values() if hosts[entry[0]] != next(iter(hosts.values())))
        raise UserError(f"found '{odd[0]}', wanted all hosts by name or all by number", file=path, line=odd[1])
    return tuple(ranks[rank] for rank in range(len(ranks)))


LAYOUT = Layout(
    name="file",
    form=FORM,
    title="node of every rank from a file: Open MPI's rankfile, or a node a line",
    place=place,
    full=full,
)
