"""SUMMA by algorithm 1 of the τ–Lop paper: an iteration sends its block column with non-blocking
messages and its block row with blocking ones (`build`).

A rank with a part of the column packs it, and posts a send to every rank whose rows it overlaps.
Then, in each column of ranks, the owner sends the row to the others in the order of their ranks,
one after the other. In the end, all ranks wait for the column's messages. With overlap, the row's
messages are non-blocking, too, and between posting and waiting a rank computes the product of the
previous iteration. A rank begins an iteration when it has finished the previous one.
"""

from dataclasses import dataclass

import numpy as np

from commodel.patterns.algorithms import Algorithm
from commodel.patterns.operations import Grid
from commodel.patterns.schedule import NonblockingSteps, Runs, Schedule, Work, check_rows
from commodel_kernels.rectangles import Rectangles
from commodel_kernels.summa import group_iterations, make_block_rectangles

# steps of an iteration: packing, posting the column, and the first step of the row
PACK, COLUMN, ROW = 0, 1, 2


@dataclass(frozen=True, eq=False)
class Panels:
    """The messages of one iteration, in blocks.

    Rows of `messages`: step, src_wait, dst_step, dst_wait, src, dst, number of blocks, and the
    index of the first one among those of the column and the row.
    """

    messages: np.ndarray
    packers: np.ndarray
    packed: np.ndarray
    steps: int

    @classmethod
    def of(cls, parts: Rectangles, k: int, overlapped: bool) -> "Panels":
        """Return the messages of iteration k. Its last step waits for all non-blocking messages.

        Receives of the row are posted in the first step of the row; with overlap, together with the
        column's sends.
        """
        src, dst, count, first = _list_column_messages(parts, k)
        owner, receiver, width, first_of_row, turn = _list_row_messages(parts, k)
        last = COLUMN + 1 if overlapped else ROW + int(turn.max(initial=-1)) + 1
        row = (
            (COLUMN, last, COLUMN, last)
            if overlapped
            else (ROW + turn, ROW + turn, ROW, ROW + turn)
        )
        messages = np.concatenate(
            [
                _stack_columns(COLUMN, last, PACK, last, src, dst, count, first),
                _stack_columns(*row, owner, receiver, width, first_of_row),
            ],
            axis=1,
        )
        packers = np.unique(src)
        return cls(messages, packers, parts.height[packers], last + 1)


def _stack_columns(*columns: np.ndarray | int) -> np.ndarray:
    return np.stack(np.broadcast_arrays(*columns)).astype(np.int64)


def _list_column_messages(parts: Rectangles, k: int) -> tuple[np.ndarray, ...]:
    """Return senders, receivers, blocks and the first block: from every owner of column k to all
    ranks whose rows it overlaps.

    Receivers are in the order of their ranks.
    """
    owns = (parts.x <= k) & (k < parts.right)
    owners = np.flatnonzero(owns)
    owners = owners[np.argsort(parts.y[owners])]
    receivers = np.flatnonzero(~owns & (parts.area > 0))
    top, bottom = parts.y[receivers], parts.bottom[receivers]
    low = np.searchsorted(parts.y[owners], top, "right") - 1
    counts = np.searchsorted(parts.y[owners], bottom, "left") - low
    dst = np.repeat(receivers, counts)
    src = owners[np.repeat(low - np.cumsum(counts) + counts, counts) + np.arange(len(dst))]
    first = np.maximum(parts.y[src], parts.y[dst])
    count = np.minimum(parts.bottom[src], parts.bottom[dst]) - first
    order = np.lexsort((dst, src))
    return src[order], dst[order], count[order], first[order]


def _list_row_messages(parts: Rectangles, k: int) -> tuple[np.ndarray, ...]:
    """Return senders, receivers, blocks, the index of the first block, and the turn of each message
    of a sender."""
    sent = []
    for column in parts.columns:
        owner = column[np.searchsorted(parts.y[column], k, "right") - 1]
        receivers = np.sort(column[column != owner])
        sent.append((np.full(len(receivers), owner), receivers, np.arange(len(receivers))))
    src, dst, turn = (np.concatenate(column) for column in zip(*sent, strict=True))
    return src, dst, parts.width[src], parts.side + parts.x[src], turn


def _compute_product(parts: Rectangles, step: int) -> Work:
    """Return the computation of every rank in a step, if the speeds of ranks are known."""
    return (
        Work.empty()
        if parts.speed is None
        else Work.compute(step, np.flatnonzero(parts.area), parts.seconds)
    )


def build(
    ranks: int, bytes: int, n: int, grid: Grid, partition: str, iteration: int, overlapped: bool
) -> Schedule:
    parts = make_block_rectangles(ranks, n, grid, partition, iteration)
    messages, work, step, iterations_before = [], [], 0, 0
    rows, overlapped_iterations = 0, 0
    for first, count in group_iterations(ranks, n, grid, partition, iteration, overlapped):
        panels = Panels.of(parts, first["iteration"], overlapped)
        rows += count * panels.messages.shape[1]
        check_rows(rows)
        turn = np.arange(count)[:, None]
        steps = (step + panels.steps * turn) + np.zeros(panels.messages.shape[1], dtype=np.int64)
        columns = np.tile(panels.messages, count)
        columns[:4] += steps.ravel()
        columns[7] += np.repeat(
            2 * parts.side * (iterations_before + turn.ravel()), panels.messages.shape[1]
        )
        messages.append(columns)
        packing = (step + panels.steps * turn + PACK).repeat(len(panels.packers), axis=1).ravel()
        work.append(
            Work.copy(
                packing, np.tile(panels.packers, count), np.tile(panels.packed, count) * bytes
            )
        )
        if overlapped and first["iteration"]:
            work += [
                _compute_product(parts, step + panels.steps * number + COLUMN)
                for number in range(count)
            ]
            overlapped_iterations += count
        step, iterations_before = step + count * panels.steps, iterations_before + count
    step, src_wait, dst_step, dst_wait, src, dst, count, first = np.concatenate(messages, axis=1)
    return Schedule.of(
        ranks,
        step,
        src,
        dst,
        count * bytes,
        work=Work.concatenate(work),
        nonblocking=NonblockingSteps(src_wait, dst_step, dst_wait),
        contents=lambda: Runs(np.arange(len(src)), first * bytes, count * bytes),
        overlapped_seconds=overlapped_iterations * parts.seconds if overlapped_iterations else None,
    )


ALGORITHM = Algorithm(
    "summa",
    "paper",
    "the block column with non-blocking messages, the block row with blocking ones",
    build,
)
