"""Processes of different kinds on nodes of different types: kinds:fat=4core+1accelerator,thin=2core puts 4 processes
on cores and 1 that drives an accelerator on each node of type fat, 2 on each thin one, until all ranks are placed.

The full spec says it by number of nodes, in their order: kinds:4core+1accelerator@4,2core@4; `0@4` leaves 4 empty.
Kinds change where ranks sit, how many share a node, and what is shown. No collective depends on them: only kernels
that give each process its share of the work will.
"""

import re

import numpy as np

from commodel.errors import UserError, suggest
from commodel.patterns.arguments import whole_number
from commodel.patterns.layouts import ACCELERATOR, CORE, Defaults, Layout

FORM = "kinds:TYPE=4core+1accelerator,… or kinds:4core+1accelerator@NODES,…"
KINDS = (CORE, ACCELERATOR)
PROCESSES = re.compile(r"([1-9][0-9]{0,3})([a-z]+)")


def full(arguments: str, defaults: Defaults) -> str:
    """By number of nodes; a type that is not named holds nothing."""
    if "=" not in arguments:
        return arguments
    types = dict(defaults.types)
    if not types:
        raise UserError(f"found 'kinds:{arguments}', wanted a platform that says which types of node it has")
    held = {}
    for part in arguments.split(","):
        name, equals, holds = (word.strip() for word in part.partition("="))
        if not equals or name in held:
            raise UserError(f"found '{part}' in 'kinds:{arguments}', wanted each type of node once, as TYPE=…")
        if name not in types:
            raise UserError(f"no nodes of type '{name}' on this platform; {suggest(name, types)}")
        held[name] = holds
    return ",".join(f"{held.get(name, '0')}@{count}" for name, count in defaults.types)


def nodes_and_kinds(arguments: str, ranks: int) -> tuple[np.ndarray, np.ndarray]:
    node, kind, first = [np.empty(0, dtype=int)], [np.empty(0, dtype=str)], 0
    room = 0
    for part in arguments.split(","):
        holds, _, written = (word.strip() for word in part.partition("@"))
        nodes, kinds = whole_number(written, FORM), _processes(holds, arguments)
        used = min(nodes, -(-(ranks - room) // len(kinds))) if kinds and ranks > room else 0
        node.append(np.repeat(np.arange(first, first + used), len(kinds)))
        kind.append(np.tile(np.array(kinds, dtype=str), used))
        first += nodes
        room += nodes * len(kinds)
    if ranks > room:
        raise UserError(f"found {ranks} ranks, but 'kinds:{arguments}' has room for {room}")
    return np.concatenate(node)[:ranks], np.concatenate(kind)[:ranks]


def _processes(holds: str, arguments: str) -> list[str]:
    """The kind of each process of a node."""
    kinds: list[str] = []
    for word in holds.split("+") if holds != "0" else ():
        match = PROCESSES.fullmatch(word.strip())
        if not match:
            raise UserError(f"found '{word}' in 'kinds:{arguments}', wanted {FORM}")
        if match[2] not in KINDS:
            raise UserError(f"found '{word}' in 'kinds:{arguments}'; {suggest(match[2], KINDS)}")
        kinds += [match[2]] * int(match[1])
    return kinds


LAYOUT = Layout(
    name="kinds",
    form=FORM,
    title="each type of node holds its own processes, on cores or driving accelerators",
    place=lambda arguments, ranks: nodes_and_kinds(arguments, ranks)[0],
    full=full,
    kinds=lambda arguments, ranks: nodes_and_kinds(arguments, ranks)[1],
)
