"""The network of an allocation as the probe `nodepairs` saw it: times between pairs of nodes, the classes of distance
that they fall into, and which nodes are slower than their like."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from commodel.compare.distances import Distances, learned
from commodel.files.atomic import read_json
from commodel.files.columns import SUMMARY
from commodel.files.results import Results
from commodel.files.tables import read_table
from commodel.hierarchy import Hierarchy
from commodel.plan.file import load_plan
from commodel.records import Plan
from commodel.units import ranges

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
        """What the place says goes before what was learned."""
        return self.said if self.said.groups else self.distances.hierarchy

    @property
    def order(self) -> np.ndarray:
        """The nodes, those of a group beside each other."""
        return np.lexsort([np.arange(len(self.names)), *self.hierarchy.groups.values()])

    def matrix(self, values: np.ndarray) -> np.ndarray:
        """A value of every pair, between all nodes; NaN where nothing was measured."""
        matrix = np.full((len(self.names), len(self.names)), np.nan)
        matrix[tuple(self.pairs.T)] = matrix[tuple(self.pairs.T[::-1])] = values
        return matrix

    def slowdown(self, node: int) -> tuple[float, float]:
        """How many times the latency and the transfer time of a node's pairs are those of pairs as far apart of which
        none is slow."""
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
    """Those of all platforms in a summary of raw samples. `places` says of a platform the names of its `nodes` and its
    `levels`, where anyone knows them."""
    rows = raw[(raw["kind"] == "probe") & (raw["name"] == PROBE) & raw["median"].notna() & (raw["median"] > 0)]
    seen = [_network(str(name), own, places.get(str(name), {})) for name, own in rows.groupby("platform", sort=False)]
    return [network for network in seen if network is not None]


def places(plan: Plan, provenance: Mapping[str, Mapping]) -> dict[str, Mapping[str, object]]:
    """What was noted of the nodes of each platform when its pairs were measured."""
    return {
        batch.platform: provenance.get(batch.name, {})
        for batch in plan.batches
        if any(case.probe == PROBE for case in batch.cases)
    }


def of_results(results: Results) -> list[Network]:
    """Those that a folder of results knows."""
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
        learned(pairs, times, noise, nodes),
        _levels(place.get("levels") or {}, nodes),
    )


def _levels(levels: object, nodes: int) -> Hierarchy:
    """Of the first nodes, where it knows so many. Levels of older notes are in the order of the alphabet, but the
    innermost one has most groups."""
    if isinstance(levels, Mapping) and all(isinstance(column, list) for column in levels.values()):
        levels = dict(sorted(levels.items(), key=lambda level: -len(set(map(str, level[1])))))
    whole = Hierarchy.of(levels)
    covered = whole.nodes is not None and whole.nodes >= nodes
    return Hierarchy.of({name: column[:nodes] for name, column in whole.settings.items()}) if covered else Hierarchy()


def classes(network: Network) -> pd.DataFrame:
    """One row a class: how many pairs it has, the median and the extremes of their latency and bandwidth."""
    rows = []
    for number in range(network.distances.classes):
        of_class = network.distances.of == number
        row: dict[str, object] = {"class": number + 1, "pairs": int(of_class.sum())}
        for name, values in (("latency", network.latency[of_class]), ("bandwidth", network.bandwidth[of_class])):
            row |= {name: np.median(values), f"{name}_low": values.min(), f"{name}_high": values.max()}
        rows.append(row)
    return pd.DataFrame(rows)


def written(hierarchy: Hierarchy) -> str:
    """The `levels` of a platform's file: the nodes of every group."""
    lines = ["levels:"] if hierarchy.groups else ["levels: {}"]
    for name, column in hierarchy.groups.items():
        groups = [f"[{', '.join(ranges(np.flatnonzero(column == number)))}]" for number in range(int(column.max()) + 1)]
        lines.append(f"  {name}: [{', '.join(groups)}]")
    return "\n".join(lines)
