"""What advice is about and what it says: a `Workload`, and the `Ranking` of its alternatives."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from commodel.advice.evidence import LibraryDefault
from commodel.compare.combined_prediction import PairedComparison
from commodel.records import Point, Statistic
from commodel.units import format_bytes, format_extent, format_seconds


@dataclass(frozen=True)
class Workload:
    """A workload: operation, size, and number of leaves of a tree or of ranks."""

    operation: str
    bytes: int
    leaves: int = 0
    ranks: int = 0
    # of the ranks' times, by which alternatives are ranked
    statistic: Statistic = Statistic.COMPLETION

    @property
    def text(self) -> str:
        text = (
            f"{self.operation} over {format_extent(self.leaves, self.ranks)}, "
            f"{format_bytes(self.bytes)}"
        )
        return text if self.statistic is Statistic.COMPLETION else f"{text}, {self.statistic}"


@dataclass(frozen=True, slots=True)
class InformativePoint:
    """An alternative whose measurement would lower the expected regret."""

    alternative: str  # an algorithm or a topology
    layout: str
    point: Point


@dataclass(frozen=True, eq=False, repr=False)
class Ranking:
    """Ranked alternatives of a workload, that with the least expected regret first; the weights of
    the models; and notes."""

    workload: Workload
    frame: pd.DataFrame
    # of models, at each placement of alternatives: within a node, between nodes
    weights: dict[str, dict[str, float]]
    notes: list[str]
    default: LibraryDefault | None = None
    keeps_default: bool = False  # the gain over the MPI default is within its uncertainty
    deviations: tuple[float, ...] = ()  # of the logarithms of the alternatives' times
    # points to measure, if the regret at stake is high
    informative_points: tuple[InformativePoint, ...] = ()
    zero_weight_reasons: tuple[str, ...] = ()  # a sentence for each model with weight 0: why
    # of the first alternative over the next; None: errors were not measured
    lead: PairedComparison | None = None

    @property
    def interval(self) -> str:
        """The basis of the first alternative's interval."""
        return self.frame["basis"].iloc[0]

    @property
    def gain_over_default(self) -> float:
        """Time of the MPI default over the predicted time of the first alternative; NaN if the
        default was not measured."""
        return (
            self.default.seconds / float(self.frame["seconds"].iloc[0]) if self.default else np.nan
        )

    @property
    def sentence(self) -> str:
        """The alternative to use and how it compares with the next, or that the MPI default is
        kept."""
        best = self.frame.iloc[0]
        seconds, low, high = (format_seconds(best[name]) for name in ("seconds", "low", "high"))
        time = f"predicted time {seconds}"
        time += f", 95 % interval {low} to {high}" if best["low"] < best["high"] else ""
        time += (
            f"; measured: {format_seconds(best['measured'])}"
            if best["measured"] == best["measured"]
            else ""
        )
        alternative = f"{best['alternative']}, {best['layout_name']}"
        default = (
            f"{format_seconds(self.default.seconds)}, {self.default.source}" if self.default else ""
        )
        if self.keeps_default and self.default:
            is_slower = best["seconds"] > self.default.seconds
            gain = "slower" if is_slower else "not faster by more than its uncertainty"
            advice = f"{self.workload.text}: keep the MPI default ({default})"
            return f"{advice}. The best alternative, {alternative}, is {gain} ({time})"
        time += f"; MPI default: {default}" if default else ""
        return f"{self.workload.text}: use {alternative} ({time}){self._lead_text}"

    @property
    def _lead_text(self) -> str:
        if self.lead is None:
            return ""
        following = self.frame.iloc[1]
        return (
            f". Compared with {following['alternative']}, {following['layout_name']}, it is "
            f"{self.lead.text}"
        )

    def __repr__(self) -> str:
        return f"Ranking: {self.sentence}"
