"""Collective operations: what `bytes` means in each, who has which data at the start, who must have which in the end.

Addresses count the bytes of all data that an operation is about. Where it reduces, every rank has its own values at
each address, and what is wanted is their combination.
"""

from collections.abc import Callable
from dataclasses import dataclass

from commodel.errors import UserError, suggest
from commodel.patterns.segments import share

Extents = list[tuple[int, int]]  # first address, length
Holding = Callable[[int, int, int], Extents]  # of (rank, ranks, bytes)


@dataclass(frozen=True)
class Operation:
    name: str
    bytes: str
    has: Holding
    wants: Holding
    reduces: bool = False


def _nothing(rank: int, ranks: int, bytes: int) -> Extents:
    return []


def _vector(rank: int, ranks: int, bytes: int) -> Extents:
    return [(0, bytes)]


def _block(rank: int, ranks: int, bytes: int) -> Extents:
    return [(rank * bytes, bytes)]


def _blocks(rank: int, ranks: int, bytes: int) -> Extents:
    return [(0, ranks * bytes)]


def _share(rank: int, ranks: int, bytes: int) -> Extents:
    sizes = share(bytes, ranks)
    return [(int(sizes[:rank].sum()), int(sizes[rank]))]


def _row(rank: int, ranks: int, bytes: int) -> Extents:
    return [(rank * ranks * bytes, ranks * bytes)]


def _column(rank: int, ranks: int, bytes: int) -> Extents:
    return [((source * ranks + rank) * bytes, bytes) for source in range(ranks)]


def _at_root(holding: Holding) -> Holding:
    return lambda rank, ranks, size: holding(rank, ranks, size) if rank == 0 else []


OPERATIONS = {
    operation.name: operation
    for operation in (
        Operation("bcast", "the message that the root sends to all", _at_root(_vector), _vector),
        Operation("scatter", "the block that the root sends to each rank", _at_root(_blocks), _block),
        Operation("gather", "the block that each rank sends to the root", _block, _at_root(_blocks)),
        Operation(
            "reduce", "the vector that every rank contributes, and the root's result", _vector, _at_root(_vector), True
        ),
        Operation("allreduce", "the vector that every rank contributes, and everyone's result", _vector, _vector, True),
        Operation(
            "reduce-scatter",
            "the vector that every rank contributes; each gets its share of the result",
            _vector,
            _share,
            True,
        ),
        Operation("allgather", "the block that each rank sends to all", _block, _blocks),
        Operation("alltoall", "the block that each rank sends to each other one", _row, _column),
        Operation("barrier", "nothing: always 0", _nothing, _nothing),
    )
}
ALIASES = {"broadcast": "bcast", "reduce_scatter": "reduce-scatter"}


def operation(name: str) -> str:
    """The operation's own name; `broadcast` is understood."""
    name = ALIASES.get(name, name)
    if name not in OPERATIONS:
        raise UserError(f"unknown operation '{name}'; {suggest(name, OPERATIONS)}")
    return name
