"""What is in several pieces in a rank's data is one message only after a copy: the schedule says so, and the player,
which does what the schedule says, takes the time that it takes."""

import numpy as np
import pytest

from commodel.patterns.build import schedule
from commodel.patterns.schedule import KINDS
from tests.patterns.catalogue import ALGORITHMS, point

BRUCK = {("alltoall", "bruck"), ("allgather", "bruck")}


def copied(pattern):
    """Bytes that each rank copies."""
    rows = pattern.work.kind == KINDS.index("copy")
    return np.bincount(pattern.work.rank[rows], pattern.work.bytes[rows], minlength=pattern.ranks)


def in_pieces(pattern):
    """Bytes that each rank sends in messages whose data do not lie side by side."""
    sent = np.zeros(pattern.ranks)
    runs = pattern.holds()
    order = np.lexsort((runs.first, runs.row))
    row, first, end = (column[order] for column in (runs.row, runs.first, runs.first + runs.length))
    apart = (row[1:] == row[:-1]) & (first[1:] != end[:-1])
    for message in np.unique(row[1:][apart]):
        sent[pattern.src[message]] += pattern.bytes[message]
    return sent


@pytest.mark.parametrize(("operation", "choice"), ALGORITHMS)
@pytest.mark.parametrize("ranks", [8, 13])
def test_who_sends_what_lies_in_pieces_copies_as_much(operation, choice, ranks):
    pattern = schedule(point(operation, choice, ranks=ranks, bytes=0 if operation == "barrier" else 24 * ranks))
    pieces = in_pieces(pattern)
    assert np.all(copied(pattern) >= pieces)
    assert pieces.any() or (operation, choice) not in BRUCK
