"""The network of an allocation, learned from probe `nodepairs`: distance classes, groups of nodes and slow nodes.

`learn_distances` sorts pairs of nodes into classes by the logarithms of their latency and transfer time; `networks`
returns what a summary of raw samples says of each platform.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from commodel.files.atomic import read_json
from commodel.files.results_folder import Results
from commodel.files.tables import SUMMARY, read_table
from commodel.hierarchy import MOST_LEVELS, Hierarchy
from commodel.plan.planning import load_plan
from commodel.records import Plan
from commodel.units import ranges

APART = float(np.log(1.1))  # what is closer than that is one class, however quiet the machine is
NOISES = 3.0  # of the medians' half intervals, between two classes
GAP = 2.0  # times as far from each other as what lies within them
SLOW_SHARE = 0.25  # of the nodes: slow ones are no more than that
FEWEST_NODES = 4  # nodes: of three nobody can say which is the slow one
SPREAD = (5, 95)  # percentiles of a class's times, between which they may differ
STRAY = 0.1  # of the pairs of a level's groups that may be farther apart than their group says
NAMES = ("leaf", "group")  # of the two innermost levels


@dataclass(frozen=True, eq=False)
class Distances:
    """Distance classes of pairs: `of[pair]` is the class, 0 the nearest; -1 if a node or only this pair is slow."""

    of: np.ndarray
    classes: int
    hierarchy: Hierarchy  # groups of nodes that the classes make, the nearest innermost
    slow: tuple[int, ...]  # nodes all of whose pairs are slower than their like
    odd: tuple[int, ...]  # pairs that are alone so slow
    nested: bool = True  # whether groups explain all classes; on a torus they do not
    mixed_classes: tuple["MixedClass", ...] = ()  # whose pairs differ by more than repeated measurements


@dataclass(frozen=True)
class MixedClass:
    """A distance class that may hold further levels. The factors are between the percentiles SPREAD of its pairs'
    times, of a small message and of a large one, and between the ends of a median's confidence interval."""

    number: int
    spread: tuple[float, float]
    noise: tuple[float, float]

    @property
    def widest(self) -> int:
        """0 if latency differs most between the pairs, 1 if transfer time does."""
        return int(self.spread[1] > self.spread[0])


def learn_distances(pairs: np.ndarray, times: np.ndarray, noise: np.ndarray, nodes: int) -> Distances:
    """Return the distance classes of pairs of nodes. `pairs` (pairs, 2) are node numbers; `times` (pairs, 2) those of a
    small and a large message; `noise` (pairs, 2) half the intervals of their logarithms."""
    pairs, logs = np.asarray(pairs), np.log(times)
    clusters = _clusters(logs / np.maximum(APART, NOISES * np.median(noise, axis=0)))
    slow, clusters = _without_slow(pairs, logs, clusters, nodes)
    odd = _find_single_pairs(clusters, logs, nodes)
    clusters[odd] = -1
    numbers = np.unique(clusters[clusters >= 0])
    order = numbers[np.argsort([np.median(logs[clusters == number], axis=0).sum() for number in numbers])]
    of = np.full(len(clusters), -1)  # from the nearest class on
    for place, number in enumerate(order):
        of[clusters == number] = place
    near = of.copy()
    for node in slow:  # it is in the group of the node that it reaches soonest
        touching = np.flatnonzero(_touching(pairs, node))
        near[touching[logs[touching].sum(axis=1).argmin()]] = 0
    hierarchy, nested = _groups(pairs, near, len(order), nodes)
    mixed = _find_mixed_classes(logs, np.median(noise, axis=0), of, len(order))
    return Distances(of, len(order), hierarchy, slow, tuple(np.flatnonzero(odd).tolist()), nested, mixed)


def _find_mixed_classes(logs: np.ndarray, noise: np.ndarray, of: np.ndarray, classes: int) -> tuple[MixedClass, ...]:
    """Return the classes whose times spread by more than two classes have to be apart. Within one level all pairs take
    the same time but for noise, so such a class holds several levels, or paths that differ from pair to pair."""
    mixed = []
    for number in range(classes):
        own = logs[of == number]
        low, high = np.percentile(own, SPREAD, axis=0)
        if len(own) >= FEWEST_NODES and (high - low > np.maximum(APART, NOISES * noise)).any():
            spread, repeated = np.exp(high - low).tolist(), np.exp(2 * noise).tolist()
            mixed.append(MixedClass(number, tuple(spread), tuple(repeated)))
    return tuple(mixed)


def _clusters(points: np.ndarray) -> np.ndarray:
    """Return the number of the cluster of every point. There are as many clusters as are separated by a gap of more
    than 1 and at least GAP times the largest distance within any of them."""
    if len(points) < 2:
        return np.zeros(len(points), dtype=int)
    from scipy.cluster.hierarchy import fcluster, linkage  # here, because it is slow to load and few reports ask

    tree = linkage(points, "average", metric="chebyshev")
    joined = np.maximum.accumulate(tree[:, 2])[::-1]  # of the step that leaves 1, 2, 3, … clusters
    within = np.append(joined[1:], 0.0)
    parted = np.flatnonzero((joined > 1) & (joined >= GAP * within))
    count = int(parted[parted <= MOST_LEVELS].max(initial=-1)) + 2
    return fcluster(tree, count, "maxclust") - 1


def _without_slow(
    pairs: np.ndarray, logs: np.ndarray, clusters: np.ndarray, nodes: int
) -> tuple[tuple[int, ...], np.ndarray]:
    """Return slow nodes, and the clusters with -1 for their pairs. A slow node forms clusters of its own: a few nodes
    are in all pairs of a cluster, and have no pair in any other."""
    clusters = clusters.copy()
    suspects: dict[int, set[int]] = {}
    for number in np.unique(clusters):
        cover = _cover(pairs[clusters == number], max(1, int(SLOW_SHARE * nodes)))
        others = logs[clusters != number]
        slower = len(others) and (np.median(logs[clusters == number], axis=0) > np.median(others, axis=0) + APART).any()
        if cover and slower:
            suspects[int(number)] = cover
    suspect = np.isin(clusters, list(suspects))
    blamed = {
        node
        for cover in suspects.values()
        for node in cover
        if suspect[_touching(pairs, node)].all() and nodes >= FEWEST_NODES
    }
    if not blamed or len(blamed) > max(1, int(SLOW_SHARE * nodes)):
        return (), clusters
    touched = np.isin(pairs, list(blamed)).any(axis=1)
    clusters[touched] = -1
    return tuple(sorted(blamed)), clusters


def _touching(pairs: np.ndarray, node: int) -> np.ndarray:
    return (pairs == node).any(axis=1)


def _cover(pairs: np.ndarray, most: int) -> set[int]:
    """Return nodes of which one is in every pair, found greedily; none if that takes more than `most`."""
    cover: set[int] = set()
    while len(pairs):
        if len(cover) == most:
            return set()
        node = int(np.bincount(pairs.ravel()).argmax())
        cover.add(node)
        pairs = pairs[~_touching(pairs, node)]
    return cover


def _find_single_pairs(clusters: np.ndarray, logs: np.ndarray, nodes: int) -> np.ndarray:
    """Return which pairs are in a slow cluster of so few that it is no class: a class has pairs of most nodes."""
    single = np.zeros(len(clusters), dtype=bool)
    kept = clusters >= 0
    for number in np.unique(clusters[kept]):
        in_cluster = clusters == number
        slower = np.median(logs[in_cluster], axis=0) > np.median(logs[kept], axis=0) + APART
        few = in_cluster.sum() < max(2.0, SLOW_SHARE * nodes)
        single |= in_cluster & few & slower.any() & (kept.sum() > FEWEST_NODES)
    return single


def _groups(pairs: np.ndarray, of: np.ndarray, classes: int, nodes: int) -> tuple[Hierarchy, bool]:
    """Return the levels: nodes that are joined by pairs of a class, or of a nearer one, form a group of its level."""
    from scipy.sparse import coo_array  # slow to load, too
    from scipy.sparse.csgraph import connected_components

    levels: dict[str, list[int]] = {}
    for number in range(min(classes - 1, MOST_LEVELS)):
        near = pairs[(of >= 0) & (of <= number)]
        count, group = connected_components(
            coo_array((np.ones(len(near)), near.T), shape=(nodes, nodes)), directed=False
        )
        inside = (of >= 0) & (group[pairs[:, 0]] == group[pairs[:, 1]])
        if count == 1 or (of[inside] > number).mean() > STRAY:
            return Hierarchy.of(levels), False
        levels[NAMES[number] if number < len(NAMES) else f"level-{number}"] = group.tolist()
    return Hierarchy.of(levels), True


PROBE = "nodepairs"
SETTINGS = ("one", "two", "nodes", "trips", "bytes")


@dataclass(frozen=True, eq=False)
class Network:
    platform: str
    simulated: bool
    names: tuple[str, ...]  # of the nodes; their numbers where nobody knows what they are called
    pairs: np.ndarray  # (pairs, 2) node numbers
    latency: np.ndarray  # seconds, half a round trip of the small message
    bandwidth: np.ndarray  # bytes a second, of the large one
    small: int  # bytes of the message that latency is of
    large: int  # bytes of that which bandwidth is of
    distances: Distances
    said: Hierarchy  # what the place says of itself, where it does

    @property
    def hierarchy(self) -> Hierarchy:
        """The declared levels if there are any, else the learned ones."""
        return self.said if self.said.groups else self.distances.hierarchy

    @property
    def order(self) -> np.ndarray:
        """The nodes, sorted by group."""
        return np.lexsort([np.arange(len(self.names)), *self.hierarchy.groups.values()])

    def matrix(self, values: np.ndarray) -> np.ndarray:
        """Return a value for every pair of nodes; NaN where it was not measured."""
        matrix = np.full((len(self.names), len(self.names)), np.nan)
        matrix[tuple(self.pairs.T)] = matrix[tuple(self.pairs.T[::-1])] = values
        return matrix

    def slowdown(self, node: int) -> tuple[float, float]:
        """Return the ratios of latency and transfer time of a node's pairs to those of pairs at equal distance without
        slow nodes."""
        at_node = (self.pairs == node).any(axis=1)
        like = ~np.isin(self.pairs, self.distances.slow).any(axis=1)
        apart = self.distances.hierarchy.distance(*self.pairs.T)
        factors = []
        for distance in np.unique(apart[at_node]):
            usual = like & (apart == distance)
            usual = usual if usual.any() else like
            at_distance = at_node & (apart == distance)
            latency = self.latency[at_distance] / np.median(self.latency[usual])
            factors.append(np.stack([latency, np.median(self.bandwidth[usual]) / self.bandwidth[at_distance]]))
        latency, transfer = np.median(np.concatenate(factors, axis=1), axis=1)
        return float(latency), float(transfer)


def networks(raw: pd.DataFrame, places: Mapping[str, Mapping[str, object]]) -> list[Network]:
    """Return the networks of all platforms in a summary of raw samples. `places` has the names of the `nodes` and the
    `levels` of each platform, if known."""
    rows = raw[(raw["kind"] == "probe") & (raw["name"] == PROBE) & (raw["median"] > 0)]
    seen = (_network(str(name), own, places.get(str(name), {})) for name, own in rows.groupby("platform", sort=False))
    return [network for network in seen if network is not None]


def places(plan: Plan, provenance: Mapping[str, Mapping]) -> dict[str, Mapping[str, object]]:
    """Return the recorded nodes of each platform whose pairs were measured."""
    return {
        batch.platform: provenance.get(batch.name, {})
        for batch in plan.batches
        if any(case.probe == PROBE for case in batch.cases)
    }


def read_networks(results: Results) -> list[Network]:
    plan = load_plan(results.plan)
    notes = {batch.name: results.provenance(batch.name) for batch in plan.batches}
    notes = {name: read_json(path) for name, path in notes.items() if path.exists()}
    return networks(read_table(results.table("summary"), SUMMARY), places(plan, notes))


def _network(platform: str, rows: pd.DataFrame, place: Mapping[str, object]) -> Network | None:
    settings = [dict(word.split("=", 1) for word in text.split() if "=" in word) for text in rows["settings"]]
    about = pd.DataFrame(settings, index=rows.index)[list(SETTINGS)].astype(int)
    rows = about.join(rows[["median", "low", "high", "simulated"]])
    rows["low"] = rows["low"].where(rows["low"] > 0, rows["median"])
    rows["seconds"] = rows["median"] / (2 * rows["trips"])
    small, large = int(rows["bytes"].min()), int(rows["bytes"].max())
    sides = [rows[rows["bytes"] == size].drop_duplicates(["one", "two"]) for size in (small, large)]
    both = sides[0].merge(sides[1], on=["one", "two"], suffixes=("", "_large"))
    if both.empty or large == small:
        return None
    pairs, nodes = both[["one", "two"]].to_numpy(), int(both["nodes"].max())
    noise = np.log(both[["high", "high_large"]].to_numpy() / both[["low", "low_large"]].to_numpy()) / 2
    times = both[["seconds", "seconds_large"]].to_numpy()
    names = place.get("nodes")
    named = isinstance(names, Sequence) and len(names) >= nodes
    return Network(
        platform,
        bool(both["simulated"].iloc[0]),
        tuple(str(name) for name in names[:nodes]) if named else tuple(map(str, range(nodes))),
        pairs,
        times[:, 0],
        large / times[:, 1],
        small,
        large,
        learn_distances(pairs, times, noise, nodes),
        _levels(place.get("levels") or {}, nodes),
    )


def _levels(levels: object, nodes: int) -> Hierarchy:
    """Return the levels of the first nodes, if they cover so many. Older records sort levels by name; the innermost
    level has most groups."""
    if isinstance(levels, Mapping) and all(isinstance(column, list) for column in levels.values()):
        levels = dict(sorted(levels.items(), key=lambda level: -len(set(map(str, level[1])))))
    whole = Hierarchy.of(levels)
    covered = whole.nodes is not None and whole.nodes >= nodes
    return Hierarchy.of({name: column[:nodes] for name, column in whole.settings.items()}) if covered else Hierarchy()


def classes(network: Network) -> pd.DataFrame:
    """Return one row for each class: its pairs, and the median and extremes of their latency and bandwidth."""
    rows = []
    for number in range(network.distances.classes):
        of_class = network.distances.of == number
        row: dict[str, object] = {"class": number + 1, "pairs": int(of_class.sum())}
        for name, values in (("latency", network.latency[of_class]), ("bandwidth", network.bandwidth[of_class])):
            row |= {name: np.median(values), f"{name}_low": values.min(), f"{name}_high": values.max()}
        rows.append(row)
    return pd.DataFrame(rows)


def format_levels(hierarchy: Hierarchy) -> str:
    """Return the `levels` of a platform's file: the nodes of every group."""
    lines = ["levels:"] if hierarchy.groups else ["levels: {}"]
    for name, column in hierarchy.groups.items():
        groups = [f"[{', '.join(ranges(np.flatnonzero(column == number)))}]" for number in range(int(column.max()) + 1)]
        lines.append(f"  {name}: [{', '.join(groups)}]")
    return "\n".join(lines)
