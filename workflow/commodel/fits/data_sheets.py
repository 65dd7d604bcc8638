"""Parameter sets from data sheets (`make_set_from_sheets`): latency and bandwidth of a network's
links, without measurement.

Only models with values by distance class are possible. The set and each prediction from it name
this source.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from commodel.errors import UserError
from commodel.hierarchy import HOST, NODE, Hierarchy
from commodel.models.families import find_family, find_unit, infer_forms
from commodel.models.keys import add_class, make_key
from commodel.parameters import DATA_SHEET_SOURCE, MEMORY_BANDWIDTH, Estimate, ParameterSet
from commodel.predictions.sockets import MESSAGE_BANDWIDTH, SOCKETS

NOT_IN_DATA_SHEETS = "not in data sheets: assumed to be 0"
COPY_NOTE = "not in data sheets: assumed to take as long as a message within a node"


@dataclass(frozen=True)
class SheetTimes:
    """Times from data sheets. `single_message`: seconds of an empty message and seconds per byte,
    by distance class. `shared`: seconds per byte of all traffic that leaves a group, by level.
    `overhead`: seconds of software at each end of a message."""

    levels: Hierarchy
    single_message: Mapping[str, tuple[float, float]]
    shared: Mapping[str, float]
    overhead: float
    eager: float | None
    # by distance class: bytes per second of all messages of a node together, or of a socket
    memory_totals: Mapping[str, float]
    sockets: int = 1  # of a node

    def divide_nodes(
        self, nodes: int, sockets: int, between: tuple[float, float], total: float | None
    ) -> SheetTimes:
        """Return the times on sockets in place of nodes, which are the level `host`. `between` are
        those of a message between two sockets of a node, `total` is the bytes per second that leave
        a socket for others."""
        hosts = {HOST: np.repeat(np.arange(nodes), sockets)}
        columns = {name: np.repeat(column, sockets) for name, column in self.levels.groups.items()}
        within, *network = self.single_message.items()
        of_node, *of_levels = self.shared.items()
        shared = dict([(HOST, of_node[1]), *of_levels])
        totals = dict(self.memory_totals)
        if total:
            shared = {NODE: 1 / total, **shared}
            totals[HOST] = total
        return replace(
            self,
            levels=Hierarchy.of(hosts | columns),
            single_message=dict([within, (HOST, between), *network]),
            shared=shared,
            memory_totals=totals,
            sockets=sockets,
        )


def make_set_from_sheets(name: str, platform: str, times: SheetTimes) -> ParameterSet:
    families = ("shares", *MAKERS_BY_FAMILY)
    if name not in families:
        raise UserError(
            f"data sheets do not contain the parameters of model {name}; wanted {', '.join(families)}"
        )
    family, levels = find_family(name), times.levels
    settings: dict[str, Any] = {"probed_classes": list(times.single_message)}
    if levels.groups:
        settings["levels"] = levels.group_lists
    if times.sockets > 1:
        settings[SOCKETS] = times.sockets
    if times.memory_totals:
        settings[MEMORY_BANDWIDTH] = dict(times.memory_totals)
    elif NODE in times.single_message:
        _, seconds_per_byte = times.single_message[NODE]
        settings[MESSAGE_BANDWIDTH] = 1 / seconds_per_byte
    local_work = _make_local_work(name, times)
    if name == "shares":
        numbers = _make_shares(times)
    else:
        nearest, *other_distances = (
            distance for distance in times.single_message if distance != NODE
        )
        numbers = MAKERS_BY_FAMILY[name](*times.single_message[nearest], times.overhead)
        other_distances += [NODE] if NODE in times.single_message else []
        if other_distances:
            settings["classes"] = other_distances
            for distance in other_distances:
                of_class = MAKERS_BY_FAMILY[name](*times.single_message[distance], times.overhead)
                is_function = {
                    text: bool(family.by_name[text.partition(".")[0]].argument) for text in of_class
                }
                numbers |= {
                    add_class(text, distance, is_function[text]): value
                    for text, value in of_class.items()
                }
    missing = {}
    if not local_work:
        missing["gamma"] = NOT_IN_DATA_SHEETS
    if not times.overhead:
        missing["overhead of software"] = NOT_IN_DATA_SHEETS
    numbers |= local_work
    forms = infer_forms(family, numbers)
    estimates = {
        text: Estimate.exact(value, find_unit(family, text, forms))
        for text, value in numbers.items()
    }
    estimates |= {
        text: replace(estimates[text], note=COPY_NOTE, known=False) for text in local_work
    }
    return ParameterSet(
        name,
        platform,
        DATA_SHEET_SOURCE,
        estimates,
        forms=forms,
        settings=settings,
        missing=missing,
        provenance={DATA_SHEET_SOURCE: platform},
    )


def _make_shares(times: SheetTimes) -> dict[str, float]:
    numbers = {"o_s": times.overhead, "o_r": times.overhead}
    for name, (latency, byte) in times.single_message.items():
        numbers |= {make_key("L", name, "a"): latency, make_key("G", name, "a"): byte}
    numbers |= {make_key("c_out", level, "a"): byte for level, byte in times.shared.items()}
    if NODE in times.memory_totals:
        numbers[make_key("c_inside", NODE, "a")] = 1 / times.memory_totals[NODE]
    return numbers if times.eager is None else numbers | {"S": float(times.eager)}


def _make_local_work(name: str, times: SheetTimes) -> dict[str, float]:
    """Return the time per byte that a rank copies or reduces, if a node has several ranks."""
    if NODE not in times.single_message:
        return {}
    _, byte = times.single_message[NODE]
    return {"gamma.a": 0.0, "gamma.b": byte} if name == "shares" else {"gamma": byte}


def _make_hockney(latency: float, byte: float, overhead: float) -> dict[str, float]:
    return {"alpha.a": latency + 2 * overhead, "beta.a": byte}


def _make_loggp(latency: float, byte: float, overhead: float) -> dict[str, float]:
    return {"L": latency, "o_s": overhead, "o_r": overhead, "g": overhead, "G": byte}


MAKERS_BY_FAMILY: Mapping[str, Callable[[float, float, float], dict[str, float]]] = {
    "hockney": _make_hockney,
    "loggp": _make_loggp,
}
