"""Messages over TCP through the ports of one switch, packet by packet (`simulate`): losses, fast
retransmissions and timeouts as Linux has them. `native/replay/tcp.c` states the rules.
"""

import ctypes
from ctypes import Structure, c_double, c_uint64
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from commodel.models import Array
from commodel.models.evaluation.native_library import (
    check_finished,
    load_library,
    make_int64_fields,
    make_pointer_fields,
)
from commodel.patterns.schedule import Schedule

WARMUP_REPEATS = 3  # discarded repeats, in which the congestion windows of all connections settle


@dataclass(frozen=True)
class Port:
    """Parameters of a packet's path through the switch, in seconds and packets."""

    gap_out: float  # time of a full packet at its sender's port
    gap_in: float  # time of a full packet at the switch's port to its receiver
    latency: float  # without these gaps
    return_latency: float  # of an acknowledgement
    buffer: float  # packets that the port to a receiver holds
    timeout: float  # minimum retransmission timeout


@dataclass(frozen=True, eq=False)
class Repeats:
    """Repeats of a pattern."""

    finish: Array  # (repeats, ranks): seconds after the common start
    timeouts: np.ndarray  # of each repeat
    drops: np.ndarray  # packets lost by each


class _Native(Structure):
    _fields_ = [
        *make_int64_fields("ranks", "messages", "repeats", "warmup"),
        ("seed", c_uint64),
        *(
            (name, c_double)
            for name in (
                "gap_out",
                "gap_in",
                "packet_latency",
                "ack_latency",
                "buffer",
                "timeout",
                "skew",
                "jitter",
            )
        ),
        *make_pointer_fields(
            "src",
            "dst",
            "step",
            "wait",
            "packets",
            "eager",
            "last_out",
            "last_in",
            "finish",
            "timeouts",
            "drops",
        ),
    ]


def simulate(
    schedule: Schedule,
    packets: np.ndarray,
    last: tuple[Array, Array],
    port: Port,
    repeats: int,
    seed: int,
    eager: np.ndarray | None = None,
) -> Repeats:
    """Return `repeats` simulated repeats of a schedule. For each message, `packets` is its number
    of packets, `eager` the number that its sender sends before the receiver grants the rest (None:
    all), and `last` the gaps of its last packet at both ports."""
    packets = np.maximum(np.broadcast_to(packets, len(schedule.src)), 1)
    eager = packets if eager is None else np.clip(eager, 1, packets)
    columns = (schedule.src, schedule.dst, schedule.step, schedule.dst_wait, packets, eager)
    contents = [np.ascontiguousarray(column, dtype=np.int64).tobytes() for column in columns]
    contents += [
        np.ascontiguousarray(np.broadcast_to(gap, len(packets)), dtype=float).tobytes()
        for gap in last
    ]
    return _simulate(schedule.ranks, tuple(contents), port, repeats, seed)


@lru_cache(maxsize=256)
def _simulate(
    ranks: int, columns: tuple[bytes, ...], port: Port, repeats: int, seed: int
) -> Repeats:
    finish = np.zeros((repeats, ranks))
    timeouts, drops = np.zeros((2, repeats), dtype=np.int64)
    numbers = (
        port.gap_out,
        port.gap_in,
        port.latency,
        port.return_latency,
        port.buffer,
        port.timeout,
    )
    rounds = max(ranks - 1, 1).bit_length()  # of the barrier before a repeat
    # How far apart ranks start, and packets are late.
    noise = rounds * (port.latency + port.gap_in), port.gap_out / 10
    pointers = [ctypes.cast(ctypes.c_char_p(column), ctypes.c_void_p) for column in columns]
    pointers += [ctypes.c_void_p(array.ctypes.data) for array in (finish, timeouts, drops)]
    native = _Native(
        ranks, len(columns[0]) // 8, repeats, WARMUP_REPEATS, seed, *numbers, *noise, *pointers
    )
    check_finished(
        load_library().commodel_tcp(ctypes.byref(native)),
        finish,
        "each waits for a message of another",
    )
    return Repeats(finish, timeouts, drops)
