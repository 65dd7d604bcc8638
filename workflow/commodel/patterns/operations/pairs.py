"""Pairs of ranks that exchange messages, as programs measure them for bandwidth and message rate.

Each rank of the first half has messages for the rank of the same number in the second half; if
`directions` is 2, that rank also has some for it. With an odd number of ranks, the last one has no
partner.
"""

from commodel.errors import UserError
from commodel.patterns.arguments import parse_whole_number
from commodel.patterns.operations import Extents, Operation, OperationParameter

WINDOW = 64  # messages in flight of most programs
MAX_WINDOW = 4096
ONE_DIRECTION, BOTH_DIRECTIONS = 1, 2


def _read_window(text: str) -> int:
    window = parse_whole_number(text)
    if window > MAX_WINDOW:
        raise UserError(f"found '{text}', wanted at most {MAX_WINDOW}")
    return window


def _read_directions(text: str) -> int:
    if text not in ("1", "2"):
        raise UserError(f"found '{text}', wanted 1 or 2")
    return int(text)


def _list_own_messages(
    rank: int, ranks: int, bytes: int, messages: int, directions: int
) -> Extents:
    pairs = ranks // 2
    sends = rank < pairs or (directions == BOTH_DIRECTIONS and rank < 2 * pairs)
    return [(rank * messages * bytes, messages * bytes)] if sends else []


def _list_received_messages(
    rank: int, ranks: int, bytes: int, messages: int, directions: int
) -> Extents:
    pairs = ranks // 2
    receives = pairs <= rank < 2 * pairs or (directions == BOTH_DIRECTIONS and rank < pairs)
    partner = rank - pairs if rank >= pairs else rank + pairs
    return _list_own_messages(partner, ranks, bytes, messages, directions) if receives else []


OPERATION = Operation(
    name="pairs",
    bytes="one message of a rank to its partner",
    initial_data=_list_own_messages,
    final_data=_list_received_messages,
    parameters=(
        OperationParameter(
            name="messages",
            form=str(WINDOW),
            title=f"messages of a rank for its partner; default {WINDOW}",
            read=_read_window,
            write=str,
            default=WINDOW,
        ),
        OperationParameter(
            name="directions",
            form="1|2",
            title="1: only ranks of the first half send; 2: their partners do, too; default 1",
            read=_read_directions,
            write=str,
            default=ONE_DIRECTION,
        ),
    ),
)
