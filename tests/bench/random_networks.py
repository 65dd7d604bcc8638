"""Simulated networks drawn at random: trees of switches with uneven uplinks, slow cables and types of nodes; tori.

`draw_network(seed)` returns the same network for a seed. Platform files name no levels. Nobody can tune models to them.
"""

from dataclasses import dataclass, field

import numpy as np

HEAD = '<?xml version="1.0"?>\n<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">\n<platform version="4.1">\n'
DEFAULTS: dict[str, str] = {}  # SimGrid's own settings


def eager(overhead: float, largest: int) -> dict[str, str]:
    """Settings of messages that have so much overhead at each end, in seconds; longer ones wait for their receivers."""
    config = {f"smpi/{kind}": f"0:{overhead:g}:0" for kind in ("os", "ois", "or")}
    config |= {"smpi/lat-factor": "0:1", "smpi/bw-factor": "0:1", "network/TCP-gamma": "0"}
    config |= {"network/crosstraffic": "0", "smpi/wtime": "0", "smpi/host-speed": "1Gf"}
    return config | {f"smpi/{kind}-thresh": str(largest) for kind in ("send-is-detached", "async-small")}


@dataclass(frozen=True)
class Tree:
    """A tree of switches: `sizes` are nodes of a leaf, leaves of a group and so on up to the root."""

    sizes: tuple[int, ...]
    speed: float  # bytes a second of a node's cable
    latency: float  # seconds of a cable
    tapers: tuple[tuple[float, ...], ...]  # of each level: of each group, all cables below over its uplink
    far: tuple[float, ...]  # seconds of an uplink, by level
    slow: dict[int, float] = field(default_factory=dict)  # how many times as slow the cable of a node is
    types: dict[str, int] = field(default_factory=dict)  # nodes of each type, in order
    type_speeds: tuple[float, ...] = ()  # of the cables of each type, over `speed`

    @property
    def nodes(self) -> int:
        return int(np.prod(self.sizes))

    def cable(self, node: int) -> float:
        ends = np.cumsum(list(self.types.values())) if self.types else np.array([self.nodes])
        share = self.type_speeds[int(np.searchsorted(ends, node, side="right"))] if self.types else 1.0
        return self.speed * share / self.slow.get(node, 1.0)

    def xml(self) -> str:
        """Every link has two directions; routes are those of the tree."""
        lines = ['<zone id="all" routing="Dijkstra">\n']
        routes = []

        def join(lower: str, upper: str, speed: float, latency: float) -> None:
            rates = f'bandwidth="{speed:.0f}Bps" latency="{latency:g}s"'
            lines.append(f'<link id="l-{lower}" {rates} sharing_policy="SPLITDUPLEX"/>\n')
            for one, two, way in ((lower, upper, "UP"), (upper, lower, "DOWN")):
                routes.append(
                    f'<route src="{one}" dst="{two}" symmetrical="NO">'
                    f'<link_ctn id="l-{lower}" direction="{way}"/></route>\n'
                )

        below = [f"node-{node}" for node in range(self.nodes)]
        lines += [f'<host id="{name}" speed="1Gf" core="4"/>\n' for name in below]
        carried = [self.cable(node) for node in range(self.nodes)]
        for level, size in enumerate(self.sizes):
            above = [f"s{level}-{number}" for number in range(len(below) // size)]
            lines += [f'<router id="{name}"/>\n' for name in above]
            for number, name in enumerate(below):
                if level:
                    speed = carried[number] / self.tapers[level - 1][number % len(self.tapers[level - 1])]
                    carried[number] = speed
                    join(name, above[number // size], speed, self.far[level - 1])
                else:
                    join(name, above[number // size], carried[number], self.latency)
            carried = [sum(carried[first : first + size]) for first in range(0, len(below), size)]
            below = above
        return "".join([HEAD, *lines, *routes, "</zone>\n</platform>\n"])


def torus(shape: tuple[int, ...], speed: float, latency: float) -> str:
    nodes = int(np.prod(shape))
    return (
        f'{HEAD}<cluster id="all" prefix="node-" suffix="" radical="0-{nodes - 1}" speed="1Gf" core="4" '
        f'bw="{speed:.0f}Bps" lat="{latency:g}s" loopback_bw="8GBps" loopback_lat="0.3us" '
        f'sharing_policy="SPLITDUPLEX" topology="TORUS" topo_parameters="{",".join(map(str, shape))}"/>\n</platform>\n'
    )


@dataclass(frozen=True)
class Drawn:
    """A network: its file, and what its platform file says."""

    what: str
    nodes: int
    xml: str
    config: dict[str, str]
    types: dict[str, int] = field(default_factory=dict)


def draw_network(seed: int) -> Drawn:
    rng = np.random.default_rng(seed)
    config = DEFAULTS if rng.random() < 0.5 else eager(8e-7, 32768)
    speed, latency = float(rng.choice([125e6, 1.25e9, 3e9, 12e9])), float(rng.choice([6e-7, 2e-6, 1e-5]))
    if rng.random() < 0.15:
        shape = [(4, 4, 4), (8, 8), (4, 3, 4)][int(rng.integers(3))]
        return Drawn(f"torus {'x'.join(map(str, shape))}", int(np.prod(shape)), torus(shape, speed, latency), config)
    sizes = [(16, 4), (8, 8), (4, 4, 4), (32, 2), (6, 3, 4), (48,)][int(rng.integers(6))]
    groups = [int(np.prod(sizes[level:])) for level in range(1, len(sizes))]
    even = rng.random() < 0.5
    tapers = tuple(
        tuple(np.round(rng.choice([1, 2, 4]) * (np.ones(count) if even else rng.choice([0.5, 1, 1, 2], count)), 2))
        for count in groups
    )
    nodes = int(np.prod(sizes))
    slow = {int(rng.integers(nodes)): float(rng.choice([4, 8]))} if rng.random() < 0.4 else {}
    types, shares = {}, ()
    if rng.random() < 0.3:
        first = nodes // 2
        types, shares = {"fat": first, "thin": nodes - first}, (1.0, float(rng.choice([0.25, 0.5])))
    far = tuple(float(rng.choice([1, 3, 10, 100])) * latency for _ in groups)
    tree = Tree(sizes, speed, latency, tapers, far, slow, types, shares)
    parts = [f"tree {'x'.join(map(str, sizes))}", "even" if even else "uneven", *(["slow cable"] if slow else [])]
    return Drawn(", ".join([*parts, *(["two types"] if types else [])]), nodes, tree.xml(), config, types)
