"""Tables with one row for each rank, in any order (`order_by_rank`)."""

from collections.abc import Iterable
from typing import TypeVar

from commodel.errors import UserError
from commodel.files.safe_paths import AnyPath
from commodel.patterns.arguments import parse_whole_number
from commodel.units import MAX_COUNT

Row = TypeVar("Row")


def read_rank(text: str) -> int:
    """Return the number of a rank."""
    rank = parse_whole_number(text, "the number of a rank, from 0", 0)
    if rank >= MAX_COUNT:
        raise UserError(f"found rank {rank}, wanted one below {MAX_COUNT}")
    return rank


def order_by_rank(path: AnyPath, rows: Iterable[tuple[int, int, Row]]) -> list[tuple[int, Row]]:
    """Return line and content of each rank's row. `rows` are (line, rank, content); ranks start at
    0, without gaps."""
    by_rank: dict[int, tuple[int, Row]] = {}
    for line, rank, row in rows:
        if rank in by_rank:
            raise UserError(
                f"found rank {rank} again, first on line {by_rank[rank][0]}", file=path, line=line
            )
        by_rank[rank] = line, row
    if not by_rank:
        raise UserError("found no ranks", file=path)
    if max(by_rank) >= len(by_rank):
        missing = next(rank for rank in range(len(by_rank)) if rank not in by_rank)
        line = by_rank[max(by_rank)][0]
        raise UserError(f"found rank {max(by_rank)}, but none {missing}", file=path, line=line)
    return [by_rank[rank] for rank in range(len(by_rank))]
