"""Hoefler and others 2005: rounds of one byte to n partners and back on 64 nodes with InfiniBand. Figures 3 to 5, the
formulas of section 4.7, the comparison of models in section 2, and what the conclusion says of barriers."""

from commodel.price.papers import Evidence, Figure, Paper
from commodel.price.papers.lop.barriers import barriers
from commodel.price.papers.lop.models import by_formula, formulas, models
from commodel.price.papers.lop.roundtrips import overheads, round_trips


def figures(evidence: Evidence) -> tuple[Figure, ...]:
    return (
        by_formula(),
        models(evidence),
        round_trips(
            evidence,
            "Figure 3",
            "round trips by Send/Receive",
            "infiniband-send",
            "infiniband-64 was given the paper's round trip with one partner and about its least with several, and "
            "stays there with many, where the paper's network interface saturates; what is simulated hardly varies.",
        ),
        round_trips(
            evidence,
            "Figure 4",
            "round trips by RDMA Write",
            "infiniband-rdma-write",
            "a simulated put is announced, sent and closed by messages, three for one, while the paper's adapter "
            "writes without its partner's processor.",
        ),
        overheads(evidence),
        formulas(evidence),
        barriers(evidence),
    )


PAPER = Paper(
    name="lop",
    citation="T. Hoefler, T. Mehlan, F. Mietke, W. Rehm, A communication model for small messages with InfiniBand, "
    "PARS 2005",
    figures=figures,
    published=("lop/infiniband-send", "lop/infiniband-rdma-write"),
    absent="Figures 1 and 2 are drawings of the model without numbers. Of figures 3 to 5 the text has the functions "
    "that were fitted to the smallest times; averages, inline sends and other ways to post are drawn only.",
)
