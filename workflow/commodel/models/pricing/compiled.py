"""libprices.so as ctypes sees it: what `commodel build prices` makes of native/prices. Where it is not built, Python
does the same, and takes some ten times as long. Only a clone's or an installation's own is loaded, never what lies in
a project."""

from __future__ import annotations

import ctypes
from ctypes import POINTER, Structure, c_double, c_int64, c_void_p
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from commodel.models import Array
from commodel.sources import ROOT

if TYPE_CHECKING:
    from commodel.models.pricing.intime import Traffic
    from commodel.models.pricing.programs import Program

BUILT = ROOT / "build" / "prices" / "libprices.so"
FORM = 4  # of the structures; counted up with that of intime.c
WAITING = 1  # ranks wait for each other


class _Runs(Structure):
    _fields_ = [("rows", c_void_p), ("first", c_void_p)]


class _Program(Structure):
    _fields_ = [
        *((name, c_int64) for name in ("ranks", "messages", "lines", "in_turn")),
        ("places", c_void_p),
        *((name, _Runs) for name in ("posted", "opened", "taken", "finished")),
        *((name, c_void_p) for name in ("src", "dst", "pair", "asks")),
        ("passed", _Runs),
        ("opposite", c_void_p),
    ]


class _Costs(Structure):
    _fields_ = [
        *((name, c_void_p) for name in ("send", "receive", "wire", "alone", "seconds", "work")),
        ("back", c_double),
    ]


@cache
def library() -> ctypes.CDLL | None:
    """None: it is not built, or was of other sources or for another kind of machine."""
    try:
        built = ctypes.CDLL(str(BUILT)) if BUILT.is_file() else None
    except OSError:
        return None
    if built is None or ctypes.c_int.in_dll(built, "commodel_prices_form").value != FORM:
        return None
    built.commodel_in_time.argtypes = [POINTER(_Program), POINTER(_Costs), c_void_p]
    return built


def in_time(program: Program, costs: Traffic, uses: Array, work: Array) -> Array | None:
    """None: ranks wait for each other."""
    kept = []  # what pointers point to

    def pointer(column: np.ndarray, type: type = np.int64) -> int:
        kept.append(np.ascontiguousarray(column, dtype=type))
        return kept[-1].ctypes.data  # a typed pointer takes longer to make than a short schedule to price

    schedule = program.schedule
    runs = {
        name: _Runs(pointer(own.rows), pointer(own.first))
        for name in ("posted", "opened", "taken", "finished", "passed")
        for own in [getattr(program, name)]
    }
    steps = _Program(
        ranks=schedule.ranks,
        messages=len(schedule.src),
        lines=program.lines,
        in_turn=program.in_turn,
        places=pointer(program.places),
        src=pointer(schedule.src),
        dst=pointer(schedule.dst),
        pair=pointer(program.pair) if program.in_turn else None,
        asks=pointer(program.asks, np.uint8),
        opposite=pointer(program.opposite),
        **runs,
    )
    columns = {"wire": costs.wire, "alone": costs.alone, "seconds": uses, "work": work}
    columns |= {"send": costs.sending(schedule), "receive": costs.receiving(schedule)}
    seconds = _Costs(back=costs.back, **{name: pointer(column, np.float64) for name, column in columns.items()})
    done = np.zeros(schedule.ranks)
    failed = library().commodel_in_time(ctypes.byref(steps), ctypes.byref(seconds), pointer(done, np.float64))
    if failed < 0:
        raise MemoryError
    return None if failed == WAITING else kept[-1]
