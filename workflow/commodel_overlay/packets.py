"""Packets: values with a format (`Packet`). A received packet is read in place: an array is a view
of the packet, which exists as long as any of its views."""

import ctypes
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from commodel_overlay.library import MAX_VALUES, OverlayError, Value, call_for_pointer, call_library

SCALARS = {
    "c": "i1",
    "uc": "u1",
    "hd": "i2",
    "uhd": "u2",
    "d": "i4",
    "ud": "u4",
    "ld": "i8",
    "uld": "u8",
}
SCALARS |= {"f": "f4", "lf": "f8"}
DTYPES = {name: np.dtype(kind) for name, kind in SCALARS.items()}
DIRECTIVE = re.compile(r"%(a?)(c|uc|hd|uhd|d|ud|ld|uld|f|lf|s)")


class _Bytes(ctypes.Array):
    """A part of a packet. It exists as long as any NumPy view of it, and the packet as long as the
    part."""

    _type_, _length_ = ctypes.c_ubyte, 0


class Packet:
    """A packet that was received, or is to be sent."""

    def __init__(self, pointer: int) -> None:
        """Take ownership of one reference to the C packet at `pointer`; it is released with this
        object."""
        self.pointer = pointer

    def __del__(self) -> None:
        call_library("release", self.pointer)

    @classmethod
    def of(cls, format: str, *values: object, tag: int = 0) -> "Packet":
        """Return a packet of values. `%d`, `%lf`, `%s` and other scalar directives take a number or
        a text; `%ad`, `%alf` and other array directives take an array or a sequence."""
        kinds = DIRECTIVE.findall(format)
        if len(kinds) != len(values):
            raise OverlayError(
                f"found {len(values)} values, wanted {len(kinds)}, as '{format}' has"
            )
        keep_alive: list[object] = []
        packed = (Value * max(len(kinds), 1))()
        for index, ((is_array, name), value) in enumerate(zip(kinds, values, strict=True)):
            _fill_value(packed[index], bool(is_array), name, value, keep_alive)
        return cls(call_for_pointer("pack_values", tag, format.encode(), packed))

    @property
    def format(self) -> str:
        return call_library("format", self.pointer).decode()

    @property
    def tag(self) -> int:
        return call_library("tag", self.pointer)

    @property
    def source(self) -> int:
        """The lowest back-end that contributed to the packet; -1 if it is from the front-end."""
        return call_library("source", self.pointer)

    @property
    def leaves(self) -> int:
        """The number of back-ends that contributed to the packet."""
        return call_library("leaves", self.pointer)

    @property
    def values(self) -> tuple[Any, ...]:
        """The values: numbers, texts and arrays. Arrays are read-only: other streams may send the
        same packet."""
        values = (Value * MAX_VALUES)()
        count = call_library("values", self.pointer, values, MAX_VALUES)
        if count < 0:
            raise OverlayError(f"cannot read a packet '{self.format}'")
        kinds = DIRECTIVE.findall(self.format)
        return tuple(
            self._value(bool(is_array), name, values[index])
            for index, (is_array, name) in enumerate(kinds[:count])
        )

    def _value(self, is_array: bool, name: str, value: Value) -> object:
        if name == "s" and is_array:
            texts = (ctypes.c_char_p * value.count).from_address(value.array) if value.count else ()
            return tuple(text.decode(errors="surrogateescape") for text in texts)
        if name == "s":
            return value.s.decode(errors="surrogateescape")
        if is_array:
            return self._view(DTYPES[name], value)
        return (
            value.lf
            if DTYPES[name].kind == "f"
            else value.ud
            if DTYPES[name].kind == "u"
            else value.d
        )

    def _view(self, dtype: np.dtype, value: Value) -> np.ndarray:
        if not value.count:
            return np.empty(0, dtype)
        size = value.count * dtype.itemsize
        array_type: Any = type("Part", (_Bytes,), {"_type_": ctypes.c_ubyte, "_length_": size})
        part = array_type.from_address(value.array)
        part.packet = self
        view = np.frombuffer(part, dtype)
        view.flags.writeable = False
        return view


def _fill_value(
    packed: Value, is_array: bool, name: str, value: Any, keep_alive: list[object]
) -> None:
    """Fill a C value; objects that must exist until the packet is built are appended to
    `keep_alive`."""
    if name == "s":
        texts = [_encode_text(text) for text in (value if is_array else [value])]
        keep_alive.append(texts)
        if is_array:
            text_array = (ctypes.c_char_p * len(texts))(*texts)
            keep_alive.append(text_array)
            packed.array, packed.count = ctypes.cast(text_array, ctypes.c_void_p), len(texts)
        else:
            packed.s = texts[0]
        return
    dtype = DTYPES[name]
    if is_array:
        array = _make_array(name, dtype, value)
        keep_alive.append(array)
        packed.array, packed.count = array.ctypes.data, array.size
    elif dtype.kind == "f":
        packed.lf = float(value)
    else:
        number = int(_make_array(name, dtype, [value])[0])
        if dtype.kind == "u":
            packed.ud = number
        else:
            packed.d = number


def _encode_text(text: object) -> bytes:
    content = text if isinstance(text, bytes) else str(text).encode(errors="surrogateescape")
    if b"\0" in content:
        raise OverlayError("found a text with a zero byte, which ends it")
    return content


def _make_array(name: str, dtype: np.dtype, value: object) -> np.ndarray:
    """Return a contiguous array of one dimension; it is only copied if necessary.

    No integer is truncated. A sequence of numbers is rounded to the precision of a floating-point
    directive.
    """
    array = (
        value if isinstance(value, np.ndarray) else _make_array_from_sequence(name, dtype, value)
    )
    if array.ndim != 1 or not np.can_cast(array.dtype, dtype, "safe"):
        raise OverlayError(
            f"found {array.ndim} dimensions of {array.dtype}, wanted one of {dtype}, as %a{name} has"
        )
    return np.ascontiguousarray(array, dtype)


def _make_array_from_sequence(name: str, dtype: np.dtype, value: object) -> np.ndarray:
    if isinstance(value, bytes | bytearray | memoryview):
        return np.frombuffer(value, "u1")
    if not isinstance(value, Sequence):
        raise OverlayError(
            f"found a {type(value).__name__}, wanted a sequence or an array, as %a{name} has"
        )
    unconverted = np.array(value)
    try:
        array = np.array(value, dtype)
    except (OverflowError, ValueError, TypeError) as error:
        raise OverlayError(f"%{name}: {error}") from None
    if dtype.kind != "f" and unconverted.size and not np.array_equal(unconverted, array):
        raise OverlayError(f"%{name}: found a number that {dtype} cannot represent")
    return array
