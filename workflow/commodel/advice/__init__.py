"""Advice on a workload: `advise` ranks its alternatives by the combined prediction of all models
with a parameter set. Points measured on the platform weigh the models; beyond these points
intervals widen, and a note states that.

There are two goals: the time of one wave, and the time between waves of a stream.
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from commodel.advice.candidate_times import (
    CandidateTimes,
    ModelWeights,
    RecommendedAlternatives,
    recommend_candidates,
)
from commodel.advice.candidates import Candidates
from commodel.advice.evidence import (
    Evidence,
    LibraryDefault,
    describe_default_algorithm,
    describe_evidence,
    describe_library_default,
    describe_missing_intervals,
    describe_other_statistic,
    find_measured_default,
    predict_default,
    select_deciding,
    select_placement,
)
from commodel.advice.rankings import InformativePoint, Ranking, Workload
from commodel.advice.sequential_sampling import choose_informative_points
from commodel.compare.combined_prediction import CombinedPrediction, is_default_kept
from commodel.errors import UserError
from commodel.parameters import describe_origins
from commodel.patterns.operations import has_size
from commodel.predictions.barrier_bounds import describe_barrier_bound
from commodel.records import ROOTED_OPERATIONS, Point, Statistic

MIN_REPORTED_PERCENT = 10.0  # expected regret, above which points to measure are named
MAX_INFORMATIVE_POINTS = 2
MAX_NAMED_ALTERNATIVES = 6  # alternatives that a note names


def advise(
    workload: Workload,
    evidence: Evidence,
    layouts: Sequence[str] = (),
    only: Sequence[str] = (),
    streams: bool = True,
) -> Ranking:
    """Rank the alternatives of a workload. `only` restricts them; `streams`: also predict times
    between waves."""
    all_candidates = Candidates.find(workload, evidence, layouts, only, streams)
    all_recommended = recommend_candidates(evidence, all_candidates)
    numbers = np.flatnonzero(~all_recommended.is_left_out).tolist()
    candidates = all_candidates.only(numbers)
    recommended = all_recommended.only(numbers)
    if not candidates.models:
        missing = candidates.predictions.missing
        why = "; ".join(f"{name}: {reason}" for name, reason in missing.items())
        raise UserError(f"no model predicts all alternatives: {why}")
    weights = ModelWeights.of(candidates, recommended)
    times = CandidateTimes.of(evidence, candidates, recommended, weights)
    rows, order = _order_rows(candidates, times)
    default, notes_on_default = _find_default(workload, evidence, candidates, bool(layouts))
    first = rows.iloc[0]
    deviations = tuple(times.errors.deviation[order].tolist())
    keeps_default = default is not None and bool(
        is_default_kept(default.seconds, first["seconds"], np.hypot(deviations[0], default.caution))
    )
    within_real_node = candidates.points[order[0]].nodes == 1 and not any(
        parameters.simulated for parameters in evidence.sets
    )
    notes = [
        *_describe_conditions(workload, evidence, all_candidates),
        *_describe_left_out(all_candidates, all_recommended),
        *_describe_models(workload, evidence, candidates, times),
        *_describe_basis(workload, evidence, candidates, recommended),
        *describe_missing_intervals(rows["basis"]),
        *notes_on_default,
        *describe_library_default(default, first["seconds"], first["measured"], within_real_node),
    ]
    can_measure = max(point.nodes for point in candidates.points) <= evidence.resources.nodes
    informative_points: tuple[InformativePoint, ...] = ()
    if can_measure and not keeps_default:
        informative_points = _find_informative_points(times.errors, rows, order, candidates.points)
    has_lead = recommended.has_value.all() and len(order) > 1
    return Ranking(
        workload=workload,
        frame=rows,
        weights=weights.by_placement,
        notes=notes,
        default=default,
        keeps_default=keeps_default,
        deviations=deviations,
        informative_points=informative_points,
        zero_weight_reasons=weights.zero_reasons,
        lead=times.errors.compare(*order[:2]) if has_lead else None,
    )


def _order_rows(candidates: Candidates, times: CandidateTimes) -> tuple[pd.DataFrame, np.ndarray]:
    """Return a row for each candidate, that with the least expected regret first, and the number of
    the candidate of each row."""
    points = candidates.points
    errors = times.errors
    columns = {
        "alternative": candidates.alternatives,
        "layout": [point.layout for point in points],
        "ranks": [point.ranks for point in points],
        "same_messages": [candidates.equal_alternatives.get(point, "") for point in points],
        "layout_name": [candidates.layout_names[point] for point in points],
        "measured": [candidates.measured_times.get(point, np.nan) for point in points],
        "seconds": times.seconds,
        "low": times.low,
        "high": times.high,
        "basis": [basis.text for basis in times.bases],
        "regret": errors.regret,
        "behind": errors.behind,
        "as_good": errors.as_good,
        "support": errors.support,
        "period": times.period,
        "front": times.is_on_front,
        "doubt": candidates.predictions.validity_texts,
    }
    rows = pd.DataFrame(columns)
    # Of equal ones, that with fewer ranks is first.
    order = np.lexsort((rows["ranks"], rows["behind"].round(9), rows["regret"]))
    return rows.iloc[order].reset_index(drop=True), order


def _find_default(
    workload: Workload, evidence: Evidence, candidates: Candidates, has_layouts: bool
) -> tuple[LibraryDefault | None, list[str]]:
    """Return the MPI default, measured or predicted, to compare with, and notes on it. With
    `has_layouts`, only layouts of the candidates count."""
    layouts = {point.layout for point in candidates.points} if has_layouts else ()
    default = None
    if workload.statistic is Statistic.COMPLETION:
        default = find_measured_default(
            evidence.held_out,
            workload.operation,
            workload.ranks,
            workload.leaves,
            workload.bytes,
            layouts,
        )
    predicted_layouts = layouts or _list_block_layouts(candidates.points, evidence)
    ranks = workload.ranks or workload.leaves + 1
    wanted = {"operation": workload.operation, "ranks": ranks, "bytes": workload.bytes}
    if default is None:
        default = predict_default(evidence, wanted, workload.statistic, predicted_layouts)
    if default is None:
        return None, describe_other_statistic(evidence, workload.operation, workload.statistic)
    notes: list[str] = []
    if not workload.leaves:
        notes += describe_default_algorithm(evidence, wanted, predicted_layouts)
    if default.is_informative:
        return default, notes
    notes += ["the MPI default is not compared: its interval is too wide", *default.notes]
    return None, notes


def _list_block_layouts(points: Sequence[Point], evidence: Evidence) -> list[str]:
    """Return the layouts of the alternatives on a platform, in blocks if there are such: those of
    which the MPI default is predicted."""
    if not evidence.resources.name:
        return []
    layouts = list(dict.fromkeys(point.layout for point in points))
    return [layout for layout in layouts if layout.startswith("block")] or layouts


def _describe_conditions(
    workload: Workload, evidence: Evidence, candidates: Candidates
) -> list[str]:
    """Return notes on where the parameters are from, and on what the times are."""
    return [
        *describe_origins(evidence.sets, evidence.resources.name),
        *evidence.resources.describe_extension(workload.ranks or workload.leaves + 1),
        *_describe_omitted(candidates.omitted),
        *_describe_empty_messages(workload),
        *_describe_statistic(workload),
    ]


def _describe_omitted(names: Sequence[str]) -> list[str]:
    """Return a note on the alternatives that do not fit on the platform."""
    if not names:
        return []
    count = f"{len(names)} alternative{'s' if len(names) > 1 else ''}"
    return [
        f"left out: {count} that need more nodes or cores than the platform has: {_list_names(names)}"
    ]


def _list_names(names: Sequence[str]) -> str:
    more_text = (
        f" and {len(names) - MAX_NAMED_ALTERNATIVES} more"
        if len(names) > MAX_NAMED_ALTERNATIVES
        else ""
    )
    return f"{', '.join(names[:MAX_NAMED_ALTERNATIVES])}{more_text}"


def _describe_empty_messages(workload: Workload) -> list[str]:
    if workload.bytes or not has_size(workload.operation):
        return []
    return ["0 bytes: no data move, so the times are the overhead of messages or of the library"]


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


def _describe_left_out(candidates: Candidates, recommended: RecommendedAlternatives) -> list[str]:
    """Return notes on candidates that are not compared."""
    notes = []
    if candidates.needless:
        notes.append(
            f"left out: {candidates.needless} segment sizes below those that are already slower than larger ones"
        )
    numbers = np.flatnonzero(recommended.is_left_out)
    left_out = sorted({candidates.points[number].alternative for number in numbers})
    if left_out:
        notes.append(
            f"left out: {', '.join(left_out)}, for which the models with most of the weight have no prediction"
        )
    return notes


def _describe_models(
    workload: Workload, evidence: Evidence, candidates: Candidates, times: CandidateTimes
) -> list[str]:
    """Return notes on what single models say, or cannot say."""
    predictions = candidates.predictions
    alternatives = candidates.alternatives
    notes = predictions.describe_streams() if np.isfinite(times.period).any() else []
    notes += predictions.losses(alternatives)
    if workload.operation == "barrier" and "lop" in predictions.models:
        seconds = predictions.values("seconds")["lop"][0].tolist()
        of_alternatives = dict(zip(alternatives, seconds, strict=True))
        set_of_lop = evidence.by_model()["lop"]
        notes.append(describe_barrier_bound(set_of_lop, workload.ranks, of_alternatives))
    if times.stream_weights:
        heaviest_first = sorted((-weight, name) for name, weight in times.stream_weights.items())
        shares = ", ".join(f"{name} {-100 * weight:.0f} %" for weight, name in heaviest_first)
        notes.append(
            f"for times between waves the weights come from streams that were measured here: {shares}"
        )
    return notes


def _describe_basis(
    workload: Workload,
    evidence: Evidence,
    candidates: Candidates,
    recommended: RecommendedAlternatives,
) -> list[str]:
    """Return notes on the measured points on which the times rest."""
    of_placements = select_placement(evidence.predicted_points(), candidates.placements)
    deciding = select_deciding(of_placements, workload.operation)
    notes = list(describe_evidence(evidence, workload.operation, deciding, candidates.points))
    if len(deciding) and not recommended.recommenders:
        notes.append("no measured point has a valid prediction here: all weights are equal")
    return notes


def _find_informative_points(
    errors: CombinedPrediction, rows: pd.DataFrame, order: np.ndarray, points: Sequence[Point]
) -> tuple[InformativePoint, ...]:
    """Return the two points whose measurement would lower the expected regret most, if it is large
    and alternatives are statistically tied."""
    if rows["regret"].iloc[0] <= MIN_REPORTED_PERCENT / 100 or rows["as_good"].sum() < 2:
        return ()
    numbers = choose_informative_points(
        np.log(errors.seconds), errors.covariance, MAX_INFORMATIVE_POINTS
    )
    row_of_number = {int(number): row for row, number in zip(rows.itertuples(), order, strict=True)}
    return tuple(
        InformativePoint(
            row_of_number[number].alternative, row_of_number[number].layout_name, points[number]
        )
        for number in numbers
    )
