"""Advice on a workload: `advise` ranks its alternatives by the combined prediction of all models
with a parameter set. Points measured on the platform weigh the models; beyond these points
intervals widen, and a note states that.

There are two goals: the time of one wave, and the time between waves of a stream.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from commodel.advice.alternatives import (
    NEAR_LAYOUT,
    AlternativePredictions,
    Assessment,
    assess_alternatives,
    list_algorithms,
    list_layouts,
    list_placed_algorithms,
    list_trees,
    make_combination_point,
)
from commodel.advice.evidence import (
    Evidence,
    LibraryDefault,
    describe_default_algorithm,
    describe_evidence,
    describe_library_default,
    describe_missing_intervals,
    describe_other_statistic,
    find_measured_default,
    find_placement,
    predict_default,
    select_deciding,
    select_placement,
)
from commodel.advice.gather_windows import gather_bounds
from commodel.advice.recommended_times import ModelTimes, average_models, recommend
from commodel.advice.sequential_sampling import choose_informative_points
from commodel.compare.combined_prediction import (
    CombinedPrediction,
    PairedComparison,
    arrange_weights,
    combine_predictions,
    find_pareto_front,
    is_default_kept,
    weigh_equally,
)
from commodel.compare.recommended import Recommender
from commodel.errors import UserError
from commodel.parameters import ParameterSet, describe_origins
from commodel.patterns.build import build_schedule, complete_layout, list_parts
from commodel.patterns.layouts import place_ranks
from commodel.patterns.operations import has_size
from commodel.patterns.pattern_files import is_pattern_file
from commodel.patterns.points import PlatformResources, make_point
from commodel.patterns.schedule import Schedule
from commodel.predictions.barrier_bounds import describe_barrier_bound
from commodel.predictions.interval_basis import PARAMETERS_ONLY
from commodel.predictions.model import Model
from commodel.records import ROOTED_OPERATIONS, Point, Statistic
from commodel.units import format_bytes, format_extent, format_seconds

MIN_REPORTED_PERCENT = 10.0  # expected regret, above which points to measure are named
MAX_INFORMATIVE_POINTS = 2
MAX_NAMED_ALTERNATIVES = 6  # alternatives that a note names


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


def advise(
    workload: Workload,
    evidence: Evidence,
    layouts: Sequence[str] = (),
    only: Sequence[str] = (),
    streams: bool = True,
) -> Ranking:
    """Rank the alternatives of a workload. `only` restricts them; `streams`: also predict times
    between waves."""
    sets = evidence.by_model()
    ranks = workload.ranks or workload.leaves + 1
    points, names, omitted = _list_points(workload, evidence, sets, layouts, only)
    patterns = [_build_single_schedule(point) for point in points]
    measured_times = evidence.find_measured(points)
    chosen = evidence.choose_among_equal(points, patterns, measured_times)
    equal_alternatives = _list_equal_alternatives(points, chosen)
    numbers = list(dict.fromkeys(chosen))
    points = [points[number] for number in numbers]
    patterns = [patterns[number] for number in numbers]
    panel = assess_alternatives(sets, points, patterns, streams, measured_times)
    if panel.skipped:
        numbers = [number for number in range(len(points)) if number not in panel.skipped]
        needless = len(points) - len(numbers)
        points = [points[number] for number in numbers]
        panel = panel.only(numbers)
    else:
        needless = 0
    held_out = evidence.predicted_points()
    placements = [find_placement(point) for point in points]
    recommended = _recommend_alternatives(evidence, points, panel)
    left_out = sorted(
        {points[number].alternative for number in np.flatnonzero(recommended.is_left_out)}
    )
    numbers = np.flatnonzero(~recommended.is_left_out).tolist()
    points = [points[number] for number in numbers]
    placements = [placements[number] for number in numbers]
    panel = panel.only(numbers)
    recommended = recommended.only(numbers)
    models = list(panel.models)
    if not models:
        why = "; ".join(f"{name}: {reason}" for name, reason in panel.missing.items())
        raise UserError(f"no model predicts all alternatives: {why}")
    deciding = select_deciding(select_placement(held_out, placements), workload.operation)
    # first: never left out
    weights = {}
    notes = describe_origins(evidence.sets, evidence.resources.name)
    notes += evidence.resources.describe_extension(ranks)
    notes += [
        *_describe_omitted(omitted),
        *_describe_empty_messages(workload),
        *_describe_statistic(workload),
    ]
    if needless:
        notes.append(
            f"left out: {needless} segment sizes below those that are already slower than larger ones"
        )
    if left_out:
        notes.append(
            f"left out: {', '.join(left_out)}, for which the models with most of the weight have no prediction"
        )
    zero_weight_reasons = [f"{name} has weight 0: {why}" for name, why in panel.missing.items()]
    for placement in dict.fromkeys(placements):
        unprobed = panel.unprobed(
            [number for number, other in enumerate(placements) if other == placement]
        )
        weights[placement] = _find_weights(
            models, recommended.recommenders.get(placement), unprobed
        )
        unweighted = {name: why for name, why in unprobed.items() if not weights[placement][name]}
        zero_weight_reasons += [
            f"{name} has weight 0 {placement}: {why}" for name, why in unweighted.items()
        ]
    of_points = arrange_weights(weights, placements)
    combination = _combine_models(panel, of_points)
    seconds = np.where(recommended.has_value, recommended.seconds, combination.seconds)
    predictions = {
        name: times * (seconds / combination.seconds)
        for name, times in panel.values("seconds").items()
    }
    combined = combine_predictions(
        predictions, of_points, recommended.covariance, panel.values("widening")
    )
    low, high = (
        np.where(recommended.has_value, getattr(recommended, end), getattr(combination, end))
        for end in ("low", "high")
    )
    has_interval = low < high
    bases = np.where(recommended.has_value, recommended.bases, combination.bases)
    streamed = Recommender.fit(
        select_placement(evidence.predicted_points(streams=True), placements), models
    )
    of_streams = _find_weights(models, streamed, ()) if streamed else of_points
    period = panel.period(of_streams)
    rows = pd.DataFrame(
        {
            "alternative": [point.alternative for point in points],
            "layout": [point.layout for point in points],
            "ranks": [point.ranks for point in points],
            "same_messages": [equal_alternatives.get(point, "") for point in points],
            "layout_name": [names[point] for point in points],
            "measured": [measured_times.get(point, np.nan) for point in points],
            "seconds": seconds,
            "low": np.where(has_interval, low, np.nan),
            "high": np.where(has_interval, high, np.nan),
            "basis": [basis.text for basis in bases],
            **{
                name: getattr(combined, name) for name in ("regret", "behind", "as_good", "support")
            },
            "period": period,
            "front": _find_front(combined.seconds, period),
            "doubt": panel.validity_texts,
        }
    )
    choices = rows["alternative"].tolist()
    # equal: fewer ranks
    order = np.lexsort((rows["ranks"], rows["behind"].round(9), rows["regret"]))
    rows = rows.iloc[order].reset_index(drop=True)
    notes += [
        *(panel.describe_streams() if np.isfinite(period).any() else []),
        *panel.losses(choices),
    ]
    if workload.operation == "barrier" and "lop" in predictions:
        times = dict(zip(choices, panel.values("seconds")["lop"][0].tolist(), strict=True))
        notes.append(describe_barrier_bound(sets["lop"], workload.ranks, times))
    if streamed:
        weighted_models = sorted((-weight, name) for name, weight in streamed.weights.items())
        shares = ", ".join(f"{name} {-100 * weight:.0f} %" for weight, name in weighted_models)
        notes.append(
            f"for times between waves the weights come from streams that were measured here: {shares}"
        )
    notes += describe_evidence(evidence, workload.operation, deciding, points)
    if len(deciding) and not recommended.recommenders:
        notes.append("no measured point has a valid prediction here: all weights are equal")
    notes += describe_missing_intervals(rows["basis"])
    requested_layouts = {point.layout for point in points} if layouts else ()
    default = None
    if workload.statistic is Statistic.COMPLETION:
        default = find_measured_default(
            evidence.held_out,
            workload.operation,
            workload.ranks,
            workload.leaves,
            workload.bytes,
            requested_layouts,
        )
    layouts_of_default = requested_layouts or _list_block_layouts(points, evidence)
    wanted = {"operation": workload.operation, "ranks": ranks, "bytes": workload.bytes}
    if default is None:
        default = predict_default(evidence, wanted, workload.statistic, layouts_of_default)
    if default is not None and not workload.leaves:
        notes += describe_default_algorithm(evidence, wanted, layouts_of_default)
    if default is None:
        notes += describe_other_statistic(evidence, workload.operation, workload.statistic)
    elif not default.is_informative:
        notes += ["the MPI default is not compared: its interval is too wide", *default.notes]
        default = None
    first = rows.iloc[0]
    within_real_node = points[order[0]].nodes == 1 and not any(
        parameters.simulated for parameters in evidence.sets
    )
    notes += describe_library_default(
        default, first["seconds"], first["measured"], within_real_node
    )
    deviations = tuple(combined.deviation[order].tolist())
    keeps_default = default is not None and bool(
        is_default_kept(default.seconds, first["seconds"], np.hypot(deviations[0], default.caution))
    )
    can_measure = max(point.nodes for point in points) <= evidence.resources.nodes
    informative_points: tuple[InformativePoint, ...] = ()
    if can_measure and not keeps_default:
        informative_points = _find_informative_points(combined, rows, order, points)
    return Ranking(
        workload=workload,
        frame=rows,
        weights=weights,
        notes=notes,
        default=default,
        keeps_default=keeps_default,
        deviations=deviations,
        informative_points=informative_points,
        zero_weight_reasons=tuple(zero_weight_reasons),
        lead=combined.compare(*order[:2])
        if recommended.has_value.all() and len(order) > 1
        else None,
    )


def _list_block_layouts(points: Sequence[Point], evidence: Evidence) -> list[str]:
    """Return the layouts of the alternatives on a platform, in blocks if there are such: those of
    which the MPI default is predicted."""
    if not evidence.resources.name:
        return []
    layouts = list(dict.fromkeys(point.layout for point in points))
    return [layout for layout in layouts if layout.startswith("block")] or layouts


def _find_weights(
    models: Collection[str], recommender: Recommender | None, unprobed: Collection[str]
) -> dict[str, float]:
    """Return the weights of models: those of the recommended prediction, or equal ones."""
    if recommender is None or not any(recommender.weights.get(name) for name in models):
        return weigh_equally(models, unprobed)
    return {name: recommender.weights.get(name, 0.0) for name in models}


def _describe_omitted(names: Sequence[str]) -> list[str]:
    """Return a note on the alternatives that do not fit on the platform."""
    if not names:
        return []
    count = f"{len(names)} alternative{'s' if len(names) > 1 else ''}"
    return [
        f"left out: {count} that need more nodes or cores than the platform has: {_list_names(names)}"
    ]


def _list_equal_alternatives(points: Sequence[Point], chosen: Sequence[int]) -> dict[Point, str]:
    """Return the names of other algorithms or trees that send the same messages as a point, which
    stands for them. `chosen` has the number of that point for each."""
    names: dict[Point, dict[str, None]] = {}
    for point, number in zip(points, chosen, strict=True):
        own_name, name = (of.alternative.partition(":")[0] for of in (points[number], point))
        if name != own_name:
            names.setdefault(points[number], {})[name] = None
    return {point: ", ".join(other_names) for point, other_names in names.items()}


def _list_names(names: Sequence[str]) -> str:
    more_text = (
        f" and {len(names) - MAX_NAMED_ALTERNATIVES} more"
        if len(names) > MAX_NAMED_ALTERNATIVES
        else ""
    )
    return f"{', '.join(names[:MAX_NAMED_ALTERNATIVES])}{more_text}"


def _describe_statistic(workload: Workload) -> list[str]:
    """Return a note on what the times are, unless they are completions."""
    if workload.statistic is Statistic.COMPLETION:
        return []
    later = (
        "; the operation may be complete much later"
        if workload.operation in ROOTED_OPERATIONS
        else ""
    )
    return [
        f"times are of statistic '{workload.statistic}', not until the operation is complete{later}"
    ]


def _describe_empty_messages(workload: Workload) -> list[str]:
    if workload.bytes or not has_size(workload.operation):
        return []
    return ["0 bytes: no data move, so the times are the overhead of messages or of the library"]


def _find_informative_points(
    combined: CombinedPrediction,
    rows: pd.DataFrame,
    order: np.ndarray,
    points: Sequence[Point],
) -> tuple[InformativePoint, ...]:
    """Return the two points whose measurement would lower the expected regret most, if it is large
    and alternatives are statistically tied."""
    if rows["regret"].iloc[0] <= MIN_REPORTED_PERCENT / 100 or rows["as_good"].sum() < 2:
        return ()
    numbers = choose_informative_points(
        np.log(combined.seconds), combined.covariance, MAX_INFORMATIVE_POINTS
    )
    row_of_number = {int(number): row for row, number in zip(rows.itertuples(), order, strict=True)}
    return tuple(
        InformativePoint(
            row_of_number[number].alternative, row_of_number[number].layout_name, points[number]
        )
        for number in numbers
    )


def _find_front(seconds: np.ndarray, period: np.ndarray) -> np.ndarray:
    """Return which alternatives are Pareto-optimal, of those that have a time between waves."""
    is_known = np.isfinite(period)
    front = np.zeros(len(seconds), dtype=bool)
    front[is_known] = find_pareto_front(seconds[is_known], period[is_known])
    return front


@dataclass(frozen=True, eq=False)
class RecommendedAlternatives:
    """The recommended predictions of alternatives, with the recommender of each placement. Without
    one, or where it predicts nothing, alternatives have NaN. `is_left_out`: others at the placement
    have a value."""

    recommenders: Mapping[str, Recommender]
    seconds: np.ndarray
    low: np.ndarray
    high: np.ndarray
    bases: np.ndarray  # of IntervalBasis
    is_left_out: np.ndarray
    covariance: np.ndarray  # of the logarithms

    @property
    def has_value(self) -> np.ndarray:
        return np.isfinite(self.seconds)

    def only(self, numbers: Sequence[int]) -> "RecommendedAlternatives":
        columns = {
            name: getattr(self, name)[numbers]
            for name in ("seconds", "low", "high", "bases", "is_left_out")
        }
        return replace(self, **columns, covariance=self.covariance[np.ix_(numbers, numbers)])


def _recommend_alternatives(
    evidence: Evidence, points: Sequence[Point], panel: AlternativePredictions
) -> RecommendedAlternatives:
    """Return the recommended predictions, which are those of `commodel predict`."""
    placements = np.array([find_placement(point) for point in points])
    seconds, low, high = np.full((3, len(points)), np.nan)
    bases = np.full(len(points), PARAMETERS_ONLY, dtype=object)
    covariance = np.zeros((len(points), len(points)))
    is_left_out = np.zeros(len(points), dtype=bool)
    recommenders = {}
    for placement in dict.fromkeys(placements.tolist()):
        recommender = evidence.find_recommender(list(evidence.by_model()), placement)
        if recommender is None or not panel.assessments.keys() >= recommender.weights.keys():
            continue
        numbers = np.flatnonzero(placements == placement).tolist()
        of_models = {}
        for name in recommender.weights:
            assessments = panel.assessments[name]
            of_models[name] = _list_model_times([assessments[number] for number in numbers])
        predictions, covariance[np.ix_(numbers, numbers)] = recommend(
            recommender, [points[number] for number in numbers], of_models
        )
        for number, prediction in zip(numbers, predictions, strict=True):
            seconds[number] = prediction.seconds
            low[number] = prediction.low
            high[number] = prediction.high
            bases[number] = prediction.basis
        if np.isfinite(seconds[numbers]).any():
            recommenders[placement] = recommender
            is_left_out[numbers] = np.isnan(seconds[numbers])
    return RecommendedAlternatives(
        recommenders=recommenders,
        seconds=seconds,
        low=low,
        high=high,
        bases=bases,
        is_left_out=is_left_out,
        covariance=covariance,
    )


def _list_model_times(assessments: Sequence[Assessment | None]) -> ModelTimes:
    seconds = [float(assessment.seconds[0]) if assessment else np.nan for assessment in assessments]
    bounds = [assessment.message_seconds if assessment else 0.0 for assessment in assessments]
    return ModelTimes(
        np.array(seconds),
        np.array(bounds),
        [assessment.validity.text if assessment else "" for assessment in assessments],
    )


@dataclass(frozen=True, eq=False)
class WeightedPrediction:
    """The weighted geometric mean of the models' own predictions and of the ends of their
    intervals."""

    seconds: np.ndarray
    low: np.ndarray
    high: np.ndarray
    bases: np.ndarray  # of IntervalBasis


def _combine_models(
    panel: AlternativePredictions, weights: Mapping[str, np.ndarray]
) -> WeightedPrediction:
    """Return the combination of the models."""
    weights_of_points = np.array([weights[name] for name in panel.models]).T
    seconds, low, high = np.empty((3, len(weights_of_points)))
    bases = np.empty(len(weights_of_points), dtype=object)
    for number, of_models in enumerate(weights_of_points):
        entries = [assessments[number] for assessments in panel.models.values()]
        estimates = [float(assessment.seconds[0]) for assessment in entries]
        seconds[number], low[number], high[number], bases[number] = average_models(
            of_models, estimates, entries
        )
    return WeightedPrediction(seconds=seconds, low=low, high=high, bases=bases)


def _list_points(
    workload: Workload,
    evidence: Evidence,
    sets: dict[str, ParameterSet],
    layouts: Sequence[str],
    only: Sequence[str],
) -> tuple[list[Point], dict[Point, str], list[str]]:
    """Return the distinct alternatives that fit on the platform, the name of each one's layout, and
    the names of those that do not fit. Those that were measured for this workload are alternatives
    under their own names, too."""
    resources = evidence.resources.extended(workload.ranks or workload.leaves + 1)
    measured = evidence.list_alternatives(
        workload.operation, workload.ranks, workload.leaves, workload.bytes
    )
    if workload.leaves:
        specs = only or [
            *list_trees(workload.leaves, _compute_latencies(workload, sets)),
            *measured,
        ]
        choices: list[dict[str, str | int]] = [{"topology": spec} for spec in specs]
    else:
        windows = (
            [gather_bounds(sets["cluster"], workload.ranks, workload.bytes)["window"]]
            if "cluster" in sets
            else []
        )
        specs = only or [
            *list_algorithms(workload.operation, workload.ranks, workload.bytes, windows),
            *measured,
        ]
        choices = [{"algorithm": spec, "ranks": workload.ranks} for spec in specs]
    points: dict[tuple[str, str], Point] = {}
    names: dict[Point, str] = {}
    omitted: list[str] = []
    obstacles: list[str] = []
    tried_layouts = layouts or list_layouts(resources, workload.ranks)
    placed_choices = (
        _list_placed_choices(workload, resources, layouts) if workload.ranks and not only else []
    )
    of_all_layouts = [(choice, layout) for choice in choices for layout in tried_layouts]
    for choice, layout in [*of_all_layouts, *placed_choices]:
        combination = {
            "operation": workload.operation,
            "bytes": workload.bytes,
            "layout": layout,
            **choice,
        }
        try:
            point = make_combination_point(resources, combination, bool(layouts))
        except UserError as error:
            if (
                layouts
                or only
                or error.key not in ("ranks", "topology", "layout")
                or not resources.name
            ):
                raise
            omitted.append(f"{choice.get('algorithm') or choice['topology']}, {layout}")
            obstacles.append(error.message)
            continue
        if point:  # with one rank a node all layouts are equal if all nodes are
            point = replace(point, statistic=workload.statistic)
            distinct = point.nodes < point.ranks or resources.levels
            points.setdefault((point.alternative, point.layout if distinct else ""), point)
            # of nodes, which the platform has completed
            has_lists = "@" in point.layout.removeprefix(layout)
            names.setdefault(point, layout if layout == NEAR_LAYOUT or has_lists else point.layout)
    if not points:
        raise UserError(f"{workload.text}: no alternative fits: {obstacles[0]}")
    return list(points.values()), names, omitted


def _list_placed_choices(
    workload: Workload, resources: PlatformResources, layouts: Sequence[str]
) -> list[tuple[dict[str, str | int], str]]:
    """Return the useful algorithms that follow the placement, each with its layout: on `block`,
    unless layouts are given. On others, their messages are the same between other ranks."""
    choices: list[tuple[dict[str, str | int], str]] = []
    for layout in layouts or ["block"]:
        if layout == NEAR_LAYOUT or is_pattern_file(workload.operation):
            continue
        placed = complete_layout(resources, layout, workload.ranks)
        if placed.obstacle:
            continue
        node = place_ranks(placed.layout, workload.ranks)
        for spec in list_placed_algorithms(
            workload.operation, workload.bytes, node, resources.levels
        ):
            choices.append(({"algorithm": spec, "ranks": workload.ranks}, layout))
    return choices


def _build_single_schedule(point: Point) -> Schedule:
    if len(list_parts(point)) > 1:
        reason = "is a sum of iterations, each begun by all ranks at once"
        raise UserError(
            f"'{point.operation}' {reason}: `commodel predict kernel` predicts it; here give iteration=K"
        )
    return build_schedule(point)


def _compute_latencies(workload: Workload, sets: dict[str, ParameterSet]) -> list[float]:
    """Return the latency of a message over the gap to the next message, as each model predicts them
    for one and two children."""
    latencies = set()
    for parameters in sets.values():
        try:
            model = Model.of_set(parameters)
            single, both = (
                float(model.cost(build_schedule(_make_flat_point(workload, count)))[0])
                for count in (1, 2)
            )
        except UserError:
            continue
        if 0 < both - single < np.inf and single / (both - single) < 1e4:
            latencies.add(float(f"{single / (both - single):.3g}"))
    return sorted(latencies)


def _make_flat_point(workload: Workload, leaves: int) -> Point:
    combination = {
        "operation": workload.operation,
        "topology": f"flat:{leaves}",
        "bytes": workload.bytes,
    }
    return make_point(PlatformResources.unlimited(), combination)
