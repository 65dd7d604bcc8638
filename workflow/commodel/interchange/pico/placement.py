"""Where ranks sat, from the files in which PICO notes the host of every rank: `alloc_RANKS.csv`, of runs with a GPU
`alloc_RANKS_GPU.csv`, in older runs one `alloc.csv`, which is of the first test."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from commodel.errors import UserError
from commodel.units import MAX_COUNT, shown

NAME = re.compile(r"alloc(?:_([0-9]{1,8}))?(_GPU)?\.csv")
MOST_RUNS = 200  # of ranks on one node: a longer layout nobody would read


@dataclass(frozen=True)
class Placement:
    """`layout` is empty where it cannot be written in a line."""

    ranks: int
    nodes: int
    layout: str
    file: str = ""  # where it stands; empty: metadata say so

    @property
    def size(self) -> tuple[int, int]:
        return self.ranks, self.nodes

    def __str__(self) -> str:
        return f"{self.ranks} ranks on {self.nodes} nodes"


def uniform(nodes: int, per_node: int) -> Placement:
    return Placement(nodes * per_node, nodes, f"block:{per_node}")


def read_placement(lines: Iterable[str], file: str) -> Placement:
    """Columns MPI_Rank, allocation and perhaps more; in any order of the ranks."""
    hosts: dict[int, str] = {}
    for number, line in enumerate(lines, 1):
        cells = [cell.strip() for cell in line.split(",")]
        if number == 1 or not any(cells):
            if number == 1 and cells[:2] != ["MPI_Rank", "allocation"]:
                raise UserError(f"{file}: found {shown(line)}, wanted MPI_Rank,allocation")
            continue
        if len(cells) < 2 or not (cells[0].isascii() and cells[0].isdigit()) or not cells[1]:
            raise UserError(f"{file} line {number}: found {shown(line)}, wanted a rank and its host")
        if (rank := int(cells[0][:9])) >= MAX_COUNT or rank in hosts:
            raise UserError(f"{file} line {number}: found rank {rank}, wanted each from 0 on once")
        hosts[rank] = cells[1]
    if not hosts or max(hosts) != len(hosts) - 1:
        raise UserError(f"{file}: found {len(hosts)} ranks, wanted all from 0 on")
    numbers: dict[str, int] = {}
    nodes = [numbers.setdefault(hosts[rank], len(numbers)) for rank in range(len(hosts))]
    return Placement(len(nodes), len(numbers), _layout(nodes), file)


def _layout(nodes: list[int]) -> str:
    count, runs = max(nodes) + 1, [(node, len(list(ranks))) for node, ranks in groupby(nodes)]
    per_node = len(nodes) // count
    if runs == [(node, per_node) for node in range(count)]:
        return f"block:{per_node}"
    if nodes == [rank % count for rank in range(per_node * count)]:
        return f"cyclic:{per_node}"
    if len(runs) > MOST_RUNS:
        return ""
    return "nodes:" + ",".join(f"{node}x{length}" if length > 1 else f"{node}" for node, length in runs)


def placement_of(said: Placement, gpu: bool, tests: Sequence[Placement], allocs: Mapping[str, Placement]) -> Placement:
    """Of a test, whose metadata say this; `tests` is what those of all tests of the run say. An allocation tells what
    was, metadata what was wanted, so it is right where they differ, if there is no doubt that it is this test's."""
    sized = {name: placement for name, placement in allocs.items() if NAME.fullmatch(name)[1]}
    if not sized:
        return next(iter(allocs.values())) if allocs and said == tests[0] else said
    right = {name: placement for name, placement in sized.items() if placement.ranks == said.ranks}
    if not right and len(sized) == len(set(tests)) == 1:
        right = sized
    of_kind = [placement for name, placement in right.items() if bool(NAME.fullmatch(name)[2]) == gpu]
    return next(iter([*of_kind, *right.values()]), said)
