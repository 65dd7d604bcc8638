"""The candidates for a workload: its alternatives that models predict, one for those that send the
same messages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from commodel.advice.alternatives import (
    NEAR_LAYOUT,
    AlternativePredictions,
    assess_alternatives,
    list_algorithms,
    list_layouts,
    list_placed_algorithms,
    list_trees,
    make_combination_point,
)
from commodel.advice.evidence import Evidence, find_placement
from commodel.advice.gather_windows import gather_bounds
from commodel.advice.rankings import Workload
from commodel.errors import UserError
from commodel.parameters import ParameterSet
from commodel.patterns.build import build_schedule, complete_layout, list_parts
from commodel.patterns.layouts import place_ranks
from commodel.patterns.pattern_files import is_pattern_file
from commodel.patterns.points import PlatformResources, make_point
from commodel.patterns.schedule import Schedule
from commodel.predictions.model import Model
from commodel.records import Point


@dataclass(frozen=True, eq=False)
class Candidates:
    """The alternatives of a workload, with the predictions of the models."""

    points: list[Point]
    predictions: AlternativePredictions
    layout_names: Mapping[Point, str]
    measured_times: Mapping[Point, float]
    # names of other algorithms or trees that send the same messages
    equal_alternatives: Mapping[Point, str]
    omitted: list[str]  # names of the alternatives that do not fit on the platform
    needless: int  # segment sizes that were left out, below those that are already slower

    @classmethod
    def find(
        cls,
        workload: Workload,
        evidence: Evidence,
        layouts: Sequence[str],
        only: Sequence[str],
        streams: bool,
    ) -> Candidates:
        """Return the candidates for a workload. The arguments are those of `advise`."""
        sets = evidence.by_model()
        points, layout_names, omitted = _list_points(workload, evidence, sets, layouts, only)
        schedules = [_build_single_schedule(point) for point in points]
        measured_times = evidence.find_measured(points)
        chosen = evidence.choose_among_equal(points, schedules, measured_times)
        equal_alternatives = _list_equal_alternatives(points, chosen)
        numbers = list(dict.fromkeys(chosen))
        points = [points[number] for number in numbers]
        schedules = [schedules[number] for number in numbers]
        predictions = assess_alternatives(sets, points, schedules, streams, measured_times)
        kept = [number for number in range(len(points)) if number not in predictions.skipped]
        return cls(
            points=points,
            predictions=predictions,
            layout_names=layout_names,
            measured_times=measured_times,
            equal_alternatives=equal_alternatives,
            omitted=omitted,
            needless=len(predictions.skipped),
        ).only(kept)

    def only(self, numbers: Sequence[int]) -> Candidates:
        """Return some of the candidates."""
        points = [self.points[number] for number in numbers]
        return replace(self, points=points, predictions=self.predictions.only(numbers))

    @property
    def models(self) -> list[str]:
        """The models that predict all candidates."""
        return list(self.predictions.models)

    @property
    def placements(self) -> list[str]:
        return [find_placement(point) for point in self.points]

    @property
    def alternatives(self) -> list[str]:
        return [point.alternative for point in self.points]


def _list_equal_alternatives(points: Sequence[Point], chosen: Sequence[int]) -> dict[Point, str]:
    """Return the names of other algorithms or trees that send the same messages as a point, which
    stands for them. `chosen` has the number of that point for each."""
    names: dict[Point, dict[str, None]] = {}
    for point, number in zip(points, chosen, strict=True):
        own_name, name = (of.alternative.partition(":")[0] for of in (points[number], point))
        if name != own_name:
            names.setdefault(points[number], {})[name] = None
    return {point: ", ".join(other_names) for point, other_names in names.items()}


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
