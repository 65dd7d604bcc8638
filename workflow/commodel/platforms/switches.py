"""Which switches the nodes of an allocation hang on, as Slurm knows it from its `topology.conf`: levels of groups of
nodes, innermost first. A switch's list of nodes is written shortly, as in n[01-16,20]; here it is written out."""

import re
from collections.abc import Iterable, Sequence
from itertools import product
from math import prod

from commodel.errors import UserError
from commodel.hierarchy import MOST_LEVELS, Hierarchy
from commodel.units import shown

NAMES = ("leaf", "group")  # of the two lowest levels of switches
ITEM = re.compile(r"(?:[^][,\s]|\[[0-9,-]+\])+")
PART = re.compile(r"\[([0-9,-]+)\]|([^][]+)")
MOST_NODES = 1 << 20  # below a switch
RANGE = re.compile(r"([0-9]{1,9})(?:-([0-9]{1,9}))?")


def levels(listing: str, names: Sequence[str]) -> Hierarchy:
    """The levels of the nodes called `names`, in that order, by what `scontrol show topology` prints: a line a switch
    (topology/tree), or a line a block (topology/block). A node that no switch of a level has is a group by itself. The
    last level is left out where it parts no nodes."""
    number = {name: node for node, name in enumerate(names)}
    groups: dict[int, list[int]] = {}
    for place, line in enumerate(listing.splitlines()):
        about = fields(line)
        if not {"SwitchName", "BlockName"} & about.keys():
            continue
        level = about.get("Level", "0")
        if not (level.isascii() and level.isdigit() and int(level[:3]) < MOST_LEVELS):
            raise UserError(f"found {shown(line)}, wanted a switch of level 0 to {MOST_LEVELS - 1}")
        column = groups.setdefault(int(level), [-1 - node for node in range(len(names))])
        for node in _nodes(about.get("Nodes", ""), number):
            if column[node] >= 0:
                raise UserError(f"found node {names[node]} below two switches of level {level}, wanted a tree")
            column[node] = place
    kept = {_name(level): column for level, column in sorted(groups.items())}
    while len(kept) > 1 and len(set(kept[last := list(kept)[-1]])) == 1:
        del kept[last]
    return Hierarchy.of(kept)


def _name(level: int) -> str:
    return NAMES[level] if level < len(NAMES) else f"level-{level}"


def _nodes(listed: str, number: dict[str, int]) -> Iterable[int]:
    return (number[name] for name in written_out(listed) if name in number)


def written_out(listed: str) -> list[str]:
    """The names that a list of Slurm stands for: `n[01-03],x5` is n01, n02, n03 and x5."""
    if listed == "(null)":
        return []
    if not re.fullmatch(rf"({ITEM.pattern}(,{ITEM.pattern})*)?", listed):
        raise UserError(f"found {shown(listed)}, wanted nodes such as n[01-16,20]")
    names: list[str] = []
    for item in ITEM.findall(listed):
        parts = [_numbers(digits) if digits else [plain] for digits, plain in PART.findall(item)]
        if len(names) + prod(map(len, parts)) > MOST_NODES:
            raise UserError(f"found more than {MOST_NODES} nodes below one switch: {shown(listed)}")
        names += map("".join, product(*parts))
    return names


def fields(line: str) -> dict[str, str]:
    """What a line of scontrol says: `Name=value Name=value`."""
    return dict(word.split("=", 1) for word in line.split() if "=" in word)


def _numbers(digits: str) -> list[str]:
    """`01-03,7` is 01, 02, 03 and 7."""
    numbers: list[str] = []
    for part in digits.split(","):
        ends = RANGE.fullmatch(part)
        first, last = (int(ends[1]), int(ends[2] or ends[1])) if ends else (1, 0)
        if not first <= last < first + MOST_NODES - len(numbers):
            raise UserError(f"found [{shown(digits)}], wanted ranges such as [01-16,20]")
        numbers += [f"{number:0{len(ends[1])}}" for number in range(first, last + 1)]
    return numbers
