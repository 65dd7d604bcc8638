"""The comparison: one row for each point and model, and the alternative that each model would choose.

`compare` joins predictions with measurements. The choices are those of each model among the measured alternatives, how
often they were the fastest, and their regret.
"""

from collections.abc import Mapping

import numpy as np
import pandas as pd

from commodel.compare.comparison_intervals import with_bands
from commodel.files.tables import COMPARISON, names
from commodel.patterns.build import fan_ins
from commodel.patterns.layouts import place
from commodel.predictions.residuals import STREAM
from commodel.predictions.validity import PriceStatus
from commodel.records import LIBRARY, Plan, Point
from commodel.results.collection import LATENCIES, by_case, summary_of
from commodel.results.raw_samples import raw_name
from commodel.stats import NEGLIGIBLE

EQUAL = 1e-9  # prices that differ by less, relatively, are equal: the order of a sum can do as much
OVER = {"over_library": "library", "over_fastest": "fastest"}


def with_choices(frame: pd.DataFrame) -> pd.DataFrame:
    """In each group of alternatives what was fastest of those that the family prices, what it would choose,
    what that costs. A family does not choose among points that its fit has seen. Of equal prices, such as those of two
    layouts by a family that does not look at where ranks sit, the first in the plan counts as chosen, and `tie` says
    that it was no choice."""
    both = frame["measured"].notna() & frame["predicted"].notna() & frame["held_out"]
    per_group = frame[both].groupby(["family", "group"])
    alternatives = per_group["point"].transform("count").reindex(frame.index, fill_value=0)
    contest = both & (alternatives > 1)
    fastest = per_group["measured"].transform("min").reindex(frame.index)
    lowest = per_group["predicted"].transform("min").reindex(frame.index)
    cheapest = frame[both & (frame["predicted"] <= lowest * (1 + EQUAL))].groupby(["family", "group"])["predicted"]
    preferred = cheapest.cumcount().eq(0).reindex(frame.index, fill_value=False)
    frame["best"] = contest & (frame["measured"] == fastest)
    frame["chosen"] = contest & preferred
    frame["tie"] = frame["chosen"] & cheapest.transform("size").gt(1).reindex(frame.index, fill_value=False)
    frame["regret"] = np.where(frame["chosen"], frame["measured"] / fastest - 1, np.nan)
    return frame


def with_library(frame: pd.DataFrame) -> pd.DataFrame:
    """The time of the library's own choice in each group, at the layout that suits it best, and the fastest time that
    was measured there at all."""
    library_seconds = frame[frame["algorithm"] == LIBRARY].groupby("group")["measured"].min()
    frame["library"] = frame["group"].map(library_seconds).astype(float)
    frame["fastest"] = frame.groupby("group")["measured"].transform("min")
    return frame


def clearly_faster(first: Mapping, second: Mapping) -> bool:
    """Whether the first measurement is faster than the second beyond doubt, and by enough to matter."""
    apart = second["measured_low"] > first["measured_high"]
    return bool(apart and second["measured"] > (1 + NEGLIGIBLE) * first["measured"])


def selection(comparison: pd.DataFrame, by: list[str]) -> pd.DataFrame:
    """How often a family's choice is the fastest one measured of those that it prices, or as good: their intervals
    overlap, or it is less than 1 % slower. What its choice costs over that one; and, as geometric means, over the
    library's own choice (below 1: it is faster) and over the fastest one measured, the library's included."""
    key = ["family", "group"]
    best = comparison[comparison["best"]].drop_duplicates(key).set_index(key)["measured_high"].rename("best_high")
    chosen = comparison[comparison["chosen"]].join(best, on=key)
    tied = (chosen["measured_low"] <= chosen["best_high"]) | (chosen["regret"] < NEGLIGIBLE)
    over = {name: np.log(chosen["measured"] / chosen[other]) for name, other in OVER.items()}
    chosen = chosen.assign(right=tied, **over)
    choices = chosen.groupby(by, sort=False)
    columns = {
        "groups": choices.size(),
        "right": choices["right"].mean(),
        "tied": choices["tie"].mean(),
        "regret_mean": choices["regret"].mean(),
        "regret_max": choices["regret"].max(),
        "over_library": choices["over_library"].agg(geometric),
        "over_fastest": choices["over_fastest"].agg(geometric),
    }
    return pd.DataFrame(columns).reset_index()


def geometric(logarithms: pd.Series) -> float:
    """The geometric mean: it does not matter which of the two is divided by the other."""
    return float(np.exp(logarithms.mean()))


ERRORS = ["mu", "status", "relative_error", "inside"]  # what `summarize` asks of a price
MEASURED, NOT_MEASURED = "ok", "not measured"
PASSES = "passes"
UNSTEADY = 2.0  # between the ends of the interval of a median: samples scatter, or passes differ
SOMETIMES = ("setting", "alone")  # columns
UNPRICED = PriceStatus.LIBRARY.because("measured, not priced")
UNSAID = PriceStatus.UNSAID.because("no schedule says what it does")


def compare(
    plan: Plan,
    observations: pd.DataFrame,
    predictions: pd.DataFrame,
    unmeasured: pd.DataFrame | None = None,
    processors: Mapping[str, int | None] | None = None,
) -> pd.DataFrame:
    """One row a point and family; a point that was not measured keeps its rows and says so, and why where `unmeasured`
    has it; one that the budget left with some of its passes says that. The library's points have one row each, of no
    family. `processors` are those of the first host of each batch."""
    points = pd.DataFrame(
        [
            _measured_columns(plan, batch.name, point) | _room(point, (processors or {}).get(batch.name))
            for batch in plan.batches
            for point in batch.points
        ]
    )
    points["fan_in"] = points["point"].map(fan_ins(point for point in plan.points if point.priced)).fillna(0)
    measured = _measurements(observations)
    frame = points.merge(measured, on="point", how="left").merge(predictions, on="point", how="left")
    frame["family"] = frame["family"].fillna("")
    frame = _by_setting(frame)
    unsaid = frame["point"].isin([point.id for point in plan.points if point.measured_only])
    frame["status"] = np.select([is_library(frame), unsaid], [UNPRICED, UNSAID], frame["status"].fillna(""))
    frame["samples"] = frame["samples"].fillna(0).astype(int)
    frame["invalid"] = frame["invalid"].fillna(0).astype(int)
    frame["stop"] = frame["stop"].fillna("")
    why = {} if unmeasured is None else {row.id: row.status for row in unmeasured.itertuples()}
    asked = {name: plan.passes(name) for name in plan.platforms}
    frame["measurement"] = [
        _measurement(row, why.get(row.point, ""), asked[row.platform], spread)
        for row, spread in zip(frame.itertuples(), spreads(frame), strict=True)
    ]
    frame["raw"] = [_raw(row) for row in frame.itertuples()]
    frame = frame.drop(columns="passes")
    frame = with_errors(with_bands(frame.assign(held_out=_held_out(frame))))
    frame = with_library(with_choices(frame))
    return frame[[name for name in names(COMPARISON) if name not in SOMETIMES or name in frame]]


def _by_setting(frame: pd.DataFrame) -> pd.DataFrame:
    """Of one setting a point is an alternative to those of the same alone; without any there is no such column."""
    setting = frame["setting"].fillna("")
    if setting.eq("").all():
        return frame.drop(columns="setting")
    group = frame["group"].where(setting.eq(""), frame["group"] + " in " + setting)
    return frame.assign(setting=setting, group=group)


def spreads(frame: pd.DataFrame) -> pd.Series:
    """Between the ends of the interval of each measured median, as a factor."""
    return frame["measured_high"] / frame["measured_low"]


def two_digits(spread: float) -> str:
    return f"{float(f'{spread:.2g}'):,g}"


def _measurement(row, why: str, asked: int, spread: float) -> str:
    """In words how far a point was measured: `why_not_measured` and `some_passes` read them."""
    if np.isnan(row.measured):
        why = why or ("no valid sample" if row.invalid else "")
        return f"{NOT_MEASURED}: {why}" if why else NOT_MEASURED
    words = [MEASURED] if row.passes >= asked else [MEASURED, f"{row.passes:.0f} of {asked} {PASSES}"]
    return ", ".join([*words, f"known to a factor of {two_digits(spread)}"] if spread > UNSTEADY else words)


def with_errors(frame: pd.DataFrame) -> pd.DataFrame:
    """How far off each price is, and whether the measurement lies in its interval."""
    ratio = frame["predicted"] / frame["measured"]
    inside = frame["measured"].between(frame["predicted_low"], frame["predicted_high"])
    return frame.assign(relative_error=ratio - 1, mu=np.maximum(ratio, 1 / ratio), inside=inside)


def measured_once(comparison: pd.DataFrame) -> pd.DataFrame:
    """One row of each point that was measured."""
    return comparison[comparison["measured"].notna() & ~comparison.duplicated("point")]


def why_not_measured(measurement: str) -> str:
    """Empty where nobody knows."""
    return measurement.removeprefix(NOT_MEASURED).lstrip(": ")


def some_passes(measurement: str) -> str:
    """As `2 of 3 passes`; empty where a point was measured in all of them, or in none."""
    status, *words = measurement.split(", ")
    return next((text for text in words if text.endswith(PASSES)), "") if status == MEASURED else ""


def _raw(row) -> str:
    """The file of all its samples, of every pass; nothing where it has none."""
    return raw_name(row.batch, row.point, row.samples > 0) if row.samples or row.invalid else ""


def _measured_columns(plan: Plan, batch: str, point) -> dict:
    names = ("platform", "operation", "algorithm", "topology", "choice", "layout", "ranks", "leaves", "bytes")
    names += ("nodes", "reach", "waves", "room", "group")
    simulated = plan.platforms[point.platform].simulated
    about = {name: getattr(point, name) for name in names}
    return {"point": point.id, **about, "simulated": simulated, "batch": batch}


def _room(point: Point, processors: int | None) -> dict[str, float]:
    """On the host of the first rank: how many processes ran there, and on how many processors."""
    if not processors:
        return {"processes": np.nan, "processors": np.nan}
    node = place(point.layout, point.ranks)
    return {"processes": int(np.count_nonzero(node == node[0])), "processors": processors}


def _measurements(observations: pd.DataFrame) -> pd.DataFrame:
    noted = observations.assign(setting="") if "setting" not in observations else observations
    points = by_case(noted[noted["kind"] == "point"])
    rows = [{"point": case, "setting": group["setting"].iloc[0], **summary_of(group)} for case, group in points]
    columns = ["point", "setting", "median", "low", "high", "samples", "invalid", "stop", "skew", "passes", *LATENCIES]
    renamed = {"median": "measured", "low": "measured_low", "high": "measured_high"}
    frame = pd.DataFrame(rows, columns=columns).rename(columns=renamed)
    return frame.astype(dict.fromkeys((*renamed.values(), *LATENCIES), float))  # also where nothing was measured


def named_streams(comparison: pd.DataFrame) -> pd.DataFrame:
    """A comparison in which a stream of waves is an operation of its own: who is right about one wave may be wrong
    about the time between two. One that knows no waves has one of each."""
    waves = comparison.get("waves", pd.Series(1, index=comparison.index))
    waves, operation = pd.to_numeric(waves, errors="coerce").fillna(1).astype(int), comparison["operation"]
    return comparison.assign(waves=waves, operation=operation.where(waves == 1, STREAM + operation.astype(str)))


def _held_out(frame: pd.DataFrame) -> pd.Series:
    """False where the family's own fit has seen the point. A family whose predictions do not say has seen none."""
    return frame.get("held_out", pd.Series(True, index=frame.index)).ne(False)


def summarize(comparison: pd.DataFrame, by: list[str]) -> pd.DataFrame:
    """Errors per group of held-out rows: mean proportional error μ of all prices and of those that the family's
    parameters reach (status ok), median absolute and median signed error, share inside the predicted interval."""
    needed = [*by, *ERRORS]  # of wide tables the rest would be copied for nothing
    rows = comparison.loc[comparison["held_out"] & comparison["mu"].notna(), list(dict.fromkeys(needed))]
    reached = rows["mu"].where(rows["status"] == PriceStatus.OK.value)
    groups = rows.assign(abs_error=rows["relative_error"].abs(), mu_reached=reached).groupby(by, sort=False)
    columns = {  # one by one, without what `agg` adds to each
        "points": groups.size(),
        "mu_mean": groups["mu"].mean(),
        "mu_reached": groups["mu_reached"].mean(),
        "points_reached": groups["mu_reached"].count(),
        "abs_error_median": groups["abs_error"].median(),
        "bias": groups["relative_error"].median(),
        "inside_share": groups["inside"].mean(),
    }
    return pd.DataFrame(columns).reset_index()


def crowded(frame: pd.DataFrame) -> pd.Series:
    """Which rows were measured with more processes than processors: what a model lets go on at the same time took turns
    there. An older comparison does not say."""
    if not {"processes", "processors"} <= set(frame):
        return pd.Series(False, index=frame.index)
    return frame["processes"] > frame["processors"]


def is_library(frame: pd.DataFrame) -> pd.Series:
    """Which rows are the MPI library's own collectives: measured, and priced by no family."""
    return frame["algorithm"] == LIBRARY


def is_said(frame: pd.DataFrame) -> pd.Series:
    """Which rows a schedule stands for, that families can price: not the library's, nor what is measured only."""
    return ~is_library(frame) & ~frame["status"].map(PriceStatus.UNSAID.of).astype(bool)
