"""The table of all prices, each beside its measurement."""

import pandas as pd

from commodel.compare.table import crowded, is_said
from commodel.report.frames import LEAVES, PLATFORM, SAMPLES, scaled
from commodel.report.sections import crowding
from commodel.report.shape import MU, Column, Section, Table, table

WAVES = (Column("waves", "waves", "count", "of several, the times measured and predicted are those between two"),)
SETTING = (Column("setting", "setting", "text", "what people call the job that it was measured in"),)
LATENCIES = (
    Column(
        "first",
        "first wave [µs]",
        "number",
        "median, from the common start to its end at the last rank; n/a: clocks are not known well enough",
    ),
    Column("last", "last wave [µs]", "number", "median, from when the first rank began it to its end at the last rank"),
)
ENDS = [(key, end) for key in ("measured", "predicted") for end in ("", "_low", "_high")]
OF_SCHEDULES = ("fan_in", "relative_error", "mu", "chosen", "tie", "best", "held_out")
ENDS += [("parameters", "_low"), ("parameters", "_high")]


def section(frame: pd.DataFrame) -> Section:
    note = "One row per point and family: the price beside the measurement, and the file of its samples."
    return Section("Comparison", note, (_comparison(frame),))


def _comparison(frame: pd.DataFrame) -> Table:
    # Blank where a family made no choice or nothing can be compared; n/a is for what is missing and has a reason.
    blank = {"regret": ~frame["chosen"], "inside": frame["mu"].isna(), "leaves": frame["leaves"] == 0}
    blank |= dict.fromkeys(("processes", "processors"), ~(frame["processors"] > 0))
    prices = [f"{key}{end}" for key, end in ENDS if key != "measured"]
    blank |= dict.fromkeys((*prices, *OF_SCHEDULES), ~is_said(frame))
    times = [Column(f"{key}{end}", f"{key}{end.replace('_', ' ')} [µs]", "number") for key, end in ENDS]
    streams = (frame["waves"] > 1).any()
    columns = [
        *PLATFORM,
        *(Column(key, key) for key in ("operation", "choice", "kind", "layout")),
        Column("ranks", "ranks", "count"),
        LEAVES,
        Column("bytes", "bytes [B]", "count"),
        *(WAVES if streams else ()),
        *(SETTING if frame["setting"].ne("").any() else ()),
        Column("fan_in", "fan-in", "count", "most messages that one rank receives in one step"),
        Column("family", "family"),
        *times,
        *(LATENCIES if streams else ()),
        *(crowding.COLUMNS if crowded(frame).any() else ()),
        Column("relative_error", "relative error [%]", "signed"),
        Column("mu", "μ", "ratio", scale=MU),
        Column("inside", "inside", "flag", "the measured median lies between predicted low and high"),
        Column(
            "interval",
            "interval",
            "text",
            "what predicted low and high rest on; they need not hold a price that is off by a known factor",
        ),
        Column("chosen", "chosen", "flag", "the family would choose this alternative"),
        Column("tie", "tie", "flag", "chosen as the first of alternatives that the family prices the same"),
        Column("best", "best", "flag", "fastest measured in its job, of those that the family prices"),
        Column("regret", "regret [%]", "percent"),
        Column("held_out", "held out", "flag", "the family's own fit has not seen this point"),
        Column("status", "price status"),
        Column("measurement", "measurement"),
        Column("samples", "samples", "count"),
        Column("invalid", "invalid", "count", "samples discarded because a rank started late"),
        Column("stop", "stopped by"),
        Column("skew", "skew [µs]", "number"),
        Column("group", "job"),
        Column("point", "point"),
        *SAMPLES,
    ]
    return table("Comparison", "Predicted and measured", columns, scaled(frame), blank, fixed=4)
