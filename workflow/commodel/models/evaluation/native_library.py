"""The C library `native/replay`, and what its callers share: `replay`, `time_order` and `simulator`."""

import ctypes
from ctypes import Structure, c_int, c_int64, c_void_p
from functools import cache

from commodel.errors import UserError
from commodel.models import Array
from commodel.sources import ROOT

BUILT = ROOT / "build" / "replay" / "libreplay.so"  # never a project's
FORM = 7  # of the structures; counted up with that of intime.c
WAITING = 1  # ranks wait for each other


def int64_fields(*names: str) -> list[tuple[str, type]]:
    return [(name, c_int64) for name in names]


def pointer_fields(*names: str) -> list[tuple[str, type]]:
    return [(name, c_void_p) for name in names]


class NativeRuns(Structure):
    _fields_ = pointer_fields("rows", "first")


@cache
def library() -> ctypes.CDLL:
    """Load what `commodel build replay` makes of native/replay; refuse what is missing, was built from other sources or
    for another kind of machine."""
    try:
        built = ctypes.CDLL(str(BUILT))
        form = c_int.in_dll(built, "commodel_prices_form").value
    except (OSError, ValueError):
        form = 0
    if form != FORM:
        raise UserError("native/replay is not compiled here; call commodel build replay, which needs a C compiler (cc)")
    return built


def check_finished(failed: int, done: Array, why: str = "so long a message asks first") -> Array:
    """Return the result of a C function, or raise what its code says."""
    if failed < 0:
        raise MemoryError
    if failed == WAITING:
        raise UserError(f"ranks wait for each other: {why}")
    return done
