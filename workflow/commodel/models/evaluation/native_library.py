"""The C library `native/replay` (`load_library`), and the ctypes definitions shared by `replay`,
`time_order`, `simulator` and `tcp`.
"""

import ctypes
from ctypes import Structure, c_int, c_int64, c_void_p
from functools import cache

import numpy as np

from commodel.errors import UserError
from commodel.models import Array
from commodel.sources import ROOT

# in the installation, not in the user's project
LIBRARY_FILE = ROOT / "build" / "replay" / "libreplay.so"
STRUCTURE_VERSION = 10  # version of the structures; increase it together with that of intime.c
DEADLOCK = 1  # return code: ranks wait for each other


def make_int64_fields(*names: str) -> list[tuple[str, type]]:
    """Return fields of a ctypes structure: 64-bit integers."""
    return [(name, c_int64) for name in names]


def make_pointer_fields(*names: str) -> list[tuple[str, type]]:
    """Return fields of a ctypes structure: pointers."""
    return [(name, c_void_p) for name in names]


class NativeRuns(Structure):
    _fields_ = make_pointer_fields("rows", "first")


class NativeArrays:
    """Arrays that C structures point to. The object keeps them alive."""

    def __init__(self) -> None:
        self._arrays: list[np.ndarray] = []

    def at(self, column: np.ndarray, type: type = np.int64) -> int:
        """Return the address of a column's numbers: a typed pointer takes longer than a short
        schedule."""
        self._arrays.append(np.ascontiguousarray(column, dtype=type))
        return find_address(self._arrays[-1])

    def runs(self, rows: np.ndarray, first: np.ndarray) -> NativeRuns:
        return NativeRuns(self.at(rows), self.at(first))


def find_address(numbers: np.ndarray) -> int:
    return numbers.__array_interface__["data"][0]  # faster than `ctypes.data`


@cache
def load_library() -> ctypes.CDLL:
    """Return the library that `commodel build replay` compiles.

    It raises an error if the library is missing, has structures of another version, or is for
    another machine.
    """
    try:
        loaded = ctypes.CDLL(str(LIBRARY_FILE))
        version = c_int.in_dll(loaded, "commodel_replay_form").value
    except (OSError, ValueError):
        version = 0
    if version != STRUCTURE_VERSION:
        raise UserError(
            "native/replay is not compiled here; call commodel build replay, which needs a C compiler (cc)"
        )
    return loaded


def check_finished(
    code: int, finish_times: Array, reason: str = "messages of this size use rendezvous"
) -> Array:
    """Return the result of a C function, or raise the error of its return code."""
    if code < 0:
        raise MemoryError
    if code == DEADLOCK:
        raise UserError(f"ranks wait for each other: {reason}")
    return finish_times
