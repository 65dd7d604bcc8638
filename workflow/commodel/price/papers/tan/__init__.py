"""The TAN paper: reductions up trees by MRNet on 256 nodes of Cab. Figures 1 and 2, the fits of figures 4 and 6 with
table I, the validation of figures 7 and 8, and equation 2."""

from commodel.models.sets import published
from commodel.price.papers import Evidence, Figure, Paper
from commodel.price.papers.tan.experiments import chain, fan_in, latencies, n_to_1, parameters
from commodel.price.papers.tan.validation import TREES, stream, validation


def figures(evidence: Evidence) -> tuple[Figure, ...]:
    table_1 = published("tan/cab-mrnet")
    gathered = evidence.simulated[evidence.platform] or len(evidence.points(operation="gather"))
    return (
        *((n_to_1(evidence),) if gathered else ()),  # an overlay network has no gather
        latencies(evidence),
        chain(evidence, table_1),
        fan_in(evidence, table_1),
        parameters(evidence, table_1),
        *(validation(evidence, leaves, table_1) for leaves in TREES),
        stream(evidence, table_1),
    )


PAPER = Paper(
    name="tan",
    citation="LogP for tree aggregation networks (TAN model), evaluated with MRNet on LLNL Cab",
    figures=figures,
    published=("tan/cab-mrnet",),
    absent="Figures 3 and 5 are drawings of a chain and of N-to-1. No figure shows a stream of waves, which the paper "
    "did not measure; its equation 2 has a section all the same.",
)
