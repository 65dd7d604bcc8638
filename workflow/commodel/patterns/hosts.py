"""Which nodes the hosts are that the file of a layout names, rank by rank.

Hosts that are whole numbers (or Open MPI's +n0, +n1, …) are those nodes. Others are numbered as they appear, unless the
platform knows its nodes by name: then the full spec ends with the nodes that they are, as in file:ranks.txt@2,0,1.
"""

import re
from collections.abc import Sequence

import numpy as np

from commodel.errors import UserError, suggest
from commodel.files.safe_paths import AnyPath
from commodel.units import MAX_COUNT

HOST = re.compile(r"(?:\+n(?=[0-9]+$))?([A-Za-z0-9_.-]{1,253})")
NUMBER = re.compile(r"[0-9]{1,8}")
NODES = re.compile(r"(.+)@([0-9]{1,8}(?:,[0-9]{1,8})*)")

Lines = Sequence[tuple[str, int]]  # of every rank: its host, and the line that says so


def split(arguments: str) -> tuple[str, str]:
    """The file, and the nodes that a full spec has behind it."""
    match = NODES.fullmatch(arguments)
    return (match[1], match[2]) if match else (arguments, "")


def one_sort(lines: Lines, path: AnyPath) -> None:
    """Refuses names beside numbers: nobody knows which nodes they are."""
    numbers = [bool(NUMBER.fullmatch(host)) for host, _ in lines]
    for (host, line), number in zip(lines, numbers, strict=True):
        if number != numbers[0]:
            raise UserError(f"found '{host}', wanted all hosts by name or all by number", file=path, line=line)


def full(path: str, lines: Lines, names: tuple[str, ...]) -> str:
    """The file with the nodes that its hosts are on a platform that knows its nodes by these names."""
    hosts = _hosts(lines)
    if not names or all(NUMBER.fullmatch(host) for host in hosts):
        return path
    number = {name: str(node) for node, name in enumerate(names)}
    for host, line in hosts.items():
        if host not in number:
            message = f"found host '{host}', which the platform does not have; {suggest(host, number)}"
            raise UserError(message, file=path, line=line)
    return f"{path}@{','.join(number[host] for host in hosts)}"


def nodes(path: str, numbers: str, lines: Lines, ranks: int) -> np.ndarray:
    """The node of every rank."""
    hosts = _hosts(lines)
    for host, line in hosts.items():
        if NUMBER.fullmatch(host) and int(host) >= MAX_COUNT:
            raise UserError(f"found node {host}, wanted one below {MAX_COUNT}", file=path, line=line)
    if len(lines) != ranks:
        raise UserError(f"found {len(lines)} ranks, wanted {ranks}", file=path)
    if numbers:
        known = dict(zip(hosts, map(int, numbers.split(",")), strict=False))
        if len(known) != len(hosts) or numbers.count(",") >= len(hosts):
            raise UserError(f"found {len(hosts)} hosts, but '@{numbers}' numbers {numbers.count(',') + 1}", file=path)
    else:
        known = {host: int(host) if NUMBER.fullmatch(host) else node for node, host in enumerate(hosts)}
    return np.array([known[host] for host, _ in lines])


def _hosts(lines: Lines) -> dict[str, int]:
    """Every host in the order of its first appearance, with that line."""
    hosts: dict[str, int] = {}
    for host, line in sorted(lines, key=lambda entry: entry[1]):
        hosts.setdefault(host, line)
    return hosts
