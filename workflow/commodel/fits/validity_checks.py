"""Checks of a fitted model against probes that it was not fitted to.

- `measure_left_out_error`: up to MAX_LEFT_OUT_CASES cases of each probe are left out in turn, the
  rest is fitted again, and the case is predicted as the pattern that its probe plays. Cases that
  are no pattern, such as a delay within a round trip, are not predicted.
- `check_contention`: messages of all nodes at once, in a row, or of a fan (probe `mixture`).
- Uniformity: `measure_heterogeneity` finds levels that the platform file does not name (probe
  `evenness`), `find_unequal_classes` pairs of one distance class that differ (probe `nodepairs`),
  `find_unequal_types` node types.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from math import inf
from typing import Any

import numpy as np

from commodel.errors import UserError
from commodel.hierarchy import Hierarchy
from commodel.models.evaluation.shared_links import LINK_FACTORS, PAIR_LATENCY
from commodel.models.evaluation.values import Values, rank_types
from commodel.models.families import Family
from commodel.models.fitting.observed import Observed
from commodel.models.fitting.regression import omit_left_out_errors
from commodel.models.keys import Pair
from commodel.models.probes import Site, find_probe
from commodel.models.probes.mixture import (
    MIN_BYTES,
    TURN_AROUND,
    TURN_FAN,
    TURN_STREAM,
    TURN_WITHIN,
)
from commodel.models.probes.node_pairs import TYPE_PAIRS_STEP
from commodel.parameters import ParameterSet
from commodel.patterns.layouts import parse_nodes, place_ranks
from commodel.patterns.schedule import Schedule, stack_schedules
from commodel.predictions.model import Model
from commodel.predictions.validity import compute_single_message_ratios, exceeds_factor
from commodel.stats import compute_median_interval

MAX_LEFT_OUT_CASES = 12  # cases of a probe that are left out in turn, evenly selected from all
# draws of such a fit: only its estimate is used, but fits weight cases by their noise
LEFT_OUT_FIT_DRAWS = 21


def measure_left_out_error(family: Family, observed: Observed) -> dict[str, float]:
    """Return the root mean square relative error at probe cases that were left out of the fit, and
    their number."""
    errors = [
        prediction / measured - 1
        for prediction, measured in _predict_left_out(family, observed)
        if measured > 0
    ]
    if not errors:
        return {}
    return {"error": float(np.sqrt(np.mean(np.square(errors)))), "cases": len(errors)}


def _predict_left_out(family: Family, observed: Observed) -> Iterator[tuple[float, float]]:
    has_own_probes = any(observed.probes.get(name) for name in family.probes)
    for name in family.list_probes(uses_mpi=has_own_probes):
        cases = observed.probes.get(name, ())
        patterns = [
            (number, make_case_schedule(name, case.settings, observed.types))
            for number, case in enumerate(cases)
        ]
        played_cases = [(number, pattern) for number, pattern in patterns if pattern is not None]
        selected = np.linspace(
            0, len(played_cases) - 1, min(MAX_LEFT_OUT_CASES, len(played_cases))
        ).astype(int)
        for index in np.unique(selected):
            number, pattern = played_cases[index]
            try:
                with omit_left_out_errors():
                    fitted = family.fit(observed.without(name, number, LEFT_OUT_FIT_DRAWS))
                cost = Model.of_fit(family, fitted).cost(pattern)
            except UserError:
                continue  # the fit needs this case
            yield float(cost[0]), float(np.median(cases[number].seconds))


def list_nodes(layout: str, ranks: int, where: str) -> np.ndarray:
    """Return the platform's node of every rank of a case; `where` is written as in the table of
    observations."""
    nodes = place_ranks(layout, ranks)
    return parse_nodes(where)[nodes] if where else nodes


def make_case_schedule(
    name: str, settings: Mapping[str, Any], types: Mapping[str, int]
) -> Schedule | None:
    """Return the schedule that a probe case plays, on the node types where it was measured; None
    for a case without schedule."""
    entry = find_probe(name)
    pattern = entry.pattern(settings) if entry.pattern else None
    if pattern is None:
        return None
    where = str(settings.get("where") or "")
    nodes = list_nodes(str(settings["layout"]), int(settings["ranks"]), where)[: pattern.ranks]
    pair = Pair.parse(str(settings["pair"]))
    if types and pair.sender_type and not where:
        members = Site(sum(types.values()), 1, types).members()
        first, second = pair.types
        # the next node, as it was measured
        second_node = members[second][:2][-1] if first == second else members[second][-1]
        nodes = np.array([members[first][0], second_node])[nodes % 2]
    return pattern.place(nodes)


# measured / predicted time of concurrent messages, or its inverse, that is recorded
CONTENTION_FACTOR = 1.5
# far / near round trips of one distance class, above which pairs are unequal
UNEQUAL_PAIRS_FACTOR = 1.5
MIXTURE_PROBE = "mixture"
KINDS_BY_TYPE_PAIR = ("row", "fan")  # kinds of contention that are probed for every two node types
KIND_BY_TURN = {TURN_AROUND: "rounds", TURN_STREAM: "row", TURN_FAN: "fan"}


def check_contention(
    family: Family, parameters: ParameterSet, evidence: Observed
) -> dict[str, dict[str, float]]:
    """Return the contention that a model mispredicts, by kind: one rank of each node sends
    (`nodes`), all ranks send (`ranks`), messages are passed on around all nodes (`rounds`),
    messages in a `row`, a `fan` from one node to others and back. Each has the smallest size at
    which times differ from predictions (0: the smallest probed one), and the largest ratio. A kind
    is missing if times do not differ, or if single messages differ by as much. `row.A.B` and
    `fan.A.B` are from a node of type A to those of type B."""
    if not parameters.values:
        return {}
    model = Model.of(family, Values.of(parameters))
    times: dict[str, dict[int, list[tuple[float, float]]]] = defaultdict(lambda: defaultdict(list))
    low, high = parameters.bytes_range or (0.0, inf)
    high = max(high, MIN_BYTES)
    for case in evidence.probes.get(MIXTURE_PROBE, ()):
        # predictions outside of the range are flagged anyway
        is_in_range = family.uses_bytes or low <= int(case.settings["bytes"]) <= high
        if is_in_range and len(case.seconds) and int(case.settings["turn"]) != TURN_WITHIN:
            try:
                pattern = make_case_schedule(MIXTURE_PROBE, case.settings, evidence.types)
                assert pattern is not None
                prediction = float(model.cost(pattern)[0])
            except UserError:  # a distance class was not measured
                continue
            if not prediction:  # of a model in which messages take no time
                continue
            kind = "nodes" if int(case.settings["each"]) == 1 else "ranks"
            kind = KIND_BY_TURN.get(int(case.settings["turn"]), kind)
            if str(case.settings.get("where") or "") and kind in KINDS_BY_TYPE_PAIR:
                kind = f"{kind}.{case.settings['pair']}"
            ratio, single_ratio = (
                float(np.median(case.seconds)) / prediction,
                float(compute_single_message_ratios(parameters, stack_schedules([pattern]))[0]),
            )
            times[kind][int(case.settings["bytes"])].append((ratio, single_ratio))
    return {
        kind: worst for kind, by_size in times.items() if (worst := _summarize_contention(by_size))
    }


def _summarize_contention(by_size: dict[int, list[tuple[float, float]]]) -> dict[str, float]:
    median_ratios = {size: np.median(factors, axis=0).tolist() for size, factors in by_size.items()}
    contended: dict[int, float] = {
        size: ratio
        for size, (ratio, single_ratio) in median_ratios.items()
        if _is_contended(ratio, single_ratio)
    }
    if not contended:
        return {}
    smallest = min(contended)
    worst: float = max(contended.values(), key=lambda ratio: float(abs(np.log(ratio))))
    return {
        "from_bytes": float(smallest) if smallest > min(median_ratios) else 0.0,
        "ratio": round(worst, 3),
    }


def _is_contended(ratio: float, single_ratio: float) -> bool:
    """Return whether concurrent messages are mispredicted by more than single messages."""
    is_mispredicted = exceeds_factor(ratio, CONTENTION_FACTOR)
    return is_mispredicted and not (
        exceeds_factor(single_ratio, CONTENTION_FACTOR)
        and not exceeds_factor(ratio / single_ratio, CONTENTION_FACTOR)
    )


# share of the pairs of a class; a tenth at each end is ignored: slow nodes, or noise
CENTRAL_SHARE = 0.8
CLEAR_RATIO = 1.15  # ratio of times above which a difference counts


def measure_heterogeneity(evidence: Observed, parameters: ParameterSet | None = None) -> float:
    """Return the ratio of round trips between distant nodes to those between near ones, at the
    distance and size where it is largest; 1 if no difference is significant.

    A single slow node does not count: all pairs of a distance have to be slower. If pairs have
    values in `parameters`, times are compared with what these predict.
    """
    by_pair = parameters is not None and PAIR_LATENCY in parameters.settings
    predict_pair = _predict_round_trips(parameters) if parameters and by_pair else None
    steps: dict[int, dict[int, list[tuple[float, float, float]]]] = defaultdict(
        lambda: defaultdict(list)
    )
    for case in evidence.probes.get("evenness", ()):
        if len(case.seconds) and int(case.settings["step"]) != TYPE_PAIRS_STEP:
            ends, bytes = (
                np.array([int(case.settings["one"]), int(case.settings["two"])]),
                int(case.settings["bytes"]),
            )
            expected = (
                predict_pair(ends, bytes) * int(case.settings["trips"]) if predict_pair else 1.0
            )
            interval = compute_median_interval(case.seconds / expected, case.passes)
            steps[bytes][int(case.settings["step"])].append(interval)
    largest_ratio = 1.0
    for pairs_by_step in steps.values():
        fastest = min(
            (pair for pairs in pairs_by_step.values() for pair in pairs), key=lambda pair: pair[0]
        )
        for pairs in pairs_by_step.values():
            if min(low for _, low, _ in pairs) > CLEAR_RATIO * fastest[2]:
                largest_ratio = max(
                    largest_ratio, float(np.median([median for median, *_ in pairs]) / fastest[0])
                )
    return largest_ratio


def find_unequal_types(evidence: Observed) -> dict[str, float]:
    """Return the pairs of node types whose round trips clearly differ from that of the first two
    nodes, with the factor."""
    times: dict[int, dict[str, tuple[float, float, float]]] = defaultdict(dict)
    for case in evidence.probes.get("evenness", ()):
        if len(case.seconds) and int(case.settings["step"]) == TYPE_PAIRS_STEP:
            pair = _name_types(evidence, int(case.settings["one"]), int(case.settings["two"]))
            times[int(case.settings["bytes"])][pair] = compute_median_interval(
                case.seconds, case.passes
            )
    worst: dict[str, float] = {}
    for by_pair in times.values():
        reference = by_pair.get(_name_types(evidence, 0, 1))
        if reference is None:
            continue
        for pair, (median, low, high) in by_pair.items():
            if low > CLEAR_RATIO * reference[2] or CLEAR_RATIO * high < reference[1]:
                factor = max(median / reference[0], reference[0] / median)
                worst[pair] = max(worst.get(pair, 1.0), round(factor, 3))
    return worst


def _name_types(evidence: Observed, one: int, two: int) -> str:
    return str(
        Pair(
            *(
                list(evidence.types)[number]
                for number in rank_types(np.array([one, two]), evidence.types)
            )
        )
    )


def _predict_round_trips(parameters: ParameterSet) -> Callable[[np.ndarray, int], float]:
    """Return a function of two nodes and a size that returns the predicted round trip. Pairs whose
    nodes are in groups of equal links at an equal distance are predicted once."""
    model, levels = Model.of_set(parameters), Hierarchy.of(parameters.settings.get("levels", {}))
    factors = {
        # the factor of each node
        level: np.asarray(factors_of_nodes)[levels.groups.get(level, slice(None))]
        for level, factors_of_nodes in parameters.settings.get(LINK_FACTORS, {}).items()
    }
    by_pair = PAIR_LATENCY in parameters.settings
    cached: dict[tuple[Any, ...], float] = {}

    def predict_round_trip(ends: np.ndarray, bytes: int) -> float:
        key: tuple[Any, ...] = (
            bytes,
            int(levels.distance(*ends)),
            *(tuple(factors_of_nodes[ends].tolist()) for factors_of_nodes in factors.values()),
        )
        key = (*key, *ends.tolist()) if by_pair else key
        if key not in cached:
            trip = Schedule.of(2, [0, 1], [0, 1], [1, 0], bytes, root=0).place(ends)
            cached[key] = float(model.cost(trip)[0])
        return cached[key]

    return predict_round_trip


def find_unequal_classes(
    family: Family, evidence: Observed, parameters: ParameterSet | None = None
) -> dict[str, float]:
    """Return the distance classes within which far pairs take more than UNEQUAL_PAIRS_FACTOR times
    as long as near ones, each with that ratio. For models with values by pair of types or by
    distance class, only pairs of the same types are compared. If links of single nodes or groups
    have values in `parameters`, times are compared with what these predict."""
    has_link_values = parameters is not None and not {LINK_FACTORS, PAIR_LATENCY}.isdisjoint(
        parameters.settings
    )
    predict_pair = _predict_round_trips(parameters) if parameters and has_link_values else None
    levels, by_type = (
        Hierarchy.of(evidence.levels),
        evidence.types and (family.by_type or family.by_class),
    )
    seconds: dict[tuple[str, int, tuple[int, ...]], list[float]] = defaultdict(list)
    for case in evidence.probes.get("nodepairs", ()):
        if len(case.seconds):
            ends = np.array([int(case.settings["one"]), int(case.settings["two"])])
            types = tuple(sorted(rank_types(ends, evidence.types).tolist())) if by_type else ()
            key = levels.names[int(levels.distance(*ends))], int(case.settings["bytes"]), types
            expected = (
                predict_pair(ends, key[1]) * int(case.settings["trips"]) if predict_pair else 1.0
            )
            seconds[key].append(float(np.median(case.seconds)) / expected)
    worst: dict[str, float] = {}
    for (name, *_), times in seconds.items():
        near, far = np.quantile(times, [(1 - CENTRAL_SHARE) / 2, (1 + CENTRAL_SHARE) / 2])
        if far > UNEQUAL_PAIRS_FACTOR * near:
            worst[name] = max(worst.get(name, 1.0), round(float(far / near), 3))
    return worst
