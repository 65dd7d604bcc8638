"""LogGOPSim's discrete-event simulation of a schedule (`finish_times`), as LogGOPSim runs the file
of `commodel export goal` (Hoefler, Schneider, Lumsdaine 2010).

The simulator's conventions that differ from the replay of LogGP:

1. A message reaches its receiver o + L after its send starts. It then occupies the receiver's
   processor for o + (m−1)·max(O, G), as soon as processor and port are free, even before its
   receive is posted.
2. Simultaneous events happen in the order of their creation. Operations of a rank that become ready
   together start in the order sends, receives, calculations.
3. A send occupies its processor for o + (m−1)·O and its port for g + (m−1)·G, and starts when both
   are free.
4. Above S, a send is done when its message has matched its receive; the match itself takes no time.

Times are integers in a unit that is a power of ten, so that equal times are equal, as in the
simulator. `native/replay/playevents.c` simulates the events. It takes 4 µs per message.
"""

import ctypes
from ctypes import Structure, c_void_p
from dataclasses import dataclass
from decimal import Decimal
from math import floor, log10

import numpy as np

from commodel.models import Array
from commodel.models.evaluation.native_library import (
    NativeArrays,
    NativeRuns,
    check_finished,
    load_library,
    make_int64_fields,
    make_pointer_fields,
)
from commodel.models.evaluation.time_order import GroupedRows
from commodel.models.evaluation.values import Values
from commodel.patterns.dependencies import (
    CALC,
    RECEIVE,
    SEND,
    Dependency,
    group_work,
    make_dependencies,
)
from commodel.patterns.schedule import Schedule

NEVER = 2**62  # as a size in bytes: no message uses rendezvous; as a time: later than all events
MAX_DECIMALS = 18  # decimal places of a second


@dataclass(frozen=True, eq=False)
class Operations:
    """The operations of all ranks as columns, with the operations that depend on the start and on
    the end of each."""

    rank: np.ndarray
    kind: np.ndarray
    row: np.ndarray  # of messages, or of calculations (NO_WORK: a calculation without time)
    peer: np.ndarray  # the rank at the other end of a message
    match: np.ndarray  # equal for sends and receives that match
    waits: np.ndarray  # dependencies of each
    started: GroupedRows  # the operations that wait for the start of each
    done: GroupedRows  # those that wait for its end

    @classmethod
    def of(cls, schedule: Schedule, busy: np.ndarray) -> "Operations":
        kinds: list[int] = []
        rows: list[int] = []
        first: list[int] = [0]
        edges: list[tuple[int, int, bool]] = []
        for items in make_dependencies(schedule, busy):
            base = len(kinds)
            for item in items:
                if isinstance(item, Dependency):
                    edges.append((base + item.before, base + item.after, item.on_start))
                else:
                    kinds.append(item.kind)
                    rows.append(item.row)
            first.append(len(kinds))
        kind, row = np.array(kinds, dtype=np.int64), np.array(rows, dtype=np.int64)
        before, after, on_start = np.array(edges, dtype=np.int64).reshape(-1, 3).T
        rank = np.repeat(np.arange(schedule.ranks), np.diff(first))
        peer, match = np.zeros((2, len(kind)), dtype=np.int64)
        for of_kind, ranks in ((SEND, schedule.dst), (RECEIVE, schedule.src)):
            peer[kind == of_kind] = ranks[row[kind == of_kind]]
        message = kind != CALC
        match[message] = _number_matches(schedule)[row[message]]
        waits = np.bincount(after, minlength=len(kind))
        dependents = [
            GroupedRows.of(after[chosen], before[chosen], len(kind))
            for chosen in (on_start == 1, on_start == 0)
        ]
        return cls(rank, kind, row, peer, match, waits, *dependents)


def _number_matches(schedule: Schedule) -> np.ndarray:
    """Return a number for each pair of ranks and tag. As in the export, the tag is the step, or
    differs for each message."""
    tag = schedule.step if schedule.nonblocking is None else np.arange(len(schedule.src))
    keys = np.stack([schedule.src, schedule.dst, tag])
    return np.unique(keys, axis=1, return_inverse=True)[1].reshape(-1)


@dataclass(frozen=True)
class SimulatorTimes:
    """The simulator's parameters and the durations of calculations, in integer units."""

    L: int
    o: int
    g: int
    G: int
    O: int
    S: int  # bytes
    body: np.ndarray  # m − 1: bytes of each message without the first one
    work: np.ndarray

    @classmethod
    def of(
        cls, seconds: dict[str, float], S: float, body: np.ndarray, work: np.ndarray
    ) -> tuple["SimulatorTimes", int]:
        """Return the times, and the decimal places of the unit: as many as keep the sum of all
        durations in 62 bits."""
        fixed = 2 * seconds["o"] + seconds["L"] + 2 * seconds["g"]
        longest = (
            len(body) * fixed + body.sum() * (2 * seconds["O"] + 3 * seconds["G"]) + work.sum()
        )
        decimals = (
            MAX_DECIMALS if longest <= 0 else min(MAX_DECIMALS, floor(log10(NEVER / longest)))
        )
        # Decimal digits, since products of a binary fraction would make equal times differ.
        integers = {
            name: round(Decimal(repr(float(value))).scaleb(decimals))
            for name, value in seconds.items()
        }
        work = np.rint(work * 10.0**decimals).astype(np.int64)
        return cls(**integers, S=int(min(S, NEVER)), body=body, work=work), decimals


def finish_times(schedule: Schedule, values: Values) -> Array:
    """Return when each rank's processor becomes free for the last time (last axis: ranks), of each
    draw and size."""
    schedule = schedule.whole
    names = ("L", "o", "g", "G", "O", *(["S"] if "S" in values else []))
    work_seconds = schedule.work_seconds(values["gamma"])
    leading_shape = np.broadcast_shapes(
        values.draw_shape, schedule.bytes.shape[:-1], work_seconds.shape[:-1]
    )
    groups, count = group_work(schedule)
    body = np.broadcast_to(np.maximum(schedule.bytes, 1) - 1, (*leading_shape, len(schedule.src)))
    work_seconds = np.broadcast_to(work_seconds, (*leading_shape, len(groups)))
    numbers = {name: np.broadcast_to(values[name][..., 0], leading_shape) for name in names}
    finish, operations = np.empty((*leading_shape, schedule.ranks)), {}
    for index in np.ndindex(leading_shape):
        work = np.bincount(groups, work_seconds[index], count)
        seconds = {name: float(column[index]) for name, column in numbers.items()}
        times, decimals = SimulatorTimes.of(
            seconds, seconds.pop("S", NEVER), body[index].astype(np.int64), work
        )
        busy = times.work > 0
        key = busy.tobytes()
        if key not in operations:
            operations[key] = Operations.of(schedule, busy)
        finish[index] = simulate(operations[key], times, schedule.ranks) / 10.0**decimals
    return finish


class _NativeOperations(Structure):
    _fields_ = [
        *make_int64_fields("ranks", "count", "matches"),
        *make_pointer_fields("rank", "kind", "row", "peer", "match", "waits"),
        ("started", NativeRuns),
        ("done", NativeRuns),
    ]


class _NativeTimes(Structure):
    _fields_ = [
        *make_int64_fields("L", "o", "g", "G", "O", "S"),
        *make_pointer_fields("body", "work"),
    ]


def simulate(operations: Operations, times: SimulatorTimes, ranks: int) -> Array:
    """Return when each rank is done, in integer units."""
    arrays, matches = NativeArrays(), int(operations.match.max(initial=0)) + 1
    columns = (
        getattr(operations, name) for name in ("rank", "kind", "row", "peer", "match", "waits")
    )
    runs = (
        arrays.runs(grouped.rows, grouped.first)
        for grouped in (operations.started, operations.done)
    )
    program = _NativeOperations(
        ranks, len(operations.rank), matches, *map(arrays.at, columns), *runs
    )
    numbers = times.L, times.o, times.g, times.G, times.O, times.S
    durations = _NativeTimes(*numbers, arrays.at(times.body), arrays.at(times.work))
    finish = np.zeros(ranks)
    failed = load_library().commodel_by_events(
        ctypes.byref(program), ctypes.byref(durations), c_void_p(finish.ctypes.data)
    )
    return check_finished(failed, finish, "LogGOPSim would not terminate")
