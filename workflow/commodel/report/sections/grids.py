"""The two maps of the first screen: what to use (operation, ranks × bytes), and whom to trust (family × operation)."""

import math
from collections import Counter
from itertools import groupby

import pandas as pd

from commodel.compare.ranking import best_family, in_order, operations
from commodel.compare.recommend import fastest
from commodel.compare.table import summarize
from commodel.price.status import PriceStatus, word
from commodel.report.charts import PALE, stem
from commodel.report.front import Behind, Cell, Grid
from commodel.report.matrix import shade
from commodel.report.shape import MU
from commodel.report.words import ALL, CLOSE, by_frequency, comma, ratio, shortened, size
from commodel.units import format_seconds

LIBRARY, BLANK, OUT = "#FEFEFE", "#F1F3F4", "#E4E7EA"
USE = "Colour: algorithm. ≈: others are as fast. Outlined: the MPI library's own choice is the fastest."
TRUST = "μ: by what factor prices are off, at points that no fit has seen; 1 is exact. Grey: most are doubted."


def use_grid(part: pd.DataFrame) -> Grid:
    """Neighbouring rows that say the same are one."""
    rows = fastest(part)
    sizes = sorted(rows["bytes"].unique())
    colours = colouring(rows.loc[~rows["own"], "use"])
    lines = []  # (operation, labels, cells)
    for (operation, place), jobs in rows.groupby(["operation", "place"], sort=True):
        differ = rows.loc[rows["operation"] == operation, "place"].nunique() > 1
        described = []
        for (_, label), some_rows in jobs.groupby(["count", "size"], sort=True):
            described.append((label, {row.bytes: row for row in some_rows.itertuples()}))
        for _, alike in groupby(described, key=lambda entry: {length: winner(row) for length, row in entry[1].items()}):
            same = list(alike)
            lines.append((operation, span([label for label, _ in same]) + (f", {place}" if differ else ""), same))
    cells = []
    for at, (operation, _, same) in enumerate(lines):
        label, last = same[-1]
        for length, row in last.items():
            picks = (("operation", operation), *((("size", label),) if len(same) == 1 else ()), ("bytes", str(length)))
            fill = LIBRARY if row.own else colours[stem(row.use)]
            place, behind = (at, sizes.index(length)), Behind("Comparison", (("point", row.point),))
            cells.append(Cell(*place, winner(row), fill, hint(operation, label, row), row.own, picks, behind))
    columns = tuple(size(length) for length in sizes)
    heads = tuple((operation, label) for operation, label, _ in lines)
    return Grid("use", "What to use", USE, heads, columns, tuple(cells), "message size", "ranks or leaves")


def winner(row) -> str:
    return (CLOSE if row.ties else "") + ("library" if row.own else row.use)


def hint(operation: str, label: str, row) -> str:
    line = f"{operation}, {label}, {size(row.bytes)}: {winner(row).removeprefix(CLOSE)}, {format_seconds(row.measured)}"
    line += f"; as fast: {shortened(list(row.ties), 4)}" if row.ties else f"; {row.gain:.2f}× faster than {row.next}"
    no_library = row.own or not math.isfinite(row.over)
    return line if no_library else f"{line}; library / this: {row.over:.2f}"


def span(labels: list[str]) -> str:
    """`8`, `8–32`: ranks, or with their noun where that is another."""
    texts = [label.removesuffix(" ranks") for label in labels]
    if len(texts) == 1:
        return texts[0]
    first, last = texts[0].partition(" "), texts[-1].partition(" ")
    return f"{first[0]}–{last[0]}{last[1]}{last[2]}"


def colouring(choices: pd.Series) -> dict[str, str]:
    """A colour for each algorithm or kind of tree, the most frequent first; beyond ten they come again."""
    names = [name for name, _ in by_frequency(map(stem, choices))]
    return {name: PALE[place % len(PALE)] for place, name in enumerate(names)}


def trust_grid(judged: pd.DataFrame) -> Grid:
    """The best family first; those that price a few points only come last."""
    named = judged[["family", "status", "held_out", "mu", "relative_error", "inside"]]
    named = named.assign(operation=operations(judged)).sort_values("operation", kind="stable")
    names = named["operation"].unique().tolist()
    whole = summarize(named.assign(operation=ALL), ["operation", "family"])
    rows = pd.concat([whole, summarize(named, ["operation", "family"])])
    families, platform = in_order(whole)["family"].tolist(), next(iter(judged["platform"]), "")
    if (best := best_family(judged)) is not None:
        families.sort(key=lambda family: family != best["family"])
    columns = [ALL, *names] if len(names) > 1 else names
    asked = named.groupby(["operation", "family"])["status"].agg(list).to_dict()
    cells = []
    for row in rows.itertuples():
        if row.operation not in columns:
            continue
        beyond = row.points_reached < 0.5 * row.points
        words = f"{row.family}, {row.operation}: mean μ {ratio(row.mu_mean)} over {int(row.points)} points"
        if beyond:
            kinds = Counter(word(text) for text in asked.get((row.operation, row.family), ()))
            kinds.pop(PriceStatus.OK.value, None)
            words += f"; {comma([name for name, _ in kinds.most_common(2)])}" if kinds else ""
        picks = (("family", row.family), *((("operation", row.operation),) if row.operation != ALL else ()))
        place = (families.index(row.family), columns.index(row.operation))
        fill, behind = OUT if beyond else ground(row.mu_mean), averaged(platform, row.operation, row.family)
        cells.append(Cell(*place, figures(row.mu_mean), fill, words, picks=picks, behind=behind))
    heads = tuple(("", family) for family in families)
    return Grid("trust", "Whom to trust", TRUST, heads, tuple(columns), tuple(cells), "operation", "family")


def averaged(platform: str, operation: str, family: str) -> Behind:
    """The table that says the mean μ of a family's prices."""
    if operation == ALL:
        return Behind("Families", (("platform", platform), ("family", family)), "mu_mean")
    return Behind("Mean μ by operation", (("platform", platform), ("operation", operation)), f"= {family}")


def figures(mu: float) -> str:
    return "∞" if mu == math.inf else f"{mu:.2f}" if mu < 10 else f"{mu:,.0f}"


def ground(mu: float) -> str:
    """Good is green, bad is orange: the scale of the tables."""
    if mu <= MU.middle:
        return shade(0.5 * (mu - MU.good) / (MU.middle - MU.good))
    return shade(0.5 + 0.5 * (mu - MU.middle) / (MU.bad - MU.middle))
