"""Rico-Gallego, Lastovetsky and Díaz-Martín 2017: the worked examples of τ–Lop's algebra, and whole kernels on
heterogeneous layouts."""

from commodel.price.papers import Evidence, Figure, Paper
from commodel.price.papers.taulop import examples, kernels


def figures(evidence: Evidence) -> tuple[Figure, ...]:
    return (*examples.figures(evidence), *kernels.figures(evidence))


PAPER = Paper(
    name="taulop",
    citation="J.-A. Rico-Gallego, A. L. Lastovetsky, J.-C. Díaz-Martín, Model-based estimation of the communication "
    "cost of hybrid data-parallel applications on heterogeneous clusters, IEEE TPDS 28, 2017",
    figures=figures,
    absent="Table 1 is in params/layouts/fermi, and what figure 10 draws, a partition for M10, in "
    "params/partitions/fermi/summa-128/M10.csv; section Kernels draws it. Figures 1 to 3, 5, 7 and 11 draw no data.",
)
