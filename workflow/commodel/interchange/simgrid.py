"""A platform for SimGrid whose simulated times are those of a LogGP or Hockney set (`write`): XML, and the settings
that go with it.

LogGP: o_s and o_r are SMPI's overheads. g + (m−1)·G is the time for which a message occupies the port of its sender and
that of its receiver: a link whose bandwidth depends on the size (`smpi/bw-factor`), with one message at a time
(`maxmin/concurrency-limit`). The latency is L − g, so that one message takes L + (m−1)·G in all. While a port waits for
a busy one at the other end, later messages overtake. If all ranks send to all others at once, as in `alltoall linear`,
SimGrid takes up to 1.2 times as long as LogGP predicts.

Hockney: α + β·m occupies the sender, as SMPI's overhead. The bandwidth of the network is unlimited. A rank therefore
receives many long messages at once without contention. Local work takes no time in the simulation.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import sqrt
from pathlib import Path

import yaml

from commodel.errors import UserError
from commodel.files.atomic import write_text
from commodel.interchange import Format
from commodel.models.keys import key
from commodel.parameters import ParameterSet
from commodel.units import format_seconds

LOGGP = ("L", "o_s", "o_r", "g", "G")
FAST = 1e15  # B/s: no time
ENVELOPE = 16  # bytes that SMPI adds to each message
LARGEST = 2**31  # bytes
PIECE = 1.02  # of its first size is the first size after it
NEGLIGIBLE = 1e-3  # of a message's time
NEVER = 1_000_000_000
EQUAL = {
    "smpi/lat-factor": "0:1",
    "smpi/bw-factor": "0:1",
    "network/TCP-gamma": 0,
    "network/crosstraffic": 0,
    "network/weight-S": 0,
    "smpi/wtime": 0,
    "smpi/async-small-thresh": NEVER,
    "smpi/send-is-detached-thresh": NEVER,
    "smpi/host-speed": "1Gf",
}


@dataclass(frozen=True)
class Network:
    """`send` and `receive` are SMPI's piecewise overheads: size:seconds:seconds per byte, pieces with ; between."""

    latency: float
    send: str
    receive: str
    bandwidth: float = FAST  # of a port, B/s
    config: Mapping[str, str | int] = field(default_factory=dict)
    note: str = ""  # the part of the model that is not represented, and its size


def network(parameters: ParameterSet) -> Network:
    values = parameters.numbers
    if parameters.family == "hockney":
        return _hockney(parameters, values)
    if parameters.family != "loggp":
        raise UserError(f"found parameters of family '{parameters.family}', wanted loggp or hockney")
    lacking = [name for name in LOGGP if name not in values]
    if lacking:
        raise UserError(f"the set has no value of {lacking[0]}")
    return _loggp(**{name: values[name] for name in LOGGP})


def _loggp(L: float, o_s: float, o_r: float, g: float, G: float) -> Network:
    carried, note = g, ""
    if g > L:
        if g > min(o_s, o_r):
            raise UserError(
                f"found g of {format_seconds(g)} above L of {format_seconds(L)}, wanted at most L: "
                "a port of SimGrid is busy with a message for no longer than that message is in the network"
            )
        carried, faster = L, (g - L) / min(o_s, o_r)
        if faster >= PIECE - 1:
            note = f"g is carried as {format_seconds(L)}, which is all of L: bursts may be up to {faster:.0%} too fast"
    bandwidth, factors = _port(max(carried, 1 / FAST), max(G, 1 / FAST))
    config = {"smpi/bw-factor": factors, "maxmin/concurrency-limit": 1}
    return Network(L - carried, f"0:{o_s:.9g}:0", f"0:{o_r:.9g}:0", bandwidth, config, note)


def _port(g: float, G: float) -> tuple[float, str]:
    """Return a bandwidth, and the share of it that a message of each size has.

    With them a message takes g + (m−1)·G, with an error of at most 1 %.
    """
    smallest = ENVELOPE + 1  # a message of 0 bytes costs as much as one of 1
    sizes, excess = [smallest], g - smallest * G  # beyond G for each byte, the envelope's too
    while sizes[-1] < LARGEST and abs(excess) > NEGLIGIBLE * sizes[-1] * G:
        sizes.append(max(sizes[-1] + 1, int(sizes[-1] * PIECE)))
    last = [size - 1 for size in sizes[1:]] + [LARGEST]
    middle = [sqrt(first * end) for first, end in zip(sizes, last, strict=True)]
    rates = [ENVELOPE / g, *(size / (excess + size * G) for size in middle)]
    limits = [0, *(size - 1 for size in sizes)]  # SMPI 3.32 applies a factor to sizes above its limit
    return max(rates), ";".join(f"{limit}:{rate / max(rates):.5g}" for limit, rate in zip(limits, rates, strict=True))


def _hockney(parameters: ParameterSet, values: dict[str, float]) -> Network:
    if set(parameters.forms.values()) - {"constant", "piecewise"}:
        raise UserError("only a Hockney set with constant or piecewise α and β can be simulated")
    pieces = []
    changes = (name.removeprefix("alpha.x") for name in values if name.startswith("alpha.x"))
    for tail in ("", *sorted(changes, key=int)):
        edge = values[key("alpha", "x" + tail)] if tail else 0
        if edge != (values.get(key("beta", "x" + tail), edge) if tail else 0):
            raise UserError("α and β of the set change at different sizes, which SMPI has no overhead for")
        intercept = values[key("alpha", "a" + tail)]
        slope = values.get(key("beta", "a" + tail), values["beta.a"])
        pieces.append(f"{edge:.0f}:{intercept:.9g}:{slope:.9g}")
    return Network(0.0, ";".join(pieces), "0:0:0")


def xml(network: Network, nodes: int) -> str:
    return f"""<?xml version="1.0"?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
  <cluster id="cluster" prefix="node-" suffix="" radical="0-{nodes - 1}" speed="1Gf"
           bw="{network.bandwidth:.9g}Bps" lat="{network.latency / 2:.9g}s" sharing_policy="SPLITDUPLEX"/>
</platform>
"""


def write(parameters: ParameterSet, nodes: int, out: Path) -> str:
    """Write the platform file and its XML; return a note about what SimGrid cannot represent."""
    costs, platform_file = network(parameters), out.with_suffix(".xml")
    title = f"{parameters.family} of {parameters.platform or 'a parameter set'} (simulated)"
    write_text(platform_file, xml(costs, nodes))
    write_text(out, platform(costs, nodes, platform_file.name, title))
    return costs.note


def platform(network: Network, nodes: int, file: str, title: str) -> str:
    """Return the text of the platform file, which has one rank on each node."""
    overheads = {"smpi/os": network.send, "smpi/ois": network.send, "smpi/or": network.receive}
    section = {"file": file, "config": EQUAL | overheads | dict(network.config)}
    whole = {"title": title, "launcher": "simgrid", "nodes": nodes, "cores": 1, "simgrid": section}
    return yaml.safe_dump(whole, sort_keys=False, allow_unicode=True, width=120)


FORMAT = Format("simgrid", "SimGrid")
