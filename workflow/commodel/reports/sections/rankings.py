"""Ranking of models and value of their choices: errors, classes with a clearly best model, regret, and the gain over
the MPI default.

The MPI default counts with its fastest layout, so a gain never comes from a better layout alone. The recommended
prediction of a workload comes from fits to the other workloads.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from commodel.compare import combined_prediction
from commodel.compare.comparison import (
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
from commodel.predictions.prediction_intervals import MAX_INFORMATIVE_WIDTH, NO_INFORMATION
from commodel.records import RECOMMENDED
from commodel.reports.comparison_frame import PLATFORM_COLUMNS, list_models, scale_to_shown_units
from commodel.reports.elements import (
    ALL_OPERATIONS,
    MICRO,
    MU_SCALE,
    REGRET_SCALE,
    Column,
    Section,
    Table,
    format_count,
    format_factor_range,
    format_size,
    format_size_range,
    make_table,
    select_columns,
)
from commodel.units import format_bytes

DEFAULT_KEYS = ("platform", "operation", "place", "size", "bytes", "workload", "way", "measured")
OUTCOMES = ("faster", "tied", "slower")


def compare_with_default(comparison: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each workload with a measured alternative and a measured MPI default: the fastest alternative,
    and the gain over the default."""
    needed = [*DEFAULT_KEYS, "algorithm", "measured_low", "measured_high", "point"]
    points = select_measured_points(comparison)[needed].sort_values(["measured", "way"], kind="stable")
    is_default = is_library_default(points)
    defaults = {row["workload"]: row for row in points[is_default].drop_duplicates("workload").to_dict("records")}
    rows = [
        {key: row[key] for key in DEFAULT_KEYS}
        | {"library_default": default["measured"], "outcome": compare_times(row, default)}
        for row in points[~is_default].drop_duplicates("workload").to_dict("records")
        if (default := defaults.get(row["workload"])) is not None
    ]
    frame = pd.DataFrame(rows, columns=[*DEFAULT_KEYS, "library_default", "outcome"])
    return frame.assign(gain=frame["library_default"].astype(float) / frame["measured"].astype(float))


def compare_times(alternative: dict, default: dict) -> str:
    """Return whether an alternative is clearly faster or slower than the MPI default, or tied."""
    return (
        "faster"
        if is_clearly_faster(alternative, default)
        else "slower"
        if is_clearly_faster(default, alternative)
        else "tied"
    )


@dataclass(frozen=True, slots=True)
class Recommendation:
    """An alternative that is clearly faster than the MPI default in some workloads of an operation."""

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
    def scope(self) -> str:
        sizes = f"{self.range[1].upper()}{self.range[2:]}, " if self.range else ""
        line = f"{sizes}{format_factor_range(self.smallest_factor, self.largest_factor)} faster than the MPI default"
        return f"{line} in {self.workloads} of {format_count(self.measured, 'workload')}"

    @property
    def sentence(self) -> str:
        line = f"Use {self.alternative} for {self.operation}{self.range}: "
        line += f"{format_factor_range(self.smallest_factor, self.largest_factor)} faster than the MPI default"
        return f"{line} in {self.workloads} of {format_count(self.measured, 'workload')}."


def list_recommendations(rows: pd.DataFrame) -> list[Recommendation]:
    """Return the alternatives of `compare_with_default` that are clearly faster than the MPI default, the one that
    saves most (sum of the logarithms of its gains) first."""
    faster = rows[rows["outcome"] == "faster"].assign(saved=lambda frame: np.log(frame["gain"].astype(float)))
    by_saved_time = []
    for (operation, alternative), faster_rows in faster.groupby(["operation", "way"]):
        smallest, largest = int(faster_rows["bytes"].min()), int(faster_rows["bytes"].max())
        at_sizes = (rows["operation"] == operation) & rows["bytes"].between(smallest, largest)
        gains = faster_rows["gain"].min(), faster_rows["gain"].max()
        sizes = smallest, largest, *gains, len(faster_rows), int(at_sizes.sum())
        by_saved_time.append((faster_rows["saved"].sum(), Recommendation(operation, alternative, *sizes)))
    by_saved_time.sort(key=lambda entry: (-entry[0], entry[1].operation, entry[1].alternative))
    return [recommendation for _, recommendation in by_saved_time]


def describe_default(rows: pd.DataFrame) -> str:
    """Return how often the fastest alternative beats the MPI default, and by how much."""
    rows_by_outcome = {name: rows[rows["outcome"] == name] for name in OUTCOMES}
    faster, slower = rows_by_outcome["faster"], rows_by_outcome["slower"]
    line = f"The fastest alternative beats the MPI default in {len(faster)} of {format_count(len(rows), 'workload')}"
    line += f" ({compute_mean_gain(faster['gain']):.2f}× on average)" if len(faster) else ""
    line += f" and is tied with it in {len(rows_by_outcome['tied'])}" if len(rows_by_outcome["tied"]) else ""
    line += f"; the MPI default is the fastest in {len(slower)}" if len(slower) else ""
    return f"{line}."


def format_at_size(bytes: int) -> str:
    return f" at {format_size(bytes)}" if bytes else ""


def compute_mean_gain(gains: pd.Series) -> float:
    return compute_geometric_mean(np.log(gains))


def tabulate_default_gains(rows: pd.DataFrame, simulated: set[str]) -> Table:
    """Return, by platform and operation, how often and by how much the fastest alternative beats the MPI default."""
    lines = []
    for (platform, operation), part in rows.groupby(["platform", "operation"]):
        highest_gain = part.loc[part["gain"].idxmax()]
        lines.append(
            {"platform": platform, "simulated": platform in simulated, "operation": operation}
            | {"workloads": len(part), **{name: int((part["outcome"] == name).sum()) for name in OUTCOMES}}
            | {"mean": compute_mean_gain(part["gain"]), "least": part["gain"].min(), "most": highest_gain["gain"]}
            | {"top": f"{highest_gain['way']}, {highest_gain['size']}{format_at_size(highest_gain['bytes'])}"}
        )
    lines.sort(key=lambda line: line["simulated"])
    note = "The fastest measured alternative of each workload, compared with the MPI default. Above 1: choosing pays."
    marks = frozenset((row, 7) for row, line in enumerate(lines) if line["mean"] > 1)
    return make_table("Library", "Gain over the MPI default", lines, note=note, fixed=3, marks=marks)


def mark_rows(rows: pd.Series, column: int) -> frozenset[tuple[int, int]]:
    """Return the marks in a column of the rows that are true."""
    return frozenset((row, column) for row in np.flatnonzero(rows).tolist())


def make_default_cells(row: Mapping | None) -> dict[str, object]:
    """Return the columns of a workload in sheet Selection; NaN without a measured MPI default."""
    if row is None:
        return {"library_default": np.nan, "gain": np.nan, "outcome": np.nan}
    words = {"faster": "alternative", "tied": "tied", "slower": "MPI default"}
    return {"library_default": row["library_default"] * MICRO, "gain": row["gain"], "outcome": words[row["outcome"]]}


def tabulate_recommended(summary: pd.DataFrame, simulated: set[str]) -> Table:
    """Return the errors, regret and intervals of the recommended prediction, beside those of the best single model."""
    shown = summary.assign(simulated=summary["platform"].isin(simulated), coverage=100 * summary["coverage"])
    shown = scale_to_shown_units(shown)
    marks = mark_rows(shown["prediction"] == RECOMMENDED, 2)
    note = (
        "The recommended prediction stacks the models and corrects them by measured points. The fits for a point leave "
        "out its workload. Below it: the model with the lowest mean μ at the same points."
    )
    return make_table("Recommended", "Recommended prediction", shown, note=note, fixed=3, marks=marks)


def tabulate_choices(choices: pd.DataFrame) -> Table:
    """Return regret and gain of choosing by the recommended prediction: by platform and operation, and over all."""
    parts = []
    for _, rows_of_platform in choices.groupby("platform", sort=False):
        by_operation = combined_prediction.summarize_picks(rows_of_platform.sort_values("operation", kind="stable"))
        if len(by_operation) > 1:
            parts.append(combined_prediction.summarize_picks(rows_of_platform.assign(operation=ALL_OPERATIONS)))
        parts.append(by_operation)
    shown = scale_to_shown_units(pd.concat(parts, ignore_index=True))
    marks = mark_rows(shown["gain"] > 1, 7)
    note = (
        "The alternative with the lowest recommended prediction, as in `commodel advise`, from fits without its "
        "workload; the MPI default where the gain over it is within its uncertainty. Marked: faster than the MPI "
        "default."
    )
    return make_table("Following", "Choices by the recommended prediction", shown, note=note, fixed=3, marks=marks)


def tabulate_models(frame: pd.DataFrame, held_out: pd.DataFrame) -> tuple[Table, Table]:
    """Return the models with the errors of their predictions, and with the regret of their choices; the best first."""
    keys = ["platform", "family"]
    predicted = frame.loc[has_schedule(frame), [*keys, "simulated", "point", "measured"]]
    every = predicted.loc[predicted["family"] != "", [*keys, "simulated"]].drop_duplicates(keys)
    rows = every.merge(summarize_errors(held_out, keys), "left", on=keys).merge(
        summarize_choices(frame, keys), "left", on=keys
    )
    rows = scale_to_shown_units(rows.assign(points=rows["points"].fillna(0), groups=rows["groups"].fillna(0)))
    rows = sort_by_error(rows, ("simulated", "platform"))
    best = {platform: find_best_model(part) for platform, part in held_out.groupby("platform")}
    return tabulate_predicting(rows, held_out, predicted, best), tabulate_choosing(rows, best)


def tabulate_predicting(rows: pd.DataFrame, held_out: pd.DataFrame, predicted: pd.DataFrame, best: dict) -> Table:
    standing = {}
    for platform, best_model in best.items():
        if best_model is not None:
            part = held_out[held_out["platform"] == platform]
            standing |= {(platform, family): "tied" for family in find_tied_models(part, best_model)}
            standing |= {(platform, family): "equal" for family in find_equal_models(part, best_model["family"])}
            standing[platform, best_model["family"]] = "best"
    width = (
        (held_out["predicted_high"] / held_out["predicted_low"])
        .groupby([held_out["platform"], held_out["family"]])
        .median()
    )
    uninformative = dict.fromkeys(width.index[width > MAX_INFORMATIVE_WIDTH], NO_INFORMATION)
    rows["standing"] = [(standing | uninformative).get((row.platform, row.family), "") for row in rows.itertuples()]
    measured_points = predicted[predicted["measured"].notna()].groupby("platform")["point"].nunique()
    rows["measured_points"] = rows["platform"].map(measured_points).fillna(0)
    marks = mark_best(rows, "Families", {"mu_mean": 1, "abs_error_median": 1, "bias": 1}, best)
    note = "Marked: the best value of each platform, of models that predict at least 80 % of the points."
    return make_table("Families", "Errors of predictions, by model", rows, note=note, fixed=3, marks=marks)


def tabulate_choosing(rows: pd.DataFrame, best: dict) -> Table:
    sign_of_column = {"right": -1, "regret_mean": 1, "regret_max": 1, "over_default": 1, "over_fastest": 1}
    note = "The alternative with the model's lowest prediction, compared with the fastest one and the MPI default."
    marks = mark_best(rows, "Choosing", sign_of_column, best)
    return make_table("Choosing", "Regret of choices, by model", rows, note=note, fixed=3, marks=marks)


def mark_best(rows: pd.DataFrame, table: str, sign_of_column: dict[str, int], best: dict) -> frozenset:
    """Return the places of each platform's best values and best model. The sign -1 means that more is better."""
    column_keys, marks = [column.key for column in select_columns(table)], set()
    for platform, part in rows.groupby("platform"):
        ranked = part[part["points"] >= MIN_SHARE_OF_POINTS * part["points"].max()]
        if (best_model := best.get(platform)) is not None:
            marks |= {(row, column_keys.index("family")) for row in part.index[part["family"] == best_model["family"]]}
        for key, sign in sign_of_column.items():
            value = (ranked[key].abs() if key == "bias" else ranked[key]) * sign
            if len(ranked) > 1 and value.min() < math.inf:
                marks |= {(row, column_keys.index(key)) for row in value.index[value == value.min()]}
    return frozenset(marks)


def tabulate_classes(best_by_class: pd.DataFrame, simulated: set[str]) -> Table:
    """Return the best model by operation, fan-in and message size."""
    shown = best_by_class.assign(simulated=best_by_class["platform"].isin(simulated))
    shown["tied"] = [
        ", ".join(row.tied) if row.enough or not row.best else f"fewer than {MIN_POINTS} points"
        for row in best_by_class.itertuples()
    ]
    shown["same"] = [", ".join(row.same) for row in best_by_class.itertuples()]
    shown["mu_next"] = shown["mu_next"].astype(object).where(shown["next"] != "", None)
    shown["alone"] = [row.enough and not row.tied for row in best_by_class.itertuples()]
    marks = mark_rows(shown["alone"], 6)
    note = "Fan-in: the most messages that one rank receives in one step. Marked: clearly best."
    title = "Best model by operation, fan-in and message size"
    return make_table("Ahead", title, shown, note=note, fixed=5, marks=marks)


def make_error_section(frame: pd.DataFrame) -> Section:
    """Return matrices of mean μ: models × operation, alternative, message size, and fan-in of an operation."""
    blocks = []
    title_of_column = {"operation": "operation", "alternative": "algorithm or topology", "bytes": "message size"}
    title_of_column |= {"fan_in": "operation and fan-in"}
    if not frame.empty:
        for key, name in title_of_column.items():
            rows = summarize_errors(frame, [*list_row_keys(key), "family"])
            blocks.append(make_error_matrix(list_matrix_rows(frame, key), rows, list_models(frame), key, name))
    note = "Mean μ of each model. n/a: no prediction, or nothing was measured."
    return Section("Errors", note, tuple(blocks))


def list_row_keys(key: str) -> list[str]:
    """Return the columns that identify a row of a matrix: an algorithm and a topology may have the same name."""
    return ["platform", *{"alternative": ["kind"], "fan_in": ["operation"]}.get(key, []), key]


COUNT_TITLES = {"bytes": "bytes [B]", "fan_in": "fan-in"}


def list_matrix_rows(frame: pd.DataFrame, key: str) -> pd.DataFrame:
    """Return the rows of a matrix, with their number of measured points."""
    names = list_row_keys(key)
    order = names if key == "fan_in" else ["platform", key]
    every = frame[["simulated", *names]].drop_duplicates(names).sort_values(["simulated", *order])
    points = frame[frame["measured"].notna()].groupby(names)["point"].nunique().rename("points")
    places = every.merge(points, "left", on=names)
    places["points"] = places["points"].fillna(0)
    return places


def make_error_matrix(places: pd.DataFrame, rows: pd.DataFrame, families: list[str], key: str, name: str) -> Table:
    names = list_row_keys(key)
    errors = rows.pivot_table(index=names, columns="family", values="mu_mean").reindex(columns=families)
    errors = errors.rename(columns={family: f"= {family}" for family in families})
    shown = scale_to_shown_units(places.merge(errors, "left", on=names))
    columns = [*PLATFORM_COLUMNS, *([Column("operation", "operation")] if key == "fan_in" else [])]
    columns.append(Column(key, COUNT_TITLES[key], "count") if key in COUNT_TITLES else Column(key, name))
    columns += [Column("kind", "kind")] if "kind" in names else []
    if key == "bytes":
        shown["label"] = [format_bytes(int(size)) for size in shown["bytes"]]
        columns.append(Column("label", "size"))
    columns.append(Column("points", "points measured", "count"))
    columns += [Column(f"= {family}", family, "ratio", scale=MU_SCALE) for family in families]
    fixed = len(columns) - len(families)
    marks = mark_lowest(shown[[column.key for column in columns[fixed:]]], fixed) if families else frozenset()
    note = "Marked: the lowest of each row."
    return make_table(f"Mean μ by {key}", f"Mean μ by {name}", shown, columns, fixed=fixed, note=note, marks=marks)


def mark_lowest(shown: pd.DataFrame, offset: int) -> frozenset[tuple[int, int]]:
    """Return (row, column + `offset`) of the lowest value of every row."""
    values = shown.to_numpy(float)
    row_minima = np.nanmin(np.where(np.isfinite(values), values, np.inf), axis=1, initial=np.inf)
    rows, columns = np.nonzero((values == row_minima[:, None]) & np.isfinite(values))
    return frozenset((int(row), int(column) + offset) for row, column in zip(rows, columns, strict=True))


def build_selection(frame: pd.DataFrame) -> tuple[Section, Section]:
    """Return, by workload, the fastest measured alternative, and the choice and regret of each model that had a
    choice."""
    families = list_models(frame)
    rows, single_count = list_workloads(frame, families)
    if not any(isinstance(row[f"pick {family}"], str) for row in rows for family in families):
        families = []
    return make_selection_section(rows, single_count, families), list_other_choices(rows, families)


def make_selection_section(rows: list[dict], single_count: int, families: list[str]) -> Section:
    columns = [
        *select_columns("Workload", "Selection"),
        *(Column(f"regret {family}", family, "percent", scale=REGRET_SCALE) for family in families),
    ]
    note = (
        "Workloads with two measured alternatives or more, including the MPI default. Regret 0: the model chooses the "
        "fastest alternative. With equal predictions the first counts. n/a: the model has no choice."
    )
    if single_count:
        note += f" Not shown: {format_count(single_count, 'workload')} with fewer."
    if not families and not any(pd.notna(row["gain"]) for row in rows):
        return Section("Selection", NO_CHOICE_NOTE, ())
    regrets = make_table("Selection", "Regret of the choices of each model [%]", rows, columns, fixed=6)
    return Section("Selection", note, (regrets,))


def list_other_choices(rows: list[dict], families: list[str]) -> Section:
    """Return the workloads in which a model does not choose the fastest alternative, and its choice there."""
    columns = [*select_columns("Workload"), *(Column(f"pick {family}", family) for family in families)]
    if not families:
        return Section("Picks", NO_CHOICE_NOTE, ())
    keys = [f"pick {family}" for family in families]
    differing = [row | {key: "" for key in keys if row[key] == row["best"]} for row in rows]
    differing = [row for row in differing if any(isinstance(row[key], str) and row[key] for key in keys)]
    note = "Workloads in which a model does not choose the fastest alternative. Blank: it chooses the fastest; "
    note += "n/a: it has no choice."
    table = make_table("Picks", "Choices of each model that are not the fastest", differing, columns, fixed=6)
    return Section("Picks", note, (table,))


NO_CHOICE_NOTE = "There was no choice: no model predicts two alternatives of a workload."
WORKLOAD_KEYS = ("platform", "simulated", "operation", "place", "size", "bytes")


def list_workloads(frame: pd.DataFrame, families: list[str]) -> tuple[list[dict], int]:
    """Return one row a workload with two measured alternatives or more, not all of them the MPI default, and the number
    of workloads with fewer."""
    points = select_measured_points(frame)
    points = points[points.groupby("workload")["point"].transform("size") > 1]
    schedules = points[~is_library_default(points)]
    single_count = frame["workload"].nunique() - schedules["workload"].nunique()
    rows_by_workload = _group_by_workload(
        schedules, [*WORKLOAD_KEYS, "way", "measured", "measured_low", "measured_high"]
    )
    chosen_by = _group_by_workload(
        frame.loc[frame["chosen"], ["workload", "family", "way", "regret"]], ["family", "way", "regret"]
    )
    default_rows = {row["workload"]: row for row in compare_with_default(points).to_dict("records")}
    rows = []
    for group, part in rows_by_workload.items():
        first, *slower = sorted(part, key=lambda row: (row["measured"], row["way"]))
        row = {key: first[key] for key in WORKLOAD_KEYS} | {
            "count": len(part),
            "best": first["way"],
            "measured": first["measured"] * MICRO,
            "next": None,
            "margin": math.nan,
            "clear": None,
        }
        if slower:
            row |= {"next": slower[0]["way"], "margin": 100 * (slower[0]["measured"] / first["measured"] - 1)}
            row |= {"clear": is_clearly_faster(first, slower[0])}
        row |= make_default_cells(default_rows.get(group))
        chosen = {choice["family"]: choice for choice in chosen_by.get(group, ())}
        for family in families:
            choice = chosen.get(family, {"way": np.nan, "regret": np.nan})  # it predicts fewer than two alternatives
            row |= {f"pick {family}": choice["way"], f"regret {family}": choice["regret"] * 100}
        rows.append(row)
    return rows, single_count


def _group_by_workload(frame: pd.DataFrame, columns: list[str]) -> dict[str, list[dict]]:
    groups: dict[str, list[dict]] = {}
    for group, row in zip(frame["workload"], frame[columns].to_dict("records"), strict=True):
        groups.setdefault(group, []).append(row)
    return groups
