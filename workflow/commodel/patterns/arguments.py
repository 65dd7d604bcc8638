"""Arguments that stand behind the name of an algorithm, a topology or a layout: `chain:4KiB`, `kary:2^4`, `block:2`.

An entry of a registry is `Named` and declares its arguments, each with a type. How a spec is written, how it is read,
and which values others may try (see `Kind`) all follow from that.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto
from functools import partial
from typing import Any

from commodel.errors import UserError
from commodel.units import format_bytes, parse_bytes, parse_count

DIGITS = 8  # of a number at most: nothing here counts more than that
DEFAULT_SEGMENT = 8192  # bytes
UNCUT = 1 << 30  # segments as long as this are none


class Kind(Enum):
    """What the value of an argument means."""

    SEGMENT = auto()  # bytes of the segments that a message is cut into
    FIRST_PART = auto()  # bytes of a message that are sent first
    COUNT = auto()
    RADIX = auto()  # of a tree or a barrier: how many ranks a rank reaches in a round
    WINDOW = auto()  # messages in flight at once
    PER_NODE = auto()  # ranks on a node
    LEVEL = auto()  # a level of the platform's hierarchy
    SEED = auto()
    NUMBER = auto()
    TIMES = auto()
    PATH = auto()
    SHAPE = auto()  # several numbers, or what has a grammar of its own


@dataclass(frozen=True)
class Argument:
    """`parse` turns what a user writes into a value, which is `default` where an optional argument is left out."""

    name: str
    kind: Kind
    parse: Callable[[str], Any]
    optional: bool = False
    default: Any = None

    @property
    def is_size(self) -> bool:
        return self.kind in (Kind.SEGMENT, Kind.FIRST_PART)

    @property
    def form(self) -> str:
        """`[SEGMENT BYTES, else 8 KiB]`; without brackets where it must be given."""
        if not self.optional:
            return self.name
        usual = format_bytes(self.default) if self.is_size and self.default else self.default
        return f"[{self.name}, else {usual}]" if usual else f"[{self.name}]"

    def read(self, text: str) -> Any:
        return self.parse(text) if text or not self.optional else self.default


@dataclass(frozen=True)
class Named:
    """An entry of a registry. Its spec is the name, a colon, and the arguments with `separators` between them."""

    name: str
    title: str
    arguments: tuple[Argument, ...] = ()
    separators: str = ""

    @property
    def form(self) -> str:
        written = [word for pair in zip(self.arguments, (*self.separators, ""), strict=True) for word in pair]
        return f"{self.name}:{''.join(word if isinstance(word, str) else word.form for word in written)}"

    def read(self, text: str) -> list[Any]:
        """Return the values of the arguments."""
        rest, values = text, []
        try:
            for argument, separator in zip(self.arguments, (*self.separators, None), strict=True):
                own, found, rest = rest.partition(separator) if separator else (rest, True, "")
                if not found:
                    raise UserError(f"no '{separator}' is there")
                values.append(argument.read(own))
        except UserError as error:
            raise UserError(f"found '{self.name}:{text}', wanted {self.form}: {error.message}") from None
        return values


def whole_number(text: str, wanted: str = "", least: int = 1) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= DIGITS and int(text) >= least):
        raise UserError(f"found '{text}', wanted {wanted or f'a whole number from {least}'}")
    return int(text)


def whole_numbers(text: str, separator: str, wanted: str = "whole numbers from 1") -> list[int]:
    """Return numbers from 1 with a separator between them, e.g. 4x4."""
    try:
        return [whole_number(part) for part in text.split(separator)]
    except UserError:
        raise UserError(f"found '{text}', wanted {wanted}") from None


def count(name: str, kind: Kind = Kind.COUNT, *, least: int = 1, default: int | None = None) -> Argument:
    """Return an argument that is a whole number; optional if it has a default."""
    return Argument(name, kind, partial(whole_number, least=least), default is not None, default)


def read_segment(text: str) -> int:
    size = parse_bytes(text)
    if size < 1:
        raise UserError(f"found segments of '{text}', wanted at least 1 byte")
    return size


SEGMENT = Argument("SEGMENT BYTES", Kind.SEGMENT, read_segment, optional=True)
PIPELINED = Argument("SEGMENT BYTES", Kind.SEGMENT, read_segment, optional=True, default=DEFAULT_SEGMENT)
SEED = Argument("SEED", Kind.SEED, partial(parse_count, low=0, high=2**63 - 1))
