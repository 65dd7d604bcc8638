"""Figure 5: instantiation, round trip and throughput against the number of back-ends, flat, 4-way and 8-way."""

from collections.abc import Callable
from math import nan

from commodel.price.papers import NO_NUMBER, Evidence, Figure, Line, Numbers, Panel, Row

TREES = {
    "flat": {leaves: f"flat:{leaves}" for leaves in (4, 8, 16, 64, 256, 512)},
    "4-way": {4**height: f"kary:4^{height}" for height in range(1, 5)},
    "8-way": {8**height: f"kary:8^{height}" for height in range(1, 4)},
}
BACK_ENDS = "back-ends"
DRAWN = "the text prints no number of figure 5, which is drawn only; "


def room(evidence: Evidence) -> str:
    """Where processes take turns, in words for a sentence."""
    rows = evidence.points()
    if not {"processes", "processors"} <= set(rows) or not (rows["processes"] > rows["processors"]).any():
        return "and it had a host for each process."
    most, least = int(rows["processes"].max()), int(rows["processors"].min())
    return (
        f"and it had a node for each process, while here up to {most} take turns on {least} processors, so that a tree "
        "gains nothing but what its root is spared."
    )


def panel(evidence: Evidence, title: str, axis: str, of: Callable[[str], float]) -> tuple[Numbers, Panel]:
    """Of every tree what `of` says of its topology, and a line for each kind."""
    known = {kind: {leaves: of(spec) for leaves, spec in trees.items()} for kind, trees in TREES.items()}
    every = sorted({leaves for trees in TREES.values() for leaves in trees})
    rows = tuple(Row((leaves,), nan, tuple(known[kind].get(leaves, nan) for kind in TREES)) for leaves in every)
    unit = "s" if axis.endswith("[s]") else ""
    lines = tuple(
        Line(kind, tuple(values), tuple(values.values()), "both", colour)
        for colour, (kind, values) in enumerate(known.items())
    )
    return Numbers(title, (BACK_ENDS,), tuple(TREES), NO_NUMBER, rows, unit), Panel(title, BACK_ENDS, axis, lines)


def microbenchmarks(evidence: Evidence) -> tuple[Figure, ...]:
    def median(spec: str, **where: object) -> float:
        return next(iter(evidence.points(topology=spec, **where)["measured"].map(float)), nan)

    def trip(spec: str) -> float:
        return 2 * median(spec, operation="reduce", waves=1)  # half of it is what a point of `reduce` measures

    def priced(spec: str) -> float:
        return 2 * next(iter(evidence.priced("tan", topology=spec, operation="reduce", waves=1)["predicted"]), nan)

    def rate(spec: str) -> float:
        points = evidence.points(topology=spec, operation="reduce")
        return next((1 / time for time in points.loc[points["waves"] > 1, "measured"] if time > 0), nan)

    def figure(name: str, title: str, caption: str, *panels: tuple[Numbers, Panel]) -> Figure:
        numbers, drawn = zip(*panels, strict=True)
        why = f"{DRAWN}its machine had 280 nodes of four 332 MHz processors, started processes by rsh, {room(evidence)}"
        return Figure(name, title, caption, why, numbers, drawn, (evidence.platform,))

    startup = panel(evidence, "Start-up", "time [s]", lambda spec: median(spec, operation="overlay-startup"))
    trips = panel(evidence, "Round trip", "time [s]", trip)
    prices = panel(evidence, "Round trip by TAN, fitted here", "time [s]", priced)
    rates = panel(evidence, "Reductions a second", "reductions a second", rate)
    return (
        figure(
            "Figure 5a",
            "start-up of the network",
            "From the call until every back-end has attached. The paper says that a flat tree's time grows quickly, "
            "since processes are created one after the other, and that of 4-way and 8-way trees slowly, since "
            "sub-trees come up at the same time.",
            startup,
        ),
        figure(
            "Figure 5b",
            "a broadcast and a reduction",
            "The round trip of a packet of 1 KiB (the paper gives no size) down to all back-ends and of their sum up "
            "again. The paper says that it grows rapidly over a flat tree, where messages go one after the other, and "
            "slowly over the others.",
            trips,
            prices,
        ),
        figure(
            "Figure 5c",
            "reductions in a row",
            "Reductions a second, of 50 that follow each other. The paper says that moderate fan-outs keep the "
            "throughput high as back-ends get more.",
            rates,
        ),
    )
