"""Names of values, `o_0.fat.64x3`: a parameter, the node types for which it holds, and a
coefficient or a sample (`make_key`, `parse_key`).

A number is named after its parameter, `L`. A function's coefficient is `o.a`, its sample at 64 is
`o.64`, and that of a surface at 64 with three at a time is `o.64x3`. Node types follow the
parameter: `L.fat.thin` between two nodes, `L.fat.same` within one, `C.fat` of one. A distance class
with a value of its own comes after all types: `L.beyond`, `alpha.beyond.a`, `g.beyond.64`.
"""

import re
from functools import lru_cache
from typing import NamedTuple

SAME_NODE = "same"  # in the name of a pair: both ranks on one node of that type
PART_PATTERN = re.compile(r"[a-fx][0-9]*")  # a coefficient
SAMPLE_PATTERN = re.compile(r"([0-9]{1,18})(?:x([0-9]{1,9}))?")


class Pair(NamedTuple):
    """The node types of sender and receiver; the second is SAME_NODE within one node."""

    sender_type: str
    receiver_type: str
    distance_class: str = ""  # if the class has values of its own

    @classmethod
    def parse(cls, text: str) -> "Pair":
        """Return the pair of a text such as `fat.thin`."""
        sender_type, _, receiver_type = text.partition(".")
        return cls(sender_type, receiver_type)

    @property
    def within(self) -> bool:
        return self.receiver_type == SAME_NODE

    @property
    def types(self) -> tuple[str, str]:
        return self.sender_type, self.sender_type if self.within else self.receiver_type

    @property
    def type_or_pair(self) -> "str | Pair":
        """What the values of the channel between the two ranks are named after: within a node the
        node type."""
        return self.sender_type if self.within else self

    def __str__(self) -> str:
        return f"{self.sender_type}.{self.receiver_type}"


class Key(NamedTuple):
    """The parts of a value's name. In `C.fat`, `fat` is the part too: only the parameter gives its
    meaning."""

    parameter: str
    function: str  # all before the part; empty if there is only the parameter
    part: str  # empty if there is only the parameter

    @property
    def sample(self) -> tuple[int, int | None] | None:
        """The place of a sample and, of a surface, its level; None for other values."""
        match = SAMPLE_PATTERN.fullmatch(self.part)
        return match and (int(match[1]), int(match[2]) if match[2] else None)

    @property
    def of_function(self) -> bool:
        """Whether the part is a coefficient or a sample."""
        return bool(PART_PATTERN.fullmatch(self.part) or SAMPLE_PATTERN.fullmatch(self.part))


@lru_cache(maxsize=1 << 16)
def parse_key(text: str) -> Key:
    """Return the parts of a name."""
    function, dot, part = text.rpartition(".")
    return Key(text.partition(".")[0], function, part if dot else "")


def describe_piece(key: Key, meaning: str) -> str:
    """Return what a value of a function in pieces means: the size above which a piece applies
    (`x1`), or a coefficient of that piece (`a1`, `b1`). `meaning` is that of the parameter, which
    other values have."""
    if not name_piece(key):
        return meaning
    if key.part[0] == "x":
        return f"message size in bytes above which another piece of {key.function} applies"
    return f"{meaning}; above {key.function}.x{key.part[1:]}"


def name_piece(key: Key) -> str:
    """Return the short meaning of a value of a function in pieces; empty for other values."""
    letter, number = key.part[:1], key.part[1:]
    if not (PART_PATTERN.fullmatch(key.part) and number):
        return ""
    return (
        f"size above which piece {number} applies"
        if letter == "x"
        else f"{letter} of piece {number}"
    )


def make_key(*parts: str | Pair) -> str:
    """Return a name from its parts: `make_key("o_0", "fat", "a")` is `o_0.fat.a`. Empty parts are
    omitted."""
    return ".".join(str(part) for part in parts if part)


def make_sample_key(function: str, at: float, level: int | None = None) -> str:
    """Return the name of a sample."""
    return make_key(function, f"{int(at)}" if level is None else f"{int(at)}x{level}")


def add_class(text: str, name: str, function: bool) -> str:
    """Return the name of a value in a distance class. `function`: the name ends in a coefficient or
    a sample."""
    stem, _, part = text.rpartition(".") if function else (text, "", "")
    return make_key(stem, name, part)


def remove_class(text: str, name: str) -> str:
    """Return the name without its distance class, or an empty text if it is not of that class."""
    parts = text.split(".")
    for position in (-1, -2):
        if len(parts) > -position and parts[position] == name:
            return make_key(
                *(part for number, part in enumerate(parts, -len(parts)) if number != position)
            )
    return ""
