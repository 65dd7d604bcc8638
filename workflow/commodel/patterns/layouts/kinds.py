"""Layout `kinds`: the processes of a node depend on its type, and run on a core or drive an
accelerator.

`kinds:fat=4core+1accelerator,thin=2core` fills the nodes in order until all ranks are placed. A
node of type fat gets 4 processes on cores and 1 that drives an accelerator; a node of type thin
gets 2 on cores.

The full spec has numbers of nodes instead of types: `kinds:4core+1accelerator@4,2core@4` for the
first 4 nodes and the next 4. `0@4` leaves 4 nodes empty. Besides the placement, kinds only affect
how kernels partition their matrix.
"""

import re

import numpy as np

from commodel.errors import UserError, suggest_name
from commodel.patterns.arguments import Argument, Kind, parse_whole_number
from commodel.patterns.layouts import ACCELERATOR, CORE, Layout, PlatformDefaults

FORM = "TYPE=4core+1accelerator,… or kinds:4core+1accelerator@NODES,…"
KINDS = (CORE, ACCELERATOR)
PROCESSES = re.compile(r"([1-9][0-9]{0,3})([a-z]+)")


def _complete_spec(arguments: str, defaults: PlatformDefaults) -> str:
    """Return the full spec, with the number of nodes of each type. Types that the spec omits get no
    processes."""
    if "=" not in arguments:
        return arguments
    types = dict(defaults.types)
    if not types:
        raise UserError(f"found 'kinds:{arguments}', wanted a platform with node types")
    processes = {}
    for part in arguments.split(","):
        name, equals, text = (word.strip() for word in part.partition("="))
        if not equals or name in processes:
            raise UserError(
                f"found '{part}' in 'kinds:{arguments}', wanted each type of node once, as TYPE=…"
            )
        if name not in types:
            raise UserError(
                f"no nodes of type '{name}' on this platform; {suggest_name(name, types)}"
            )
        processes[name] = text
    return ",".join(f"{processes.get(name, '0')}@{count}" for name, count in defaults.types)


def _read_node_groups(text: str) -> list[tuple[int, list[str]]]:
    """Return groups of nodes: the number of nodes, and the kinds of processes on each."""
    groups = []
    for part in text.split(","):
        processes, _, nodes = (word.strip() for word in part.partition("@"))
        groups.append((parse_whole_number(nodes), _read_processes(processes)))
    return groups


def _read_processes(text: str) -> list[str]:
    """Return the kind of each process of a node."""
    kinds: list[str] = []
    for word in text.split("+") if text != "0" else ():
        match = PROCESSES.fullmatch(word.strip())
        if not match:
            raise UserError(f"found '{word}'")
        if match[2] not in KINDS:
            raise UserError(f"found '{word}'; {suggest_name(match[2], KINDS)}")
        kinds += [match[2]] * int(match[1])
    return kinds


def _place_processes(
    ranks: int, groups: list[tuple[int, list[str]]]
) -> tuple[np.ndarray, np.ndarray]:
    """Return node and kind of every rank."""
    node = [np.empty(0, dtype=int)]
    kind = [np.empty(0, dtype=str)]
    first = 0
    capacity = 0
    for nodes, kinds in groups:
        used = min(nodes, -(-(ranks - capacity) // len(kinds))) if kinds and ranks > capacity else 0
        node.append(np.repeat(np.arange(first, first + used), len(kinds)))
        kind.append(np.tile(np.array(kinds, dtype=str), used))
        first = first + nodes
        capacity = capacity + nodes * len(kinds)
    if ranks > capacity:
        raise UserError(f"found {ranks} ranks, but 'kinds' has room for {capacity}")
    return np.concatenate(node)[:ranks], np.concatenate(kind)[:ranks]


LAYOUT = Layout(
    "kinds",
    "processes per node for each node type, on cores or driving accelerators",
    (Argument(FORM, Kind.SHAPE, _read_node_groups),),
    place=lambda ranks, groups: _place_processes(ranks, groups)[0],
    complete=_complete_spec,
    kinds=lambda ranks, groups: _place_processes(ranks, groups)[1],
)
