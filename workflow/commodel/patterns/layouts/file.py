"""An explicit placement from a file: Open MPI's rankfile, `rank 0=host slot=0` a line, or a node a line, rank by rank.

How hosts become nodes is in patterns/hosts.py. Slots are not looked at.
"""

import re

import numpy as np

from commodel.errors import UserError
from commodel.files.cache import reached
from commodel.files.safe_paths import AnyPath
from commodel.files.safe_reading import MIB, read_lines, read_once
from commodel.patterns import hosts
from commodel.patterns.layouts import Defaults, Layout
from commodel.units import MAX_COUNT

FORM = "file:PATH"
RANK = re.compile(r"rank\s+([0-9]{1,8})\s*=\s*(\S+)(?:\s+slots?\s*=\s*\S+)?")
MAX_BYTES = 256 * MIB


def full(arguments: str, defaults: Defaults) -> str:
    path, numbers = hosts.split(arguments)
    return arguments if numbers or not defaults.hosts else hosts.full(path, _read(reached(path)), defaults.hosts)


def place(arguments: str, ranks: int) -> np.ndarray:
    path, numbers = hosts.split(arguments)
    return hosts.nodes(path, numbers, _read(reached(path)), ranks)


@read_once(files=16)
def _read(path: AnyPath) -> hosts.Lines:
    ranks: dict[int, tuple[str, int]] = {}
    numbered = None  # whether lines say which rank they are about
    for number, line in read_lines(path, MAX_BYTES, "a rank file"):
        text = line.split("#", 1)[0].strip()
        if not text:
            continue
        match = RANK.fullmatch(text)
        host = hosts.HOST.fullmatch(match[2] if match else text)
        if not host or numbered not in (None, bool(match)):
            wanted = "'rank N=HOST slot=…' in every line, or a host or the number of a node alone"
            raise UserError(f"found '{text}', wanted {wanted}", file=path, line=number)
        numbered = bool(match)
        rank = int(match[1]) if match else len(ranks)
        if rank in ranks:
            raise UserError(f"found rank {rank} again, first on line {ranks[rank][1]}", file=path, line=number)
        if rank >= MAX_COUNT:
            raise UserError(f"found rank {rank}, wanted one below {MAX_COUNT}", file=path, line=number)
        ranks[rank] = (host[1], number)
    if not ranks:
        raise UserError("found no ranks", file=path)
    for rank, (_, line) in ranks.items():
        if rank >= len(ranks):
            lost = next(number for number in range(len(ranks)) if number not in ranks)
            raise UserError(f"found rank {rank}, but none {lost}", file=path, line=line)
    lines = tuple(ranks[rank] for rank in range(len(ranks)))
    hosts.one_sort(lines, path)
    return lines


LAYOUT = Layout(
    name="file",
    form=FORM,
    title="node of every rank from a file: Open MPI's rankfile, or a node a line",
    place=place,
    full=full,
    ranks=lambda arguments: len(_read(hosts.split(arguments)[0])),
)
