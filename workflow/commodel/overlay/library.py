"""The library liboverlay.so through ctypes: its structures, the types of its functions, and its errors as
exceptions."""

import ctypes
import os
from ctypes import (
    CFUNCTYPE,
    POINTER,
    Structure,
    Union,
    c_char,
    c_char_p,
    c_double,
    c_int,
    c_int64,
    c_uint32,
    c_uint64,
    c_void_p,
)
from functools import cache
from pathlib import Path

from commodel.errors import UserError

OK, FAILED, TIMEOUT, CLOSED, LOST = 0, -1, -2, -3, -4
BUILT = Path(__file__).resolve().parents[3] / "build" / "overlay"
FOLDER = "COMMODEL_OVERLAY"  # environment: where the library and overlay-node are instead
MOST_VALUES = 64


class OverlayError(UserError):
    """An error that the library reports."""

    def __init__(self, message: str, code: int = FAILED):
        super().__init__(message)
        self.code = code


class OverlayTimeoutError(OverlayError):
    """A time limit that passed before anything arrived."""


class Options(Structure):
    _fields_ = [
        ("topology", c_char_p),
        ("topology_text", c_char_p),
        ("backend", POINTER(c_char_p)),
        ("launch", POINTER(c_char_p)),
        ("node_program", c_char_p),
        ("bind", c_char_p),
        ("connection_file", c_char_p),
        ("start_seconds", c_double),
        ("silence", c_double),
        ("join", c_int),
        ("one_step", c_int),
        ("authenticate", c_int),
        ("window", c_uint32),
    ]


class StreamOptions(Structure):
    _fields_ = [
        ("filter", c_char_p),
        ("sync", c_int),
        ("seconds", c_double),
        ("on_loss", c_int),
        ("root", c_char_p),
        ("leaf", c_char_p),
        ("down", c_char_p),
        ("sync_filter", c_char_p),
    ]


class Phases(Structure):
    _fields_ = [("launch", c_double), ("tree", c_double), ("backends", c_double)]


class Metrics(Structure):
    _fields_ = [("node", c_int), ("stream", c_int)]
    _fields_ += [
        (name, c_uint64) for name in ("packets_up", "packets_down", "bytes_up", "bytes_down", "waves", "queued")
    ]
    _fields_ += [(name, c_double) for name in ("filter_seconds", "cpu_seconds", "round_trip")]


class Event(Structure):
    _fields_ = [(name, c_int) for name in ("kind", "first", "count", "node", "parent", "stream", "code")]
    _fields_ += [("why", c_char * 256)]


class Node(Structure):
    _fields_ = [(name, c_int) for name in ("parent", "depth", "children", "backend")] + [("name", c_char_p)]


OnEvent = CFUNCTYPE(None, c_void_p, POINTER(Event))


class _Content(Union):
    _fields_ = [("d", c_int64), ("ud", c_uint64), ("lf", c_double), ("s", c_char_p), ("array", c_void_p)]


class Value(Structure):
    _anonymous_ = ("content",)
    _fields_ = [("content", _Content), ("count", c_uint32)]


P = c_void_p  # of opaque structures
FUNCTIONS = {  # types of results and arguments
    "error": (c_char_p,),
    "start": (P, POINTER(Options)),
    "await": (c_int, P, c_double),
    "backends": (c_int, P),
    "backend_name": (c_char_p, P, c_int),
    "lost": (c_int, P, POINTER(c_int), c_int),
    "phases": (Phases, P),
    "metrics": (c_int, P, c_double, POINTER(POINTER(Metrics))),
    "event": (c_int, P, POINTER(Event)),
    "on_event": (None, P, OnEvent, P),
    "nodes": (c_int, P),
    "node": (c_int, P, c_int, POINTER(Node)),
    "skew": (c_int, P, c_int, c_int, POINTER(c_double), POINTER(c_double)),
    "attach": (P, c_char_p, c_int),
    "backend": (c_int, P),
    "share": (c_int, P),
    "flush": (c_int, P),
    "fd": (c_int, P),
    "close": (None, P),
    "broadcast": (P, P),
    "subset": (P, P, POINTER(c_int), c_int),
    "free_comm": (None, P),
    "open": (P, P, POINTER(StreamOptions)),
    "stream_id": (c_uint32, P),
    "ended": (c_int, P),
    "send_packet": (c_int, P, P),
    "writable": (c_int, P),
    "recv": (c_int, P, c_double, POINTER(P)),
    "recv_any": (c_int, P, c_double, POINTER(P), POINTER(P)),
    "set_argument": (c_int, P, c_char_p),
    "missing": (c_int, P, POINTER(c_int), c_int),
    "close_stream": (None, P),
    "pack_values": (P, c_int, c_char_p, POINTER(Value)),
    "values": (c_int, P, POINTER(Value), c_int),
    "format": (c_char_p, P),
    "tag": (c_int, P),
    "source": (c_int, P),
    "leaves": (c_int, P),
    "release": (None, P),
}


@cache
def _library() -> ctypes.CDLL:
    path = Path(os.environ.get(FOLDER) or BUILT) / "liboverlay.so"
    try:
        loaded = ctypes.CDLL(str(path), ctypes.RTLD_GLOBAL)  # for filters in shared objects
    except OSError:
        raise UserError(f"no {path}; commodel build overlay builds it") from None
    for name, (result, *arguments) in FUNCTIONS.items():
        function = getattr(loaded, f"overlay_{name}")
        function.restype, function.argtypes = result, arguments
    return loaded


def call(name: str, *arguments: object) -> object:
    return getattr(_library(), f"overlay_{name}")(*arguments)


def failure(code: int = FAILED) -> OverlayError:
    """Return the exception for the last error of the library in this thread."""
    kind = OverlayTimeoutError if code == TIMEOUT else OverlayError
    return kind((call("error") or b"").decode(errors="replace"), code)


def call_checked(name: str, *arguments: object) -> None:
    """Call a function that returns a status; raise an error if it failed."""
    if (code := call(name, *arguments)) != OK:
        raise failure(code)


def create(name: str, *arguments: object) -> int:
    """Call a function that returns a pointer; raise an error if it is null."""
    if not (pointer := call(name, *arguments)):
        raise failure()
    return pointer


def make_argument_array(command: list[str] | tuple[str, ...] | None) -> ctypes.Array | None:
    """Return a command as an array of C strings that ends with NULL."""
    return None if command is None else (c_char_p * (len(command) + 1))(*map(os.fsencode, command), None)
