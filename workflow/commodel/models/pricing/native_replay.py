"""libprices.so as ctypes sees it: what `commodel build prices` makes of native/prices. Where it is not built, Python
does the same, and takes some ten times as long. Only a clone's or an installation's own is loaded, never what lies in
a project."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from ctypes import CFUNCTYPE, POINTER, Structure, c_double, c_int, c_int64, c_void_p
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from commodel.models import Array
from commodel.sources import ROOT

if TYPE_CHECKING:
    from commodel.models.pricing.simulator import Operations, Times
    from commodel.models.pricing.time_order import Program, Traffic


BUILT = ROOT / "build" / "prices" / "libprices.so"
FORM = 6  # of the structures; counted up with that of intime.c
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
        ("bundled", c_int64),
        ("bundles", _Runs),
        ("meets", _Runs),
    ]


class _Costs(Structure):
    _fields_ = [
        *((name, c_void_p) for name in ("send", "receive", "wire", "alone", "seconds", "work", "bundles")),
        ("back", c_double),
    ]


class _Operations(Structure):
    _fields_ = [
        *((name, c_int64) for name in ("ranks", "count", "matches")),
        *((name, c_void_p) for name in ("rank", "kind", "row", "peer", "match", "waits")),
        ("started", _Runs),
        ("done", _Runs),
    ]


class _Times(Structure):
    _fields_ = [
        *((name, c_int64) for name in ("L", "o", "g", "G", "O", "S")),
        ("body", c_void_p),
        ("work", c_void_p),
    ]


_Feed = CFUNCTYPE(c_int, c_int64, c_int64, POINTER(POINTER(_Program)), POINTER(POINTER(_Costs)))


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
    built.commodel_in_parts.argtypes = [_Feed, c_int64, c_int, c_void_p]
    built.commodel_by_events.argtypes = [POINTER(_Operations), POINTER(_Times), c_void_p]
    return built


def in_time(program: Program, costs: Traffic, uses: Array, work: Array) -> Array | None:
    """None: ranks wait for each other."""
    given, done = _Given(program, costs, uses, work), np.zeros(program.schedule.ranks)
    failed = library().commodel_in_time(ctypes.byref(given.program), ctypes.byref(given.costs), done.ctypes.data)
    return _ended(failed, done)


def in_parts(
    part: Callable[[int], tuple[Program, Traffic, Array, Array]], count: int, most: int, ranks: int
) -> Array | None:
    """The same of so many parts, each asked for when a rank comes to it, of at most so many messages."""
    kept: dict[int, _Given] = {}
    failures: list[Exception] = []

    def feed(number: int, oldest: int, program: object, costs: object) -> int:
        for gone in [known for known in kept if known < oldest]:
            del kept[gone]
        try:
            kept[number] = _Given(*part(number))
        except Exception as error:  # none may pass through C
            failures.append(error)
            return -1
        program[0], costs[0] = ctypes.pointer(kept[number].program), ctypes.pointer(kept[number].costs)
        return 0

    done = np.zeros(ranks)
    failed = library().commodel_in_parts(_Feed(feed), count, most.bit_length(), done.ctypes.data)
    if failures:
        raise failures[0]
    return _ended(failed, done)


def by_events(operations: Operations, times: Times, ranks: int) -> Array | None:
    """None: ranks wait for each other."""
    kept = [*(getattr(operations, name) for name in ("rank", "kind", "row", "peer", "match", "waits"))]
    kept += [*operations.started, *operations.done, times.body, times.work]
    kept = [np.ascontiguousarray(column, dtype=np.int64) for column in kept]
    at = [column.ctypes.data for column in kept]
    matches = int(operations.match.max(initial=0)) + 1
    program = _Operations(ranks, len(operations.rank), matches, *at[:6], _Runs(at[7], at[6]), _Runs(at[9], at[8]))
    whole = (times.L, times.o, times.g, times.G, times.O, times.S)
    done = np.zeros(ranks)
    durations = _Times(*whole, *at[10:])
    return _ended(library().commodel_by_events(ctypes.byref(program), ctypes.byref(durations), done.ctypes.data), done)


def _ended(failed: int, done: Array) -> Array | None:
    if failed < 0:
        raise MemoryError
    return None if failed == WAITING else done


class _Given:
    """A program and its costs as C takes them, and what they point to."""

    def __init__(self, program: Program, costs: Traffic, uses: Array, work: Array) -> None:
        self._kept, schedule, bundles = [], program.schedule, program.bundles
        runs = {name: getattr(program, name) for name in ("posted", "opened", "taken", "finished", "passed")}
        columns = {"wire": costs.wire, "alone": costs.alone, "seconds": uses, "work": work}
        columns |= {"send": costs.sending(schedule), "receive": costs.receiving(schedule)}
        if bundles is not None:
            runs |= {"bundles": bundles.lines, "meets": bundles.meets}
            columns["bundles"] = costs.uses[bundles.passing]
        self.program = _Program(
            ranks=schedule.ranks,
            messages=len(schedule.src),
            lines=program.lines,
            in_turn=program.in_turn,
            places=self._at(program.places),
            src=self._at(schedule.src),
            dst=self._at(schedule.dst),
            pair=self._at(program.pair) if program.in_turn else None,
            asks=self._at(program.asks, np.uint8),
            opposite=self._at(program.opposite),
            bundled=0 if bundles is None else len(bundles.opposite),
            **{name: _Runs(self._at(own.rows), self._at(own.first)) for name, own in runs.items()},
        )
        seconds = {name: self._at(column, np.float64) for name, column in columns.items()}
        self.costs = _Costs(back=costs.back, **seconds)

    def _at(self, column: np.ndarray, type: type = np.int64) -> int:
        self._kept.append(np.ascontiguousarray(column, dtype=type))
        return self._kept[-1].ctypes.data  # a typed pointer takes longer to make than a short schedule to price
