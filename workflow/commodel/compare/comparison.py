"""The comparison of predictions with measurements: `compare` returns a row for each point and
model, with the alternative that the model would choose.

A model chooses among the measured alternatives. `summarize_errors` returns errors,
`summarize_choices` how often choices are the fastest, and their regret."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from commodel.compare.comparison_intervals import add_intervals
from commodel.errors import UserError, is_program_error
from commodel.files.tables import COMPARISON, add_default_columns, list_columns
from commodel.patterns.build import find_fan_ins
from commodel.patterns.default_algorithms import find_default_algorithm
from commodel.patterns.layouts import place_ranks
from commodel.patterns.operations import is_kernel
from commodel.predictions.places import STREAM, name_in_setting
from commodel.predictions.validity import Validity, ValidityKind, are_of
from commodel.records import LIBRARY, Plan, Point
from commodel.results.collection import LATENCY_COLUMNS, iterate_cases, summarize_case
from commodel.results.raw_samples import make_raw_file_path
from commodel.stats import NEGLIGIBLE_DIFFERENCE

EQUAL_PREDICTIONS_TOLERANCE = (
    1e-9  # relative difference below which predictions are equal; rounding changes them by as much
)
# the columns that `summarize_errors` needs
ERROR_COLUMNS = ["mu", "validity", "relative_error", "covered"]
# high/low of a median's confidence interval, above which the median is uncertain
MAX_CERTAIN_SPREAD = 2.0
NOT_PREDICTED = Validity(ValidityKind.LIBRARY_DEFAULT, "measured, not predicted").text
NO_SCHEDULE = Validity(ValidityKind.MEASURED_ONLY, "no schedule describes it").text
WORKLOAD_OF_MODEL = ["model", "workload"]


@dataclass(frozen=True)
class Measurement:
    """The state of a point's measurement: the reason if it was not measured, its passes if some are
    missing, and the high/low ratio of the median's confidence interval. The column `measurement`
    has its text."""

    measured: bool
    reason: str = ""  # empty: unknown
    passes: str = ""  # empty: all
    spread: float = 1.0

    @property
    def text(self) -> str:
        if not self.measured:
            return f"not measured: {self.reason}" if self.reason else "not measured"
        spread = (
            f"uncertain by a factor of {round_to_two_digits(self.spread)}"
            if self.spread > MAX_CERTAIN_SPREAD
            else ""
        )
        return ", ".join(filter(None, ["ok", self.passes, spread]))

    @classmethod
    def parse(cls, text: str) -> Measurement:
        passes = re.fullmatch(r"ok(?:, (\d+ of \d+ passes))?(?:, .*)?", text)
        if passes:
            return cls(True, passes=passes[1] or "")
        return cls(False, text.removeprefix("not measured").lstrip(": "))


MEASUREMENT_COLUMNS = ["point", "platform", "batch", "samples", "invalid", "measured", "passes"]


def compare(
    plan: Plan,
    observations: pd.DataFrame,
    predictions: pd.DataFrame,
    unmeasured: pd.DataFrame | None = None,
    processors: Mapping[str, int | None] | None = None,
    libraries: Mapping[str, str] | None = None,
) -> pd.DataFrame:
    """Return a row for each point and model. A point that was not measured keeps its rows, with the
    reason from `unmeasured`. A point of the library default has one row, without a model.
    `processors` is their number on the first host of each batch, `libraries` the version text of
    its MPI library."""
    rows = []
    for batch in plan.batches:
        host_processors = (processors or {}).get(batch.name)
        library = (libraries or {}).get(batch.name, "")
        rows += [
            _describe_point(plan, batch.name, point, host_processors)
            | {"default_algorithm": name_default_algorithm(library, point)}
            for point in batch.points
        ]
    points = pd.DataFrame(rows)
    points["fan_in"] = (
        points["point"]
        .map(find_fan_ins(point for point in plan.points if point.predictable))
        .fillna(0)
    )
    frame = points.merge(_summarize_samples(observations), on="point", how="left")
    frame = frame.merge(predictions, on="point", how="left")
    frame = frame.fillna(
        {"model": "", "setting": "", "validity": "", "stop": "", "samples": 0, "invalid": 0}
    )
    frame = add_default_columns(frame.astype({"samples": int, "invalid": int}), COMPARISON)
    frame["workload"] = list(map(name_in_setting, frame["workload"], frame["setting"]))
    without_schedule = frame["point"].isin(
        [point.id for point in plan.points if point.measured_only]
    )
    frame["validity"] = np.select(
        [is_library_default(frame), without_schedule],
        [NOT_PREDICTED, NO_SCHEDULE],
        frame["validity"],
    )
    # False: the point is in the model's fit. Without the column, all points are held out.
    frame["held_out"] = frame["held_out"].ne(False) if "held_out" in frame else True
    reasons = (
        {} if unmeasured is None else dict(zip(unmeasured["id"], unmeasured["status"], strict=True))
    )
    planned = {name: plan.passes(name) for name in plan.platforms}
    # rows of all columns would take long
    measured_rows = list(frame[MEASUREMENT_COLUMNS].itertuples())
    frame["measurement"] = [
        _make_measurement(row, reasons.get(row.point, ""), planned[row.platform], spread).text
        for row, spread in zip(measured_rows, compute_spreads(frame), strict=True)
    ]
    frame["raw"] = [
        make_raw_file_path(row.batch, row.point, row.samples > 0)
        if row.samples or row.invalid
        else ""
        for row in measured_rows
    ]
    frame = add_choices(add_errors(add_intervals(frame)))
    return frame[list_columns(COMPARISON)]


def _describe_point(plan: Plan, batch: str, point: Point, processors: int | None) -> dict:
    """Return the columns of a point, among them how many processes ran on the host of the first
    rank, if known."""
    columns = (
        *(
            "platform",
            "operation",
            "algorithm",
            "topology",
            "alternative",
            "layout",
            "ranks",
            "leaves",
            "bytes",
        ),
        *("nodes", "waves", "node_usage", "workload"),
    )
    node = place_ranks(point.layout, point.ranks) if processors else None
    return {
        "point": point.id,
        **{name: getattr(point, name) for name in columns},
        "levels_crossed": point.reach,
        "simulated": plan.platforms[point.platform].simulated,
        "batch": batch,
        "processes": np.nan if node is None else int(np.count_nonzero(node == node[0])),
        "processors": processors or np.nan,
    }


def name_default_algorithm(library: str, point: Point) -> str:
    """Return what the default rules of a library select for a point of the MPI default; empty for
    other points, and where that is unknown."""
    if point.algorithm != LIBRARY:
        return ""
    found = find_default_algorithm(library, point)
    return found.algorithm if found else ""


def _summarize_samples(observations: pd.DataFrame) -> pd.DataFrame:
    with_settings = (
        observations.assign(setting="") if "setting" not in observations else observations
    )
    points = iterate_cases(with_settings[with_settings["kind"] == "point"])
    rows = [
        {"point": case, "setting": group["setting"][0], **summarize_case(group)}
        for case, group in points
    ]
    columns = [
        "point",
        "setting",
        "median",
        "low",
        "high",
        "samples",
        "invalid",
        "stop",
        "skew",
        "passes",
        *LATENCY_COLUMNS,
    ]
    renamed = {"median": "measured", "low": "measured_low", "high": "measured_high"}
    frame = pd.DataFrame(rows, columns=columns).rename(columns=renamed)
    # also where nothing was measured
    return frame.astype(dict.fromkeys((*renamed.values(), *LATENCY_COLUMNS), float))


def _make_measurement(row: Any, reason: str, planned: int, spread: float) -> Measurement:
    if np.isnan(row.measured):
        return Measurement(False, reason or ("no valid sample" if row.invalid else ""))
    passes = "" if row.passes >= planned else f"{row.passes:.0f} of {planned} passes"
    return Measurement(True, passes=passes, spread=spread)


def compute_spreads(frame: pd.DataFrame) -> pd.Series:
    """Return high/low of the confidence interval of each measured median."""
    return frame["measured_high"] / frame["measured_low"]


def round_to_two_digits(spread: float) -> str:
    return f"{float(f'{spread:.2g}'):,g}"


def add_errors(frame: pd.DataFrame) -> pd.DataFrame:
    """Add the error of each prediction, and whether its interval covers the measurement."""
    ratio = frame["seconds"] / frame["measured"]
    covered = frame["measured"].between(frame["low"], frame["high"])
    return frame.assign(relative_error=ratio - 1, mu=np.maximum(ratio, 1 / ratio), covered=covered)


def add_choices(frame: pd.DataFrame) -> pd.DataFrame:
    """Add for each workload the fastest alternative that a model predicts, the one that it would
    choose, and its regret; the time of the library default at the layout that suits it best; and
    the fastest time of all.

    A model chooses among its held-out points only. Of equal predictions, such as those of two
    layouts by a model that ignores placement, the first in the plan counts as chosen, and `tie`
    marks it.
    """
    predicted = frame[frame["measured"].notna() & frame["seconds"].notna() & frame["held_out"]]
    workloads = predicted.groupby(WORKLOAD_OF_MODEL)
    several = workloads["point"].transform("count") > 1
    fastest = workloads["measured"].transform("min")
    lowest = predicted["seconds"] <= workloads["seconds"].transform("min") * (
        1 + EQUAL_PREDICTIONS_TOLERANCE
    )
    equals = predicted[lowest].groupby(WORKLOAD_OF_MODEL)["seconds"]
    chosen = several & equals.cumcount().eq(0).reindex(predicted.index, fill_value=False)
    flags = {
        "best": several & (predicted["measured"] == fastest),
        "chosen": chosen,
        "tie": chosen & equals.transform("size").gt(1).reindex(predicted.index, fill_value=False),
    }
    default = frame[is_library_default(frame)].groupby("workload")["measured"].min()
    return frame.assign(
        **{name: column.reindex(frame.index, fill_value=False) for name, column in flags.items()},
        regret=(predicted["measured"] / fastest - 1)[chosen],
        library_default=frame["workload"].map(default).astype(float),
        fastest=frame.groupby("workload")["measured"].transform("min"),
    )


def is_clearly_faster(first: Mapping, second: Mapping) -> bool:
    """Return whether the first measurement is faster than the second significantly, and by enough
    to matter."""
    separated = second["measured_low"] > first["measured_high"]
    return bool(separated and second["measured"] > (1 + NEGLIGIBLE_DIFFERENCE) * first["measured"])


def summarize_choices(comparison: pd.DataFrame, group_columns: list[str]) -> pd.DataFrame:
    """Return the quality of each model's choices. A choice is right if it is the fastest measured
    alternative that the model predicts, or statistically tied: the intervals overlap, or it is less
    than 1 % slower. Further columns are the regret, the number of workloads with a measured library
    default, and as geometric means over these the time over that of the default (below 1: faster),
    and the largest gain: the default over the fastest measured time, that of the default
    included."""
    best = (
        comparison[comparison["best"]]
        .drop_duplicates(WORKLOAD_OF_MODEL)
        .set_index(WORKLOAD_OF_MODEL)
    )
    chosen = comparison[comparison["chosen"]].join(
        best["measured_high"].rename("best_high"), on=WORKLOAD_OF_MODEL
    )
    chosen = chosen.assign(
        right=(chosen["measured_low"] <= chosen["best_high"])
        | (chosen["regret"] < NEGLIGIBLE_DIFFERENCE),
        over_default=np.log(chosen["measured"] / chosen["library_default"]),
        largest_gain=np.log(chosen["library_default"] / chosen["fastest"]),
    )
    choices = chosen.groupby(group_columns, sort=False)
    return choices.agg(
        workloads=("regret", "size"),
        right=("right", "mean"),
        tied=("tie", "mean"),
        regret_mean=("regret", "mean"),
        regret_max=("regret", "max"),
        over_default=("over_default", compute_geometric_mean),
        largest_gain=("largest_gain", compute_geometric_mean),
        defaults=("over_default", "count"),
    ).reset_index()


def compute_geometric_mean(logarithms: pd.Series) -> float:
    """Return the geometric mean. The mean of the inverse ratios is its inverse."""
    return float(np.exp(logarithms.mean()))


def summarize_errors(comparison: pd.DataFrame, group_columns: list[str]) -> pd.DataFrame:
    """Return the errors of each group of held-out rows: mean μ of all predictions and of the valid
    ones, median absolute and median signed error, and the share of measurements inside the
    interval."""
    # copies of other columns would take long
    needed = list(dict.fromkeys([*group_columns, *ERROR_COLUMNS]))
    rows = comparison.loc[comparison["held_out"] & comparison["mu"].notna(), needed]
    valid_mu = rows["mu"].where(rows["validity"] == ValidityKind.VALID.value)
    groups = rows.assign(abs_error=rows["relative_error"].abs(), mu_valid=valid_mu).groupby(
        group_columns, sort=False
    )
    columns = {  # faster than `agg`
        "points": groups.size(),
        "mu_mean": groups["mu"].mean(),
        "mu_valid": groups["mu_valid"].mean(),
        "points_valid": groups["mu_valid"].count(),
        "abs_error_median": groups["abs_error"].median(),
        "bias": groups["relative_error"].median(),
        "covered_share": groups["covered"].mean(),
    }
    return pd.DataFrame(columns).reset_index()


def select_measured_points(comparison: pd.DataFrame) -> pd.DataFrame:
    """Return one row for each measured point."""
    return comparison[comparison["measured"].notna() & ~comparison.duplicated("point")]


def name_streams(comparison: pd.DataFrame) -> pd.DataFrame:
    """Return a comparison in which a stream of waves is an operation of its own: a model that is
    right about one wave may be wrong about the time between two."""
    operation = comparison["operation"]
    return comparison.assign(
        operation=operation.where(comparison["waves"] == 1, STREAM + operation.astype(str))
    )


def is_oversubscribed(frame: pd.DataFrame) -> pd.Series:
    """Return which rows were measured with more processes than processors. These processes shared
    processors in time; models assume that they run concurrently."""
    return frame["processes"] > frame["processors"]


@dataclass(frozen=True)
class ModelFailure:
    """A model without a fit on a platform, or whose predictions fail by an error of the program."""

    platform: str
    model: str
    validity: Validity
    points: int

    @property
    def is_program_error(self) -> bool:
        return is_program_error(self.validity.reason)

    @property
    def sentence(self) -> str:
        """What is missing, and why, without the platform."""
        if self.validity.is_of(ValidityKind.NO_FIT):
            return f"No fit of {self.model}: {self.validity.reason}."
        failed = "1 prediction fails" if self.points == 1 else f"{self.points} predictions fail"
        return f"{failed} with {self.model}: {self.validity.reason}."


def list_model_failures(comparison: pd.DataFrame) -> list[ModelFailure]:
    """Return the models without a fit, and those whose predictions fail by an error of the program,
    which come first."""
    unpredicted = comparison[comparison["seconds"].isna() & comparison["model"].ne("")]
    failures = []
    for (platform, family, text), rows in unpredicted.groupby(["platform", "model", "validity"]):
        failure = ModelFailure(
            platform=platform, model=family, validity=Validity.parse(text), points=len(rows)
        )
        if failure.validity.is_of(ValidityKind.NO_FIT) or failure.is_program_error:
            failures.append(failure)
    return sorted(failures, key=lambda failure: not failure.is_program_error)


def is_library_default(frame: pd.DataFrame) -> pd.Series:
    """Return which rows are of the library default: measured, and predicted by no model."""
    return frame["algorithm"] == LIBRARY


def has_schedule(frame: pd.DataFrame) -> pd.Series:
    """Return which rows have a schedule that models can predict: no library default, nor a pattern
    only measured."""
    return ~is_library_default(frame) & ~are_of(ValidityKind.MEASURED_ONLY, frame["validity"])


def has_computation(frame: pd.DataFrame) -> pd.Series:
    """Return which rows are of kernels, whose ranks compute between messages. A kernel of an
    extension that is not installed is unknown."""
    kernels = []
    for operation in frame["operation"].unique():
        with suppress(UserError):
            kernels += [operation] if is_kernel(operation) else []
    return frame["operation"].isin(kernels)
