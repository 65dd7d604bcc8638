"""Advice on a job: every family with a parameter set prices every way to do it, they vote, and intervals say how sure
that is. What was measured on the platform weighs the families; beyond that intervals widen, and a note says so.

Two goals: the time of one wave, and the time between waves of a stream.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from commodel.advice.alternatives import algorithms, ask, layouts_of, point_of, trees
from commodel.advice.evidence import (
    Evidence,
    beside_library,
    deciding,
    doublings,
    library_note,
    on_platform,
    remarks,
    side_of,
    telling,
    without_errors,
)
from commodel.advice.gather_windows import gather_bounds
from commodel.compare.combined_prediction import Ballot, Trust, ballot, by_candidate, front, of_probed, trusts
from commodel.compare.comparison import STREAM
from commodel.compare.comparison_intervals import voted, weighed
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
    Workload,
    apply_residuals,
    find_residuals,
    fit_bands,
)
from commodel.predictions.predictions import Prices
from commodel.records import Point
from commodel.units import format_bytes, over


@dataclass(frozen=True)
class Job:
    """What is to be done: over so many leaves of a tree, or so many ranks."""

    operation: str
    bytes: int
    leaves: int = 0
    ranks: int = 0

    @property
    def text(self) -> str:
        return f"{self.operation} over {over(self.leaves, self.ranks)}, {format_bytes(self.bytes)}"


@dataclass(frozen=True, eq=False)
class Advice:
    """Candidates from the cheapest on; how much each family's word counted; what the reader should know."""

    job: Job
    rows: pd.DataFrame
    trust: dict[str, dict[str, Trust]]  # of each side where candidates sit: within a node, between nodes
    notes: list[str]
    library: float = np.nan  # time of the MPI library's own choice over that of the fastest of ours, as measured nearby
    interval: str = PARAMETERS  # what low and high of the first rest on


def advise(
    job: Job, evidence: Evidence, layouts: Sequence[str] = (), only: Sequence[str] = (), streams: bool = True
) -> Advice:
    """The ranking of all ways to do a job; `only` names those to look at; `streams`: times between waves too."""
    sets = evidence.by_family()
    points, lacking = _points(job, evidence, sets, layouts, only)
    points, patterns = _once(points)
    panel = ask(sets, patterns, streams)
    voters = list(panel.prices)
    if not voters:
        why = "; ".join(f"{name}: {reason}" for name, reason in panel.silent.items())
        raise UserError(f"no family prices all candidates: {why}")
    held_out = on_platform(evidence)
    sides = [side_of(point) for point in points]
    ground = deciding(telling(held_out, sides), job.operation)
    trust, unheard = {}, []
    for side in dict.fromkeys(sides):
        unprobed = panel.unprobed([own == side for own in sides])
        trust[side] = of_probed(trusts(voters, telling(held_out, [side]), job.operation), unprobed)
        unheard += [
            f"{name} has no say {side}: {why}" for name, why in unprobed.items() if not trust[side][name].weight
        ]
    beyond, trusted = doublings(points, ground), by_candidate(trust, sides)
    outcome = ballot(panel.prices, trusted, beyond, panel.widening)
    interval = _intervals(points, outcome, trust, sets, held_out, panel.alone)
    streamed = telling(on_platform(evidence, streams=True), sides)
    pace = trusts(voters, streamed, f"{STREAM}{job.operation}") if len(streamed) else trusted
    between = panel.period({name: pace[name].weight for name in voters})
    rows = pd.DataFrame(
        {
            "choice": [point.choice for point in points],
            "layout": [point.layout for point in points],
            "ranks": [point.ranks for point in points],
            "seconds": outcome.seconds,
            "low": interval.low,
            "high": interval.high,
            "interval": [basis.text for basis in interval.bases],
            **{key: getattr(outcome, key) for key in ("behind", "as_good", "votes")},
            "period": between,
            "front": front(outcome.seconds, between) if np.isfinite(between).all() else False,
            "doubt": panel.doubts,
        }
    )
    rows = rows.iloc[np.lexsort((rows["ranks"], rows["behind"].round(9)))].reset_index(drop=True)  # equal: fewer ranks
    notes = [f"{lacking} more need more room than there is"] if lacking else []
    notes += [f"{name} has no say: {why}" for name, why in panel.silent.items()] + unheard
    notes += panel.streams()
    notes += panel.losses([point.choice for point in points])
    if job.operation == "barrier" and "lop" in panel.prices:
        priced = zip((point.choice for point in points), panel.prices["lop"][0], strict=True)
        notes.append(remark(sets["lop"], job.ranks, {choice: float(seconds) for choice, seconds in priced}))
    if len(streamed):
        heard = sorted((name for name in voters if pace[name].weight > 0), key=lambda name: -pace[name].weight)
        shares = ", ".join(f"{name} {100 * pace[name].weight:.0f} %" for name in heard)
        notes.append(f"for times between waves the weights come from streams that were measured here: {shares}")
    notes += remarks(evidence, job.operation, ground, float(np.max(beyond)))
    notes += without_errors(rows["interval"])
    library, size = beside_library(evidence.held_out, job.operation, job.ranks, job.leaves, job.bytes)
    return Advice(job, rows, trust, notes + library_note(library, size), library, rows["interval"].iloc[0])


def _intervals(
    points: Sequence[Point],
    outcome: Ballot,
    trust: dict[str, dict[str, Trust]],
    sets: dict[str, ParameterSet],
    held_out: pd.DataFrame,
    alone: Mapping[str, np.ndarray],
) -> Interval:
    """From what the common price was off at points measured here, else from what the sets carry; and in words."""
    carried, answers = {name: parameters.errors for name, parameters in sets.items()}, {}
    of_messages = np.zeros(len(points))
    for side, families in trust.items():
        shares = {name: family.weight for name, family in families.items()}
        bands = fit_bands(known) if (known := voted(held_out, shares)) is not None else {}
        common = sum(share * np.log(alone[name]) for name, share in shares.items() if share > 0)
        for number in (number for number, point in enumerate(points) if side_of(point) == side):
            point, of_messages[number] = points[number], common[number]
            workload = Workload.of(point)
            answers[point.nodes, point.reach] = (
                find_residuals(bands, workload) if bands else weighed(carried, shares, workload)
            )
    each = [answers[point.nodes, point.reach] for point in points]
    ends = (np.concatenate([getattr(interval, end) for interval in each]) for end in ("low", "high"))
    logs = Interval(*ends, [interval.bases[0] for interval in each])
    return apply_residuals(Prices(outcome.seconds, outcome.low, outcome.high, np.exp(of_messages), []), logs)


def _points(
    job: Job, evidence: Evidence, sets: dict[str, ParameterSet], layouts: Sequence[str], only: Sequence[str]
) -> tuple[list[Point], int]:
    """The candidates that fit, each once, and how many do not."""
    setting = evidence.setting
    if job.leaves:
        choices = [{"topology": spec} for spec in only or trees(job.leaves, _latencies(job, sets))]
    else:
        windows = [gather_bounds(sets["cluster"], job.ranks, job.bytes)["window"]] if "cluster" in sets else []
        specs = only or algorithms(job.operation, job.ranks, job.bytes, windows)
        choices = [{"algorithm": spec, "ranks": job.ranks} for spec in specs]
    points, lacking = {}, []
    for choice in choices:
        for layout in layouts or layouts_of(setting, job.ranks):
            combination = {"operation": job.operation, "bytes": job.bytes, "layout": layout, **choice}
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
        raise UserError(f"{job.text}: no way to do it fits: {lacking[0]}")
    return list(points.values()), len(lacking)


def _once(points: Sequence[Point]) -> tuple[list[Point], list[Schedule]]:
    """Of candidates that are the same messages under other names, such as knomial:2 and binomial, the first."""
    distinct: dict[bytes, tuple[Point, Schedule]] = {}
    for point in points:
        if len(list_parts(point)) > 1:
            what = "is a sum of iterations, each begun by all ranks at once"
            raise UserError(f"'{point.operation}' {what}: `commodel kernel` prices it; here give iteration=K")
        pattern = schedule(point)
        same = hashlib.blake2b(pattern.content() + whole_bytes(pattern.node)).digest()
        distinct.setdefault(same, (point, pattern))
    return [point for point, _ in distinct.values()], [pattern for _, pattern in distinct.values()]


def _latencies(job: Job, sets: dict[str, ParameterSet]) -> list[float]:
    """Of a message, in units of the time until the next can start, as each family prices one and two children."""
    latencies = set()
    for parameters in sets.values():
        try:
            model = Model.of_set(parameters)
            single, both = (float(model.cost(schedule(_flat(job, count)))[0]) for count in (1, 2))
        except UserError:
            continue
        if 0 < both - single < np.inf and single / (both - single) < 1e4:
            latencies.add(float(f"{single / (both - single):.3g}"))
    return sorted(latencies)


def _flat(job: Job, leaves: int) -> Point:
    combination = {"operation": job.operation, "topology": f"flat:{leaves}", "bytes": job.bytes}
    return make_point(Setting.unlimited(), combination)
