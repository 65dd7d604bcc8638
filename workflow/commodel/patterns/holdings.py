"""Who has which data of an operation: extents of addresses, by rank, ranks and bytes.

Addresses count the bytes of all data that an operation is about. Where it reduces, every rank has its own values at
each address, and what is wanted is their combination.
"""

from collections.abc import Callable

from commodel.patterns.segments import share

Extents = list[tuple[int, int]]  # first address, length
Holding = Callable[..., Extents]  # of (rank, ranks, bytes) and the operation's parameters by name


def nothing(rank: int, ranks: int, bytes: int) -> Extents:
    return []


def vector(rank: int, ranks: int, bytes: int) -> Extents:
    return [(0, bytes)]


def block(rank: int, ranks: int, bytes: int) -> Extents:
    return [(rank * bytes, bytes)]


def blocks(rank: int, ranks: int, bytes: int) -> Extents:
    return [(0, ranks * bytes)]


def own_share(rank: int, ranks: int, bytes: int) -> Extents:
    sizes = share(bytes, ranks)
    return [(int(sizes[:rank].sum()), int(sizes[rank]))]


def row(rank: int, ranks: int, bytes: int) -> Extents:
    return [(rank * ranks * bytes, ranks * bytes)]


def column(rank: int, ranks: int, bytes: int) -> Extents:
    return [((source * ranks + rank) * bytes, bytes) for source in range(ranks)]


def at_root(holding: Holding) -> Holding:
    return lambda rank, ranks, size: holding(rank, ranks, size) if rank == 0 else []
