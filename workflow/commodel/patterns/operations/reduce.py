"""Vectors of all ranks, combined at one. On an overlay network the leaves' packets, through a filter."""

from typing import Any

from commodel.errors import UserError
from commodel.patterns.operations import MPI, OVERLAY, Operation, Parameter, at_root, choice, vector
from commodel.units import parse_seconds

FILTERS = ("sum", "min", "max", "average", "none", "concat")
AS_THEY_CAME = ("none", "concat")  # what leaves such a filter is as long as all that came in: no reduction
MODES = ("waves", "synchronous", "timed")
LONGEST_PAUSE = 1.0  # seconds of a filter, or between two waves: answers are waited for a minute


def read_span(text: str) -> float:
    seconds = parse_seconds(text)
    if seconds > LONGEST_PAUSE:
        raise UserError(f"found '{text}', wanted at most {LONGEST_PAUSE:g} s")
    return seconds


def write_span(seconds: float) -> str:
    return f"{1e6 * seconds:.12g}us"


def _unsaid(named: dict[str, Any]) -> bool:
    return named["filter"] in AS_THEY_CAME or named["compute"] > 0


OPERATION = Operation(
    "reduce",
    "the vector that every rank contributes, and the root's result",
    vector,
    at_root(vector),
    True,
    "MPI_Reduce",
    parameters=(
        choice("filter", FILTERS, "of an overlay", overlay=True),
        Parameter(
            "compute",
            "10us",
            "of an overlay: time that a filter takes at each node, in place of the filter; left out, 0",
            read_span,
            write_span,
            0.0,
            overlay=True,
        ),
        choice(
            "mode",
            MODES,
            "of an overlay: the root asks, and half the round trip counts (waves); all leaves send at an agreed time; "
            "or each at times of its own, a period apart",
            overlay=True,
        ),
        Parameter(
            "period",
            "10ms",
            "of mode timed: from one wave to the next; left out, 10 ms",
            read_span,
            write_span,
            0.01,
            overlay=True,
        ),
    ),
    substrates=(MPI, OVERLAY),
    unsaid=_unsaid,
)
