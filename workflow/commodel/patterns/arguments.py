"""Specs of algorithms, topologies and layouts: a name and arguments, as in `chain:4KiB`,
`kary:2^4`, `block:2` (`SpecType`, `Argument`).

An entry of a registry is a `SpecType`, which declares its arguments and their kinds. They determine
the syntax of a spec, its parser, and the values for an automatic search.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto
from functools import partial
from typing import Any

from commodel.errors import UserError
from commodel.units import format_bytes, parse_bytes, parse_count

MAX_DIGITS = 8  # of a number
DEFAULT_SEGMENT = 8192  # bytes
UNSEGMENTED = 1 << 30  # bytes: a segment of this size means no segments


class Kind(Enum):
    """The meaning of an argument's value."""

    SEGMENT = auto()  # bytes of the segments of a message
    FIRST_PART = auto()  # bytes of the first part of a message
    COUNT = auto()
    RADIX = auto()  # of a tree; of a barrier: signals of a rank in a round
    WINDOW = auto()  # maximum of messages in flight
    PER_NODE = auto()  # ranks on a node
    LEVEL = auto()  # a level of the platform's hierarchy
    SEED = auto()
    NUMBER = auto()
    TIMES = auto()
    PATH = auto()
    SHAPE = auto()  # several numbers, or a value with its own grammar


@dataclass(frozen=True)
class Argument:
    """An argument: `parse` converts the user's text; `default` is the value of an omitted optional
    argument."""

    name: str
    kind: Kind
    parse: Callable[[str], Any]
    optional: bool = False
    default: Any = None

    @property
    def is_size(self) -> bool:
        """Whether the value counts bytes."""
        return self.kind in (Kind.SEGMENT, Kind.FIRST_PART)

    @property
    def form(self) -> str:
        """The syntax, such as `[SEGMENT BYTES, else 8 KiB]`; without brackets if it is required."""
        if not self.optional:
            return self.name
        default = format_bytes(self.default) if self.is_size and self.default else self.default
        return f"[{self.name}, else {default}]" if default else f"[{self.name}]"

    def read(self, text: str) -> Any:
        return self.parse(text) if text or not self.optional else self.default


@dataclass(frozen=True)
class SpecType:
    """An entry of a registry. A spec is the name, a colon, and the arguments with `separators`
    between them."""

    name: str
    title: str
    arguments: tuple[Argument, ...] = ()
    separators: str = ""

    @property
    def form(self) -> str:
        """The syntax of a spec."""
        separators = (*self.separators, "")
        pairs = zip(self.arguments, separators, strict=True)
        forms = "".join(argument.form + separator for argument, separator in pairs)
        return f"{self.name}:{forms}"

    def read(self, text: str) -> list[Any]:
        """Return the values of the arguments."""
        remaining = text
        values = []
        try:
            for argument, separator in zip(self.arguments, (*self.separators, None), strict=True):
                argument_text, is_separated, remaining = (
                    remaining.partition(separator) if separator else (remaining, True, "")
                )
                if not is_separated:
                    raise UserError(f"found no '{separator}'")
                values.append(argument.read(argument_text))
        except UserError as error:
            raise UserError(
                f"found '{self.name}:{text}', wanted {self.form}: {error.message}"
            ) from None
        return values


def parse_whole_number(text: str, wanted: str = "", least: int = 1) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= MAX_DIGITS and int(text) >= least):
        raise UserError(f"found '{text}', wanted {wanted or f'a whole number from {least}'}")
    return int(text)


def parse_whole_numbers(
    text: str, separator: str, wanted: str = "whole numbers from 1"
) -> list[int]:
    """Return numbers ≥ 1 from a text with a separator, e.g. 4x4."""
    try:
        return [parse_whole_number(part) for part in text.split(separator)]
    except UserError:
        raise UserError(f"found '{text}', wanted {wanted}") from None


def count_argument(
    name: str, kind: Kind = Kind.COUNT, *, least: int = 1, default: int | None = None
) -> Argument:
    """Return an argument that is a whole number; optional if it has a default."""
    return Argument(
        name, kind, partial(parse_whole_number, least=least), default is not None, default
    )


def read_segment(text: str) -> int:
    size = parse_bytes(text)
    if size < 1:
        raise UserError(f"found segments of '{text}', wanted at least 1 byte")
    return size


SEGMENT = Argument("SEGMENT BYTES", Kind.SEGMENT, read_segment, optional=True)
SEGMENT_OR_DEFAULT = Argument(
    "SEGMENT BYTES", Kind.SEGMENT, read_segment, optional=True, default=DEFAULT_SEGMENT
)
SEED = Argument("SEED", Kind.SEED, partial(parse_count, low=0, high=2**63 - 1))
