"""A platform for SimGrid whose simulated times are those of a LogGP or Hockney set
(`write_platform`): XML, and the settings that it needs.

LogGP: o_s and o_r are SMPI's overheads. g + (m−1)·G is the time for which a message occupies the
port of its sender and that of its receiver: a link whose bandwidth depends on the size
(`smpi/bw-factor`), with one message at a time (`maxmin/concurrency-limit`). The latency is L − g,
so that one message takes L + (m−1)·G in all. While a port waits for a busy one at the other end,
later messages overtake. If all ranks send to all others at once, as in `alltoall linear`, SimGrid
takes up to 1.2 times as long as LogGP predicts.

Hockney: α + β·m occupies the sender, as SMPI's overhead. The bandwidth of the network is unlimited.
A rank therefore receives many long messages at once without contention. Local work takes no time in
the simulation.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import sqrt
from pathlib import Path

import yaml

from commodel.errors import UserError
from commodel.files.atomic import write_text
from commodel.models.keys import make_key
from commodel.parameters import ParameterSet
from commodel.units import format_seconds

LOGGP = ("L", "o_s", "o_r", "g", "G")
UNLIMITED_BANDWIDTH = 1e15  # B/s
ENVELOPE_BYTES = 16  # bytes that SMPI adds to each message
MAX_MESSAGE_BYTES = 2_100_000_000  # SimGrid reads a size as an int
SIZE_RATIO = 1.02  # between the first sizes of adjacent ranges of sizes with one bandwidth factor
NEGLIGIBLE_SHARE = 1e-3  # of a message's time
UNREACHABLE_SIZE = 1_000_000_000  # bytes: a protocol with this threshold is never used
NEUTRAL_CONFIG = {
    "smpi/lat-factor": "0:1",
    "smpi/bw-factor": "0:1",
    "network/TCP-gamma": 0,
    "network/crosstraffic": 0,
    "network/weight-S": 0,
    "smpi/wtime": 0,
    "smpi/async-small-thresh": UNREACHABLE_SIZE,
    "smpi/send-is-detached-thresh": UNREACHABLE_SIZE,
    "smpi/host-speed": "1Gf",
}


@dataclass(frozen=True)
class SimulatorSettings:
    """`send` and `receive` are SMPI's piecewise overheads: size:seconds:seconds per byte, pieces
    with ; between."""

    latency: float
    send: str
    receive: str
    bandwidth: float = UNLIMITED_BANDWIDTH  # of a port, B/s
    config: Mapping[str, str | int] = field(default_factory=dict)
    note: str = ""  # the part of the model that is not represented, and its size


def make_network(parameters: ParameterSet) -> SimulatorSettings:
    values = parameters.numbers
    if parameters.model == "hockney":
        return _make_hockney_network(parameters, values)
    if parameters.model != "loggp":
        raise UserError(f"found parameters of model '{parameters.model}', wanted loggp or hockney")
    missing = [name for name in LOGGP if name not in values]
    if missing:
        raise UserError(f"the set has no value of {missing[0]}")
    return _make_loggp_network(**{name: values[name] for name in LOGGP})


def _make_loggp_network(L: float, o_s: float, o_r: float, g: float, G: float) -> SimulatorSettings:
    port_gap = g
    note = ""
    if g > L:
        if g > min(o_s, o_r):
            raise UserError(
                f"found g of {format_seconds(g)} above L of {format_seconds(L)}, wanted at most L: "
                "a port of SimGrid is busy with a message for no longer than that message is in the network"
            )
        port_gap = L
        faster = (g - L) / min(o_s, o_r)
        if faster >= SIZE_RATIO - 1:
            note = (
                f"g is reduced to L, {format_seconds(L)}: bursts may be up to {faster:.0%} too fast"
            )
    bandwidth, factors = _fit_port(
        max(port_gap, 1 / UNLIMITED_BANDWIDTH), max(G, 1 / UNLIMITED_BANDWIDTH)
    )
    config: dict[str, str | int] = {"smpi/bw-factor": factors, "maxmin/concurrency-limit": 1}
    return SimulatorSettings(
        latency=L - port_gap,
        send=f"0:{o_s:.9g}:0",
        receive=f"0:{o_r:.9g}:0",
        bandwidth=bandwidth,
        config=config,
        note=note,
    )


def _fit_port(g: float, G: float) -> tuple[float, str]:
    """Return a bandwidth, and the fraction of it that a message of each size gets.

    With them a message takes g + (m−1)·G, with an error of at most 1 %.
    """
    smallest = ENVELOPE_BYTES + 1  # a message of 0 bytes takes as long as one of 1
    sizes = [smallest]
    excess = g - smallest * G  # beyond G for each byte, the envelope's too
    while sizes[-1] < MAX_MESSAGE_BYTES and abs(excess) > NEGLIGIBLE_SHARE * sizes[-1] * G:
        sizes.append(min(max(sizes[-1] + 1, int(sizes[-1] * SIZE_RATIO)), MAX_MESSAGE_BYTES))
    last = [size - 1 for size in sizes[1:]] + [MAX_MESSAGE_BYTES]
    middle = [sqrt(first * end) for first, end in zip(sizes, last, strict=True)]
    rates = [ENVELOPE_BYTES / g, *(size / (excess + size * G) for size in middle)]
    # SMPI 3.32 applies a factor to sizes above its limit
    limits = [0, *(size - 1 for size in sizes)]
    return max(rates), ";".join(
        f"{limit}:{rate / max(rates):.5g}" for limit, rate in zip(limits, rates, strict=True)
    )


def _make_hockney_network(parameters: ParameterSet, values: dict[str, float]) -> SimulatorSettings:
    if set(parameters.forms.values()) - {"constant", "piecewise"}:
        raise UserError("only a Hockney set with constant or piecewise α and β can be simulated")
    pieces = []
    changes = (name.removeprefix("alpha.x") for name in values if name.startswith("alpha.x"))
    for tail in ("", *sorted(changes, key=int)):
        edge = values[make_key("alpha", "x" + tail)] if tail else 0
        if edge != (values.get(make_key("beta", "x" + tail), edge) if tail else 0):
            raise UserError(
                "α and β of the set change at different sizes, which SMPI has no overhead for"
            )
        intercept = values[make_key("alpha", "a" + tail)]
        slope = values.get(make_key("beta", "a" + tail), values["beta.a"])
        pieces.append(f"{edge:.0f}:{intercept:.9g}:{slope:.9g}")
    return SimulatorSettings(0.0, ";".join(pieces), "0:0:0")


def format_xml(network: SimulatorSettings, nodes: int) -> str:
    return f"""<?xml version="1.0"?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
  <cluster id="cluster" prefix="node-" suffix="" radical="0-{nodes - 1}" speed="1Gf"
           bw="{network.bandwidth:.9g}Bps" lat="{network.latency / 2:.9g}s" sharing_policy="SPLITDUPLEX"/>
</platform>
"""


def write_platform(parameters: ParameterSet, nodes: int, out: Path) -> str:
    """Write the platform file and its XML; return a note about what SimGrid cannot represent."""
    network = make_network(parameters)
    platform_file = out.with_suffix(".xml")
    title = f"{parameters.model} of {parameters.platform or 'a parameter set'} (simulated)"
    write_text(platform_file, format_xml(network, nodes))
    write_text(out, format_platform(network, nodes, platform_file.name, title))
    return network.note


def format_platform(network: SimulatorSettings, nodes: int, file: str, title: str) -> str:
    """Return the text of the platform file, which has one rank on each node."""
    overheads = {"smpi/os": network.send, "smpi/ois": network.send, "smpi/or": network.receive}
    section = {"file": file, "config": NEUTRAL_CONFIG | overheads | dict(network.config)}
    document = {
        "title": title,
        "launcher": "simgrid",
        "nodes": nodes,
        "cores": 1,
        "simgrid": section,
    }
    return yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=120)
