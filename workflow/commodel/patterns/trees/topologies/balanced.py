"""One fan-out a level, from the root down: balanced:11x12 has 11 inner nodes with 12 leaves each."""

from commodel.patterns.arguments import whole_numbers
from commodel.patterns.trees.topologies import Topology
from commodel.patterns.trees.tree import by_levels

FORM = "balanced:AxBx…"
TOPOLOGY = Topology(
    name="balanced",
    form=FORM,
    title="every node of a level has the same fan-out",
    build=lambda text: by_levels(whole_numbers(text, "x", FORM)),
)
