"""The evidence for advice: parameter sets of one platform, and the points that were measured there.

`combine_sets` makes `Evidence` of parameter sets, `collect_evidence` that of one run.
`count_doublings` returns how far a workload lies outside of the measured points.
`find_measured_default` and `predict_default` return the time of the MPI default. The functions
`describe_…` return notes on all of these.
"""

import hashlib
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from commodel.compare.comparison import STREAM, is_library_default, name_streams
from commodel.compare.measured_defaults import fit_measured_defaults, read_library
from commodel.compare.recommended import Recommender, split_recommended
from commodel.errors import UserError
from commodel.files.results_folder import Results
from commodel.files.tables import COMPARISON, add_default_columns, read_table, select_fields
from commodel.models.parameter_sets import describe_changes, read_set, replace_by_hand
from commodel.parameters import DATA_SHEET_SOURCE, ParameterSet
from commodel.patterns.operations import find_base_name
from commodel.patterns.point_digests import add_digests
from commodel.patterns.points import PlatformResources, make_point
from commodel.patterns.schedule import Schedule, encode_integers
from commodel.predictions.interval_basis import (
    IntervalBasis,
    format_doublings,
    is_informative,
)
from commodel.predictions.mpi_default import (
    MpiDefault,
    describe_algorithms,
    describe_widths,
)
from commodel.predictions.places import (
    ONE_NODE,
    SEVERAL_NODES,
    find_operation_class,
    name_placement,
)
from commodel.records import LIBRARY, Point, Statistic
from commodel.stats import NORMAL_QUANTILE
from commodel.units import format_bytes

# points of one operation and model, from which on notes are on these alone
MIN_POINTS_OF_OPERATION = 6
MIN_REPORTED_DOUBLINGS = 0.05  # doublings; less extrapolation is not reported
HELD_OUT_COLUMNS = select_fields(  # columns from which weights and intervals of models are computed
    COMPARISON,
    "point platform operation algorithm alternative layout ranks leaves bytes nodes levels_crossed waves batch workload"
    " simulated setting model seconds validity measured measured_low measured_high mu held_out",
)


MEASURED_COLUMNS = ("measured", "measured_low", "measured_high")


def make_empty_held_out() -> pd.DataFrame:
    return pd.DataFrame({field.name: pd.Series(dtype=field.type) for field in HELD_OUT_COLUMNS})


@dataclass(frozen=True, eq=False)
class Evidence:
    """Parameter sets and measured points of a platform. `resources` has the platform's name, nodes
    and cores. `held_out` are rows of a comparison whose points no fit has used, `measured` are all
    its rows. `library` is the version text of the MPI library, empty if unknown."""

    sets: Sequence[ParameterSet]
    resources: PlatformResources
    held_out: pd.DataFrame = field(default_factory=make_empty_held_out)
    measured: pd.DataFrame = field(default_factory=make_empty_held_out)
    library: str = ""
    _recommenders: dict[tuple, Recommender | None] = field(default_factory=dict, repr=False)
    _defaults: dict[str, MpiDefault | None] = field(default_factory=dict, repr=False)

    def find_recommender(self, models: Sequence[str], placement: str) -> Recommender | None:
        """Return the recommender of these models at a placement, which is fitted once; None if too
        little was measured there."""
        key = (*sorted(models), placement)
        if key not in self._recommenders:
            if self.held_out.empty:
                sets = [fitted for fitted in self.sets if fitted.model in models]
                recommender = (
                    Recommender.of_sets(sets, placement) if self._has_valid_residuals else None
                )
            else:
                rows = select_placement(self.predicted_points(), [placement])
                recommender = Recommender.fit(rows, models)
            self._recommenders[key] = recommender
        return self._recommenders[key]

    @property
    def _has_valid_residuals(self) -> bool:
        """Whether the residuals that sets store are those of their values."""
        return not any(describe_changes(parameters) for parameters in self.sets)

    def find_measured(self, points: Iterable[Point]) -> dict[Point, float]:
        """Return the measured times of those points that this platform has measured:
        completions."""
        seconds = dict(zip(self.measured["point"], self.measured["measured"], strict=True))
        sizes = set(zip(self.measured["ranks"], self.measured["bytes"], strict=True))
        points = [point for point in points if (point.ranks, point.bytes) in sizes]
        points = [point for point in points if point.statistic is Statistic.COMPLETION]
        ids = [point.id for point in add_digests(points)]
        return {
            point: seconds[key] for point, key in zip(points, ids, strict=True) if key in seconds
        }

    def list_alternatives(self, operation: str, ranks: int, leaves: int, bytes: int) -> list[str]:
        """Return the alternatives that this platform has measured for a workload, without the MPI
        default."""
        rows = self.measured[
            self.measured["operation"].eq(operation) & self.measured["bytes"].eq(bytes)
        ]
        rows = rows[
            rows["leaves"].eq(leaves) if leaves else rows["ranks"].eq(ranks) & rows["leaves"].eq(0)
        ]
        return list(dict.fromkeys(rows.loc[~is_library_default(rows), "alternative"]))

    def choose_among_equal(
        self, points: Sequence[Point], patterns: Sequence[Schedule], measured: Collection[Point]
    ) -> list[int]:
        """Return for each point the number of the point that stands for all with the same messages,
        as `chain` and `chain:8KiB` are: one of the `measured`, else one whose alternative was
        measured, else the first."""
        alternatives = set(
            zip(self.measured["operation"], self.measured["alternative"], strict=True)
        )
        chosen: dict[bytes, tuple[int, int]] = {}
        keys = []
        for number, (point, pattern) in enumerate(zip(points, patterns, strict=True)):
            priority = (
                0
                if point in measured
                else 1
                if (point.operation, point.alternative) in alternatives
                else 2
            )
            keys.append(hashlib.blake2b(pattern.encode() + encode_integers(pattern.node)).digest())
            chosen[keys[-1]] = min(chosen.get(keys[-1], (priority, number)), (priority, number))
        return [chosen[key][1] for key in keys]

    def by_model(self) -> dict[str, ParameterSet]:
        """Return the sets that have values."""
        sets = {parameters.model: parameters for parameters in self.sets if parameters.values}
        if sets.pop(LIBRARY, None) and not sets:
            raise UserError(
                "found only times of the MPI default, wanted also a model of its alternatives: "
                "`commodel fit sheet` derives one from a data sheet, `commodel predict` predicts the "
                "MPI default alone"
            )
        if not sets:
            raise UserError(
                "no model has values: give --params, or a platform that an experiment has run on"
            )
        return sets

    def find_default(self, operation: str) -> MpiDefault | None:
        """Return the prediction of the MPI default for an operation, from a set that stores it or
        from the measured times; None if there are too few."""
        if operation not in self._defaults:
            sets = [parameters for parameters in self.sets if parameters.model == LIBRARY]
            default: MpiDefault | None
            if sets:
                default = MpiDefault.of_set(sets[0])
            else:
                measured = fit_measured_defaults(self.measured, operation)
                default = replace(measured, setting=self.library) if measured else None
            self._defaults[operation] = default
        return self._defaults[operation]

    def predicted_points(self, streams: bool = False) -> pd.DataFrame:
        """Return the held-out rows with predictions, of single waves or of streams."""
        rows = add_default_columns(self.held_out, COMPARISON)
        rows = rows[rows["operation"].str.startswith(STREAM).astype(bool) == streams]
        return rows[rows["model"].ne("") & ~is_library_default(rows)]


def find_placement(point: Point) -> str:
    """Return whether a point runs within a node or between nodes."""
    return name_placement(point.nodes)


def select_placement(rows: pd.DataFrame, placements: Iterable[str]) -> pd.DataFrame:
    """Return the held-out rows measured at the given placements: within a node, between nodes, or
    both; all rows if the number of nodes is unknown."""
    if rows["nodes"].isna().any():
        return rows
    return rows[rows["nodes"].map(name_placement).isin(set(placements))]


def select_deciding(held_out: pd.DataFrame, operation: str) -> pd.DataFrame:
    """Return the rows that decide on weights: those of the operation if there are enough points,
    else all."""
    of_same_operation = held_out[
        held_out["operation"].map(find_base_name) == find_base_name(operation)
    ]
    return (
        of_same_operation
        if len(of_same_operation)
        and of_same_operation.groupby("model").size().max() >= MIN_POINTS_OF_OPERATION
        else held_out
    )


def count_doublings(points: Sequence[Point], deciding: pd.DataFrame) -> np.ndarray:
    """Return how many times the ranks or the bytes of each point double, or halve, outside of the
    measured range."""
    doublings = np.zeros(len(points))
    for name in ("ranks", "bytes") if len(deciding) else ():
        values = np.array([max(getattr(point, name), 1) for point in points], dtype=float)
        low = max(deciding[name].min(), 1)
        high = max(deciding[name].max(), 1)
        doublings += np.maximum(np.log2(values / high), 0) + np.maximum(np.log2(low / values), 0)
    return doublings


def describe_evidence(
    evidence: Evidence, operation: str, deciding: pd.DataFrame, points: Sequence[Point]
) -> list[str]:
    """Return notes on the evidence: weights without measurements, and extrapolation."""
    notes = []
    doublings = float(np.max(count_doublings(points, deciding)))
    deciding_operations = set(deciding["operation"].map(find_base_name))
    other_operations = sorted(deciding_operations - {find_base_name(operation)})
    if deciding.empty:
        of_models = [fitted for fitted in evidence.sets if fitted.model != LIBRARY]
        if any(parameters.residuals for parameters in of_models):
            notes.append("weights and intervals come from the residuals that the sets store")
        else:
            unweighted = "no measurement here shows the errors of these models"
            notes.append(
                f"{unweighted}: all weights are equal, and intervals contain no model error"
            )
    elif other_operations:
        notes.append(
            f"too little of {operation} was measured here: the weights come from {', '.join(other_operations)}"
        )
    if doublings > MIN_REPORTED_DOUBLINGS:
        ranks, sizes = (
            (int(deciding[name].min()), int(deciding[name].max())) for name in ("ranks", "bytes")
        )
        measured_range = (
            f"{_format_range(*ranks)} ranks and {_format_range(*map(format_bytes, sizes))}"
        )
        extent = format_doublings(doublings)
        notes.append(
            f"EXTRAPOLATED by {extent}: measured were {measured_range}; intervals are wider for that"
        )
    changed = describe_manual_values(evidence)
    if changed:
        weights_note = "" if deciding.empty else "; weights come from the errors of the fitted sets"
        notes.append(f"SET BY HAND: {changed}, all else as in the sets{weights_note}")
    sheets = sorted(
        parameters.model
        for parameters in evidence.sets
        if DATA_SHEET_SOURCE in parameters.provenance
    )
    if sheets:
        notes.append(f"FROM DATA SHEETS: values of {', '.join(sheets)} are not measured")
    return notes


def describe_missing_intervals(intervals: Sequence[str]) -> list[str]:
    """Return a note on the alternatives without an interval from residuals, if others have one."""
    missing = Counter(filter(None, (IntervalBasis.parse(text).unmeasured for text in intervals)))
    return [
        f"NO PREDICTION INTERVAL for {number} of {len(intervals)} alternatives: no measurement {where}; "
        f"{'weights are equal' if where in (ONE_NODE, SEVERAL_NODES) else 'weights come from nearer ranks'}, "
        "low and high, where given, are the ends of the parameter interval"
        for where, number in missing.items()
    ]


def describe_manual_values(evidence: Evidence) -> str:
    """Return the values set by hand, model by model."""
    notes = {parameters.model: describe_changes(parameters) for parameters in evidence.sets}
    return "; ".join(f"{name} {text}" for name, text in notes.items() if text)


@dataclass(frozen=True, slots=True)
class LibraryDefault:
    """The time of the MPI default for a workload, in seconds, with its 95 % interval: measured
    there, or predicted from its times at other sizes and ranks."""

    seconds: float
    low: float
    high: float
    source: str  # MEASURED, or how it was predicted
    notes: Sequence[str] = ()  # why the interval is wide

    @property
    def is_informative(self) -> bool:
        """Whether the interval is narrow enough to compare the time."""
        return is_informative(self.low, self.high)

    @property
    def caution(self) -> float:
        """The standard deviation of the logarithm that counts in favour of the default: that of a
        measured time. A predicted one may be too low as well as too high."""
        if self.source != MEASURED:
            return 0.0
        return float(np.log(self.high / self.low)) / (2 * NORMAL_QUANTILE)


def find_measured_default(
    held_out: pd.DataFrame,
    operation: str,
    ranks: int,
    leaves: int,
    size: int,
    layouts: Collection[str] = (),
) -> LibraryDefault | None:
    """Return the measured time of the MPI default with the fastest of some layouts, or of all; None
    without one."""
    rows = held_out[is_library_default(held_out) & (held_out["operation"] == operation)]
    rows = rows[rows["layout"].isin(layouts)] if layouts else rows
    axis, count = ("leaves", leaves) if leaves else ("ranks", ranks)
    rows = rows[(rows["leaves"] > 0) == bool(leaves)]
    rows = rows[(rows[axis] == count) & (rows["bytes"] == size)]
    if rows.empty:
        return None
    fastest = rows.sort_values("measured", kind="stable").iloc[0]
    seconds, low, high = (float(fastest[name]) for name in MEASURED_COLUMNS)
    return LibraryDefault(seconds=seconds, low=low, high=high, source=MEASURED)


def predict_default(
    evidence: Evidence, wanted: Mapping[str, Any], statistic: Statistic, layouts: Collection[str]
) -> LibraryDefault | None:
    """Return the predicted time of the MPI default with the fastest of some layouts; None without
    times of the same statistic. `wanted` has its operation,
    ranks and bytes."""
    model = evidence.find_default(wanted["operation"])
    if model is None:
        return None
    if not evidence.resources.name and not layouts:
        layouts = [f"block:{model.per_node}"]
    resources = evidence.resources.extended(wanted["ranks"])
    points = []
    for layout in sorted(layouts):
        # a layout of a tree's nodes may have no place for the ranks of its leaves
        with suppress(UserError):
            names = {"algorithm": LIBRARY, "layout": layout}
            point = make_point(resources, {**wanted, **names})
            points.append(replace(point, statistic=statistic))
    predicted = [timed for timed in model.predict(points) if timed.seconds == timed.seconds]
    if not predicted:
        return None
    best = min(predicted, key=lambda timed: timed.seconds)
    source = f"predicted from its measured times on {best.point.layout}"
    if best.validity.reason:
        source += f", extrapolated by {best.validity.reason}"
    notes = describe_widths(model, [best])
    return LibraryDefault(best.seconds, best.low, best.high, source, notes)


def describe_default_algorithm(
    evidence: Evidence, wanted: Mapping[str, Any], layouts: Collection[str]
) -> list[str]:
    """Return a note on the algorithm that the MPI library runs by its default rules, on the first of
    some layouts. `wanted` has its operation, ranks and bytes."""
    model = evidence.find_default(wanted["operation"])
    setting = model.setting if model else evidence.library
    if not evidence.resources.name and not layouts and model:
        layouts = [f"block:{model.per_node}"]
    resources = evidence.resources.extended(wanted["ranks"])
    for layout in sorted(layouts)[:1]:
        with suppress(UserError):
            names = {"algorithm": LIBRARY, "layout": layout}
            return describe_algorithms(setting, [make_point(resources, {**wanted, **names})])
    return []


def describe_other_statistic(evidence: Evidence, operation: str, statistic: Statistic) -> list[str]:
    """Return a note if the times of the MPI default for an operation are of another statistic."""
    model = evidence.find_default(operation)
    if model is None:
        return []
    branches = set(model.laws)
    for other in Statistic:
        name = find_operation_class(operation, 1, other)
        has_other = any(f"{name} {place}" in branches for place in (ONE_NODE, SEVERAL_NODES))
        if has_other and name != find_operation_class(operation, 1, statistic):
            advice = f"--statistic '{other}' compares it with the alternatives"
            return [f"times of the MPI default are of statistic '{other}': {advice}"]
    return []


MEASURED = "measured"  # source of a time of the MPI default that is not predicted
# of the MPI default's time to that of an alternative; below it, a reason is named
MAX_UNEXPLAINED_RATIO = 0.9
SHARED_MEMORY_HINT = (
    "; within a node it may use collectives over shared memory, which no alternative here models"
)


def describe_library_default(
    default: LibraryDefault | None, predicted: float, measured: float, within_real_node: bool
) -> list[str]:
    """Return a note that compares the MPI default with the first alternative: two measured times if
    both were measured for the workload, else the predicted time of the alternative. `measured` may
    be NaN. Within a node of a platform that is not simulated, the note names a possible reason for
    a faster default."""
    if default is None:
        return []
    both_measured = default.source == MEASURED and measured == measured
    ratio = default.seconds / (measured if both_measured else predicted)
    speed = (
        f"takes {ratio:.2f} times as long" if ratio >= 1 else f"is {1 / ratio:.2f} times as fast"
    )
    compared = "both measured" if both_measured else f"{default.source}, against a predicted time"
    hint = SHARED_MEMORY_HINT if within_real_node and ratio < MAX_UNEXPLAINED_RATIO else ""
    return [f"the MPI default {speed} ({compared}){hint}", *default.notes]


def _format_range(low: object, high: object) -> str:
    return f"{low}" if low == high else f"{low} to {high}"


def combine_sets(
    sets: Sequence[ParameterSet], resources: PlatformResources | None = None
) -> Evidence:
    """Return parameter sets as evidence without measured points. Without a platform, any number of
    nodes with one rank each is assumed."""
    counts = Counter(parameters.model for parameters in sets)
    duplicates = [model for model, count in counts.items() if count > 1]
    if duplicates:
        raise UserError(
            f"found two sets of model {min(duplicates)}; give one set a model, all of one platform"
        )
    return Evidence(sets, resources or PlatformResources.unlimited())


def collect_evidence(
    sets: Sequence[ParameterSet], resources: PlatformResources, results: Results
) -> Evidence:
    """Return parameter sets with the points that were measured on their platform; none if nothing
    was compared."""
    rows = read_measured(results, resources.name)
    return Evidence(
        sets=sets,
        resources=resources,
        held_out=rows[rows["held_out"]],
        measured=rows,
        library=read_library(results, rows),
    )


def replace_values(evidence: Evidence, texts: Sequence[str]) -> Evidence:
    """Return the evidence with values set by hand in some of the sets."""
    with_values = [parameters for parameters in evidence.sets if parameters.values]
    return (
        replace(evidence, sets=replace_by_hand(with_values, texts), _recommenders={})
        if texts
        else evidence
    )


def read_measured(results: Results, platform: str) -> pd.DataFrame:
    """Return the rows of the comparison of a platform with a measured time; none if nothing was
    compared."""
    table = results.table("comparison")
    if not table.exists():
        return make_empty_held_out()
    of_models, _ = split_recommended(read_table(table, HELD_OUT_COLUMNS))
    rows = name_streams(of_models)
    return rows[(rows["platform"] == platform) & rows["measured"].notna()]


def find_only_platform(experiment: str, results: Path) -> str:
    """Return the platform of an experiment's results, if there is only one, or only one that is not
    simulated."""
    folder = Results.of(results / experiment)
    platforms = folder.platforms()
    if len(platforms) > 1:

        def is_simulated(platform: str) -> bool:
            return any(read_set(path).simulated for path in folder.sets(platform)[:1])

        real = [platform for platform in platforms if not is_simulated(platform)]
        platforms = real if len(real) == 1 else platforms
    if not platforms:
        raise UserError(
            f"found no results of experiment '{experiment}'; run it first: commodel run {experiment}"
        )
    if len(platforms) > 1:
        raise UserError(
            f"found results of {experiment} on {len(platforms)} platforms; give --platform {' or '.join(platforms)}"
        )
    return platforms[0]
