"""One fan-out a level, from the root down: balanced:11x12 has 11 inner nodes with 12 leaves each."""

from commodel.patterns.trees.topologies import Topology
from commodel.patterns.trees.tree import by_levels, whole_numbers

TOPOLOGY = Topology(
    name="balanced",
    form="balanced:AxBx…",
    title="every node of a level has the same fan-out",
    build=lambda text: by_levels(whole_numbers(text, "x", "balanced:AxBx…")),
)
