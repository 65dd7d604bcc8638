"""The MRNet paper: a multicast and reduction network with up to 512 back-ends on Blue Pacific. The micro-benchmarks of
figure 5, the two trees of figure 4 under LogP, and of figure 6, its tool's start-up, what the network itself does."""

from commodel.price.papers import Evidence, Figure, Paper
from commodel.price.papers.mrnet.microbenchmarks import microbenchmarks
from commodel.price.papers.mrnet.topologies import topologies
from commodel.price.papers.mrnet.uses import classes, skews


def figures(evidence: Evidence) -> tuple[Figure, ...]:
    return topologies(), *microbenchmarks(evidence), skews(evidence), classes(evidence)


PAPER = Paper(
    name="mrnet",
    citation="P. Roth, D. Arnold and B. Miller, MRNet: a software-based multicast/reduction network for scalable "
    "tools, SC 2003",
    figures=figures,
    absent="Figures 1 to 3 are drawings and code. Figure 6 is the start-up of Paradyn, a tool that is not here: of its "
    "activities the detection of clock skews and the reports by equivalence classes are rebuilt, without the tool's "
    "own work. The text prints no number of figure 5; of figure 6 it prints the errors of the skews, and that starting "
    "with 512 daemons was 3.4 times faster over an 8-way tree.",
)
