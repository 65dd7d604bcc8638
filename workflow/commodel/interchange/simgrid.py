"""A platform for SimGrid that costs what a set of LogGP or Hockney says: XML, and the settings that go with it.

What keeps a port busy is SMPI's overhead: g + (m−1)·G of LogGP's sender, g of its receiver, α + β·m of Hockney's
sender. What LogGP's gap has more than its overhead is taken off the latency, which comes to the same for one message,
for a burst, and for a port that sends on. The network itself has no bandwidth, so where many long messages come
together at one rank, it takes them at g (LogGP) or at once (Hockney). Local work takes no time in the simulation.
"""

from dataclasses import dataclass
from pathlib import Path

import yaml

from commodel.errors import UserError
from commodel.files.atomic import write_text
from commodel.interchange import Format
from commodel.models.keys import key
from commodel.parameters import ParameterSet

FAST = 1e15  # B/s: no time
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


def network(parameters: ParameterSet) -> Network:
    values = parameters.numbers
    if parameters.family == "hockney":
        return _hockney(parameters, values)
    if parameters.family != "loggp":
        raise UserError(f"found parameters of family '{parameters.family}', wanted loggp or hockney")
    lacking = [name for name in ("L", "o_s", "o_r", "g", "G") if name not in values]
    if lacking:
        raise UserError(f"the set has no value of {lacking[0]}")
    send, receive = (max(values[name], values["g"]) for name in ("o_s", "o_r"))
    moved = send - values["o_s"] + receive - values["o_r"] + values["G"]  # the first byte is in the overhead, too
    if values["L"] < moved:
        wanted = f"at least {moved:.3g} s, which is what g has more than the overheads"
        raise UserError(f"found L of {values['L']:.3g} s, wanted {wanted}")
    return Network(values["L"] - moved, f"0:{send:.9g}:{values['G']:.9g}", f"0:{receive:.9g}:0")


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
           bw="{FAST:.9g}Bps" lat="{network.latency / 2:.9g}s" sharing_policy="SPLITDUPLEX"/>
</platform>
"""


def write(parameters: ParameterSet, nodes: int, out: Path) -> None:
    """The platform file, and its XML beside it."""
    costs, beside = network(parameters), out.with_suffix(".xml")
    title = f"{parameters.family} of {parameters.platform or 'a parameter set'} (simulated)"
    write_text(beside, xml(costs, nodes))
    write_text(out, platform(costs, nodes, beside.name, title))


def platform(network: Network, nodes: int, file: str, title: str) -> str:
    """The platform file: it asks for one rank a node."""
    overheads = {"smpi/os": network.send, "smpi/ois": network.send, "smpi/or": network.receive}
    section = {"file": file, "config": EQUAL | overheads}
    whole = {"title": title, "launcher": "simgrid", "nodes": nodes, "cores": 1, "simgrid": section}
    return yaml.safe_dump(whole, sort_keys=False, allow_unicode=True, width=120)


FORMAT = Format("simgrid", "SimGrid")
