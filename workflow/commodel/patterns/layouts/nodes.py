"""The node of every rank, written out: nodes:0x4,2,1x3 puts ranks 0 to 3 on node 0, rank 4 on node 2, the rest on 1."""

import re

import numpy as np

from commodel.errors import UserError
from commodel.patterns.layouts import Layout
from commodel.units import MAX_COUNT

FORM = "nodes:NODE,NODExRANKS,…"
RUN = re.compile(r"([0-9]{1,8})(?:x([1-9][0-9]{0,7}))?")


def written(nodes: np.ndarray) -> str:
    """The spec of ranks on these nodes."""
    runs = np.split(nodes, np.flatnonzero(np.diff(nodes)) + 1)
    return "nodes:" + ",".join(f"{run[0]}x{len(run)}" if len(run) > 1 else f"{run[0]}" for run in runs)


def ranks(arguments: str) -> int:
    return sum(count for _, count in _runs(arguments))


def place(arguments: str, ranks: int) -> np.ndarray:
    runs = _runs(arguments)
    nodes, counts = (np.array(column) for column in zip(*runs, strict=True))
    if (written := int(counts.sum())) != ranks:
        raise UserError(f"found {ranks} ranks, but 'nodes' places {written}")
    return np.repeat(nodes, counts)


def _runs(arguments: str) -> list[tuple[int, int]]:
    matches = [RUN.fullmatch(part.strip()) for part in arguments.split(",")]
    if not all(matches):
        raise UserError(f"found 'nodes:{arguments}', wanted {FORM}")
    runs = [(int(match[1]), int(match[2] or 1)) for match in matches]
    if sum(count for _, count in runs) > MAX_COUNT:
        raise UserError(f"found 'nodes:{arguments}', wanted at most {MAX_COUNT} ranks")
    return runs


LAYOUT = Layout(
    name="nodes",
    form=FORM,
    title="node of every rank, written out",
    place=place,
    ranks=ranks,
)
