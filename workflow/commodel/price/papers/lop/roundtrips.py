"""What the LoP paper measured of 1:n and n:1: the round trips of figures 3 and 4, and the overheads of figure 5."""

from dataclasses import replace
from math import nan

import numpy as np

from commodel.models import Array
from commodel.models.families.lop import FUNCTIONS, round_of
from commodel.models.sets import published
from commodel.parameters import ParameterSet
from commodel.price.model import Model
from commodel.price.papers import Evidence, Figure, Line, Numbers, Panel, Row

PARTNERS = np.array([1, 2, 4, 8, 16, 32, 63])
SMOOTH = np.geomspace(1, 64, 64)
ABOUT = ("partners",)
MESSAGE = "time a message [s]"


def at(parameters: ParameterSet, function: str, partners: Array) -> Array:
    return np.ravel(Model.of_set(parameters).values.at(function, partners))


def latency(parameters: ParameterSet, partners: Array) -> Array:
    """L(n)."""
    return np.ravel(round_of(Model.of_set(parameters).values, partners).wire) / partners


def read(parameters: ParameterSet, **settings: str) -> ParameterSet:
    """The same values taken another way."""
    return replace(parameters, settings={**parameters.settings, **settings})


def a_message(evidence: Evidence, probe: str, how: str, statistic: str) -> dict[int, float]:
    """Of a probe with n partners, by n: its time over n."""
    return {int(case["n"]): case[statistic] / int(case["n"]) for case in evidence.cases(probe, how=how)}


def overlapped(parameters: ParameterSet, how: str, partners: Array) -> Array:
    """Of n messages the share of each in the overheads of n − 1, which a price counts and a round trip does not."""
    overhead = FUNCTIONS[how][1]
    both = at(parameters, overhead, np.array([1.0])) + at(parameters, overhead, partners)
    return (partners - 1) / partners * both


def fitted_trip(parameters: ParameterSet | None, how: str, partners: Array) -> Array:
    """What a fit says of the round trip over n; NaN where it has seen none."""
    rtt = FUNCTIONS[how][0]
    if parameters is None or f"{rtt}.a" not in parameters.values:
        return np.full(len(partners), nan)
    return at(parameters, rtt, partners) - overlapped(parameters, how, partners)


def round_trips(evidence: Evidence, name: str, title: str, source: str, why: str) -> Figure:
    how = {"infiniband-send": "isend", "infiniband-rdma-write": "put"}[source]
    paper, fitted, word = published(f"lop/{source}"), evidence.fitted("lop"), evidence.word(evidence.platform)
    least, mean = (a_message(evidence, "round", how, statistic) for statistic in ("min", "mean"))
    rows = tuple(
        Row((int(n),), float(printed), (least.get(n, nan), mean.get(n, nan), float(ours)))
        for n, printed, ours in zip(
            PARTNERS, at(paper, FUNCTIONS[how][0], PARTNERS), fitted_trip(fitted, how, PARTNERS), strict=True
        )
    )
    lines = (
        Line("paper, fitted to the least", SMOOTH, at(paper, FUNCTIONS[how][0], SMOOTH), "dashed", -1),
        Line(f"{word}, least", tuple(least), tuple(least.values()), "dots"),
        Line(f"{word}, average", tuple(mean), tuple(mean.values()), "dots", 1),
        Line("fitted to medians", SMOOTH, fitted_trip(fitted, how, SMOOTH)),
    )
    return Figure(
        name,
        title,
        "One byte from a node to each of n others and one back from each: the time over n. The paper prints a function "
        "for the smallest times; the one for averages is not in its text.",
        why,
        (
            Numbers(
                "Round trip, a message",
                ABOUT,
                (f"{word}, least", f"{word}, average", "fitted"),
                "by the function printed in section 4.7, which was fitted to the smallest times",
                rows,
            ),
        ),
        (Panel("round trip a message", "partners", MESSAGE, lines, "x"),),
        (evidence.platform,),
    )


def overheads(evidence: Evidence) -> Figure:
    paper, word = published("lop/infiniband-send"), evidence.word(evidence.platform)
    posts = {
        f"{word}, {words}": a_message(evidence, "post", how, "median")
        for how, words in {"isend": "one by one", "list": "as a list", "put": "puts"}.items()
    }
    rows = tuple(
        Row((int(n),), float(printed), tuple(times.get(n, nan) for times in posts.values()))
        for n, printed in zip(PARTNERS, at(paper, "o_s", PARTNERS), strict=True)
    )
    lines = [Line("paper", SMOOTH, at(paper, "o_s", SMOOTH), "dashed", -1)]
    lines += [
        Line(title, tuple(times), tuple(times.values()), "dots", place)
        for place, (title, times) in enumerate(posts.items())
    ]
    return Figure(
        "Figure 5",
        "the overhead of posting a send",
        "What posting n sends takes a processor, over n. The paper prints 0.52 + 0.84/(−0.12 + n) µs within its L(n), "
        "and says that Send/Receive and RDMA Write are alike; of the latter's own function only its constant, 0.5557 "
        "µs, is legible.",
        "a simulated processor does what in the paper the network interface does, and has no caches to warm up, so "
        "that its overhead is higher and the same for any number of partners.",
        (Numbers("Overhead of one send", ABOUT, tuple(posts), "by the numbers printed within L(n)", rows),),
        (Panel("overhead", "partners", MESSAGE, tuple(lines), "x"),),
        (evidence.platform,),
    )
