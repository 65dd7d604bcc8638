"""Kernels: which rectangles their processes had, how fast these compute, and iterations that were measured alone beside
what families say of them."""

import math
from collections.abc import Mapping, Sequence

import pandas as pd

from commodel.compare.kernels import Partition, by_iteration
from commodel.compare.ranking import distinct, ranked
from commodel.models.speeds import Speeds
from commodel.report.charts import MOST_FAMILIES, mark, times, wide
from commodel.report.frames import PLATFORM, families_of, scaled
from commodel.report.sections import partitions as partition_blocks
from commodel.report.sections import speeds as speed_blocks
from commodel.report.shape import MICRO, MU, Answer, Axis, Chart, Column, Section, Series, Table, table
from commodel.report.tiling import MOST_RECTANGLES
from commodel.report.values import plain
from commodel.report.words import count, ratio, size
from commodel.units import format_seconds

SHEET = "Kernels"
DRAWN = 24  # partitions
NOTE = "Who has which part of the matrix, how fast processes compute, and what one iteration's messages take."


def sections(
    partitions: Sequence[Partition],
    unread: Sequence[str],
    frame: pd.DataFrame,
    speeds: Mapping[str, Speeds],
    raw: pd.DataFrame | None,
    simulated: set[str],
) -> list[Section]:
    """Nothing where no kernel was planned; `frame` comes from `frames.prepare`."""
    if not partitions and not unread:
        return []
    numbered = list(enumerate(sorted(partitions, key=alike), 1))
    drawn = [(number, partition) for number, partition in numbered if partition.tiling.ranks <= MOST_RECTANGLES]
    drawn = [(number, partition) for number, partition in drawn if not alike(partition)] or drawn
    drawn = drawn[:DRAWN]
    alone = by_iteration(frame)
    words = [*sentences(alone), *(plain(line) for line in unread)]
    if len(drawn) < len(partitions):
        what = f"those with unlike shares and at most {MOST_RECTANGLES} processes"
        words.append(f"{len(drawn)} of {count(len(partitions), 'partition')} drawn: {what}, at most {DRAWN}.")
    blocks = [
        Answer("What was measured of kernels?", tuple(words)),
        partition_blocks.overview(numbered, simulated),
        *(partition_blocks.picture(number, partition, simulated) for number, partition in drawn),
        *charts(alone),
        *([iterations(alone)] if len(alone) else []),
        *speed_blocks.blocks(speeds, partitions, raw),
        *([partition_blocks.rectangles(drawn, simulated)] if drawn else []),
    ]
    return [Section(SHEET, NOTE, tuple(blocks))]


def alike(partition: Partition) -> bool:
    """Whether all processes have as much to do: of that a picture says little."""
    return len(set(partition.tiling.area.tolist())) == 1


def sentences(alone: pd.DataFrame) -> list[str]:
    """Of each kernel whose iterations were measured alone: their times, and which prices are nearest."""
    lines = []
    for (platform, kernel), part in alone.groupby(["platform", "kernel"], sort=False):
        once = part.drop_duplicates("point").dropna(subset="measured")
        if once.empty:
            continue
        ends = dict.fromkeys(format_seconds(end) for end in (once["measured"].min(), once["measured"].max()))
        line = (
            f"{written(kernel)} on {platform}{mark(part)}: {count(len(once), 'iteration')} alone, {' to '.join(ends)}"
        )
        means = part.dropna(subset="mu").groupby("family")["mu"].mean().sort_values()
        if len(means):
            line += f"; nearest is {means.index[0]}, on average off by a factor of {ratio(means.iloc[0])}"
        lines.append(f"{line}.")
    return lines or ["No iteration was measured alone."]


def written(text: str) -> str:
    """A kernel or a layout in short: of a file's path what tells it from others."""
    parts = [part.removeprefix("partition=") for part in text.split(":")]
    return " ".join("/".join(part.split("/")[-2:]) for part in parts)


def charts(alone: pd.DataFrame) -> list[Chart]:
    """Time over the number of the iteration, for each kernel of which several were measured alone."""
    made = []
    for (platform, kernel, layout, length), part in alone.groupby(
        ["platform", "kernel", "layout", "bytes"], sort=False
    ):
        part = part.sort_values("iteration")
        once = part.drop_duplicates("point").dropna(subset="measured")
        if len(once) < 2:
            continue
        numbers, ends = over(once), {"low": times(once["measured_low"]), "high": times(once["measured_high"])}
        lines = [
            Series("simulated" if mark(part) else "measured", numbers, times(once["measured"]), "both", -1, **ends)
        ]
        for place, family in enumerate(distinct(part, ranked(part), MOST_FAMILIES)):
            price = part[(part["family"] == family) & part["predicted"].notna()]
            lines.append(Series(family, over(price), times(price["predicted"]), "dashed", place))
        spread = [value for line in lines for value in (*line.y, *line.low, *line.high)]
        name = f"{written(kernel)}, {written(layout)}, {size(length)}: {platform}{mark(part)}"
        made.append(
            Chart(
                f"Iterations {name}",
                name,
                Axis("iteration", log=False),
                Axis("messages of one iteration [µs]", log=wide(spread)),
                tuple(line for line in lines if line.x),
            )
        )
    return made


def over(rows: pd.DataFrame) -> tuple[float, ...]:
    return tuple(rows["iteration"].astype(float))


def iterations(alone: pd.DataFrame) -> Table:
    """A row an iteration that was measured alone, each family's price and μ in columns."""
    families = families_of(alone)
    rows = []
    for _, part in alone.sort_values(["simulated", "platform", "kernel", "iteration"], kind="stable").groupby(
        "point", sort=False
    ):
        row = scaled(part.iloc[:1]).iloc[0].to_dict()
        row |= {key: written(row[key]) for key in ("kernel", "layout")}
        prices = part.set_index("family")
        for family in families:
            there = family in prices.index
            row[f"{family} price"] = prices.at[family, "predicted"] * MICRO if there else math.nan
            row[f"{family} mu"] = prices.at[family, "mu"] if there else math.nan
        rows.append(row)
    columns = [
        *PLATFORM,
        Column("kernel", "kernel"),
        Column("layout", "layout"),
        Column("bytes", "bytes [B]", "count"),
        Column("iteration", "iteration", "count"),
        *(Column(f"measured{end}", f"measured{end.replace('_', ' ')} [µs]", "number") for end in ("", "_low", "_high")),
    ]
    for family in families:
        columns.append(Column(f"{family} price", f"{family} [µs]", "number"))
        columns.append(Column(f"{family} mu", f"{family} μ", "ratio", scale=MU))
    note = "n/a: not priced, or not measured; the sheet Comparison says why."
    return table("Iterations", "Iteration by iteration", columns, pd.DataFrame(rows), note=note, fixed=6)
