"""A layout with everything filled in that it leaves to a setting, and whether that has room for it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from commodel.errors import UserError
from commodel.hierarchy import Hierarchy
from commodel.patterns.layouts import Defaults, full, keeps_cores, named, place
from commodel.patterns.operations import OVERLAY

if TYPE_CHECKING:
    from commodel.patterns.points import Setting


@dataclass(frozen=True)
class Placed:
    """A full layout, and the room that it takes."""

    layout: str
    nodes: int  # up to the last that it uses
    per_node: int  # ranks that it puts on a node, at most
    reach: str  # how far ranks are from each other
    misfit: str  # why it does not fit the platform, or nothing

    @property
    def room(self) -> dict[str, object]:
        """What a point says of it, beside the layout."""
        return {"nodes": self.nodes, "per_node": self.per_node, "reach": self.reach}

    def checked(self, ranks: int, key: str = "") -> Placed:
        if self.misfit:
            raise UserError(f"{ranks} ranks as {self.misfit}", key=key)
        return self


@lru_cache(maxsize=65536)
def full_layout(setting: Setting, spec: str, ranks: int, asked: int | None = None) -> Placed:
    """The layout with everything filled in: its ranks a node, where it leaves them open, as ranks_per_node says, else
    as spreads them over all nodes."""
    per_node = asked or -(-max(ranks, setting.spread) // setting.nodes)
    defaults = Defaults(per_node, setting.types, setting.hosts, setting.cores, setting.fewer_cores, setting.levels)
    layout = full(spec, defaults, asked)
    node = place(layout, ranks)
    entry, arguments = named(layout)
    used, held = np.unique(node, return_counts=True)
    per_node = entry.per_node(arguments) if entry.per_node else int(held.max())
    misfit = _misfit(setting, defaults, layout, used, held, per_node)
    reach = "" if misfit else Hierarchy.of(dict(setting.levels)).reach(node)
    return Placed(layout, int(node.max()) + 1, per_node, reach, misfit)


def _misfit(
    setting: Setting, defaults: Defaults, layout: str, used: np.ndarray, held: np.ndarray, per_node: int
) -> str:
    """How many cores processes keep that have several, `full` has looked at."""
    if setting.substrate == OVERLAY and keeps_cores(layout):
        return f"{layout} keep cores, which processes of an overlay network do not"
    nodes = int(used[-1]) + 1
    if per_node > setting.cores or nodes > setting.nodes:
        room = f"platform '{setting.name}' has {setting.nodes} of {setting.cores}"
        wanted = f"{nodes} node{'s' * (nodes > 1)} of {per_node} core{'s' * (per_node > 1)}"
        return f"{layout} need {wanted}; {room}"
    for node, ranks in zip(used, held, strict=True) if setting.fewer_cores else ():
        if ranks > (cores := defaults.cores(int(node))):
            return f"{layout} need {ranks} cores of node {node}; platform '{setting.name}' has {cores} there"
    return ""
