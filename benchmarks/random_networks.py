"""Random simulated networks: tori, and trees of switches. Uplinks may be uneven, one cable slow,
nodes of two types.

`draw_network(seed)` returns the same network for a seed. The platform files name no levels.
"""

from dataclasses import dataclass, field

import numpy as np

XML_HEAD = (
    '<?xml version="1.0"?>\n<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">\n'
    '<platform version="4.1">\n'
)
DEFAULTS: dict[str, str] = {}  # no settings: those of SimGrid apply


def make_config(overhead: float, max_eager: int) -> dict[str, str]:
    """Return SimGrid settings: `overhead` seconds at each end of a message, eager up to `max_eager`
    bytes."""
    config = {f"smpi/{kind}": f"0:{overhead:g}:0" for kind in ("os", "ois", "or")}
    config |= {"smpi/lat-factor": "0:1", "smpi/bw-factor": "0:1", "network/TCP-gamma": "0"}
    config |= {"network/crosstraffic": "0", "smpi/wtime": "0", "smpi/host-speed": "1Gf"}
    return config | {
        f"smpi/{kind}-thresh": str(max_eager) for kind in ("send-is-detached", "async-small")
    }


@dataclass(frozen=True)
class Tree:
    """A tree of switches. `sizes`: nodes of a leaf switch, leaf switches of the next switch, and so
    on to the root."""

    sizes: tuple[int, ...]
    speed: float  # bytes per second of a node's cable
    latency: float  # seconds, of a node's cable
    # by level and switch: total bandwidth of its downlinks divided by that of its uplink
    oversubscription: tuple[tuple[float, ...], ...]
    uplink_latency: tuple[float, ...]  # seconds, by level
    # node number: divisor of its cable's speed
    slowdown: dict[int, float] = field(default_factory=dict)
    # name of a node type: number of nodes, in node order
    types: dict[str, int] = field(default_factory=dict)
    type_speeds: tuple[float, ...] = ()  # by type: factor of `speed` for its cables

    @property
    def nodes(self) -> int:
        return int(np.prod(self.sizes))

    def get_node_bandwidth(self, node: int) -> float:
        ends = np.cumsum(list(self.types.values())) if self.types else np.array([self.nodes])
        type_speed = (
            self.type_speeds[int(np.searchsorted(ends, node, side="right"))] if self.types else 1.0
        )
        return self.speed * type_speed / self.slowdown.get(node, 1.0)

    def format_xml(self) -> str:
        """Return SimGrid's platform file: full-duplex links, with the routes of the tree."""
        lines = ['<zone id="all" routing="Dijkstra">\n']
        routes = []

        def add_link(lower: str, upper: str, speed: float, latency: float) -> None:
            rates = f'bandwidth="{speed:.0f}Bps" latency="{latency:g}s"'
            lines.append(f'<link id="l-{lower}" {rates} sharing_policy="SPLITDUPLEX"/>\n')
            for src, dst, direction in ((lower, upper, "UP"), (upper, lower, "DOWN")):
                routes.append(
                    f'<route src="{src}" dst="{dst}" symmetrical="NO">'
                    f'<link_ctn id="l-{lower}" direction="{direction}"/></route>\n'
                )

        lower_nodes = [f"node-{node}" for node in range(self.nodes)]
        lines += [f'<host id="{name}" speed="1Gf" core="4"/>\n' for name in lower_nodes]
        bandwidths = [self.get_node_bandwidth(node) for node in range(self.nodes)]
        for level, size in enumerate(self.sizes):
            switches = [f"s{level}-{number}" for number in range(len(lower_nodes) // size)]
            lines += [f'<router id="{name}"/>\n' for name in switches]
            for number, name in enumerate(lower_nodes):
                if level:
                    speed = (
                        bandwidths[number]
                        / self.oversubscription[level - 1][
                            number % len(self.oversubscription[level - 1])
                        ]
                    )
                    bandwidths[number] = speed
                    add_link(name, switches[number // size], speed, self.uplink_latency[level - 1])
                else:
                    add_link(name, switches[number // size], bandwidths[number], self.latency)
            bandwidths = [
                sum(bandwidths[first : first + size]) for first in range(0, len(lower_nodes), size)
            ]
            lower_nodes = switches
        return "".join([XML_HEAD, *lines, *routes, "</zone>\n</platform>\n"])


def make_torus(shape: tuple[int, ...], speed: float, latency: float) -> str:
    """Return SimGrid's platform file of a torus."""
    nodes = int(np.prod(shape))
    return (
        f'{XML_HEAD}<cluster id="all" prefix="node-" suffix="" radical="0-{nodes - 1}" speed="1Gf" core="4" '
        f'bw="{speed:.0f}Bps" lat="{latency:g}s" loopback_bw="8GBps" loopback_lat="0.3us" '
        f'sharing_policy="SPLITDUPLEX" topology="TORUS" topo_parameters="{",".join(map(str, shape))}"/>\n</platform>\n'
    )


@dataclass(frozen=True)
class Network:
    """A simulated network: the text of its SimGrid file, its SimGrid settings, and the numbers of
    nodes by type."""

    title: str
    nodes: int
    xml: str
    config: dict[str, str]
    types: dict[str, int] = field(default_factory=dict)


def draw_network(seed: int) -> Network:
    """Return the random network of a seed: a torus, or a tree of switches."""
    rng = np.random.default_rng(seed)
    config = DEFAULTS if rng.random() < 0.5 else make_config(8e-7, 32768)
    speed, latency = (
        float(rng.choice([125e6, 1.25e9, 3e9, 12e9])),
        float(rng.choice([6e-7, 2e-6, 1e-5])),
    )
    if rng.random() < 0.15:
        shape = [(4, 4, 4), (8, 8), (4, 3, 4)][int(rng.integers(3))]
        return Network(
            f"torus {'x'.join(map(str, shape))}",
            int(np.prod(shape)),
            make_torus(shape, speed, latency),
            config,
        )
    sizes = [(16, 4), (8, 8), (4, 4, 4), (32, 2), (6, 3, 4), (48,)][int(rng.integers(6))]
    groups = [int(np.prod(sizes[level:])) for level in range(1, len(sizes))]
    uniform = rng.random() < 0.5
    oversubscription = tuple(
        tuple(
            np.round(
                rng.choice([1, 2, 4])
                * (np.ones(count) if uniform else rng.choice([0.5, 1, 1, 2], count)),
                2,
            )
        )
        for count in groups
    )
    nodes = int(np.prod(sizes))
    slowdown = {int(rng.integers(nodes)): float(rng.choice([4, 8]))} if rng.random() < 0.4 else {}
    types, type_speeds = {}, ()
    if rng.random() < 0.3:
        first = nodes // 2
        types, type_speeds = (
            {"fat": first, "thin": nodes - first},
            (1.0, float(rng.choice([0.25, 0.5]))),
        )
    uplink_latency = tuple(float(rng.choice([1, 3, 10, 100])) * latency for _ in groups)
    tree = Tree(
        sizes, speed, latency, oversubscription, uplink_latency, slowdown, types, type_speeds
    )
    parts = [
        f"tree {'x'.join(map(str, sizes))}",
        "even" if uniform else "uneven",
        *(["slow cable"] if slowdown else []),
    ]
    return Network(
        ", ".join([*parts, *(["two types"] if types else [])]),
        nodes,
        tree.format_xml(),
        config,
        types,
    )
