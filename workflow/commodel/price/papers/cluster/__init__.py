"""Tam and Wang 1999: a broadcast packet by packet, and gathers that lose packets or do not. Owns table 1."""

from math import nan

from commodel.models.sets import published
from commodel.parameters import ParameterSet
from commodel.price.papers import Evidence, Figure, Numbers, Paper, Row
from commodel.price.papers.cluster.broadcast import broadcast, tree
from commodel.price.papers.cluster.gather import figures_4_and_5
from commodel.price.papers.cluster.machine import PACKET, Machine


def figures(evidence: Evidence) -> tuple[Figure, ...]:
    printed = published("cluster/fast-ethernet-16")
    known = (evidence, printed, evidence.fitted("cluster"))
    return (parameters(*known), tree(), broadcast(*known), *figures_4_and_5(*known))


def parameters(evidence: Evidence, printed: ParameterSet, fitted: ParameterSet | None) -> Figure:
    paper, here = Machine(printed), Machine(fitted) if fitted else None
    rows = [
        Row((name, size), paper(name, size), (here(name, size) if here else nan,))
        for name in ("O_s", "g_s", "g_r", "O_r", "U_r")
        for size in (40, PACKET)
    ]
    for ranks in (2, 16):
        whole = here.latency(PACKET, ranks) if here else nan
        rows.append(Row((f"L, {ranks} ranks", PACKET), paper.latency(PACKET, ranks), (whole,)))
    held = f"{here('B_L', 0):.0f} were found here" if here and "B_L" in here.values else "none could be seen here"
    return Figure(
        "Table 1",
        "the parameters of the cluster model",
        "What the formulas of the table give for a packet of 40 and of 1500 bytes, beside the same of what was fitted "
        f"to probes on {evidence.platform}. Of the network's buffer, in the paper 1935 packets, {held}.",
        "the machine is another one; the simulated one was given O_s, U_r, the ports' throughput and a latency from "
        "this table, but no O_r, since nobody works behind a simulated process's back, and its switch has no limit.",
        (Numbers("Parameters", ("parameter", "packet [B]"), ("fitted",), "by the formulas of table 1", tuple(rows)),),
        measured=(evidence.platform,),
    )


PAPER = Paper(
    name="cluster",
    citation="A. Tam, C.-L. Wang, Realistic communication model for parallel computing on cluster, IWCC 1999",
    figures=figures,
    published=("cluster/fast-ethernet-16",),
    absent="All of its figures and tables are here: figures 1 and 3 by their numbers, table 1 without memory copies "
    "and T_s, which none of them needs. What its authors measured is drawn there and not printed, so in figures 2, 4 "
    "and 5 the curves of its equations stand for it.",
)
