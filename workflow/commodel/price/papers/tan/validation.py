"""Eight trees, one wave and many: TAN and LogP beside what was measured, and beside what the paper's values give."""

from collections.abc import Iterable
from dataclasses import replace
from math import isnan, nan

from commodel.parameters import ParameterSet
from commodel.price.papers import NO_NUMBER, Evidence, Figure, Line, Numbers, Panel, Row, price
from commodel.price.papers.tan.experiments import TIME, reduction
from commodel.price.stack import ENDLESS

TREES = {
    32: {"two levels": "groups:6,6,5,5,5,5", "binomial": "binomial:6", "binary": "kary:2^5", "all to one": "flat:32"},
    128: {"two levels": "groups:12x7,11x4", "binomial": "binomial:8", "binary": "kary:2^7", "all to one": "flat:128"},
}
FIGURES = {32: "Figure 7", 128: "Figure 8"}
TAN, DRAWN = "TAN", "LogP as drawn"
FAMILIES = {"tan": TAN, "logp-tan": DRAWN, "logp": "LogP"}
WAVES = 20  # of a stream


def a_level(table_1: ParameterSet) -> ParameterSet:
    """LogP as the paper drew it: of o only what the chain told."""
    values = {"L": table_1.values["L"], "o": table_1.values["o.a"], "C": table_1.values["C"]}
    return replace(table_1, family="logp-tan", values=values, forms={})


def by_recipe(fitted: ParameterSet | None, specs: Iterable[str]) -> list[float]:
    if fitted is None or "o_paper.a" not in fitted.values:
        return [nan for _ in specs]
    return [price(fitted, reduction(spec), recipe="paper") for spec in specs]


def apart(cost: float, time: float) -> float:
    """The proportional error, 1 where they are the same."""
    return max(cost / time, time / cost)


def mean(values: list[float]) -> float:
    """Of those that there are."""
    known = [value for value in values if not isnan(value)]
    return sum(known) / len(known) if known else nan


def table(rows: Iterable[tuple]) -> tuple[Row, ...]:
    """Of a name, the paper's number, and ours."""
    return tuple(Row((name,), paper, tuple(here)) for name, paper, *here in rows)


def compared(evidence: Evidence, specs: Iterable[str], waves: int) -> tuple[list[float], dict[str, list[float]]]:
    """What was measured of each tree, and every family's prices."""

    def first(column: Iterable[float]) -> float:
        return next(map(float, column), nan)

    about = [{"topology": spec, "waves": waves} for spec in specs]
    measured = [first(evidence.points(**where)["measured"]) for where in about]
    prices = {
        title: [first(evidence.priced(name, **where)["predicted"]) for where in about]
        for name, title in FAMILIES.items()
    }
    return measured, prices


def crowded(evidence: Evidence) -> tuple[int, int] | None:
    """The most processes that shared the processors of a host, and these; None where each had one."""
    if not {"processes", "processors"} <= set(evidence.comparison):
        return None
    rows = evidence.comparison[evidence.comparison["processes"] > evidence.comparison["processors"]]
    return (int(rows["processes"].max()), int(rows["processors"].min())) if len(rows) else None


def why(evidence: Evidence) -> str:
    """Whoever is nearer: what keeps each model from what was measured there."""
    if evidence.simulated[evidence.platform]:
        return (
            "TAN lets a node begin when its last child has sent, and a simulated node has handled the early ones by "
            "then, so that TAN is too dear where children come one after the other, up a binomial tree, and exact "
            "where all come at once."
        )
    if room := crowded(evidence):
        return (
            f"up to {room[0]} processes take turns on {room[1]} processors here, while every model lets sub-trees go "
            "on at the same time, so that all are too low on trees of several levels, LogP as drawn the most, and "
            "only all to one, which is what N-to-1 was fitted to, costs what TAN and LogP say."
        )
    return (
        "TAN counts all children of a node after the last has sent, and is too dear up a binomial tree, where they "
        "come one after the other; LogP lets only those wait that meet, and is too cheap there; LogP as drawn knows no "
        "children at all, and is too cheap wherever there are several."
    )


def validation(evidence: Evidence, leaves: int, table_1: ParameterSet) -> Figure:
    trees, word = TREES[leaves], evidence.word(evidence.platform)
    measured, prices = compared(evidence, trees.values(), 1)
    prices["TAN, paper's recipe"] = by_recipe(evidence.fitted("tan"), trees.values())
    by_table, by_levels = (
        [price(values, reduction(spec)) for spec in trees.values()] for values in (table_1, a_level(table_1))
    )
    errors = {title: [apart(*pair) for pair in zip(costs, measured, strict=True)] for title, costs in prices.items()}
    none, titles = [nan] * len(trees), ("tree",)
    nearer = [tan <= logp for tan, logp in zip(errors[TAN], errors[DRAWN], strict=True) if not isnan(tan + logp)]
    numbers = (
        Numbers(
            "A wave",
            titles,
            (word, *prices),
            "TAN with the values of table I; the observed bars are not legible",
            table(zip(trees, by_table, measured, *prices.values(), strict=True)),
        ),
        Numbers(
            "LogP as the paper drew it",
            titles,
            (DRAWN,),
            "L + o a level, with the values of table I",
            table(zip(trees, by_levels, prices[DRAWN], strict=True)),
        ),
        Numbers(
            f"How far off what is {word}, either way (×)",
            titles,
            tuple(errors),
            NO_NUMBER,
            table([*zip(trees, none, *errors.values(), strict=True), ("their mean", nan, *map(mean, errors.values()))]),
            "",
        ),
        Numbers(
            "Trees on which TAN is nearer than LogP as drawn",
            ("of four trees",),
            ("here",),
            "said in section V A",
            (Row((f"{leaves} leaves",), len(trees), (sum(nearer) if nearer else nan,)),),
            "",
        ),
    )
    places = range(1, len(trees) + 1)
    lines = [
        Line("paper, TAN", places, by_table, "dashed", 1),
        Line("paper, LogP as drawn", places, by_levels, "dashed", 2),
    ]
    columns = {word: measured} | prices
    lines += [
        Line(title, places, times, "both" if title == word else "dots", colour)
        for colour, (title, times) in enumerate(columns.items())
        if not isnan(sum(times))
    ]
    title = ", ".join(f"{place} {name}" for place, name in enumerate(trees, 1))
    return Figure(
        FIGURES[leaves],
        f"a wave up four trees with {leaves} leaves",
        "LogP as the paper drew it has one overhead a level, LogP itself one for every child. The paper prints no "
        "errors, and says that TAN is nearer than LogP on every tree.",
        why(evidence),
        numbers,
        (Panel(title, "tree", TIME, tuple(lines), "y"),),
        (evidence.platform,),
    )


def stream(evidence: Evidence, table_1: ParameterSet) -> Figure:
    """Equation 2: the node with the most children sets the pace, whatever the height."""
    word = evidence.word(evidence.platform)
    rows = []
    for leaves, trees in TREES.items():
        measured, prices = compared(evidence, trees.values(), WAVES)
        by_table = [price(table_1, reduction(spec), ENDLESS) for spec in trees.values()]
        columns = zip(trees, by_table, measured, prices[TAN], prices["LogP"], strict=True)
        rows += [Row((name, leaves), paper, tuple(here)) for name, paper, *here in columns]
    return Figure(
        "Equation 2",
        "the time between two waves of a stream",
        f"Of {WAVES} waves that follow each other without waiting. The paper has the equation and measured no stream.",
        "equation 2 adds the latency to every period, while a node handles messages of the next wave during it, as "
        f"LogP has it{'' if evidence.simulated[evidence.platform] else ', and here packets travel together'}.",
        (
            Numbers(
                "Between two waves",
                ("tree", "leaves"),
                (word, TAN, "LogP"),
                "by equation 2 with the values of table I",
                tuple(rows),
            ),
        ),
        measured=(evidence.platform,),
    )
