"""Advice on a workload: `advise` ranks its alternatives by the combined prediction of every model with a parameter set.
Points measured on the platform weigh the models; beyond these intervals widen, and a note says so.

There are two goals: the time of one wave, and the time between waves of a stream.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from commodel.advice.alternatives import assess_alternatives, list_algorithms, list_layouts, list_trees, point_of
from commodel.advice.evidence import (
    Evidence,
    LibraryDefault,
    compare_with_library,
    count_doublings,
    describe_evidence,
    describe_library_default,
    describe_missing_intervals,
    find_library_default,
    find_placement,
    select_deciding,
    select_placement,
)
from commodel.advice.gather_windows import gather_bounds
from commodel.compare.combined_prediction import (
    CombinedPrediction,
    ModelWeight,
    combine_predictions,
    pareto_front,
    weigh_models,
    weigh_probed_models,
    weights_by_alternative,
)
from commodel.compare.comparison import STREAM
from commodel.compare.comparison_intervals import combine_intervals, combined_residuals
from commodel.errors import UserError
from commodel.parameters import ParameterSet
from commodel.patterns.build import list_parts, schedule
from commodel.patterns.points import Setting, make_point
from commodel.patterns.schedule import Schedule, whole_bytes
from commodel.predictions.barrier_bounds import remark
from commodel.predictions.model import Model
from commodel.predictions.prediction_intervals import (
    PARAMETERS,
    Interval,
    PointSeries,
    apply_residuals,
    find_residuals,
    fit_bands,
)
from commodel.predictions.predictions import PredictedTimes
from commodel.records import Point
from commodel.stats import NEGLIGIBLE
from commodel.units import format_bytes, over


@dataclass(frozen=True)
class Workload:
    """A workload: operation and size, over so many leaves of a tree, or so many ranks."""

    operation: str
    bytes: int
    leaves: int = 0
    ranks: int = 0

    @property
    def text(self) -> str:
        return f"{self.operation} over {over(self.leaves, self.ranks)}, {format_bytes(self.bytes)}"


@dataclass(frozen=True, eq=False)
class Advice:
    """Ranked alternatives of a workload, the fastest first; the weights of the models; and notes."""

    workload: Workload
    rows: pd.DataFrame
    weights: dict[str, dict[str, ModelWeight]]  # at each placement of alternatives: within a node, between nodes
    notes: list[str]
    library: float = np.nan  # time of the MPI default over that of the fastest alternative, as measured nearby
    interval: str = PARAMETERS  # basis of the first alternative's interval
    default: LibraryDefault | None = None
    keeps_default: bool = False  # no alternative is clearly faster than the MPI default


def advise(
    workload: Workload, evidence: Evidence, layouts: Sequence[str] = (), only: Sequence[str] = (), streams: bool = True
) -> Advice:
    """Rank the alternatives of a workload; `only` names those to consider; `streams`: times between waves too."""
    sets = evidence.by_family()
    points, lacking = _points(workload, evidence, sets, layouts, only)
    points, patterns = _distinct(points)
    panel = assess_alternatives(sets, patterns, streams)
    if not panel.models:
        why = "; ".join(f"{name}: {reason}" for name, reason in panel.lacking.items())
        raise UserError(f"no model predicts all alternatives: {why}")
    held_out, models = evidence.predicted_points(), list(panel.models)
    placements = [find_placement(point) for point in points]
    deciding = select_deciding(select_placement(held_out, placements), workload.operation)
    weights, notes = {}, [f"{lacking} more need more room than there is"] if lacking else []
    notes += [f"{name} has weight 0: {why}" for name, why in panel.lacking.items()]
    for place in dict.fromkeys(placements):
        unprobed = panel.unprobed([number for number, own in enumerate(placements) if own == place])
        measured = weigh_models(models, select_placement(held_out, [place]), workload.operation)
        weights[place] = weigh_probed_models(measured, unprobed)
        without = {name: why for name, why in unprobed.items() if not weights[place][name].weight}
        notes += [f"{name} has weight 0 {place}: {why}" for name, why in without.items()]
    beyond, of_points = count_doublings(points, deciding), weights_by_alternative(weights, placements)
    predictions = panel.values("seconds")
    combined = combine_predictions(predictions, of_points, beyond, panel.values("widening"))
    interval = _intervals(points, combined, weights, sets, held_out, panel.values("single_message_ratio"))
    streamed = select_placement(evidence.predicted_points(streams=True), placements)
    of_streams = weigh_models(models, streamed, f"{STREAM}{workload.operation}") if len(streamed) else of_points
    period = panel.period({name: of_streams[name].weight for name in models})
    rows = pd.DataFrame(
        {
            **{name: [getattr(point, name) for point in points] for name in ("choice", "layout", "ranks")},
            "seconds": combined.seconds,
            "low": interval.low,
            "high": interval.high,
            "interval_basis": [basis.text for basis in interval.bases],
            **{name: getattr(combined, name) for name in ("behind", "as_good", "support")},
            "period": period,
            "front": pareto_front(combined.seconds, period) if np.isfinite(period).all() else False,
            "doubt": panel.doubts,
        }
    )
    choices = rows["choice"].tolist()
    rows = rows.iloc[np.lexsort((rows["ranks"], rows["behind"].round(9)))].reset_index(drop=True)  # equal: fewer ranks
    notes += [*panel.describe_streams(), *panel.losses(choices)]
    if workload.operation == "barrier" and "lop" in predictions:
        times = dict(zip(choices, predictions["lop"][0].tolist(), strict=True))
        notes.append(remark(sets["lop"], workload.ranks, times))
    if len(streamed):
        counting = sorted((-of_streams[name].weight, name) for name in models if of_streams[name].weight > 0)
        shares = ", ".join(f"{name} {-100 * weight:.0f} %" for weight, name in counting)
        notes.append(f"for times between waves the weights come from streams that were measured here: {shares}")
    notes += describe_evidence(evidence, workload.operation, deciding, float(np.max(beyond)))
    notes += describe_missing_intervals(rows["interval_basis"])
    library, size = compare_with_library(
        evidence.held_out, workload.operation, workload.ranks, workload.leaves, workload.bytes
    )
    notes += describe_library_default(library, size)
    default = find_library_default(
        evidence.held_out, workload.operation, workload.ranks, workload.leaves, workload.bytes
    )
    measured_faster = size == workload.bytes and library > 1 + NEGLIGIBLE
    keeps = default is not None and float(rows["high"].iloc[0]) >= default.seconds and not measured_faster
    return Advice(workload, rows, weights, notes, library, rows["interval_basis"].iloc[0], default, keeps)


def _intervals(
    points: Sequence[Point],
    combined: CombinedPrediction,
    weights: Mapping[str, Mapping[str, ModelWeight]],
    sets: Mapping[str, ParameterSet],
    held_out: pd.DataFrame,
    ratios: Mapping[str, np.ndarray],
) -> Interval:
    """Return the intervals from the residuals of the combined prediction at points measured here, else from those that
    the sets keep. `ratios`: each model's single-message ratio of each point."""
    kept, intervals = {name: parameters.errors for name, parameters in sets.items()}, {}
    logs = np.zeros(len(points))
    for place, of_models in weights.items():
        shares = {name: weight.weight for name, weight in of_models.items()}
        known = combined_residuals(held_out, shares)
        bands = fit_bands(known) if known is not None else {}
        common = sum(share * np.log(ratios[name]) for name, share in shares.items() if share > 0)
        for number, point in enumerate(points):
            if find_placement(point) == place:
                logs[number], series = common[number], PointSeries.of(point)
                interval = find_residuals(bands, series) if bands else combine_intervals(kept, shares, series)
                intervals[number] = interval
    each = [intervals[number] for number in range(len(points))]
    ends = (np.concatenate([getattr(interval, end) for interval in each]) for end in ("low", "high"))
    residuals = Interval(*ends, [interval.bases[0] for interval in each])
    return apply_residuals(PredictedTimes(combined.seconds, combined.low, combined.high, np.exp(logs), []), residuals)


def _points(
    workload: Workload, evidence: Evidence, sets: dict[str, ParameterSet], layouts: Sequence[str], only: Sequence[str]
) -> tuple[list[Point], int]:
    """Return the distinct alternatives that fit on the platform, and the number of those that do not."""
    setting = evidence.setting
    if workload.leaves:
        choices = [{"topology": spec} for spec in only or list_trees(workload.leaves, _latencies(workload, sets))]
    else:
        windows = (
            [gather_bounds(sets["cluster"], workload.ranks, workload.bytes)["window"]] if "cluster" in sets else []
        )
        specs = only or list_algorithms(workload.operation, workload.ranks, workload.bytes, windows)
        choices = [{"algorithm": spec, "ranks": workload.ranks} for spec in specs]
    points, lacking = {}, []
    for choice in choices:
        for layout in layouts or list_layouts(setting, workload.ranks):
            combination = {"operation": workload.operation, "bytes": workload.bytes, "layout": layout, **choice}
            try:
                point = point_of(setting, combination, bool(layouts))
            except UserError as error:
                if layouts or only or error.key not in ("ranks", "topology") or not setting.name:
                    raise
                lacking.append(error.message)
                continue
            if point:  # with one rank a node all layouts are alike, where all nodes are
                distinct = point.nodes < point.ranks or setting.levels
                points.setdefault((point.choice, point.layout if distinct else ""), point)
    if not points:
        raise UserError(f"{workload.text}: no alternative fits: {lacking[0]}")
    return list(points.values()), len(lacking)


def _distinct(points: Sequence[Point]) -> tuple[list[Point], list[Schedule]]:
    """Return the first of alternatives that are the same messages under other names, as knomial:2 and binomial are."""
    distinct: dict[bytes, tuple[Point, Schedule]] = {}
    for point in points:
        if len(list_parts(point)) > 1:
            what = "is a sum of iterations, each begun by all ranks at once"
            raise UserError(
                f"'{point.operation}' {what}: `commodel predict --kernel` predicts it; here give iteration=K"
            )
        pattern = schedule(point)
        same = hashlib.blake2b(pattern.content() + whole_bytes(pattern.node)).digest()
        distinct.setdefault(same, (point, pattern))
    return [point for point, _ in distinct.values()], [pattern for _, pattern in distinct.values()]


def _latencies(workload: Workload, sets: dict[str, ParameterSet]) -> list[float]:
    """Return the latency of a message over the gap to the next message, as each model predicts them for one and two
    children."""
    latencies = set()
    for parameters in sets.values():
        try:
            model = Model.of_set(parameters)
            single, both = (float(model.cost(schedule(_flat(workload, count)))[0]) for count in (1, 2))
        except UserError:
            continue
        if 0 < both - single < np.inf and single / (both - single) < 1e4:
            latencies.add(float(f"{single / (both - single):.3g}"))
    return sorted(latencies)


def _flat(workload: Workload, leaves: int) -> Point:
    combination = {"operation": workload.operation, "topology": f"flat:{leaves}", "bytes": workload.bytes}
    return make_point(Setting.unlimited(), combination)
