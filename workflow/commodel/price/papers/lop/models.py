"""L(n) and what follows from it, and PRAM, BSP, LogP and LoP side by side, as the LoP paper compares them."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import inf, nan

import numpy as np

from commodel.models import Array
from commodel.models.families.lop import round_of
from commodel.models.fitting.regression import line
from commodel.models.keys import sample
from commodel.models.pricing.functions import TABLE
from commodel.models.sets import published
from commodel.parameters import Estimate, ParameterSet
from commodel.price.model import Model
from commodel.price.papers import NO_NUMBER, Evidence, Figure, Line, Numbers, Panel, Row
from commodel.price.papers.lop.roundtrips import ABOUT, PARTNERS, at, latency, overlapped, read

MODELS = {"logp": "LogP", "lop": "LoP", "bsp": "BSP", "pram": "PRAM"}
OPERATIONS = ("bcast", "gather", "barrier")
DRAWN = (("bcast", "linear"), ("gather", "linear"), ("barrier", "dissemination"), ("barrier", "n-way:3"))
HALF_TRIPS = "half of n round trips by the function of figure 3"


def rounded(n: Array) -> Array:
    """L(n) of Send/Receive with the numbers that stand in section 4.7, of two digits each."""
    trip = 4.58 + 11.23 / (-0.01 + n) + 0.01 * (1 - np.exp(-0.06 * (n - 101.31)))
    return (trip - (0.52 + 0.84 / (-0.12 + 1)) - (0.52 + 0.84 / (-0.12 + n))) * 1e-6


def once(parameters: ParameterSet) -> ParameterSet:
    """The same with the overlapping overheads on the round trips again, as a fit here does it; at PARTNERS only."""
    trips = at(parameters, "rtt", PARTNERS) + overlapped(parameters, "isend", PARTNERS)
    values = {name: value for name, value in parameters.values.items() if not name.startswith("rtt.")}
    values |= {sample("rtt", n): Estimate(trip, "s", trip, trip) for n, trip in zip(PARTNERS, trips, strict=True)}
    return replace(read(parameters, latency="halved"), values=values, forms={**parameters.forms, "rtt": TABLE})


def one_to_n(parameters: ParameterSet) -> Array:
    """o(n) + n·L(n)."""
    rounds = round_of(Model.of_set(parameters).values, PARTNERS)
    return np.ravel(rounds.first + rounds.wire)


def rows(printed: Array, *here: Array) -> tuple[Row, ...]:
    return tuple(
        Row((int(n),), float(paper), tuple(map(float, ours)))
        for n, paper, *ours in zip(PARTNERS, printed, *here, strict=True)
    )


def formulas(evidence: Evidence) -> Figure:
    """L(n), the times that follow from it, and what is left in them of the round trips that all of it came from."""
    paper, fitted = published("lop/infiniband-send"), evidence.fitted("lop")
    halved = read(paper, latency="halved")
    ours = latency(fitted, PARTNERS) if fitted else np.full(len(PARTNERS), nan)
    half = PARTNERS * at(paper, "rtt", PARTNERS) / 2
    return Figure(
        "Section 4.7",
        "L(n), and the time for one to n",
        "L(n) of Send/Receive as printed, in two digits, beside the same from the exact numbers of the round trip, "
        "with whole overheads taken off and with halves, and beside a fit of what was probed here. Then o(n) + n·L(n), "
        "which the paper has for one to n, beside the half of the printed round trip of n messages, for it takes one "
        "to n and n to one for equally long.",
        "the paper takes overheads of both ways off one half of the trip, and all of them off each of n messages, "
        "though they overlap; counted once, as a fit here does, they give the round trips back.",
        (
            Numbers(
                "L(n)",
                ABOUT,
                ("as printed", "halved", "fitted here"),
                "by the rounded numbers of section 4.7, whose last term is −4.1 µs with one partner, and −9.2/2 "
                "unrounded",
                rows(rounded(PARTNERS), latency(paper, PARTNERS), latency(halved, PARTNERS), ours),
            ),
            Numbers(
                "One to n",
                ABOUT,
                ("as printed", "halved", "overlaps counted once"),
                HALF_TRIPS,
                rows(half, one_to_n(paper), one_to_n(halved), one_to_n(once(paper))),
            ),
        ),
        measured=(evidence.platform,),
    )


def apart(cost: float, time: float) -> float:
    """The proportional error; without end of a price that is nothing."""
    return max(cost / time, time / cost) if cost else inf


def on_the_curve() -> dict[str, Array]:
    """One to n by every model, for PARTNERS."""
    paper = published("lop/infiniband-send")
    half = PARTNERS * at(paper, "rtt", PARTNERS) / 2
    first, slope = line(PARTNERS.astype(float), half[None], 1 / half**2)
    return {
        "paper": half,
        "LoP as printed": one_to_n(paper),
        "LoP, overlaps counted once": one_to_n(once(paper)),
        "LogP or BSP, nearest line": first[0] + slope[0] * PARTNERS,
        "PRAM": np.zeros(len(PARTNERS)),
    }


def clocked(evidence: Evidence) -> tuple[Row, ...]:
    """What was measured, and the prices of MODELS."""
    costs = {name: dict(evidence.priced(name)[["point", "predicted"]].itertuples(index=False)) for name in MODELS}
    points = [
        point for point in evidence.points().itertuples() if point.operation in OPERATIONS and point.choice != "library"
    ]
    points.sort(key=lambda point: (OPERATIONS.index(point.operation), point.choice, point.ranks))
    return tuple(
        Row(
            (point.operation, point.choice, point.ranks),
            nan,
            (point.measured, *(costs[name].get(point.point, nan) for name in MODELS)),
        )
        for point in points
    )


def mean_errors(times: tuple[Row, ...]) -> tuple[Row, ...]:
    rows = []
    for operation in OPERATIONS:
        of_it = [row.here for row in times if row.about[0] == operation]
        errors = ([apart(cost, measured) for cost in costs] for measured, *costs in of_it)
        means = tuple(np.mean(list(errors), axis=0).tolist()) if of_it else (nan,) * len(MODELS)
        rows.append(Row((operation,), nan, means))
    return tuple(rows)


def panel(title: str, x: str, over: Sequence[float], columns: Mapping[str, Sequence[float]]) -> Panel:
    """The first column, of what all others are about, in dots."""
    lines = [
        Line(name, over, column, "line" if place else "dots", place)
        for place, (name, column) in enumerate(columns.items())
    ]
    return Panel(title, x, "time [s]", tuple(lines))


def by_formula() -> Figure:
    """On the paper's own curve."""
    curve = on_the_curve()
    names = tuple(name for name in curve if name != "paper")
    return Figure(
        "Section 2",
        "PRAM, BSP, LogP and LoP on the paper's own curve",
        "One to n by each model, beside half of the printed round trips: for a single round LogP and BSP are both a "
        "straight line, here the nearest. The paper compares in words: PRAM's messages are free, BSP makes all wait "
        "for all, LogP is the most accurate of those that were known, and LoP more so with few partners.",
        "the printed round trips bend where the network interface saturates, which no line follows, and LoP as printed "
        "loses the overheads that it takes off more than once.",
        (Numbers("One to n", ABOUT, names, HALF_TRIPS, rows(*curve.values())),),
        (panel("one to n", "partners", PARTNERS, curve),),
    )


def models(evidence: Evidence) -> Figure:
    """On what was measured."""
    word, times = evidence.word(evidence.platform), clocked(evidence)
    columns = (word, *MODELS.values())
    panels = []
    for pattern in DRAWN:
        if of_it := [row for row in times if row.about[:2] == pattern]:
            lines = dict(zip(columns, zip(*(row.here for row in of_it), strict=True), strict=True))
            panels.append(panel(" ".join(pattern), "nodes", [row.about[2] for row in of_it], lines))
    return Figure(
        "Section 2.5",
        f"PRAM, BSP, LogP and LoP beside what was {word}",
        "One to n is bcast linear, n to one is gather linear; n-way:2 is a barrier with two signals a round. All "
        "values are fitted to probes. The paper chooses LogP among those that were known, and measures no pattern by "
        "any.",
        "what is simulated is a LogP machine, on which LogP is exact, while BSP has everybody wait for all in each "
        "step, and LoP forgets that who signals n others in a round is signalled by n.",
        (
            Numbers(
                f"How far prices are off what was {word}, either way, mean (×)",
                ("operation",),
                tuple(MODELS.values()),
                NO_NUMBER,
                mean_errors(times),
                "",
            ),
            *((Numbers("Times", ("operation", "algorithm", "nodes"), columns, NO_NUMBER, times),) if times else ()),
        ),
        tuple(panels),
        (evidence.platform,),
    )
