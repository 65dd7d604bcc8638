"""The network of an allocation, learned from probe `nodepairs`: levels, distance classes and slow
nodes.

`learn_distances` chooses the nested groups of nodes that describe the times of pairs best, by
minimum description length: each pair adds the logarithm of the spread of its class, each level the
nats that describe its groups. Candidates are blocks of consecutive nodes and cuts of hierarchical
clusterings. `make_networks` returns the network of each platform in a summary of raw samples.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from commodel.errors import UserError
from commodel.files.atomic import read_json
from commodel.files.results_folder import Results
from commodel.files.tables import SUMMARY, read_table
from commodel.hierarchy import MAX_LEVELS, Hierarchy
from commodel.plan.config import find_config_file
from commodel.plan.planning import load_plan
from commodel.records import Plan
from commodel.torus import Torus, find_torus
from commodel.units import format_ranges

# difference of logarithms of times; smaller ones count as equal, even without noise
MIN_LOG_DIFFERENCE = float(np.log(1.1))
EQUALITY_HALF_INTERVALS = 3.0  # half confidence intervals, within which times are equal
MIN_GAIN_PER_PAIR = 0.05  # description length that a level saves, in nats a pair
# of times: a level that gains more than in all of them is due to chance in 2.5 % of networks
PERMUTATIONS = 39
# after more than these the test ends if the level gains over twice as much as in each
FIRST_PERMUTATIONS = 9
# factor on permuted gains, since permutations do not include the choice of slow nodes
CHANCE_MARGIN = 1.25
MIN_PERMUTED_NODES = 6  # nodes; the times of fewer nodes have too few different permutations
MIN_TESTED_NODES = 4  # nodes; with fewer, a level is kept only if the classes explain all but noise
# share of the variance of latencies or bandwidths that a level of few nodes leaves
MAX_UNEXPLAINED = 0.04
NODE_EFFECT_NATS = 3.0  # description length of a constant of one node
NODE_EFFECT_ITERATIONS = 12  # iterations that estimate these constants
MAX_CUTS = 12  # candidate cuts of a clustering
MAX_CLUSTERED_NODES = 512  # nodes; with more, only consecutive blocks are candidates
MAX_SLOW_SHARE = 0.25  # of the nodes
# of logarithms of times, between a slow node and all others
MIN_SLOW_LOG_GAP = 1.5 * MIN_LOG_DIFFERENCE
MIN_NODES_TO_FIND_SLOW = 4  # nodes: among three, the slow one cannot be determined
SPREAD_PERCENTILES = (5, 95)  # percentiles of a class's times, between which they may differ
INNER_LEVEL_NAMES = ("leaf", "group")  # of the two innermost levels


@dataclass(frozen=True, eq=False)
class Distances:
    """Distance classes of pairs: `class_of_pair` is 0 for the nearest class; -1 if a node or only
    this pair is slow."""

    class_of_pair: np.ndarray
    classes: int
    hierarchy: Hierarchy  # groups of nodes from which the classes follow, innermost first
    slow: tuple[int, ...]  # nodes whose fastest pair is slower than that of every other node
    slow_pairs: tuple[int, ...]  # slow pairs of nodes that are not slow
    torus: Torus | None = None  # if its hops explain the latencies; there are no groups then
    # their pairs differ by more than repeated measurements
    mixed_classes: tuple["MixedClass", ...] = ()


@dataclass(frozen=True)
class MixedClass:
    """A distance class that may consist of several levels. `spread` is the ratio of the
    SPREAD_PERCENTILES of its pairs' times, `noise` the ratio of the ends of a median's confidence
    interval; both for a small and a large message."""

    number: int
    spread: tuple[float, float]
    noise: tuple[float, float]

    @property
    def widest(self) -> int:
        """0 if latency differs most between the pairs, 1 if transfer time does."""
        return int(self.spread[1] > self.spread[0])


def learn_distances(
    pairs: np.ndarray, times: np.ndarray, noise: np.ndarray, nodes: int
) -> Distances:
    """Return the distance classes of pairs of nodes. `pairs` (pairs, 2) are node numbers; `times`
    (pairs, 2) those of a small and a large message, NaN if not measured; `noise` (pairs, 2) half
    the intervals of their logarithms."""
    pairs, logs = np.asarray(pairs), np.log(times)
    equality_limits = np.maximum(
        MIN_LOG_DIFFERENCE, EQUALITY_HALF_INTERVALS * np.nan_to_num(np.nanmedian(noise, axis=0))
    )
    slow = _find_slow_nodes(pairs, logs, equality_limits, nodes)
    fast = ~np.isin(pairs, slow).any(axis=1)
    levels = _choose_levels(
        PairTimes(
            pairs=pairs[fast],
            measured=logs[fast],
            floors=equality_limits / 3,
            nodes=nodes,
            slow=slow,
        )
    )
    torus = None
    class_of_pair = _classify(levels, pairs[fast])
    if _find_mixed_classes(
        logs[fast], equality_limits, noise[fast], class_of_pair, len(levels) + 1
    ):
        torus = find_torus(pairs[fast], np.exp(logs[fast, 0]), nodes)
        levels = [] if torus else levels
    for node in slow:  # it belongs to the groups of the node that it reaches soonest
        touching = np.flatnonzero((pairs == node).any(axis=1))
        nearest = pairs[touching[np.nanargmin(logs[touching, 0])]]
        for column in levels:
            column[node] = column[nearest[nearest != node][0]]
    names = (
        *INNER_LEVEL_NAMES,
        *(f"level-{number}" for number in range(len(INNER_LEVEL_NAMES), MAX_LEVELS)),
    )
    hierarchy = Hierarchy.of(
        {name: column.tolist() for name, column in zip(names, levels, strict=False)}
    )
    class_of_pair = np.where(fast, hierarchy.distance(*pairs.T) - 1, -1)
    slow_pairs = _find_single_pairs(class_of_pair, logs, equality_limits, nodes)
    class_of_pair[slow_pairs] = -1
    mixed = (
        ()
        if torus
        else _find_mixed_classes(logs, equality_limits, noise, class_of_pair, len(levels) + 1)
    )
    return Distances(
        class_of_pair=class_of_pair,
        classes=len(levels) + 1,
        hierarchy=hierarchy,
        slow=tuple(slow),
        slow_pairs=tuple(slow_pairs.tolist()),
        torus=torus,
        mixed_classes=mixed,
    )


def _find_mixed_classes(
    logs: np.ndarray,
    equality_limits: np.ndarray,
    noise: np.ndarray,
    class_of_pair: np.ndarray,
    classes: int,
) -> tuple[MixedClass, ...]:
    """Return the classes whose times spread by more than noise. Within one level, times differ only
    by noise. Such a class therefore consists of several levels, or has paths of several lengths, as
    on a torus."""
    mixed = []
    repeated = np.exp(2 * np.nanmedian(noise, axis=0)).tolist()
    for number in range(classes):
        logs_of_class = logs[class_of_pair == number]
        if len(logs_of_class) < MIN_NODES_TO_FIND_SLOW or np.isnan(logs_of_class).all(axis=0).any():
            continue
        low, high = np.nanpercentile(logs_of_class, SPREAD_PERCENTILES, axis=0)
        if (high - low > equality_limits).any():
            mixed.append(MixedClass(number, tuple(np.exp(high - low).tolist()), tuple(repeated)))
    return tuple(mixed)


def _make_matrix(pairs: np.ndarray, values: np.ndarray, nodes: int) -> np.ndarray:
    """Return the symmetric matrix of a value for each pair of nodes; NaN if the pair was not
    measured."""
    matrix = np.full((nodes, nodes), np.nan)
    matrix[tuple(pairs.T)] = matrix[tuple(pairs.T[::-1])] = values
    return matrix


def _find_fastest_pairs(pairs: np.ndarray, values: np.ndarray, nodes: int) -> np.ndarray:
    """Return the shortest time of each node's pairs; infinite if none was measured."""
    return np.fmin.reduce(_make_matrix(pairs, values, nodes), axis=1, initial=np.inf)


def _find_slow_nodes(
    pairs: np.ndarray, logs: np.ndarray, equality_limits: np.ndarray, nodes: int
) -> list[int]:
    """Return the few nodes whose fastest pair is clearly slower than the fastest pair of every
    other node."""
    slow: set[int] = set()
    most_slow = max(1, int(MAX_SLOW_SHARE * nodes))
    if nodes < MIN_NODES_TO_FIND_SLOW:
        return []
    for values, limit in zip(logs.T, np.maximum(equality_limits, MIN_SLOW_LOG_GAP), strict=True):
        fastest = _find_fastest_pairs(pairs, values, nodes)
        order = np.argsort(fastest, kind="stable")
        gaps = np.diff(fastest[order], prepend=fastest[order[0]])
        large = np.flatnonzero(gaps[-most_slow:] > limit)
        if large.size and np.isfinite(fastest).all():
            slow |= set(order[nodes - most_slow + large[0] :].tolist())
    return sorted(slow) if len(slow) <= most_slow else []


def _remove_port_speeds(pairs: np.ndarray, logs: np.ndarray, nodes: int) -> np.ndarray:
    """Return the times as if all nodes had the port of the fastest. The slower port of two nodes
    limits the time of a large message, for example with several types of nodes."""
    fastest = _find_fastest_pairs(pairs, logs[:, 1], nodes)
    count = np.bincount(pairs.ravel(), minlength=nodes)
    has_speed = np.isfinite(fastest) & (count > 1)
    if not has_speed.any():
        return logs
    slower = np.where(has_speed, fastest - fastest[has_speed].min(), 0.0)
    slower[slower < MIN_SLOW_LOG_GAP] = 0.0
    return np.stack([logs[:, 0], logs[:, 1] - slower[pairs].max(axis=1)], axis=1)


def _find_single_pairs(
    class_of_pair: np.ndarray, logs: np.ndarray, equality_limits: np.ndarray, nodes: int
) -> np.ndarray:
    """Return the few pairs of a class that are clearly slower than all others of it."""
    single = np.zeros(len(class_of_pair), dtype=bool)
    for number in range(int(class_of_pair.max(initial=-1)) + 1):
        for values, limit in zip(logs.T, equality_limits, strict=True):
            pairs_of_class = np.flatnonzero((class_of_pair == number) & ~np.isnan(values))
            order = pairs_of_class[np.argsort(values[pairs_of_class], kind="stable")]
            most_slow = min(
                max(1, int(MAX_SLOW_SHARE * nodes) - 1), len(order) - MIN_NODES_TO_FIND_SLOW
            )
            if most_slow < 1:
                continue
            gaps = np.diff(values[order])[-most_slow:]
            large = np.flatnonzero(gaps > np.maximum(limit, np.ptp(values[order[:-most_slow]])))
            if large.size:
                single[order[len(order) - most_slow + large[0] :]] = True
    return np.flatnonzero(single)


@dataclass(frozen=True, eq=False)
class PairTimes:
    """Logarithms of measured times (pairs, 2) from which levels are chosen. `floors` are the units
    of the spreads of classes: spreads far below them hardly lengthen the description."""

    pairs: np.ndarray
    measured: np.ndarray
    floors: np.ndarray
    nodes: int
    slow: Sequence[int]

    @cached_property
    def logs(self) -> np.ndarray:
        """The times as if all nodes had the port of the fastest."""
        return _remove_port_speeds(self.pairs, self.measured, self.nodes)

    @cached_property
    def candidates(self) -> list[tuple[np.ndarray, float]]:
        """Groups of nodes, each with the nats for naming them."""
        return list(
            _list_candidates(_make_matrix(self.pairs, self.logs[:, 0], self.nodes), self.slow)
        )


def _choose_levels(times: PairTimes) -> list[np.ndarray]:
    """Return a group number of every node for each level, innermost first. The candidates that
    shorten the description of the times most are added one after the other, as long as each saves
    MIN_GAIN_PER_PAIR for every pair. Unless the classes explain all but noise, a level is kept only
    if it saves more than in permuted times."""
    if len(times.pairs) < 2:
        return []
    chosen: list[list[np.ndarray]] = [[]]
    gains: list[float] = []
    least_gain = MIN_GAIN_PER_PAIR * len(times.pairs)
    while len(gains) < MAX_LEVELS:
        # No level saves more than the whole description.
        if not _describe_times(chosen[-1], times, times.logs)[0] > least_gain:
            break
        gain, extended = _find_level(chosen[-1], times)
        if not gain > least_gain:
            break
        chosen.append(extended)
        gains.append(gain)
    residuals = _describe_times(chosen[-1], times, times.logs)[1]
    if (np.nanmean(np.abs(residuals), axis=0) > times.floors / 2).any():
        by_chance = (
            _occurs_by_chance(gain, levels, times)
            for gain, levels in zip(gains, chosen, strict=False)
        )
        chosen = chosen[
            : next((number for number, is_chance in enumerate(by_chance) if is_chance), len(gains))
            + 1
        ]
    return [column.copy() for column in chosen[-1]]


def _find_level(levels: list[np.ndarray], times: PairTimes) -> tuple[float, list[np.ndarray]]:
    """Return by how much one more level shortens the description of the times, and the levels with
    it."""
    best = np.inf
    best_levels: list[np.ndarray] = []
    for column, cost in times.candidates:
        extended = _insert_level(levels, column)
        if extended is not None:
            length = _describe_times(extended, times, times.logs)[0] + cost
            if length < best:
                best = length
                best_levels = extended
    return _describe_times(levels, times, times.logs)[0] - best, best_levels


def _occurs_by_chance(gain: float, levels: list[np.ndarray], times: PairTimes) -> bool:
    """Return whether one more level gains nearly as much in one of PERMUTATIONS of the times. The
    residuals, in units of the spread of their class, are exchanged between pairs of which the same
    messages were measured. A level of few nodes counts as chance unless it explains nearly all the
    variance of latencies or of bandwidths."""
    residuals = _describe_times(levels, times, times.measured)[1]
    nodes = times.nodes - len(times.slow)
    if nodes < MIN_PERMUTED_NODES:
        unexplained = _describe_times(_find_level(levels, times)[1], times, times.measured)[1]
        shares = np.nanmean(unexplained**2, axis=0) / np.maximum(
            np.nanmean(residuals**2, axis=0), 1e-12
        )
        return nodes < MIN_TESTED_NODES or bool((shares > MAX_UNEXPLAINED).all())
    class_of_pair = _classify(levels, times.pairs)
    rng = np.random.default_rng(1)
    spreads = np.ones_like(residuals)
    for number in np.unique(class_of_pair):
        spreads[class_of_pair == number] = np.maximum(
            np.sqrt(np.nanmean(residuals[class_of_pair == number] ** 2, axis=0)), 1e-9
        )
    exchangeable = [
        np.flatnonzero(np.isnan(residuals[:, 1]) == missing) for missing in (False, True)
    ]
    largest_gain = 0.0
    for number in range(PERMUTATIONS):
        order = np.arange(len(class_of_pair))
        for pairs in exchangeable:
            order[pairs] = rng.permutation(pairs)
        exchanged = times.measured - residuals + (residuals / spreads)[order] * spreads
        largest_gain = max(largest_gain, _find_level(levels, replace(times, measured=exchanged))[0])
        if CHANCE_MARGIN * largest_gain >= gain or (
            number >= FIRST_PERMUTATIONS and 2 * largest_gain < gain
        ):
            return CHANCE_MARGIN * largest_gain >= gain
    return False


def _classify(levels: list[np.ndarray], pairs: np.ndarray) -> np.ndarray:
    """Return the distance class of each pair, 0 the nearest."""
    return sum(
        (column[pairs[:, 0]] != column[pairs[:, 1]] for column in levels),
        np.zeros(len(pairs), dtype=int),
    )


def _insert_level(levels: list[np.ndarray], column: np.ndarray) -> list[np.ndarray] | None:
    """Return the levels and one more in its place; None if it does not nest with them."""
    groups = column.max()
    index = sum(bool(level.max() > groups) for level in levels)
    around = levels[index:]
    within = levels[:index]
    if not all(_is_nested(inner, column) for inner in within) or not all(
        _is_nested(column, outer) for outer in around
    ):
        return None
    return [*within, column, *around]


def _is_nested(inner: np.ndarray, outer: np.ndarray) -> bool:
    first = np.unique(inner, return_index=True)[1]
    return bool(inner.max() > outer.max() and (outer == outer[first][inner]).all())


def _describe_times(
    levels: list[np.ndarray], times: PairTimes, logs: np.ndarray
) -> tuple[float, np.ndarray]:
    """Return the description length of the times in nats, given the classes of some levels, and the
    residuals (pairs, 2). The length is infinite unless the classes get slower from level to level.
    Small and large messages have equal weight, however many of each were measured. If nodes differ,
    a constant of each node is part of the description, provided that this is shorter."""
    pairs = times.pairs
    class_of_pair = _classify(levels, times.pairs)
    length = 0.0
    medians = np.full((2, len(levels) + 1), np.nan)
    described = np.full_like(logs, np.nan)
    for size, (medians_of_size, values, floor) in enumerate(
        zip(medians, logs.T, times.floors, strict=True)
    ):
        measured = np.flatnonzero(~np.isnan(values))
        residuals = values[measured].copy()
        for number in range(len(medians_of_size)):
            in_class = class_of_pair[measured] == number
            if in_class.any():
                medians_of_size[number] = np.median(residuals[in_class])
                residuals[in_class] -= medians_of_size[number]
        without_effects = _remove_node_effects(pairs[measured], residuals)
        cost = NODE_EFFECT_NATS * (pairs.max() + 1)
        lengths = [
            _spread_length(remainders, class_of_pair[measured], floor)
            for remainders in (residuals, without_effects)
        ]
        length += min(lengths[0], lengths[1] + cost) * len(pairs) / len(measured)
        described[measured, size] = (
            residuals if lengths[0] <= lengths[1] + cost else without_effects
        )
    steps = np.diff(medians, axis=1)
    slower = (steps > times.floors[:, None]).any(axis=0)
    return length if slower.all() and not (
        steps < -times.floors[:, None]
    ).any() else np.inf, described


def _spread_length(residuals: np.ndarray, class_of_pair: np.ndarray, floor: float) -> float:
    counts = np.bincount(class_of_pair)
    spreads = np.bincount(class_of_pair, np.abs(residuals)) / np.maximum(counts, 1)
    return float((counts * np.log1p(spreads / floor)).sum())


def _remove_node_effects(pairs: np.ndarray, residuals: np.ndarray) -> np.ndarray:
    """Return the residuals of pairs minus a constant of each node."""
    remainders = residuals.copy()
    nodes = int(pairs.max()) + 1
    degree = np.maximum(np.bincount(pairs.ravel(), minlength=nodes), 1)
    for _ in range(NODE_EFFECT_ITERATIONS):
        sums = sum(np.bincount(ends, remainders, nodes) for ends in pairs.T)
        remainders -= (sums / degree / 2)[pairs].sum(axis=1)
    return remainders


def _list_candidates(matrix: np.ndarray, slow: Sequence[int]) -> Iterator[tuple[np.ndarray, float]]:
    """Yield groups of nodes, each with the nats for naming them."""
    nodes = len(matrix)
    blocks = [size for size in range(2, nodes // 2 + 1) if nodes % size == 0]
    yield from ((np.arange(nodes) // size, float(np.log(len(blocks) + 1))) for size in blocks)
    fast = np.setdiff1d(np.arange(nodes), slow)
    if not 2 < len(fast) <= MAX_CLUSTERED_NODES:
        return
    # here, because it is slow to load and few reports need it
    from scipy.cluster.hierarchy import fcluster, linkage
    from scipy.spatial.distance import squareform

    distance = _complete(matrix[np.ix_(fast, fast)])
    distinct = set()
    for method in ("average", "complete", "single"):
        tree = linkage(squareform(distance, checks=False), method)
        heights = tree[:, 2]
        for cut in np.argsort(-np.diff(heights), kind="stable")[:MAX_CUTS]:
            clusters = fcluster(tree, heights[cut : cut + 2].mean(), "distance")
            column = np.zeros(nodes, dtype=int)
            column[fast] = np.unique(clusters, return_inverse=True)[1]
            count = int(column.max()) + 1
            if 1 < count < len(fast) and column.tobytes() not in distinct:
                distinct.add(column.tobytes())
                yield column, float(nodes * np.log(count))


def _complete(matrix: np.ndarray) -> np.ndarray:
    """Return the distances of all pairs, at least MIN_LOG_DIFFERENCE. In nested groups the larger
    two of three distances are equal, so a pair that was not measured is as far as its nearest
    common neighbours suggest."""
    matrix = matrix - np.nanmin(matrix) + MIN_LOG_DIFFERENCE
    missing = np.argwhere(np.isnan(matrix) & ~np.eye(len(matrix), dtype=bool))
    completed = matrix.copy()
    for one, two in missing:
        bounds = np.maximum(matrix[one], matrix[two])  # NaN if either is
        distances = np.sort(bounds[~np.isnan(bounds)])
        completed[one, two] = (
            np.median(distances[: max(3, len(distances) // 4)])
            if len(distances)
            else np.nanmax(matrix)
        )
    np.fill_diagonal(completed, 0.0)
    return np.maximum(completed, completed.T)


PROBE = "nodepairs"
SETTINGS = ("one", "two", "nodes", "trips", "bytes")


@dataclass(frozen=True, eq=False)
class MeasuredNetwork:
    platform: str
    simulated: bool
    names: tuple[str, ...]  # of the nodes; their numbers if names are unknown
    pairs: np.ndarray  # (pairs, 2) node numbers
    latency: np.ndarray  # seconds, half a round trip of the small message
    bandwidth: np.ndarray  # bytes a second, of the large one
    small: int  # bytes of the message for the latency
    large: int  # bytes of the message for the bandwidth
    distances: Distances
    declared: Hierarchy  # levels that the platform file declares, else those that Slurm reports
    declared_by_slurm: bool = False

    @property
    def hierarchy(self) -> Hierarchy:
        """The declared levels if there are any, else the learned ones."""
        return self.declared if self.declared.groups else self.distances.hierarchy

    @property
    def agrees(self) -> bool:
        """Whether declared and learned levels group the nodes alike, without levels of one group or
        of single nodes."""

        def list_groups(levels: Hierarchy) -> list[list[int]]:
            columns = levels.groups.values()
            return [column.tolist() for column in columns if 0 < column.max() < len(column) - 1]

        return list_groups(self.declared) == list_groups(self.distances.hierarchy)

    @property
    def order(self) -> np.ndarray:
        """The nodes, sorted by group."""
        return np.lexsort([np.arange(len(self.names)), *self.hierarchy.groups.values()])

    def matrix(self, values: np.ndarray) -> np.ndarray:
        """Return a value for every pair of nodes; NaN if the pair was not measured."""
        return _make_matrix(self.pairs, values, len(self.names))

    def slowdown(self, node: int) -> tuple[float, float]:
        """Return the ratios of latency and transfer time of a node's pairs to those of pairs at
        equal distance without slow nodes."""
        at_node = (self.pairs == node).any(axis=1)
        without_slow = ~np.isin(self.pairs, self.distances.slow).any(axis=1)
        distances = self.distances.hierarchy.distance(*self.pairs.T)
        factors = []
        for distance in np.unique(distances[at_node]):
            reference = without_slow & (distances == distance)
            reference = reference if reference.any() else without_slow
            at_distance = at_node & (distances == distance)
            latency = self.latency[at_distance] / np.nanmedian(self.latency[reference])
            factors.append(
                np.stack(
                    [latency, np.nanmedian(self.bandwidth[reference]) / self.bandwidth[at_distance]]
                )
            )
        latency, transfer = np.nanmedian(np.concatenate(factors, axis=1), axis=1)
        return float(latency), float(transfer)


def make_networks(
    raw: pd.DataFrame, places: Mapping[str, Mapping[str, Any]]
) -> list[MeasuredNetwork]:
    """Return the networks of all platforms in a summary of raw samples. `places` has the names of
    the `nodes` and the `levels` of each platform, if known."""
    rows = raw[(raw["kind"] == "probe") & (raw["name"] == PROBE) & (raw["median"] > 0)]
    learned = (
        _make_network(str(name), rows_of_platform, places.get(str(name), {}))
        for name, rows_of_platform in rows.groupby("platform", sort=False)
    )
    return [network for network in learned if network is not None]


def find_recorded_nodes(
    plan: Plan, provenance: Mapping[str, Mapping[str, Any]]
) -> dict[str, Mapping[str, Any]]:
    """Return the recorded nodes of each platform whose pairs were measured."""
    recorded = {}
    for batch in plan.batches:
        if any(case.probe == PROBE for case in batch.cases):
            recorded[batch.platform] = provenance.get(batch.name, {})
    return recorded


def read_networks(results: Results) -> list[MeasuredNetwork]:
    plan = load_plan(results.plan)
    paths = {batch.name: results.provenance(batch.name) for batch in plan.batches}
    notes = {name: read_json(path) for name, path in paths.items() if path.exists()}
    return make_networks(
        read_table(results.table("summary"), SUMMARY), find_recorded_nodes(plan, notes)
    )


def find_networks(name: str, platform: str | None = None) -> list[MeasuredNetwork]:
    """Return the networks that an experiment has measured, or only that of one platform. `name` may
    also be a platform or its file: the network is then that of the last run that measured it."""
    folder = Path("results")
    results: Results | None = Results.of(folder / name)
    if results and not results.plan.exists():
        with suppress(UserError):  # an unknown name may be an experiment that has not been run
            platform = find_config_file("platform", name).stem
            paths = sorted(folder.glob("*/summary.csv"), key=lambda path: path.stat().st_mtime)
            runs = [Results.of(path.parent) for path in paths]
            runs = [run for run in runs if run.plan.exists()]
            runs = [run for run in runs if platform in find_recorded_nodes(load_plan(run.plan), {})]
            results = runs[-1] if runs else None
    networks = (
        [entry for entry in read_networks(results) if platform in (None, entry.platform)]
        if results
        else []
    )
    if not networks:
        on_platform = f" on platform '{platform}'" if platform else ""
        searched = results.folder if results else folder
        wanted = "wanted a run with `probes: auto` on four nodes or more"
        raise UserError(
            f"found no times between pairs of nodes{on_platform} in {searched}, {wanted}"
        )
    return networks


def _make_network(
    platform: str, rows: pd.DataFrame, record: Mapping[str, Any]
) -> MeasuredNetwork | None:
    settings = []
    for text in rows["settings"]:
        settings.append(dict(word.split("=", 1) for word in text.split() if "=" in word))
    columns = pd.DataFrame(settings, index=rows.index)[list(SETTINGS)].astype(int)
    rows = columns.join(rows[["median", "low", "high", "simulated"]])
    rows["low"] = rows["low"].where(rows["low"] > 0, rows["median"])
    rows["seconds"] = rows["median"] / (2 * rows["trips"])
    small, large = int(rows["bytes"].min()), int(rows["bytes"].max())
    rows_by_size = [
        rows[rows["bytes"] == size].drop_duplicates(["one", "two"]) for size in (small, large)
    ]
    joined = rows_by_size[0].merge(
        rows_by_size[1], on=["one", "two"], suffixes=("", "_large"), how="left"
    )
    if joined["seconds_large"].isna().all() or large == small:
        return None
    pairs = joined[["one", "two"]].to_numpy()
    nodes = int(joined["nodes"].max())
    noise = (
        np.log(joined[["high", "high_large"]].to_numpy() / joined[["low", "low_large"]].to_numpy())
        / 2
    )
    times = joined[["seconds", "seconds_large"]].to_numpy()
    names = record.get("nodes")
    has_names = isinstance(names, Sequence) and len(names) >= nodes
    return MeasuredNetwork(
        platform=platform,
        simulated=bool(joined["simulated"].iloc[0]),
        names=tuple(str(name) for name in names[:nodes])
        if names and has_names
        else tuple(map(str, range(nodes))),
        pairs=pairs,
        latency=times[:, 0],
        bandwidth=large / times[:, 1],
        small=small,
        large=large,
        distances=learn_distances(pairs, times, noise, nodes),
        declared=_read_levels(record.get("levels") or {}, nodes),
        declared_by_slurm=record.get("levels_from") == "slurm",
    )


def _read_levels(levels: object, nodes: int) -> Hierarchy:
    """Return the levels of the first `nodes` nodes, if they cover all of these."""
    declared = Hierarchy.of(levels)
    covered = declared.nodes is not None and declared.nodes >= nodes
    return (
        Hierarchy.of({name: column[:nodes] for name, column in declared.group_lists.items()})
        if covered
        else Hierarchy()
    )


def tabulate_distance_classes(network: MeasuredNetwork) -> pd.DataFrame:
    """Return a row for each distance class: its pairs, and the median and extremes of their latency
    and bandwidth."""
    rows = []
    for number in range(network.distances.classes):
        of_class = network.distances.class_of_pair == number
        row: dict[str, Any] = {"class": number + 1, "pairs": int(of_class.sum())}
        for name, values in (
            ("latency", network.latency[of_class]),
            ("bandwidth", network.bandwidth[of_class]),
        ):
            row |= {
                name: np.nanmedian(values),
                f"{name}_low": np.nanmin(values),
                f"{name}_high": np.nanmax(values),
            }
        rows.append(row)
    return pd.DataFrame(rows)


def format_levels(hierarchy: Hierarchy) -> str:
    """Return the `levels` of a platform's file: the nodes of every group."""
    lines = ["levels:"] if hierarchy.groups else ["levels: {}"]
    for name, column in hierarchy.groups.items():
        groups = [
            f"[{', '.join(format_ranges(np.flatnonzero(column == number)))}]"
            for number in range(int(column.max()) + 1)
        ]
        lines.append(f"  {name}: [{', '.join(groups)}]")
    return "\n".join(lines)
