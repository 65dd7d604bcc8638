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
    """Return the line and content of each rank's row, ranks from 0 without gaps; `rows` have a line, a rank and a
    content."""
    of_rank: dict[int, tuple[int, Row]] = {}
    for line, rank, row in rows:
        if rank in of_rank:
            raise UserError(f"found rank {rank} again, first on line {of_rank[rank][0]}", file=path, line=line)
        of_rank[rank] = line, row
    if not of_rank:
        raise UserError("found no ranks", file=path)
    if max(of_rank) >= len(of_rank):
        missing = next(rank for rank in range(len(of_rank)) if rank not in of_rank)
        line = of_rank[max(of_rank)][0]
        raise UserError(f"found rank {max(of_rank)}, but none {missing}", file=path, line=line)
    return [of_rank[rank] for rank in range(len(of_rank))]
