"""The names of values, `o_0.fat.64x3`: a parameter, the node types that it holds for, and a coefficient or a sample.

A number goes by its parameter, `L`. A function's coefficient is `o.a`, its sample at 64 is `o.64`, and that of a
surface at 64 with three at a time is `o.64x3`. Types of nodes follow the parameter: `L.fat.thin` between two nodes,
`L.fat.same` within one, `C.fat` of one. So does a distance class that has a value of its own, after all types:
`L.beyond`, `alpha.beyond.a`, `g.beyond.64`.
"""

import re
from functools import lru_cache
from typing import NamedTuple

SAME = "same"  # in the name of a pair: both ranks on one node of that type
PART = re.compile(r"[a-fx][0-9]*")  # what coefficients are called
SAMPLE = re.compile(r"([0-9]{1,18})(?:x([0-9]{1,9}))?")


class Pair(NamedTuple):
    """The types of the nodes of two ranks, in the order of sender and receiver; the second is SAME within one node."""

    one: str
    two: str
    apart: str = ""  # the distance class whose values hold, where one has its own

    @classmethod
    def parse(cls, text: str) -> "Pair":
        one, _, two = text.partition(".")
        return cls(one, two)

    @property
    def within(self) -> bool:
        return self.two == SAME

    @property
    def types(self) -> tuple[str, str]:
        return self.one, self.one if self.within else self.two

    def __str__(self) -> str:
        return f"{self.one}.{self.two}"


class Key(NamedTuple):
    """The name of a value in its parts. Of `C.fat`, too, `fat` is the part: the parameter says what it means."""

    parameter: str
    function: str  # all before the part; empty where the parameter is all there is
    part: str  # empty there, too

    @property
    def sample(self) -> tuple[int, int | None] | None:
        """Where a sample lies: its place and, of a surface, its level. None of any other value."""
        match = SAMPLE.fullmatch(self.part)
        return match and (int(match[1]), int(match[2]) if match[2] else None)

    @property
    def of_function(self) -> bool:
        """Whether it ends as a coefficient or a sample does."""
        return bool(PART.fullmatch(self.part) or SAMPLE.fullmatch(self.part))


@lru_cache(maxsize=1 << 16)
def parse(text: str) -> Key:
    function, dot, part = text.rpartition(".")
    return Key(text.partition(".")[0], function, part if dot else "")


def key(*parts: str | Pair) -> str:
    """`key("o_0", "fat", "a")` is `o_0.fat.a`. Empty parts are left out."""
    return ".".join(str(part) for part in parts if part)


def sample(function: str, place: float, level: int | None = None) -> str:
    return key(function, f"{int(place)}" if level is None else f"{int(place)}x{level}")


def in_class(text: str, name: str, function: bool) -> str:
    """Return what the value of a distance class is called; `function`: its name ends in a coefficient or a sample."""
    stem, _, part = text.rpartition(".") if function else (text, "", "")
    return key(stem, name, part)


def without_class(text: str, name: str) -> str:
    """Return how the same value is called whose distance is not said; empty where it is not of that class."""
    parts = text.split(".")
    for place in (-1, -2):
        if len(parts) > -place and parts[place] == name:
            return key(*(part for number, part in enumerate(parts, -len(parts)) if number != place))
    return ""
