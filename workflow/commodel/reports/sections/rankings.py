"""Ranking of models and value of their choices: errors, classes with a clearly best model, regret,
and the gain over the MPI default.

The MPI default counts with its fastest layout, so a gain never comes from a better layout alone.
The recommended prediction of a workload comes from fits to the other workloads.
"""

import math
from dataclasses import dataclass

import numpy as np
import pandas as pd

from commodel.compare import combined_prediction
from commodel.compare.comparison import (
    NEGLIGIBLE_DIFFERENCE,
    compute_geometric_mean,
    has_schedule,
    is_clearly_faster,
    is_library_default,
    select_measured_points,
    summarize_choices,
    summarize_errors,
)
from commodel.compare.model_ranking import (
    MIN_POINTS,
    MIN_SHARE_OF_POINTS,
    find_best_model,
    find_equal_models,
    find_tied_models,
    sort_by_error,
)
from commodel.predictions.interval_basis import MAX_INFORMATIVE_WIDTH, NO_INFORMATION
from commodel.records import RECOMMENDED
from commodel.reports.comparison_frame import list_models, scale_to_shown_units
from commodel.reports.elements import (
    ALL_OPERATIONS,
    MICRO,
    MU_SCALE,
    REGRET_SCALE,
    Column,
    Section,
    Table,
    capitalize,
    format_count,
    format_factor_range,
    format_size,
    format_size_range,
    make_table,
    select_columns,
)
from commodel.units import format_bytes

MU_NOTE = "Error factor μ: predicted over measured time or its inverse; 1.05 is an error of 5 %."
REGRET_NOTE = (
    "Regret: over the fastest alternative that the model predicts; the MPI default does not count."
)
DEFAULT_KEYS = (
    "platform",
    "simulated",
    "operation",
    "placement",
    "size",
    "bytes",
    "workload",
    "alternative_label",
    "measured",
)
OUTCOMES = ("faster", "tied", "slower")
TIE_RULE = f"95 % intervals overlap, or medians differ by at most {100 * NEGLIGIBLE_DIFFERENCE:g} %"
# among which a model chooses; the MPI default is only measured
PREDICTED = "predicted alternatives"


def compare_with_default(comparison: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each workload with a measured alternative and a measured MPI default: the
    fastest alternative, and the gain over the default."""
    needed = [*DEFAULT_KEYS, "algorithm", "measured_low", "measured_high", "point"]
    points = select_measured_points(comparison)[needed].sort_values(
        ["measured", "alternative_label"], kind="stable"
    )
    is_default = is_library_default(points)
    defaults = {
        row["workload"]: row
        for row in points[is_default].drop_duplicates("workload").to_dict("records")
    }
    rows = []
    for fastest in points[~is_default].drop_duplicates("workload").to_dict("records"):
        default = defaults.get(fastest["workload"])
        if default is not None:
            row = {key: fastest[key] for key in DEFAULT_KEYS}
            row["library_default"] = default["measured"]
            row["outcome"] = compare_times(fastest, default)
            rows.append(row)
    frame = pd.DataFrame(rows, columns=[*DEFAULT_KEYS, "library_default", "outcome"])
    return frame.assign(
        gain=frame["library_default"].astype(float) / frame["measured"].astype(float)
    )


def compare_times(alternative: dict, default: dict) -> str:
    """Return whether an alternative is clearly faster or slower than the MPI default, or tied."""
    if is_clearly_faster(alternative, default):
        return "faster"
    return "slower" if is_clearly_faster(default, alternative) else "tied"


@dataclass(frozen=True, slots=True)
class Recommendation:
    """An alternative that is the fastest, and clearly faster than the MPI default, in workloads of
    an operation."""

    operation: str
    alternative: str
    smallest: int  # bytes
    largest: int
    smallest_factor: float  # times as fast as the default
    largest_factor: float
    workloads: int  # with this alternative as the fastest
    measured: int  # workloads of the operation at these sizes

    @property
    def range(self) -> str:
        """Return the message sizes, such as ` from 4 KiB to 64 KiB`; empty without a message."""
        return f" {format_size_range(self.smallest, self.largest)}" if self.largest else ""

    @property
    def gain(self) -> str:
        gain = (
            f"{format_factor_range(self.smallest_factor, self.largest_factor)} faster than the "
            "MPI default"
        )
        sizes = (
            ""
            if not self.largest
            else " of this size"
            if self.smallest == self.largest
            else " of these sizes"
        )
        return (
            f"{gain} in {self.workloads} of "
            f"{format_count(self.measured, f'{self.operation} workload')}{sizes}."
        )

    @property
    def scope(self) -> str:
        return capitalize(f"{self.range[1:]}, {self.gain}") if self.range else self.gain

    @property
    def sentence(self) -> str:
        return f"Use {self.alternative} for {self.operation}{self.range}: {self.gain}"


def list_recommendations(rows: pd.DataFrame) -> list[Recommendation]:
    """Return the alternatives of `compare_with_default` that are clearly faster than the MPI
    default, the one with the largest product of gains first."""
    faster = rows[rows["outcome"] == "faster"]
    by_gain = []
    for (operation, alternative), faster_rows in faster.groupby(["operation", "alternative_label"]):
        smallest = int(faster_rows["bytes"].min())
        largest = int(faster_rows["bytes"].max())
        at_sizes = (rows["operation"] == operation) & rows["bytes"].between(smallest, largest)
        gains = faster_rows["gain"].min(), faster_rows["gain"].max()
        sizes = smallest, largest, *gains, len(faster_rows), int(at_sizes.sum())
        by_gain.append(
            (
                np.log(faster_rows["gain"].astype(float)).sum(),
                Recommendation(operation, alternative, *sizes),
            )
        )
    by_gain.sort(key=lambda entry: (-entry[0], entry[1].operation, entry[1].alternative))
    return [recommendation for _, recommendation in by_gain]


MIN_SHOWN_GAIN = 1.005  # smallest gain that is shown


def compare_choices(over_default: float, rows: pd.DataFrame) -> str:
    """Return how the time of a model's choices compares with that of the MPI default, such as
    `1.81× faster than`. `over_default` is their mean ratio. They are faster only if
    `compare_with_default` (`rows`) has a workload with a clearly faster alternative."""
    if over_default >= MIN_SHOWN_GAIN:
        return f"{over_default:.2f}× slower than"
    if over_default > 1 / MIN_SHOWN_GAIN:
        return "as fast as"
    if not (rows["outcome"] == "faster").any():
        return "statistically tied with"
    return f"{1 / over_default:.2f}× faster than"


def describe_default(rows: pd.DataFrame) -> str:
    """Return how often the fastest alternative beats the MPI default, and by how much."""
    faster, tied, slower = (rows[rows["outcome"] == name] for name in OUTCOMES)
    line = (
        f"The fastest alternative beats the MPI default in {len(faster)} of "
        f"{format_count(len(rows), 'workload')} "
    )
    line += "measured with it"
    line += f" ({compute_mean_gain(faster['gain']):.2f}× on average)" if len(faster) else ""
    line += f" and is tied with it in {len(tied)}" if len(tied) else ""
    line += f"; the MPI default is the fastest in {len(slower)}" if len(slower) else ""
    return f"{line}."


def compute_mean_gain(gains: pd.Series) -> float:
    return compute_geometric_mean(np.log(gains))


def tabulate_default_gains(rows: pd.DataFrame) -> Table:
    """Return, by platform and operation, how often and by how much the fastest alternative beats
    the MPI default."""
    shown = []
    keys = ["simulated", "platform", "operation"]
    for key, part in rows.groupby(keys):
        best = part.loc[part["gain"].idxmax()]
        size = f" at {format_size(best['bytes'])}" if best["bytes"] else ""
        is_gain = best["gain"] > 1 + NEGLIGIBLE_DIFFERENCE
        shown.append(
            dict(zip(keys, key, strict=True))
            | {
                "workloads": len(part),
                **{name: int((part["outcome"] == name).sum()) for name in OUTCOMES},
            }
            | {
                "mean": compute_mean_gain(part["gain"]),
                "min": part["gain"].min(),
                "max": best["gain"],
            }
            | {"top": f"{best['alternative_label']}, {best['size']}{size}" if is_gain else ""}
        )
    note = (
        "The fastest measured alternative of each workload, compared with the MPI default. Below "
        "1: the default is "
    )
    note += f"faster. Tied: {TIE_RULE}."
    marks = {"mean": [row["mean"] > 1 for row in shown]}
    return make_table(
        "Gain over the default", "Gain over the MPI default", shown, note=note, fixed=3, marks=marks
    )


def tabulate_recommended(recommended: pd.DataFrame, baselines: pd.DataFrame) -> Table:
    """Return the errors, regret and intervals of the recommended prediction, beside those of the
    best single model and of baselines."""
    rows = pd.concat([recommended, baselines]) if len(baselines) else recommended
    shown = scale_to_shown_units(rows.sort_values("platform", kind="stable", ignore_index=True))
    marks = {"prediction": shown["prediction"] == RECOMMENDED}
    note = (
        "The recommended prediction is a weighted geometric mean of the models, corrected by measured points. The "
        "fits for a point leave out its workload. Below it: the model with the lowest mean error at the same points, "
        "and simple rules that use measured points only, without those of the workload. "
        f"{MU_NOTE} {REGRET_NOTE}"
    )
    return make_table(
        "Recommended", "Recommended prediction", shown, note=note, fixed=3, marks=marks
    )


def tabulate_choices(choices: pd.DataFrame) -> Table:
    """Return regret and gain of choosing by the recommended prediction: by platform and operation,
    and over all."""
    parts = []
    for _, rows_of_platform in choices.groupby("platform", sort=False):
        by_operation = combined_prediction.summarize_recommended_choices(
            rows_of_platform.sort_values("operation", kind="stable")
        )
        if len(by_operation) > 1:
            parts.append(
                combined_prediction.summarize_recommended_choices(
                    rows_of_platform.assign(operation=ALL_OPERATIONS)
                )
            )
        parts.append(by_operation)
    shown = scale_to_shown_units(pd.concat(parts, ignore_index=True))
    marks = {"gain": shown["gain"] > 1}
    note = (
        "The alternative with the lowest recommended prediction, as in `commodel advise`, from fits without its "
        "workload; the MPI default where the gain over it is within its uncertainty. Regret: over the fastest "
        "alternative, the MPI default included. Marked: faster than the MPI default."
    )
    return make_table(
        "Recommended choices",
        "Choices by the recommended prediction",
        shown,
        note=note,
        fixed=3,
        marks=marks,
    )


def tabulate_models(frame: pd.DataFrame, held_out: pd.DataFrame) -> tuple[Table, Table]:
    """Return the models with the errors of their predictions, and with the regret of their choices;
    the best first."""
    keys = ["platform", "model"]
    predicted = frame.loc[has_schedule(frame), [*keys, "simulated", "point", "measured"]]
    every = predicted.loc[predicted["model"] != "", [*keys, "simulated"]].drop_duplicates(keys)
    rows = every.merge(summarize_errors(held_out, keys), "left", on=keys).merge(
        summarize_choices(frame, keys), "left", on=keys
    )
    rows = rows.assign(points=rows["points"].fillna(0), workloads=rows["workloads"].fillna(0))
    rows = scale_to_shown_units(rows.assign(gain=1 / rows["over_default"]))
    rows = sort_by_error(rows, ("simulated", "platform"))
    best: dict[str, str] = {}
    standing: dict[tuple[str, str], str] = {}
    for platform, part in held_out.groupby("platform"):
        best_model = find_best_model(part)
        if best_model is not None:
            best[platform] = family = best_model["model"]
            standing |= {(platform, name): "tied" for name in find_tied_models(part, best_model)}
            standing |= {(platform, name): "equal" for name in find_equal_models(part, family)}
            standing[platform, family] = "best"
    widths = (held_out["high"] / held_out["low"]).groupby([held_out[key] for key in keys]).median()
    standing |= dict.fromkeys(widths.index[widths > MAX_INFORMATIVE_WIDTH], NO_INFORMATION)
    rows["standing"] = [standing.get((row.platform, row.model), "") for row in rows.itertuples()]
    measured_points = (
        predicted[predicted["measured"].notna()].groupby("platform")["point"].nunique()
    )
    rows["measured_points"] = rows["platform"].map(measured_points).fillna(0)
    note = (
        f"{MU_NOTE} Marked: the best value of each platform, of models with at least 80 % of the "
        "most points."
    )
    marks = mark_best(rows, {"mu_mean": 1, "abs_error_median": 1, "bias": 1}, best)
    errors = make_table(
        "Errors by model", "Errors of predictions, by model", rows, note=note, fixed=3, marks=marks
    )
    note = f"The alternative with the model's lowest prediction. {REGRET_NOTE}"
    signs = {"right": -1, "regret_mean": 1, "regret_max": 1, "gain": -1}
    marks = mark_best(rows, signs, best)
    return errors, make_table(
        "Regret by model", "Regret of choices, by model", rows, note=note, fixed=3, marks=marks
    )


def mark_best(
    rows: pd.DataFrame, sign_of_column: dict[str, int], best: dict[str, str]
) -> dict[str, pd.Series]:
    """Return, by column, the rows with the best value or the best model of their platform. The sign
    -1 means that more is better."""
    marks = {"model": rows["model"] == rows["platform"].map(best)}
    ranked = rows[
        rows["points"] >= MIN_SHARE_OF_POINTS * rows.groupby("platform")["points"].transform("max")
    ]
    several = ranked.groupby("platform")["points"].transform("size") > 1
    for key, sign in sign_of_column.items():
        values = (ranked[key].abs() if key == "bias" else ranked[key]) * sign
        lowest = values.groupby(ranked["platform"]).transform("min")
        marks[key] = (several & (values == lowest) & (lowest < math.inf)).reindex(
            rows.index, fill_value=False
        )
    return marks


def tabulate_classes(best_by_class: pd.DataFrame) -> Table:
    """Return the best model by operation, fan-in and message size."""
    rows = list(best_by_class.itertuples())
    shown = best_by_class.assign(
        tied=[
            ", ".join(row.tied) if row.enough or not row.best else f"fewer than {MIN_POINTS} points"
            for row in rows
        ],
        same=best_by_class["same"].str.join(", "),
        mu_next=best_by_class["mu_next"].astype(object).where(best_by_class["next"] != "", None),
        clearly_best=[row.enough and not row.tied for row in rows],
    )
    note = (
        f"{MU_NOTE} Fan-in: the most messages that one rank receives in one step. Marked: clearly "
        "best."
    )
    title = "Best model by operation, fan-in and message size"
    return make_table(
        "Best model by class",
        title,
        shown,
        note=note,
        fixed=5,
        marks={"best": shown["clearly_best"]},
    )


MATRICES = {
    "operation": "operation",
    "alternative": "algorithm or topology",
    "bytes": "message size",
}
MATRICES |= {"fan_in": "operation and fan-in"}  # titles


def make_error_section(frame: pd.DataFrame) -> Section:
    """Return matrices of mean μ: models × operation, alternative, message size, and fan-in of an
    operation."""
    matrices = (
        () if frame.empty else tuple(make_error_matrix(frame, *item) for item in MATRICES.items())
    )
    note = f"Mean error factor μ of the recommended prediction and of each model. {MU_NOTE} "
    note += "n/a: no prediction, or nothing was measured."
    return Section("Errors", note, matrices)


def make_error_matrix(frame: pd.DataFrame, key: str, title: str) -> Table:
    """Return the mean μ of each model, with the number of measured points. An algorithm and a
    topology may have the same name."""
    name = f"Mean μ by {key}"
    families = list_models(frame)
    columns = select_columns(name)
    row_keys = [
        column.key for column in columns if column.key not in ("simulated", "label", "points")
    ]
    order = [row_key for row_key in row_keys if row_key != "kind"]
    rows = (
        frame[["simulated", *row_keys]].drop_duplicates(row_keys).sort_values(["simulated", *order])
    )
    points = frame[frame["measured"].notna()].groupby(row_keys)["point"].nunique().rename("points")
    errors = summarize_errors(frame, [*row_keys, "model"])
    errors = errors.pivot_table(index=row_keys, columns="model", values="mu_mean").reindex(
        columns=families
    )
    shown = rows.merge(points, "left", on=row_keys).merge(
        errors.add_prefix("= "), "left", on=row_keys
    )
    shown["points"] = shown["points"].fillna(0)
    if key == "bytes":
        shown["label"] = shown["bytes"].map(format_bytes)
    columns += tuple(Column(f"= {family}", family, "ratio", scale=MU_SCALE) for family in families)
    of_models = [f"= {family}" for family in families if family != RECOMMENDED]
    finite = shown[of_models].replace(math.inf, math.nan)
    marks = finite.eq(finite.min(axis=1), axis=0)
    note = "Marked: the model with the lowest error of each row."
    return make_table(
        name,
        f"Mean μ by {title}",
        shown,
        columns,
        fixed=len(columns) - len(families),
        note=note,
        marks=marks,
    )


def build_selection(frame: pd.DataFrame) -> tuple[Section, Section]:
    """Return, by workload, the fastest measured alternative with the regret of each model, and the
    choices that are not the fastest."""
    families = list_models(frame)
    rows, single_count = list_workloads(frame, families)
    if not any(isinstance(row[f"choice {family}"], str) for row in rows for family in families):
        families = []
    return make_selection_section(rows, single_count, families), list_other_choices(rows, families)


def make_selection_section(rows: list[dict], single_count: int, models: list[str]) -> Section:
    if not models and not any(pd.notna(row["gain"]) for row in rows):
        return Section("Selection", NO_CHOICE_NOTE, ())
    regrets = (
        Column(f"regret {family}", family, "percent", scale=REGRET_SCALE) for family in models
    )
    columns = [*select_columns("Workload", "Selection"), *regrets]
    note = (
        "Workloads with two measured alternatives or more, including the MPI default. "
        f"{REGRET_NOTE} With equal predictions the first counts. n/a: the model has no choice. Tied: {TIE_RULE}."
    )
    if single_count:
        note += f" Not shown: {format_count(single_count, 'workload')} with fewer."
    table = make_table(
        "Selection", "Regret of the choices of each model [%]", rows, columns, fixed=6
    )
    return Section("Selection", note, (table,))


def list_other_choices(rows: list[dict], models: list[str]) -> Section:
    """Return the workloads in which a model does not choose the fastest alternative, and its choice
    there."""
    if not models:
        return Section("Choices by model", NO_CHOICE_NOTE, ())
    columns = [
        *select_columns("Workload"),
        *(Column(f"choice {family}", family) for family in models),
    ]
    keys = [f"choice {family}" for family in models]
    differing = []
    for row in rows:
        others = {key: "" if row[key] == row["best"] else row[key] for key in keys}
        if any(isinstance(choice, str) and choice for choice in others.values()):
            differing.append(row | others)
    note = (
        "Workloads in which a model does not choose the fastest alternative. Blank: it chooses "
        "the fastest; "
    )
    note += "n/a: it has no choice."
    table = make_table(
        "Choices by model",
        "Choices of each model that are not the fastest",
        differing,
        columns,
        fixed=6,
    )
    return Section("Choices by model", note, (table,))


NO_CHOICE_NOTE = "There was no choice: no model predicts two alternatives of a workload."
FASTER_OF_TWO = {"faster": "alternative", "tied": "tied", "slower": "MPI default"}  # by outcome
WORKLOAD_KEYS = ("platform", "simulated", "operation", "placement", "size", "bytes")


def list_workloads(frame: pd.DataFrame, models: list[str]) -> tuple[list[dict], int]:
    """Return one row a workload with two measured alternatives or more, not all of them the MPI
    default, and the number of workloads with fewer."""
    points = select_measured_points(frame)
    points = points[points.groupby("workload")["point"].transform("size") > 1]
    schedules = points[~is_library_default(points)]
    gains = compare_with_default(points).set_index("workload")[
        ["library_default", "gain", "outcome"]
    ]
    gains = gains.assign(
        library_default=gains["library_default"] * MICRO,
        outcome=gains["outcome"].map(FASTER_OF_TWO),
    )
    gain_of_workload = gains.to_dict("index")
    no_default = dict.fromkeys(gains, math.nan)
    chosen = frame.loc[frame["chosen"], ["workload", "model", "alternative_label", "regret"]]
    choice_of = {
        (row.workload, row.model): (row.alternative_label, 100 * row.regret)
        for row in chosen.itertuples()
    }
    alternatives: dict[str, list[dict]] = {workload: [] for workload in schedules["workload"]}
    needed = [
        *WORKLOAD_KEYS,
        "workload",
        "alternative_label",
        "measured",
        "measured_low",
        "measured_high",
    ]
    for row in (
        schedules[needed]
        .sort_values(["measured", "alternative_label"], kind="stable")
        .to_dict("records")
    ):
        alternatives[row["workload"]].append(row)
    rows = []
    for workload, (first, *slower) in alternatives.items():
        row = {key: first[key] for key in WORKLOAD_KEYS}
        row |= {
            "count": len(slower) + 1,
            "best": first["alternative_label"],
            "measured": first["measured"] * MICRO,
        }
        row |= {"next": math.nan, "margin": math.nan, "clear": None}
        if slower:
            row |= {
                "next": slower[0]["alternative_label"],
                "margin": 100 * (slower[0]["measured"] / first["measured"] - 1),
            }
            row |= {"clear": all(is_clearly_faster(first, other) for other in slower)}
        row |= gain_of_workload.get(workload, no_default)
        for family in models:
            # it predicts fewer than two alternatives
            choice = choice_of.get((workload, family), (math.nan, math.nan))
            row[f"choice {family}"], row[f"regret {family}"] = choice
        rows.append(row)
    return rows, frame["workload"].nunique() - len(alternatives)
