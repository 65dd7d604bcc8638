"""What a platform file may say of a network that nobody has measured yet: its switches, as data sheets have them.

Of every level, the nodes innermost, a link up to the next switch: how fast one is and how long it takes, and how many
there are, or what says so. A group's links up are shared by all that leaves it; a message takes one of them.
"""

from typing import Self

from pydantic import Field, model_validator

from commodel import units
from commodel.errors import UserError
from commodel.files import fields
from commodel.files.fields import Part, refused
from commodel.hierarchy import NODE, Hierarchy
from commodel.units import shown

BANDWIDTH = fields.quantity(units.parse_bandwidth, "100 Gbit/s", bare=False)
LATENCY = fields.quantity(units.parse_seconds, "0.7us", bare=False)
COUNT = fields.count(1, units.MAX_COUNT)
MOST_TIMES = 1000  # times as much below a switch as above it, or above as below


def _factor(value: object) -> float:
    if not 1 / MOST_TIMES <= (number := units.parse_number(value)) <= MOST_TIMES:
        raise UserError(f"found {shown(value)}, wanted a number from {1 / MOST_TIMES:g} to {MOST_TIMES}")
    return number


FACTOR = fields.quantity(_factor, "2")
COUNTED = ("uplinks", "oversubscription", "ports")


class Link(Part):
    bandwidth: BANDWIDTH = Field(description="of one link, either way")
    latency: LATENCY = Field(description="of one link and the switch at its upper end")
    uplinks: COUNT | None = Field(None, description="links up of a group, or rails of a node")
    oversubscription: FACTOR | None = Field(
        None, description="2: what the links below a group's switch carry is twice what those above it do"
    )
    ports: COUNT | None = Field(None, description="of a group's switch, links down among them: all others go up")

    @model_validator(mode="after")
    def _once(self) -> Self:
        if len(given := [name for name in COUNTED if getattr(self, name) is not None]) > 1:
            raise refused(f"found {given[0]} and {given[1]}, wanted one of {', '.join(COUNTED)}", given[1])
        return self


class Memory(Part):
    bandwidth: BANDWIDTH = Field(description="of a message within a node")
    latency: LATENCY = Field(description="of a message within a node")


class DataSheet(Part):
    links: dict[fields.NODE_TYPE, Link] = Field(description="of `node`, and of every level of `levels`")
    memory: Memory | None = Field(None, description="within a node; left out: messages there have no price")
    overhead: LATENCY | None = Field(None, description="of software, at each end of a message; left out: 0")
    eager: fields.SIZE | None = Field(
        None, description="largest message that leaves before its receiver is ready; left out: all do"
    )

    def costs(self, levels: Hierarchy) -> tuple[dict[str, tuple[float, float]], dict[str, float]]:
        """What follows for messages: by distance class seconds of one without bytes, and of each byte of it; by level
        seconds of each byte of all that leaves a group. A mistake is a complaint about one of the links."""
        wanted = [NODE, *levels.groups]
        if set(self.links) != set(wanted):
            linked = ", ".join(self.links) or "none"
            raise refused(f"found links of {linked}, wanted one of each of {', '.join(wanted)}", "links")
        alone = {} if self.memory is None else {NODE: (self.memory.latency, 1 / self.memory.bandwidth)}
        shared, latency, slowest, below = {}, 0.0, 0.0, 0.0
        for number, (level, beyond) in enumerate(zip(wanted, levels.names[1:], strict=True)):
            link = self.links[level]
            latency, slowest = latency + 2 * link.latency, max(slowest, 1 / link.bandwidth)
            alone[beyond] = latency, slowest
            try:
                below = _up(link, levels, number, below)
            except UserError as error:
                raise refused(error.message, "links", level) from None
            shared[level] = 1 / below
        return alone, shared


def _up(link: Link, levels: Hierarchy, level: int, below: float) -> float:
    """Bytes a second that a group sends up, where each group in it sends so many."""
    if level == 0:
        for name in COUNTED[1:]:
            if getattr(link, name) is not None:
                raise UserError(f"found {name}, wanted uplinks, or nothing for one")
        return (link.uplinks or 1) * link.bandwidth
    if link.uplinks:
        return link.uplinks * link.bandwidth
    if not (link.oversubscription or link.ports):
        raise UserError(f"found only its bandwidth and latency, wanted one of {', '.join(COUNTED)}")
    inside = levels.members(level)
    if min(inside) < max(inside):
        raise UserError(f"found groups of {min(inside)} and of {max(inside)}, wanted uplinks, since they differ")
    if link.oversubscription:
        return inside[0] * below / link.oversubscription
    down = inside[0] * max(round(below / link.bandwidth), 1) if level > 1 else inside[0]
    if link.ports <= down:
        raise UserError(f"found {link.ports} ports, wanted more than the {down} links down")
    return (link.ports - down) * link.bandwidth
