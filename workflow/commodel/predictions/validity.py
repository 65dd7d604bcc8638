"""Validity of a prediction: what limits each predicted time, and the checks that set it (single
messages, contention, heterogeneous nodes, range of the fit).

`assess_validity` returns the validity of each size. It combines four checks:

- single messages: the ratio of measured round trips to their predictions, at every size. A
  prediction interval from residuals is shifted by that ratio;
- contention: probe `mixture`, to which no model is fitted, shows which concurrent messages a model
  mispredicts;
- heterogeneous nodes: pairs of one distance class, or of several node types, whose round trips
  differ although the model predicts one time for all;
- range: beyond the probed sizes and ranks the residual is modelled as a random walk. Each doubling
  of the message above the range (or of what is combined or copied at once), each halving below it,
  and each doubling of the ranks if the model counts them, adds the error at probe cases that were
  left out of the fit. Messages of up to MIN_COUNTED_BYTES bytes count as one size.

A `Validity` is a kind and a reason. Tables have its text, which `Validity.parse` reads back.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from commodel.hierarchy import Hierarchy
from commodel.models import Array
from commodel.models.evaluation.values import rank_types
from commodel.models.families import Family
from commodel.models.keys import Pair
from commodel.models.probes.mixture import FAN_RECEIVERS, REPEATED_MESSAGES
from commodel.parameters import DATA_SHEET_SOURCE, MEMORY_BANDWIDTH, ParameterSet
from commodel.patterns.repeated import CompactSchedule, Rounds, sample_rounds
from commodel.patterns.schedule import Schedule
from commodel.predictions.model import Model
from commodel.predictions.sockets import (
    MESSAGE_BANDWIDTH,
    find_copy_rate,
    find_memory_seconds,
)
from commodel.stats import NORMAL_QUANTILE
from commodel.units import format_bytes

if TYPE_CHECKING:
    import pandas as pd

# ratio of measured and predicted time of single messages, or its inverse, above which the validity
# is `poor fit`
POOR_FIT_FACTOR = 1.5
MIN_BYTES = 1  # bytes; an empty message counts as this size
MIN_COUNTED_BYTES = 64  # bytes; shorter messages count as this size
MAX_CHECKED_MESSAGES = 1 << 20  # messages of different rounds whose pairs of ranks are checked


def exceeds_factor(ratio: float, factor: float) -> bool:
    """Return whether a ratio of times exceeds the factor, either way."""
    return max(ratio, 1 / ratio) > factor


def describe_ratio(ratio: float) -> str:
    return (
        f"{ratio:.1f} times as long as predicted"
        if ratio > 1
        else f"only {ratio:.2f} of the predicted time"
    )


def compute_single_message_ratios(parameters: ParameterSet, pattern: Schedule) -> Array:
    """Return the single-message ratio at each size of a stack: measured over predicted time of its
    messages, each sent alone. Without a probe, the ratio is 1."""
    by_class = parameters.settings.get("single_messages")
    if not by_class or not pattern.messages:
        return np.ones(pattern.sizes)
    measured = np.zeros(pattern.sizes)
    predicted = np.zeros(pattern.sizes)
    levels = Hierarchy.of(parameters.settings.get("levels", {}))
    for count, part in sample_rounds(pattern):
        distance = levels.distance(part.node[part.src], part.node[part.dst])
        bytes = part.bytes.reshape(pattern.sizes, -1)
        for number, name in enumerate(levels.names):
            of_class = distance == number
            if name in by_class and of_class.any():
                sizes = np.maximum(bytes[:, of_class], MIN_BYTES)
                measured += count * _sum_interpolated(sizes, by_class[name], "measured")
                predicted += count * _sum_interpolated(sizes, by_class[name], "predicted")
    return np.divide(measured, predicted, out=np.ones(pattern.sizes), where=predicted > 0)


def _list_different_rounds(pattern: CompactSchedule) -> Iterator[Schedule] | None:
    """Return schedules that have all pairs of ranks between which messages are; None if these are
    too many."""
    counts = {
        part: min(part.count, part.shift) if part.periodic else part.count
        for part in pattern.parts
        if isinstance(part, Rounds)
    }
    if pattern.ranks * sum(counts.values()) > MAX_CHECKED_MESSAGES:
        return None
    return _list_rounds(pattern, counts)


def _list_rounds(pattern: CompactSchedule, counts: Mapping[Rounds, int]) -> Iterator[Schedule]:
    """Yield the parts of a pattern, of rounds as many as the counts."""
    for part in pattern.parts:
        if not part.messages:
            continue
        if isinstance(part, Rounds):
            yield from (part.round(number, pattern.node) for number in range(counts[part]))
        else:
            yield part


def _sum_interpolated(sizes: Array, samples: Mapping[str, list[float]], key: str) -> Array:
    """Return the sum of the messages' times at each size of a stack, interpolated linearly in
    logarithms of size and time."""
    sample_sizes = np.log(np.maximum(samples["bytes"], MIN_BYTES))
    return np.exp(np.interp(np.log(sizes), sample_sizes, np.log(samples[key]))).sum(axis=-1)


class ValidityKind(Enum):
    """The kinds of validity, each with its text in tables. Some kinds have a cause, which the
    explanation includes."""

    VALID = "valid"
    EXTRAPOLATED = "extrapolated"
    SIZE = "size not modelled"  # the model ignores message size: its weight in a choice is 0
    NOT_PROBED = "not probed"  # no probe had ranks at this distance
    PLACEMENT = "placement not modelled"  # the model predicts one time for ranks near and far
    # no model can distinguish them
    UNNAMED_LEVELS = "placement not modelled", "the platform file names no levels"
    # measured single messages differ from their predictions by more than POOR_FIT_FACTOR
    POOR_FIT = "poor fit"
    CONTENTION = "contention not modelled"  # messages share links that are not in the model
    OVERLAP = "overlap not modelled"  # ports wait for latency during which a real port is free
    DATA_SHEETS = DATA_SHEET_SOURCE
    MEMORY = "limited by memory"  # the measured bandwidth of a node's memory determines the time
    NO_PREDICTION = "no prediction"
    NO_FIT = "no fit"
    LIBRARY_DEFAULT = "library default"  # the MPI library's own selection is measured only
    MEASURED_ONLY = "measured only"  # no schedule describes the pattern
    OF_MODEL = ""  # a limit that the model itself reports: the reason is the whole text

    def __init__(self, label: str, cause: str = "") -> None:
        self.label = label
        self.cause = cause


@dataclass(frozen=True, slots=True)
class Validity:
    """The validity of one prediction: its kind and the reason."""

    kind: ValidityKind = ValidityKind.VALID
    reason: str = ""

    @property
    def label(self) -> str:
        """The text without the reason."""
        return self.kind.label or self.reason.partition(":")[0]

    @property
    def explanation(self) -> str:
        """The reason with the cause that the kind has."""
        return f"{self.reason}, and {self.kind.cause}" if self.kind.cause else self.reason

    @property
    def text(self) -> str:
        """The text in tables: the label, and the explanation after a colon."""
        return ": ".join(filter(None, (self.kind.label, self.explanation)))

    @property
    def has_weight(self) -> bool:
        """Whether the prediction has a weight in a choice; an extrapolated one does."""
        return self.kind is not ValidityKind.SIZE

    def is_of(self, kind: ValidityKind) -> bool:
        """Return whether the validity has this kind, with any reason. UNNAMED_LEVELS counts as
        PLACEMENT, too."""
        return self.kind is kind or (
            self.kind is ValidityKind.UNNAMED_LEVELS and kind is ValidityKind.PLACEMENT
        )

    @classmethod
    @lru_cache(maxsize=4096)
    def parse(cls, text: str) -> Validity:
        """Return the validity with this text of a table or a model. An empty text is `valid`."""
        label, _, reason = text.partition(": ")
        unnamed = ValidityKind.UNNAMED_LEVELS
        ending = f", and {unnamed.cause}"
        if label == unnamed.label and reason.endswith(ending):
            return cls(unnamed, reason.removesuffix(ending))
        kinds = {kind.label: kind for kind in ValidityKind if kind is not unnamed}
        if not text:
            return VALID
        return cls(kinds[label], reason) if label in kinds else cls(ValidityKind.OF_MODEL, text)


VALID = Validity()


def are_of(kind: ValidityKind, texts: pd.Series) -> pd.Series:
    """Return which predictions of a table are of a kind."""
    return texts.map(lambda text: Validity.parse(text).is_of(kind)).astype(bool)


def have_weight(texts: pd.Series) -> pd.Series:
    """Return which predictions of a table have a weight in a choice."""
    return texts.map(lambda text: Validity.parse(text).has_weight).astype(bool)


def select_reported_check(*checks: Validity) -> Validity:
    """Return the failed check that is reported: the one that sets the weight to 0 if there is one,
    else the first."""
    failed = [check for check in checks if check.kind is not ValidityKind.VALID]
    return next((check for check in failed if not check.has_weight), failed[0] if failed else VALID)


# cases of probe `mixture` and keys of the setting `contention`: which messages they send
CONTENTION_CASES = {
    "rounds": "passed on around all nodes",
    "row": "in a row to one receiver",
    "ranks": "of all ranks at once",
    "nodes": "of all nodes at once",
    "fan": "between one node and several others",
}


def find_contention(
    parameters: ParameterSet, pattern: Schedule, waves: float = 1
) -> list[Validity]:
    """Return for each size of a stack whether the pattern has concurrent messages that the model
    mispredicts. In a stream of several waves, all messages of a rank count as messages in a row."""
    checks = [VALID] * pattern.sizes
    mispredicted: Mapping[str, Mapping[str, float]] | None = parameters.settings.get("contention")
    if not mispredicted or not pattern.messages:
        return checks
    order = list(CONTENTION_CASES)
    for name in sorted(mispredicted, key=lambda name: (order.index(name.partition(".")[0]), name)):
        case, *types_of_pair = name.split(".")
        ratio = float(mispredicted[name]["ratio"])
        from_bytes = float(mispredicted[name]["from_bytes"])
        size = f", from {format_bytes(int(from_bytes))} on," if from_bytes else ""
        types_text = " between {} and {} nodes".format(*types_of_pair) if types_of_pair else ""
        excess = (
            f"up to {describe_ratio(ratio)}"
            if ratio > 1
            else f"as little as {ratio:.2f} of the predicted time"
        )
        reason = f"messages {CONTENTION_CASES[case]}{types_text}{size} took {excess}"
        if not isinstance(pattern, CompactSchedule):
            types = parameters.settings.get("types") or {}
            occurring = _find_occurrences(pattern, case, from_bytes, waves, types_of_pair, types)
        elif types_of_pair:
            occurring = [False] * pattern.sizes
        else:
            occurs_in_rounds = _find_in_rounds(pattern, case, from_bytes, waves)
            occurring = np.broadcast_to(occurs_in_rounds, pattern.sizes).tolist()
        check = Validity(ValidityKind.CONTENTION, reason)
        checks = [
            check if occurs and previous == VALID else previous
            for previous, occurs in zip(checks, occurring, strict=True)
        ]
    return checks


def _find_occurrences(
    pattern: Schedule,
    case: str,
    from_bytes: float,
    waves: float,
    ends: Sequence[str],
    types: Mapping[str, int],
) -> list[bool]:
    """Return for each size whether a pattern has the concurrent messages of a case, with at least
    `from_bytes` bytes. Messages in a row or in rounds need as many from one rank to another as the
    probe has. A fan needs half as many from, or to, one rank in a step. Other cases need messages
    of two nodes in a step. `ends`: the node types of sender and receiver."""
    src, dst = pattern.node[pattern.src], pattern.node[pattern.dst]
    forward = backward = src != dst
    if ends:
        if not types.keys() >= {*ends}:
            return [False] * pattern.sizes
        of_rank = np.array(list(types))[rank_types(pattern.node, types)]
        first, second = (of_rank == end for end in ends)
        forward, backward = (
            forward & first[pattern.src] & second[pattern.dst],
            forward & second[pattern.src] & first[pattern.dst],
        )
    large = np.atleast_2d(pattern.bytes).reshape(pattern.sizes, -1) >= from_bytes
    if case == "row" and waves != 1:
        return (forward & large).any(axis=-1).tolist()
    if case == "fan":
        sender_in_step = pattern.step * pattern.ranks + pattern.src
        receiver_in_step = pattern.step * pattern.ranks + pattern.dst
        occurs = []
        for is_large in large:
            most_sent = _count_most(sender_in_step[forward & is_large])
            most_received = _count_most(receiver_in_step[backward & is_large])
            occurs.append(2 * max(most_sent, most_received) >= FAN_RECEIVERS)
        return occurs
    if case in ("nodes", "ranks"):
        if case == "ranks" and np.bincount(pattern.node).max() <= 1:
            return [False] * pattern.sizes
        occurs = []
        for is_large in forward & large:
            step = pattern.step[is_large]
            occurs.append(_shares_step(step, src[is_large]) and _shares_step(step, dst[is_large]))
        return occurs
    if case == "row" and not ends:  # messages that a rank sends before it receives any
        received = np.full(pattern.ranks, pattern.last_step + 1)
        np.minimum.at(received, pattern.dst, pattern.dst_wait)
        forward = forward & (pattern.step < received[pattern.src])
    pair = pattern.src * pattern.ranks + pattern.dst
    return [_count_most(pair[forward & is_large]) >= REPEATED_MESSAGES for is_large in large]


def _find_in_rounds(
    pattern: CompactSchedule, case: str, from_bytes: float, waves: float
) -> bool | np.ndarray:
    """Return the same as `_find_occurrences` for repeated rounds, in which each rank sends and
    receives one message."""
    if case == "fan":
        return False
    if case == "rounds":
        return _repeats_messages(pattern, from_bytes)
    if case == "row" and waves == 1:
        parts = [part for part in pattern.parts if not isinstance(part, Rounds) and part.messages]
        return any(any(_find_occurrences(part, case, from_bytes, waves, (), {})) for part in parts)
    occurs = len(np.unique(pattern.node)) > 1
    if case != "row":
        occurs = occurs and (case == "nodes" or np.bincount(pattern.node).max() > 1)
    return occurs & (pattern.extremes()[1] >= from_bytes)


def _repeats_messages(pattern: CompactSchedule, from_bytes: float) -> bool:
    """Return whether a rank sends as many messages to the same rank of another node, in all parts,
    as the probe."""
    pairs: np.ndarray = np.empty(0, dtype=int)
    counts: np.ndarray = np.empty(0)
    for part in pattern.parts:
        for src, dst, count in _list_repeated_messages(part, from_bytes):
            new_pairs = (src * pattern.ranks + dst)[pattern.node[src] != pattern.node[dst]]
            all_counts = np.concatenate([counts, np.full(len(new_pairs), count)])
            pairs, number = np.unique(np.concatenate([pairs, new_pairs]), return_inverse=True)
            counts = np.bincount(number, all_counts)
            if counts.max(initial=0) >= REPEATED_MESSAGES:
                return True
    return False


def _list_repeated_messages(
    part: Schedule | Rounds, from_bytes: float
) -> Iterator[tuple[np.ndarray, np.ndarray, int]]:
    """Yield senders and receivers of messages in a part of a compact schedule, and how often these
    are sent. Rounds count if their largest message has `from_bytes` bytes. Rounds whose receivers
    do not repeat are left out."""
    if not isinstance(part, Rounds):
        is_large = part.bytes >= from_bytes
        yield part.src[is_large], part.dst[is_large], 1
    elif part.periodic and part.sizes.max() >= from_bytes:
        ranks = np.arange(part.ranks)
        for number in range(min(part.shift, part.count)):
            yield ranks, part.receiver(number, ranks), len(range(number, part.count, part.shift))


def _count_most(labels: np.ndarray) -> int:
    """Return how many elements have the most frequent label."""
    return int(np.unique(labels, return_counts=True)[1].max(initial=0))


def _shares_step(step: np.ndarray, node: np.ndarray) -> bool:
    """Return whether messages of different nodes share a step."""
    of_step = np.unique(np.stack([step, node]), axis=1)[0]
    return len(of_step) > len(np.unique(of_step))


WORK_VERBS = {"reduce": "combined", "copy": "copied"}


def assess_validity(
    model: Model, parameters: ParameterSet, pattern: Schedule, waves: float = 1
) -> list[Validity]:
    """Return the validity at each size of a stack: `valid`, or the failed check that is reported. A
    model that ignores the size has no weight in a choice, so that check is reported first."""
    placement = _check_placement(model.family, parameters, pattern) if pattern.messages else VALID
    of_model = [placement] * pattern.sizes
    if placement == VALID and model.family.limits:
        texts = np.broadcast_to(model.family.limits(pattern, model.values), pattern.sizes).tolist()
        of_model = [Validity.parse(text) for text in texts]
    checks_by_size = zip(
        of_model,
        find_contention(parameters, pattern, waves),
        map(_check_fit, compute_single_message_ratios(parameters, pattern).tolist()),
        _check_range(model.family, parameters, pattern),
        strict=True,
    )
    return [select_reported_check(*checks) for checks in checks_by_size]


# rate of all messages within a node relative to that of one, from which it is remarked
MIN_RATE_RATIO = 1.5
ROUNDING = 1e-9  # relative


def add_memory_check(
    parameters: ParameterSet, pattern: Schedule, seconds: Array, validity: Sequence[Validity]
) -> list[Validity]:
    """Return the validity at each size of a stack after the check of the memory of a node. For a
    data sheet it is reported first, since it says more; else any other failed check is."""
    of_memory = check_memory(parameters, pattern, seconds)
    if DATA_SHEET_SOURCE in parameters.provenance:
        return list(map(select_reported_check, of_memory, validity))
    return list(map(select_reported_check, validity, of_memory))


def check_memory(parameters: ParameterSet, pattern: Schedule, seconds: Array) -> list[Validity]:
    """Return, for each size of a stack, a remark if the memory of a node determines the predicted
    time, or if its bandwidth is unknown and its ranks copy faster than one message does."""
    settings = parameters.settings
    is_measured = DATA_SHEET_SOURCE not in parameters.provenance
    kind = ValidityKind.MEMORY if is_measured else ValidityKind.DATA_SHEETS
    reasons = [""] * pattern.sizes
    if MEMORY_BANDWIDTH in settings and pattern.messages:
        least = find_memory_seconds(pattern, settings)
        for number in np.flatnonzero((least > 0) & (seconds <= least * (1 + ROUNDING))):
            reasons[number] = "as long as the memory of a node takes to copy all messages within it"
    elif MESSAGE_BANDWIDTH in settings and pattern.messages:
        rate = find_copy_rate(pattern, seconds)
        for number in np.flatnonzero(rate > MIN_RATE_RATIO * settings[MESSAGE_BANDWIDTH]):
            copied = f"{rate[number] / 1e9:,.0f} GB/s"
            reasons[number] = (
                f"ranks of a node copy {copied} together, unless memory.total limits it"
            )
    return [Validity(kind, reason) if reason else VALID for reason in reasons]


def _check_fit(ratio: float) -> Validity:
    if not exceeds_factor(ratio, POOR_FIT_FACTOR):
        return VALID
    return Validity(ValidityKind.POOR_FIT, f"single messages take {describe_ratio(ratio)}")


def _find_classes(parameters: ParameterSet, pattern: Schedule) -> tuple[Hierarchy, list[int]]:
    """Return the probed levels of the network, and the distance classes of the messages. If there
    are too many different rounds, the classes are those of all pairs of ranks."""
    levels = Hierarchy.of(parameters.settings.get("levels", {}))
    rounds = _list_different_rounds(pattern) if isinstance(pattern, CompactSchedule) else [pattern]
    if rounds is None:
        return levels, levels.classes(pattern.node)
    classes: set[int] = set()
    for part in rounds:
        classes |= set(levels.apart(pattern.node, part.src, part.dst))
    return levels, sorted(classes)


def _check_placement(family: Family, parameters: ParameterSet, pattern: Schedule) -> Validity:
    """Check whether the probes include all distance classes of the messages, and the model
    distinguishes what differs: distance classes, pairs of one class, node types."""
    settings = parameters.settings
    ratio = float(settings.get("heterogeneity", 1.0))
    if ratio > 1 and _uses_network(pattern):
        return Validity(
            ValidityKind.UNNAMED_LEVELS,
            f"round trips between nodes are up to {ratio:.1f} times those of the probed nodes",
        )
    levels, distances = _find_classes(parameters, pattern)
    check = (
        _check_classes(family, parameters, pattern, levels, distances)
        if "probed_classes" in settings
        else VALID
    )
    if check != VALID:
        return check
    # values are of one pair of nodes, or of the median of several pairs
    for distance in reversed(distances):
        ratio = settings.get("heterogeneity_by_class", {}).get(levels.names[distance])
        if ratio:
            return _report_unequal_trips(f"of ranks in {levels.crossed(distance)}", ratio)
    return _check_types(family, parameters, pattern.node)


def _report_unequal_trips(which: str, ratio: float) -> Validity:
    reason = f"round trips {which} differ by a factor of up to {float(ratio):.1f}"
    return Validity(ValidityKind.PLACEMENT, reason)


def _check_types(family: Family, parameters: ParameterSet, node: np.ndarray) -> Validity:
    """Check whether ranks are on node types with different round trips that the model does not
    distinguish. Values by distance class were fitted to the first nodes. Other values may come from
    any nodes."""
    ratios = parameters.settings.get("heterogeneity_by_types", {})
    types = parameters.settings.get("types", {})
    if family.by_type or not (ratios and types):
        return VALID
    nodes = np.unique(node)
    if len(nodes) < 2:
        return VALID
    type_numbers = np.searchsorted(np.cumsum(list(types.values())), nodes, side="right")
    names = [*types, list(types)[-1]]  # a node beyond the platform's last one has the last type
    type_names = [names[number] for number in np.minimum(type_numbers, len(types)).tolist()]
    type_pairs = {str(Pair(first, second)) for first, second in combinations(type_names, 2)}
    ratio = (
        max((ratios.get(pair, 1.0) for pair in type_pairs), default=1.0)
        if family.by_class
        else max(ratios.values())
    )
    return _report_unequal_trips("between nodes of several types", ratio) if ratio != 1 else VALID


def _check_classes(
    family: Family,
    parameters: ParameterSet,
    pattern: Schedule,
    levels: Hierarchy,
    distances: list[int],
) -> Validity:
    """Check whether all distance classes of the messages were probed, and the model distinguishes
    them."""
    probed = set(parameters.settings["probed_classes"])
    classes = set(parameters.settings.get("classes", ()))
    unprobed = [
        levels.crossed(distance) for distance in distances if levels.names[distance] not in probed
    ]
    if unprobed:
        return Validity(ValidityKind.NOT_PROBED, f"ranks in {unprobed[-1]}")
    if family.has_classes:
        return VALID
    types = parameters.settings.get("types")
    if classes and types and not family.by_type:
        last_type = rank_types(pattern.node, types).max()
        if last_type > 0:
            names = list(types)
            text = f"ranks on {names[last_type]} nodes are predicted as on {names[0]} nodes"
            return Validity(ValidityKind.PLACEMENT, text)
    far = [distance for distance in distances if distance and levels.names[distance] not in classes]
    undistinguished = [name for name in levels.names[1:] if name in probed - classes]
    if far and len(undistinguished) != 1:
        likeness = "nearer ranks" if len(far) > 1 else "nearer or farther ranks"
        return Validity(
            ValidityKind.PLACEMENT,
            f"ranks in {levels.crossed(far[-1])} are predicted as {likeness}",
        )
    shared = _find_shared_class(levels, pattern, distances) if classes else 0
    if shared:
        return Validity(
            ValidityKind.CONTENTION,
            f"concurrent messages between ranks in {levels.crossed(shared)}",
        )
    return VALID


def _uses_network(pattern: Schedule) -> bool:
    if isinstance(pattern, CompactSchedule):
        return len(np.unique(pattern.node)) > 1
    return bool((pattern.node[pattern.src] != pattern.node[pattern.dst]).any())


def _find_shared_class(levels: Hierarchy, pattern: Schedule, distances: list[int]) -> int:
    """Return the nearest distance class in which several concurrent messages leave or enter the
    same group; 0 if none."""
    if isinstance(pattern, CompactSchedule):
        rounds = _list_different_rounds(pattern)
        if rounds is None:  # all ranks send in each round
            return next((distance for distance in distances if distance > 1), 0)
        return min(
            filter(None, (_find_shared_class(levels, part, distances) for part in rounds)),
            default=0,
        )
    src, dst = pattern.node[pattern.src], pattern.node[pattern.dst]
    for distance, group in enumerate(levels.columns if levels.groups else (), 2):
        crossing = group[src] != group[dst]
        for end in (src, dst):
            counts = np.unique(
                np.stack([pattern.step, group[end]])[:, crossing], axis=1, return_counts=True
            )[1]
            if (counts > 1).any():
                return distance
    return 0


def _check_range(family: Family, parameters: ParameterSet, pattern: Schedule) -> list[Validity]:
    """Check at each size of a stack whether its messages, ranks and vectors are within the probed
    range."""
    if not parameters.bytes_range or not pattern.messages:
        return [
            Validity(ValidityKind.DATA_SHEETS)
            if DATA_SHEET_SOURCE in parameters.provenance
            else VALID
        ] * pattern.sizes
    smallest_sizes, largest_sizes = pattern.extremes()
    checks = [
        _check_message_sizes(family, parameters, smallest, largest)
        for smallest, largest in zip(smallest_sizes.tolist(), largest_sizes.tolist(), strict=True)
    ]
    ranks = pattern.ranks
    if family.uses_bytes:
        probed = parameters.settings.get("ranks")
        fewest, longest = parameters.settings.get("fitted_ranks") or (ranks, ranks)
        if probed and ranks > int(probed):
            limit = f"probed up to {probed}"
        else:
            limit = "" if fewest <= ranks <= longest else f"fitted at {fewest} to {longest}"
        of_ranks = (
            Validity(ValidityKind.EXTRAPOLATED, f"{ranks} ranks, {limit}") if limit else VALID
        )
        checks = [select_reported_check(check, of_ranks) for check in checks]
    vectors = [VALID] * pattern.sizes
    for kind, longest, lengths in _find_vectors(parameters, pattern):
        for number in np.flatnonzero(lengths > longest):
            text = f"{format_bytes(int(lengths[number]))} {WORK_VERBS[kind]} at once"
            vectors[number] = Validity(
                ValidityKind.EXTRAPOLATED, f"{text}, measured up to {format_bytes(longest)}"
            )
    return list(map(select_reported_check, checks, vectors))


def _check_message_sizes(
    family: Family, parameters: ParameterSet, smallest: float, largest: float
) -> Validity:
    assert parameters.bytes_range is not None
    low, high = parameters.bytes_range
    limits = [format_bytes(int(limit)) for limit in (low, high)]
    if not family.uses_bytes:
        within = low <= smallest and largest <= high
        return (
            VALID
            if within
            else Validity(ValidityKind.SIZE, f"valid for {' to '.join(dict.fromkeys(limits))}")
        )
    if largest > high:
        reason = f"messages of {format_bytes(int(largest))}, probed up to {limits[1]}"
        return Validity(ValidityKind.EXTRAPOLATED, reason)
    if smallest < low > MIN_COUNTED_BYTES:
        reason = f"messages of {format_bytes(int(smallest))}, probed from {limits[0]}"
        return Validity(ValidityKind.EXTRAPOLATED, reason)
    return VALID


def _find_vectors(parameters: ParameterSet, pattern: Schedule) -> list[tuple[str, int, Array]]:
    """Return for each kind of local work: its name, the longest measured vector in bytes, and the
    longest vector at each size of a stack. If copies have no probe of their own, the range of
    reductions counts."""
    reduced = parameters.vectors.get("reduce")
    longest_measured = {"reduce": reduced, "copy": parameters.vectors.get("copy", reduced)}
    return [
        (kind, longest, pattern.longest_work(kind))
        for kind, longest in longest_measured.items()
        if longest
    ]


def find_widening_factor(family: Family, parameters: ParameterSet, pattern: Schedule) -> Array:
    """Return the factor by which both ends of the interval are moved outwards, for each size of a
    stack: 1 within the probed range and at the probed distances."""
    factor = np.full(
        pattern.sizes, _find_distance_factor(parameters, pattern) if pattern.messages else 1.0
    )
    if not parameters.bytes_range or not pattern.messages or not family.uses_bytes:
        return factor
    low, high = (max(end, MIN_COUNTED_BYTES) for end in parameters.bytes_range)
    smallest, largest = (np.maximum(sizes, MIN_COUNTED_BYTES) for sizes in pattern.extremes())
    doublings_above = np.maximum(np.log2(largest / high), 0)
    for _, longest, lengths in _find_vectors(parameters, pattern):
        doublings_above = np.maximum(
            doublings_above, np.log2(np.maximum(lengths, longest) / longest)
        )
    doublings = doublings_above + np.maximum(np.log2(low / smallest), 0)
    probed_ranks = parameters.settings.get("ranks")
    if probed_ranks:
        doublings = doublings + max(np.log2(pattern.ranks / int(probed_ranks)), 0)
    return factor * np.exp(
        NORMAL_QUANTILE * estimate_typical_error(parameters) * np.sqrt(doublings)
    )


def _find_distance_factor(parameters: ParameterSet, pattern: Schedule) -> float:
    """Return the factor by which messages over these distances may differ from those that the model
    was fitted to, if it has one time for all distances."""
    ratios = parameters.settings.get("distance_ratios")
    if not ratios:
        return 1.0
    levels, distances = _find_classes(parameters, pattern)
    single_time = ratios.keys() - set(parameters.settings.get("classes", ()))
    names_of_pattern = [levels.names[distance] for distance in distances]
    ratios_of_pattern = [ratios[name] for name in names_of_pattern if name in single_time]
    names_of_fit = parameters.settings["probed_classes"]
    ratios_of_fit = [ratios[name] for name in names_of_fit if name in single_time]
    if not ratios_of_pattern or not ratios_of_fit:
        return 1.0
    slower = max(high for _, high in ratios_of_pattern) / min(low for low, _ in ratios_of_fit)
    faster = max(high for _, high in ratios_of_fit) / min(low for low, _ in ratios_of_pattern)
    return float(max(slower, faster, 1.0))


def estimate_typical_error(parameters: ParameterSet) -> float:
    """Return the typical error of the logarithm of a prediction.

    It is that of cases left out of the fit, else that of fitted cases; 0 for values without a fit.
    """
    if "error" in parameters.left_out:
        return float(np.log1p(parameters.left_out["error"]))
    ratios = [
        np.divide(curve.fitted, curve.measured)
        for curve in parameters.curves
        if min(curve.measured) > 0
    ]
    logs = np.log(np.concatenate(ratios)[np.concatenate(ratios) > 0]) if ratios else np.zeros(1)
    return float(np.sqrt(np.mean(logs**2)))
