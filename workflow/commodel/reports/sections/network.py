"""The section on the network: latency and bandwidth between nodes, ordered by group, and slow
nodes. The entry point is `make_sections`."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from commodel.compare.network import MeasuredNetwork, tabulate_distance_classes
from commodel.reports.elements import (
    MICRO,
    AnsweredQuestion,
    Block,
    Matrix,
    Remark,
    Section,
    Table,
    count_with_verb,
    format_count,
    format_digits,
    join_words,
    label_platform,
    make_table,
    shorten_list,
    to_plain_value,
)
from commodel.units import format_bytes

MAX_DRAWN_NODES = 256  # nodes; of more, groups are drawn
MIN_COMPLETE_SHARE = 0.99  # of the pairs
MAX_NAMED_NODES = 4  # nodes that a line names
MIN_NAMED_SLOWDOWN = 1.05  # smallest slowdown against comparable pairs that is named


def make_sections(networks: Sequence[MeasuredNetwork]) -> tuple[list[Section], list[Section]]:
    """Return the section of pictures, if any network has several classes or an anomaly, and that of
    numbers."""
    if not networks:
        return [], []
    worth_drawing = [network for network in networks if _is_worth_drawing(network)]
    blocks: list[Block] = []
    for network in worth_drawing:
        title = f"Distances between the nodes of {_name_platform(network)}"
        blocks.append(AnsweredQuestion(title, tuple(describe_network(network))))
        blocks += draw_matrices(network)
    note = "Half the round trip between two nodes at a time, without other traffic of this run."
    numbers = Section("Distances", note, tuple(tabulate_networks(networks)))
    drawn = Section("Network", f"{note} Colours follow the logarithm.", tuple(blocks))
    return ([drawn] if worth_drawing else []), [numbers]


def _is_worth_drawing(network: MeasuredNetwork) -> bool:
    """Return whether a network has several classes, or an anomaly."""
    distances = network.distances
    disagrees = network.declared_by_slurm and not network.agrees
    heterogeneous = (
        distances.classes > 1 or distances.torus or distances.slow or distances.slow_pairs
    )
    return bool(heterogeneous or disagrees or describe_mixed_classes(network))


def _name_platform(network: MeasuredNetwork) -> str:
    name = to_plain_value(network.platform)
    return label_platform(name, {name} if network.simulated else set())


def describe_network(network: MeasuredNetwork) -> list[str]:
    """Return sentences on a network, slow nodes first: the user may want to replace a cable before
    reading on."""
    distances = network.distances
    lines = []
    for node in distances.slow:
        factors = zip(("latency", "transfer time"), network.slowdown(node), strict=True)
        slowdowns = [
            f"{factor:.1f}× the {quantity}"
            for quantity, factor in factors
            if factor > MIN_NAMED_SLOWDOWN
        ]
        slowdown = join_words(slowdowns or ["slower pairs"])
        lines.append(f"Node {network.names[node]} is slow: {slowdown} of comparable pairs.")
    if distances.slow_pairs:
        names = []
        for pair in distances.slow_pairs:
            one, two = network.pairs[pair]
            names.append(f"{network.names[one]} – {network.names[two]}")
        lines.append(
            f"{count_with_verb(len(names), 'pair', 'is', ' of nodes')} slower than comparable pairs, "
            f"while other pairs of both nodes are not: {shorten_list(names)}."
        )
    if distances.classes > 1:
        lines.append(_describe_classes(network))
    lines.append(_describe_groups(network))
    if network.declared_by_slurm:
        lines.append(_compare_with_slurm(network))
    return lines + describe_mixed_classes(network)


def describe_mixed_classes(network: MeasuredNetwork) -> list[str]:
    """Return a sentence on each class that may have further levels; none if the platform file or
    Slurm names levels."""
    if network.declared.groups:
        return []
    survey_advice = (
        "If nodes were busy, another survey may find levels: delete the platform's file in "
        "networks/. "
    )
    advice = "" if network.simulated else survey_advice
    lines = []
    for entry in network.distances.mixed_classes:
        quantity = ("latency", "transfer time")[entry.widest]
        lines.append(
            f"Pairs of class {entry.number + 1} differ by a factor of {entry.spread[entry.widest]:.2f} in {quantity}, "
            f"repeated measurements of one pair by {entry.noise[entry.widest]:.2f}. This class may have further "
            f"levels, or paths that do not nest (torus, dragonfly). {advice}If you know levels, name them in the "
            "platform file (`levels:`)."
        )
    return lines


def describe_slow_nodes(networks: Sequence[MeasuredNetwork]) -> list[Remark]:
    """Return a remark on each platform with slow nodes."""
    remarks = []
    for network in networks:
        names = [network.names[node] for node in network.distances.slow]
        if names:
            text = f"Slow nodes: {shorten_list(names, MAX_NAMED_NODES)}."
            remarks.append(Remark(network.platform, text))
    return remarks


def _describe_classes(network: MeasuredNetwork) -> str:
    rows = tabulate_distance_classes(network)
    near = rows.iloc[0]
    far = rows.iloc[-1]
    return (
        f"{format_count(len(rows), 'distance class', 'es')}: {_describe_class(near)} between the nearest nodes, "
        f"{_describe_class(far)} between the farthest."
    )


def _describe_class(row: pd.Series) -> str:
    return f"{format_digits(row['latency'] * MICRO)} µs and {format_bandwidth(row['bandwidth'])}"


def format_bandwidth(bandwidth: float) -> str:
    unit, scale = choose_bandwidth_unit(bandwidth)
    return f"{format_digits(bandwidth / scale)} {unit}"


def _describe_groups(network: MeasuredNetwork) -> str:
    learned = network.distances.hierarchy.groups
    declared = network.declared.groups
    levels = network.hierarchy.groups
    torus = network.distances.torus
    if torus and not levels:
        hops = torus.count_hops(*network.pairs.T)
        near, far = (
            float(np.median(network.latency[hops == count])) * MICRO for count in (1, hops.max())
        )
        return (
            f"Nodes form a {torus}: {format_digits(near)} µs to a neighbour, {format_digits(far)} µs over "
            f"{hops.max()} hops."
        )
    if not levels:
        if describe_mixed_classes(network):
            return "No groups of nodes were found."
        return (
            "All other pairs of nodes are equal."
            if network.distances.slow
            else "All pairs of nodes are equal."
        )
    source = "the measured pairs"
    if declared:
        source = "Slurm" if network.declared_by_slurm else "the platform file or Slurm"
    text = f"Nodes are ordered by {join_words(_count_groups(levels))}, from {source}"
    if declared and learned and not network.declared_by_slurm:
        text += (
            "; the measured times agree"
            if network.agrees
            else "; the measured times give other groups"
        )
    return f"{text}."


def _compare_with_slurm(network: MeasuredNetwork) -> str:
    """Return whether the measured times group the nodes as Slurm does."""
    if network.agrees:
        return "Slurm's topology agrees with the measured times."
    declared, learned = (
        ", ".join(_count_groups(levels.groups)) or "none"
        for levels in (network.declared, network.distances.hierarchy)
    )
    return (
        f"Slurm's topology differs from the measured times: {declared} by Slurm, {learned} by the "
        "times."
    )


def _count_groups(levels: Mapping[str, np.ndarray]) -> list[str]:
    """Return the number of groups of each level, such as `4 groups (leaf)`."""
    return [
        f"{format_count(len(np.unique(column)), 'group')} ({name})"
        for name, column in levels.items()
    ]


def choose_bandwidth_unit(largest: float) -> tuple[str, float]:
    return ("GB/s", 1e9) if largest >= 1e9 else ("MB/s", 1e6)


def draw_matrices(network: MeasuredNetwork) -> list[Matrix]:
    unit, scale = choose_bandwidth_unit(float(np.nanmax(network.bandwidth)))
    return [
        _draw_matrix(
            network, f"Latency, {format_bytes(network.small)}", network.latency * MICRO, "µs", False
        ),
        _draw_matrix(
            network,
            f"Bandwidth, {format_bytes(network.large)}",
            network.bandwidth / scale,
            unit,
            True,
        ),
    ]


def _draw_matrix(
    network: MeasuredNetwork, quantity: str, values: np.ndarray, unit: str, high_is_good: bool
) -> Matrix:
    matrix = network.matrix(values)
    order = network.order
    innermost = next(iter(network.hierarchy.groups.values()), np.zeros(len(order), dtype=int))
    labels = [to_plain_value(network.names[node]) for node in order]
    groups = innermost[order]
    slow = network.distances.slow
    matrix = matrix[np.ix_(order, order)]
    note = ""
    if len(order) > MAX_DRAWN_NODES:
        matrix = compute_group_medians(groups, matrix)
        labels = [f"group {number}" for number in range(len(matrix))]
        groups = np.arange(len(labels))
        slow = ()
        note = f"Medians between {format_count(len(labels), 'group')}. "
    marks = frozenset(index for index, node in enumerate(order) if node in slow)
    expected = (
        compute_group_medians(groups, matrix).tolist()
        if len(np.unique(groups)) < len(groups)
        else []
    )
    share = np.isfinite(values).sum() / max(len(order) * (len(order) - 1) // 2, 1)
    if share < MIN_COMPLETE_SHARE:
        note += f"{100 * share:.0f} % of the pairs were measured."
        note += " Pale: the median of the groups." if expected else ""
    platform = _name_platform(network)
    finite = values[np.isfinite(values)]
    slow_names = (
        f"; slow: {join_words([to_plain_value(network.names[node]) for node in slow])}"
        if slow
        else ""
    )
    span = f"{format_digits(finite.min())} to {format_digits(finite.max())} {unit}"
    alt = f"{quantity} between {format_count(len(order), 'node')} of {platform}: {span}{slow_names}"
    return Matrix(
        name=f"{quantity.partition(',')[0]} {platform}",
        title=f"{quantity}: {platform}",
        labels=tuple(labels),
        groups=tuple(groups.tolist()),
        values=tuple(map(tuple, matrix.tolist())),
        unit=unit,
        high_is_good=high_is_good,
        note=note,
        marks=marks,
        alt=alt,
        expected=tuple(map(tuple, expected)),
    )


def compute_group_medians(groups: np.ndarray, matrix: np.ndarray) -> np.ndarray:
    """Return the median of the pairs of every two groups, and within each."""
    numbers = list(dict.fromkeys(groups.tolist()))[:MAX_DRAWN_NODES]
    medians = np.full((len(numbers), len(numbers)), np.nan)
    for row, first in enumerate(numbers):
        for column, second in enumerate(numbers):
            part = matrix[np.ix_(groups == first, groups == second)]
            if np.isfinite(part).any():
                medians[row, column] = np.nanmedian(part)
    return medians


def tabulate_networks(networks: Sequence[MeasuredNetwork]) -> list[Table]:
    rows, nodes = [], []
    for network in networks:
        head = {"platform": network.platform, "simulated": network.simulated}
        for row in tabulate_distance_classes(network).to_dict("records"):
            times = {key: row[key] * MICRO for key in ("latency", "latency_low", "latency_high")}
            rates = {
                key: row[key] / 1e6 for key in ("bandwidth", "bandwidth_low", "bandwidth_high")
            }
            rows.append(head | {"class": row["class"], "pairs": row["pairs"]} | times | rates)
        nodes += [head | row for row in list_node_rows(network)]
    return [
        make_table(
            "Classes",
            "Distance classes",
            rows,
            note="Pairs of slow nodes and single slow pairs are in no class.",
        ),
        make_table("Nodes", "Nodes", nodes, fixed=4),
    ]


def _compute_median(values: np.ndarray) -> float:
    """Return the median of the pairs that have a value; bandwidth is measured of some pairs
    only."""
    finite = values[np.isfinite(values)]
    return float(np.median(finite)) if len(finite) else np.nan


def list_node_rows(network: MeasuredNetwork) -> list[dict]:
    """Return a row for each node: its groups, and the medians of its pairs."""
    rows = []
    for node, name in enumerate(network.names):
        has_node = (network.pairs == node).any(axis=1)
        groups = [f"{level} {column[node]}" for level, column in network.hierarchy.groups.items()]
        rows.append(
            {
                "number": node,
                "node": to_plain_value(name),
                "groups": ", ".join(groups),
                "latency": _compute_median(network.latency[has_node]) * MICRO,
                "bandwidth": _compute_median(network.bandwidth[has_node]) / 1e6,
                "slow": node in network.distances.slow,
            }
        )
    return rows
