"""The library liboverlay.so through ctypes: its structures, the types of its functions, and its
errors as exceptions."""

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
from typing import Any

from commodel.errors import UserError
from commodel.platforms.tools import find_build_root

OK, FAILED, TIMEOUT, CLOSED, LOST = 0, -1, -2, -3, -4
# environment variable: another folder of the library and of overlay-node
FOLDER_VARIABLE = "COMMODEL_OVERLAY"
MAX_VALUES = 64


class OverlayError(UserError):
    """An error that the library reports."""

    def __init__(self, message: str, code: int = FAILED):
        super().__init__(message)
        self.code = code


class OverlayTimeoutError(OverlayError):
    """The time limit passed before a packet arrived."""


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
        (name, c_uint64)
        for name in ("packets_up", "packets_down", "bytes_up", "bytes_down", "waves", "queued")
    ]
    _fields_ += [(name, c_double) for name in ("filter_seconds", "cpu_seconds", "round_trip")]


class Event(Structure):
    _fields_ = [
        (name, c_int) for name in ("kind", "first", "count", "node", "parent", "stream", "code")
    ]
    _fields_ += [("why", c_char * 256)]


class Node(Structure):
    _fields_ = [(name, c_int) for name in ("parent", "depth", "children", "backend")] + [
        ("name", c_char_p)
    ]


EventCallback = CFUNCTYPE(None, c_void_p, POINTER(Event))


class _Content(Union):
    _fields_ = [
        ("d", c_int64),
        ("ud", c_uint64),
        ("lf", c_double),
        ("s", c_char_p),
        ("array", c_void_p),
    ]


class Value(Structure):
    _anonymous_ = ("content",)
    _fields_ = [("content", _Content), ("count", c_uint32)]


OPAQUE_POINTER = c_void_p  # to a structure whose fields are private to the library
FUNCTIONS = {  # by name without `overlay_`: the type of the result, then those of the arguments
    "error": (c_char_p,),
    "start": (OPAQUE_POINTER, POINTER(Options)),
    "await": (c_int, OPAQUE_POINTER, c_double),
    "backends": (c_int, OPAQUE_POINTER),
    "backend_name": (c_char_p, OPAQUE_POINTER, c_int),
    "lost": (c_int, OPAQUE_POINTER, POINTER(c_int), c_int),
    "phases": (Phases, OPAQUE_POINTER),
    "metrics": (c_int, OPAQUE_POINTER, c_double, POINTER(POINTER(Metrics))),
    "event": (c_int, OPAQUE_POINTER, POINTER(Event)),
    "on_event": (None, OPAQUE_POINTER, EventCallback, OPAQUE_POINTER),
    "nodes": (c_int, OPAQUE_POINTER),
    "node": (c_int, OPAQUE_POINTER, c_int, POINTER(Node)),
    "skew": (c_int, OPAQUE_POINTER, c_int, c_int, POINTER(c_double), POINTER(c_double)),
    "attach": (OPAQUE_POINTER, c_char_p, c_int),
    "backend": (c_int, OPAQUE_POINTER),
    "share": (c_int, OPAQUE_POINTER),
    "flush": (c_int, OPAQUE_POINTER),
    "fd": (c_int, OPAQUE_POINTER),
    "close": (None, OPAQUE_POINTER),
    "broadcast": (OPAQUE_POINTER, OPAQUE_POINTER),
    "subset": (OPAQUE_POINTER, OPAQUE_POINTER, POINTER(c_int), c_int),
    "free_comm": (None, OPAQUE_POINTER),
    "open": (OPAQUE_POINTER, OPAQUE_POINTER, POINTER(StreamOptions)),
    "stream_id": (c_uint32, OPAQUE_POINTER),
    "ended": (c_int, OPAQUE_POINTER),
    "send_packet": (c_int, OPAQUE_POINTER, OPAQUE_POINTER),
    "writable": (c_int, OPAQUE_POINTER),
    "recv": (c_int, OPAQUE_POINTER, c_double, POINTER(OPAQUE_POINTER)),
    "recv_any": (c_int, OPAQUE_POINTER, c_double, POINTER(OPAQUE_POINTER), POINTER(OPAQUE_POINTER)),
    "set_argument": (c_int, OPAQUE_POINTER, c_char_p),
    "missing": (c_int, OPAQUE_POINTER, POINTER(c_int), c_int),
    "close_stream": (None, OPAQUE_POINTER),
    "pack_values": (OPAQUE_POINTER, c_int, c_char_p, POINTER(Value)),
    "values": (c_int, OPAQUE_POINTER, POINTER(Value), c_int),
    "format": (c_char_p, OPAQUE_POINTER),
    "tag": (c_int, OPAQUE_POINTER),
    "source": (c_int, OPAQUE_POINTER),
    "leaves": (c_int, OPAQUE_POINTER),
    "release": (None, OPAQUE_POINTER),
}


@cache
def _load_library() -> ctypes.CDLL:
    folder = os.environ.get(FOLDER_VARIABLE) or find_build_root() / "build" / "overlay"
    path = Path(folder) / "liboverlay.so"
    try:
        loaded = ctypes.CDLL(str(path), ctypes.RTLD_GLOBAL)  # for filters in shared objects
    except OSError:
        raise OverlayError(f"found no {path}; commodel build overlay builds it") from None
    for name, (result, *arguments) in FUNCTIONS.items():
        function = getattr(loaded, f"overlay_{name}")
        function.restype, function.argtypes = result, arguments
    return loaded


def call_library(name: str, *arguments: object) -> Any:
    return getattr(_load_library(), f"overlay_{name}")(*arguments)


def make_last_error(code: int = FAILED) -> OverlayError:
    """Return the exception for the last error of the library in this thread."""
    kind = OverlayTimeoutError if code == TIMEOUT else OverlayError
    return kind((call_library("error") or b"").decode(errors="replace"), code)


def call_checked(name: str, *arguments: object) -> None:
    """Call a function that returns a status; raise an error if it failed."""
    code = call_library(name, *arguments)
    if code != OK:
        raise make_last_error(code)


def call_for_pointer(name: str, *arguments: object) -> int:
    """Call a function that returns a pointer; raise an error if it is null."""
    pointer = call_library(name, *arguments)
    if not pointer:
        raise make_last_error()
    return pointer


def make_argument_array(
    command: list[str] | tuple[str, ...] | None,
) -> ctypes.Array[c_char_p] | None:
    """Return a command as an array of C strings that ends with NULL."""
    return (
        None
        if command is None
        else (c_char_p * (len(command) + 1))(*map(os.fsencode, command), None)
    )
