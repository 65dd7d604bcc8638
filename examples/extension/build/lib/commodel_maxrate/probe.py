"""The probe of the max-rate model: round trips between several pairs of ranks on two nodes."""

from commodel.models.probes import PLAYER, CasePlacement, Probe, ProbePlan, Site, list_counts
from commodel.models.probes.plans import make_pairs


def plan_node_rate(site: Site, sizes: list[int]) -> ProbePlan:
    if site.nodes > 1:
        for pairs in list_counts(site.fewest_cores):
            for size in sizes:
                yield CasePlacement(2 * pairs, f"block:{pairs}"), {"pairs": pairs, "bytes": size}


PROBE = Probe(
    "noderate",
    "round trips between several pairs of ranks on two nodes",
    ("pairs", "bytes"),
    plan_node_rate,
    program=PLAYER,  # the core's player sends the messages of `pattern`: no C is needed
    pattern=make_pairs,
)
