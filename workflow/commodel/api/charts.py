"""Charts of results: bars of times with their intervals, and ratios."""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import TYPE_CHECKING

from commodel.errors import UserError

if TYPE_CHECKING:
    import altair
    import pandas as pd


def load_altair() -> ModuleType:
    """Return altair, which only notebooks need."""
    try:
        return importlib.import_module("altair")
    except ModuleNotFoundError:
        raise UserError(
            "charts in a notebook need altair: pip install 'commodel[notebook]'"
        ) from None


def draw_times(frame: pd.DataFrame, title: str, measured: bool = False) -> altair.Chart:
    """Return bars of the column `seconds` by `name`, in the order of the rows, with the intervals
    of `low` and `high`; if `measured`, with the measured times as ticks."""
    altair = load_altair()
    names = altair.Y("name:N", sort=None, title=None)
    chart = altair.Chart(frame.dropna(subset="seconds"), title=title)
    times = altair.X("seconds:Q", title="time / s", axis=altair.Axis(format="~s"))
    drawn = chart.mark_bar(color="#7FB1D3").encode(times, names)
    if "low" in frame:
        drawn += chart.mark_rule(strokeWidth=2).encode(altair.X("low:Q"), names, x2="high:Q")
    if measured:
        drawn += chart.mark_tick(color="#8A3B00", thickness=3).encode(altair.X("measured:Q"), names)
    return drawn
