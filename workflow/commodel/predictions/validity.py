"""Validity of a prediction: what limits each predicted time, and the checks that set it (single messages, contention,
heterogeneous nodes, range of the fit).

`assess_validity` returns the validity of each size. It combines four checks:

- single messages: the ratio of measured round trips to their predictions, at every size. The interval of a pattern is
  shifted by that ratio;
- contention: probe `mixture`, to which no model is fitted, shows which concurrent messages a model mispredicts;
- heterogeneous nodes: pairs of one distance class, or of several node types, whose round trips differ although the
  model predicts one time for all;
- range: beyond the probed sizes and ranks the residual is modelled as a random walk. Each doubling of the message above
  the range (or of what is combined or copied at once), each halving below it, and each doubling of the ranks if the
  model counts them, adds the error at probe cases that were left out of the fit. Messages of up to SHORT_MESSAGE bytes
  count as one size.

A `Validity` is a kind and a reason. Tables have its text, which `Validity.parse` reads back.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from commodel.hierarchy import Hierarchy
from commodel.models import Array
from commodel.models.evaluation.values import rank_types
from commodel.models.families import Family
from commodel.models.keys import Pair
from commodel.models.probes.mixture import OTHERS, ROUNDS
from commodel.parameters import DATA_SHEET_SOURCE, ParameterSet
from commodel.patterns.repeated import CompactSchedule, Rounds
from commodel.patterns.schedule import Schedule
from commodel.predictions.model import Model
from commodel.stats import NORMAL_QUANTILE
from commodel.units import format_bytes

if TYPE_CHECKING:
    import pandas as pd

# measured over predicted time of single messages, either way, above which the validity is `poor fit`
POOR_FIT_FACTOR = 1.5
SMALLEST_SIZE = 1  # bytes; an empty message takes as long
SHORT_MESSAGE = 64  # bytes; shorter messages count as this size
SAMPLED_ROUNDS = 64  # repeated rounds up to which all are checked, instead of the middle one


def exceeds_factor(ratio: float, factor: float) -> bool:
    """Return whether a ratio of times exceeds the factor, either way."""
    return max(ratio, 1 / ratio) > factor


def describe_ratio(ratio: float) -> str:
    return f"{ratio:.1f} times as long as predicted" if ratio > 1 else f"only {ratio:.2f} of the predicted time"


def single_message_ratios(parameters: ParameterSet, pattern: Schedule) -> Array:
    """Return measured over predicted time of the messages of each size of a stack, each sent alone; 1 without a
    probe."""
    known = parameters.settings.get("single_messages")
    if not known or not pattern.messages:
        return np.ones(pattern.sizes)
    took, predicted = np.zeros(pattern.sizes), np.zeros(pattern.sizes)
    levels = Hierarchy.of(parameters.settings.get("levels", {}))
    for count, part in _parts(pattern):
        distance = levels.distance(part.node[part.src], part.node[part.dst])
        bytes = part.bytes.reshape(pattern.sizes, -1)
        for number, name in enumerate(levels.names):
            if name in known and (there := distance == number).any():
                sizes = np.maximum(bytes[:, there], SMALLEST_SIZE)
                took += count * _at(sizes, known[name], "measured")
                predicted += count * _at(sizes, known[name], "predicted")
    return np.divide(took, predicted, out=np.ones(pattern.sizes), where=predicted > 0)


def _parts(pattern: Schedule) -> Iterator[tuple[int, Schedule]]:
    """Yield what is written down, and of rounds the middle one for all where they are many."""
    for part in pattern.parts if isinstance(pattern, CompactSchedule) else (pattern,):
        if isinstance(part, Rounds):
            numbers = range(part.count) if part.count <= SAMPLED_ROUNDS else (part.count // 2,)
            yield from ((part.count // len(numbers), part.round(number, pattern.node)) for number in numbers)
        elif part.messages:
            yield 1, part


def _at(sizes: Array, known: Mapping[str, list[float]], key: str) -> Array:
    """Return the sum over messages at each size of a stack; between two sizes as on a line of logarithms."""
    known_sizes = np.log(np.maximum(known["bytes"], SMALLEST_SIZE))
    return np.exp(np.interp(np.log(sizes), known_sizes, np.log(known[key]))).sum(axis=-1)


class ValidityKind(Enum):
    """How far a predicted time is valid, or why there is none: its text in tables, and the cause of some kinds."""

    VALID = "valid"
    EXTRAPOLATED = "extrapolated"
    SIZE = "size not modelled"  # the model ignores message size: its weight in a choice is 0
    NOT_PROBED = "not probed"  # no probe had ranks at this distance
    PLACEMENT = "placement not modelled"  # the model predicts one time for ranks near and far
    UNNAMED_LEVELS = "placement not modelled", "the platform file names no levels"  # no model can distinguish them
    POOR_FIT = "poor fit"  # measured single messages differ from their predictions by more than POOR_FIT_FACTOR
    CONTENTION = "contention not modelled"  # messages share links that are not in the model
    OVERLAP = "overlap not modelled"  # ports wait for latency during which a real port is free
    DATA_SHEETS = DATA_SHEET_SOURCE
    NO_PREDICTION = "no prediction"
    NOT_FITTED = "not fitted"
    LIBRARY_DEFAULT = "library default"  # the MPI library's own selection is measured only
    MEASURED_ONLY = "measured only"  # no schedule describes the pattern
    OF_MODEL = ""  # a check of the model itself: the reason is the whole text

    def __init__(self, label: str, cause: str = "") -> None:
        self.label, self.cause = label, cause


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
        """Return whether this is of a kind, whatever the reason; UNNAMED_LEVELS is PLACEMENT as well."""
        return self.kind is kind or (self.kind is ValidityKind.UNNAMED_LEVELS and kind is ValidityKind.PLACEMENT)

    @classmethod
    @lru_cache(maxsize=4096)
    def parse(cls, text: str) -> Validity:
        """Return the validity whose text a table or a model has; empty is `valid`."""
        label, _, reason = text.partition(": ")
        unnamed = ValidityKind.UNNAMED_LEVELS
        if label == unnamed.label and reason.endswith(ending := f", and {unnamed.cause}"):
            return cls(unnamed, reason.removesuffix(ending))
        kinds = {kind.label: kind for kind in ValidityKind if kind is not unnamed}
        return (cls(kinds[label], reason) if label in kinds else cls(ValidityKind.OF_MODEL, text)) if text else VALID


VALID = Validity()


def are_of(kind: ValidityKind, texts: pd.Series) -> pd.Series:
    """Return which predictions of a table are of a kind."""
    return texts.map(lambda text: Validity.parse(text).is_of(kind)).astype(bool)


def have_weight(texts: pd.Series) -> pd.Series:
    """Return which predictions of a table have a weight in a choice."""
    return texts.map(lambda text: Validity.parse(text).has_weight).astype(bool)


def choose_foremost(*checks: Validity) -> Validity:
    """Return the failed check that is reported: the one that takes the weight if any does, else the first."""
    failed = [check for check in checks if check.kind is not ValidityKind.VALID]
    return next((check for check in failed if not check.has_weight), failed[0] if failed else VALID)


CONTENTION_CASES = {  # of probe `mixture` and the setting `contention`: the mispredicted messages
    "rounds": "passed on around all nodes",
    "row": "in a row to one receiver",
    "ranks": "of all ranks at once",
    "nodes": "of all nodes at once",
    "fan": "between one node and several others",
}


def find_contention(parameters: ParameterSet, pattern: Schedule, waves: float = 1) -> list[Validity]:
    """Return for each size of a stack whether the pattern has concurrent messages that the model mispredicts. In a
    stream of several waves all messages follow each other in a row."""
    checks, mispredicted = [VALID] * pattern.sizes, parameters.settings.get("contention")
    if not mispredicted or not pattern.messages:
        return checks
    order = list(CONTENTION_CASES)
    for name in sorted(mispredicted, key=lambda name: (order.index(name.partition(".")[0]), name)):
        case, *ends = name.split(".")
        times, least = float(mispredicted[name]["ratio"]), float(mispredicted[name]["from_bytes"])
        size = f", from {format_bytes(int(least))} on," if least else ""
        where = " between {} and {} nodes".format(*ends) if ends else ""
        off = f"up to {describe_ratio(times)}" if times > 1 else f"as little as {times:.2f} of the predicted time"
        reason = f"messages {CONTENTION_CASES[case]}{where}{size} took {off}"
        if isinstance(pattern, CompactSchedule):
            occurs = not ends and _occurs_in_rounds(pattern, case, least, waves)
        else:
            occurs = _occurs(pattern, case, least, waves, ends, parameters.settings.get("types") or {})
        occurs = np.broadcast_to(occurs, pattern.sizes).tolist()
        found = Validity(ValidityKind.CONTENTION, reason)
        checks = [found if there and check == VALID else check for check, there in zip(checks, occurs, strict=True)]
    return checks


def _occurs(
    pattern: Schedule, case: str, least: float, waves: float, ends: Sequence[str], types: Mapping[str, int]
) -> list[bool]:
    """Return for each size whether a pattern has such messages of at least `least` bytes: as many between two nodes as
    the probe, or for a fan half as many at one node in a step. `ends`: the node types that they go from and to."""
    src, dst = pattern.node[pattern.src], pattern.node[pattern.dst]
    there = back = src != dst
    if ends:
        if not types.keys() >= {*ends}:
            return [False] * pattern.sizes
        of_rank = np.array(list(types))[rank_types(pattern.node, types)]
        first, second = (of_rank == end for end in ends)
        there, back = there & first[pattern.src] & second[pattern.dst], there & second[pattern.src] & first[pattern.dst]
    large = np.atleast_2d(pattern.bytes).reshape(pattern.sizes, -1) >= least
    if case == "row" and waves != 1:
        return (there & large).any(axis=-1).tolist()
    if case == "fan":
        hubs = [
            (chosen, pattern.step * pattern.ranks + rank)
            for chosen, rank in ((there, pattern.src), (back, pattern.dst))
        ]
        most = [max(_count_most(hub[chosen & rows]) for chosen, hub in hubs) for rows in large]
        return [2 * count >= OTHERS for count in most]
    if case in ("nodes", "ranks"):
        shared = case == "nodes" or np.bincount(pattern.node).max() > 1
        return [
            shared and all(_differ(pattern.step[rows], node[rows]) for node in (src, dst)) for rows in there & large
        ]
    if case == "row" and not ends:  # messages that a rank sends before it receives any
        received = np.full(pattern.ranks, pattern.last_step + 1)
        np.minimum.at(received, pattern.dst, pattern.dst_wait)
        there = there & (pattern.step < received[pattern.src])
    pair = pattern.src * pattern.ranks + pattern.dst
    return [_count_most(pair[there & rows]) >= ROUNDS for rows in large]


def _occurs_in_rounds(pattern: CompactSchedule, case: str, least: float, waves: float) -> bool | Array:
    """Return the same of repeated rounds, in each of which every rank sends one message and receives one."""
    if case == "fan":
        return False
    if case == "row" and waves == 1:
        parts = [part for part in pattern.parts if not isinstance(part, Rounds) and part.messages]
        return any(any(_occurs(part, case, least, waves, (), {})) for part in parts)
    nodes = len(np.unique(pattern.node))
    occurs = nodes > 1
    if case == "rounds":
        rounds = [part for part in pattern.parts if isinstance(part, Rounds) and part.periodic]
        occurs = occurs and any(part.count >= ROUNDS * part.shift for part in rounds)
    elif case != "row":
        occurs = nodes > 2 and (case == "nodes" or np.bincount(pattern.node).max() > 1)
    return occurs & (pattern.extremes()[1] >= least)


def _count_most(labels: np.ndarray) -> int:
    """Return how many elements have the most frequent label."""
    return int(np.unique(labels, return_counts=True)[1].max(initial=0))


def _differ(step: np.ndarray, node: np.ndarray) -> bool:
    """Return whether messages of some step are of different nodes."""
    of_step = np.unique(np.stack([step, node]), axis=1)[0]
    return len(of_step) > len(np.unique(of_step))


WORKED_ON = {"reduce": "combined", "copy": "copied"}


def assess_validity(model: Model, parameters: ParameterSet, pattern: Schedule, waves: float = 1) -> list[Validity]:
    """Return the validity of each size of a stack: `valid`, or the foremost check that it fails. Sizes that the model
    ignores come first: with any other failed check a prediction keeps its weight in a choice."""
    placement = _check_placement(model.entry, parameters, pattern) if pattern.messages else VALID
    own = [placement] * pattern.sizes
    if placement == VALID and model.entry.limits:
        own = map(Validity.parse, np.broadcast_to(model.entry.limits(pattern, model.values), pattern.sizes).tolist())
    several = zip(
        own,
        find_contention(parameters, pattern, waves),
        map(_check_fit, single_message_ratios(parameters, pattern).tolist()),
        _check_range(model.entry, parameters, pattern),
        strict=True,
    )
    return [choose_foremost(*checks) for checks in several]


def _check_fit(ratio: float) -> Validity:
    if not exceeds_factor(ratio, POOR_FIT_FACTOR):
        return VALID
    return Validity(ValidityKind.POOR_FIT, f"single messages take {describe_ratio(ratio)}")


def _find_classes(parameters: ParameterSet, pattern: Schedule) -> tuple[Hierarchy, list[int]]:
    """Return the levels of a network that was probed for them, and the distance classes of the messages."""
    levels = Hierarchy.of(parameters.settings.get("levels", {}))
    if isinstance(pattern, CompactSchedule):
        return levels, levels.classes(pattern.node)
    return levels, levels.apart(pattern.node, pattern.src, pattern.dst)


def _check_placement(entry: Family, parameters: ParameterSet, pattern: Schedule) -> Validity:
    """Return whether the network was probed as far and as near as messages go, and the model distinguishes what
    differs: distance classes, pairs of one class, node types."""
    settings = parameters.settings
    if (ratio := float(settings.get("heterogeneity", 1.0))) > 1 and _uses_network(pattern):
        return Validity(
            ValidityKind.UNNAMED_LEVELS,
            f"round trips between nodes are up to {ratio:.1f} times those of the probed nodes",
        )
    levels, apart = _find_classes(parameters, pattern)
    check = _check_classes(entry, parameters, pattern, levels, apart) if "probed_classes" in settings else VALID
    if check != VALID:
        return check
    for distance in reversed(apart):  # values are of one pair of nodes, or of the median of a few
        if times := settings.get("heterogeneity_by_class", {}).get(levels.names[distance]):
            differ = f"differ by a factor of up to {float(times):.1f}"
            return Validity(ValidityKind.PLACEMENT, f"round trips of ranks in {levels.crossed(distance)} {differ}")
    return _check_types(entry, parameters, pattern.node)


def _check_types(entry: Family, parameters: ParameterSet, node: np.ndarray) -> Validity:
    """Return whether ranks are on node types whose round trips differ, which the model does not distinguish. Values by
    distance class were fitted to the first nodes, other values may be of any nodes."""
    known, types = (parameters.settings.get(name, {}) for name in ("heterogeneity_by_types", "types"))
    if entry.by_type or not (known and types) or len(nodes := np.unique(node)) < 2:
        return VALID
    of = np.searchsorted(np.cumsum(list(types.values())), nodes, side="right")
    names = [*types, list(types)[-1]]  # of more nodes than there are
    present = [names[number] for number in np.minimum(of, len(types)).tolist()]
    pairs = {str(Pair(one, two)) for place, one in enumerate(present) for two in present[place + 1 :]}
    times = max((known.get(pair, 1.0) for pair in pairs), default=1.0) if entry.by_class else max(known.values())
    if times == 1:
        return VALID
    differ = f"differ by a factor of up to {float(times):.1f}"
    return Validity(ValidityKind.PLACEMENT, f"round trips between nodes of several types {differ}")


def _check_classes(
    entry: Family, parameters: ParameterSet, pattern: Schedule, levels: Hierarchy, apart: list[int]
) -> Validity:
    """Return whether all distance classes of the messages were probed, and the model distinguishes them."""
    probed, classes = set(parameters.settings["probed_classes"]), set(parameters.settings.get("classes", ()))
    if lacking := [levels.crossed(distance) for distance in apart if levels.names[distance] not in probed]:
        return Validity(ValidityKind.NOT_PROBED, f"ranks in {lacking[-1]}")
    if entry.has_classes:
        return VALID
    types = parameters.settings.get("types")
    if classes and types and not entry.by_type and (of_ranks := rank_types(pattern.node, types)).any():
        names = list(types)
        other = f"ranks on {names[of_ranks.max()]} nodes are predicted as on {names[0]} nodes"
        return Validity(ValidityKind.PLACEMENT, other)
    far = [distance for distance in apart if distance and levels.names[distance] not in classes]
    alike = [name for name in levels.names[1:] if name in probed - classes]
    if far and len(alike) != 1:
        others = "nearer ranks" if len(far) > 1 else "nearer or farther ranks"
        return Validity(ValidityKind.PLACEMENT, f"ranks in {levels.crossed(far[-1])} are predicted as {others}")
    if classes and (shared := _find_shared_class(levels, pattern, apart)):
        several = f"concurrent messages between ranks in {levels.crossed(shared)}"
        return Validity(ValidityKind.CONTENTION, several)
    return VALID


def _uses_network(pattern: Schedule) -> bool:
    if isinstance(pattern, CompactSchedule):
        return len(np.unique(pattern.node)) > 1
    return bool((pattern.node[pattern.src] != pattern.node[pattern.dst]).any())


def _find_shared_class(levels: Hierarchy, pattern: Schedule, apart: list[int]) -> int:
    """Return the nearest class of messages of which several at a time leave a group, or enter one; 0 if none."""
    if isinstance(pattern, CompactSchedule):  # in a round all ranks send
        return next((distance for distance in apart if distance > 1), 0)
    src, dst = pattern.node[pattern.src], pattern.node[pattern.dst]
    for distance, group in enumerate(levels.columns if levels.groups else (), 2):
        crossing = group[src] != group[dst]
        for end in (src, dst):
            counts = np.unique(np.stack([pattern.step, group[end]])[:, crossing], axis=1, return_counts=True)[1]
            if (counts > 1).any():
                return distance
    return 0


def _check_range(entry: Family, parameters: ParameterSet, pattern: Schedule) -> list[Validity]:
    """Return for each size of a stack whether its messages, ranks and vectors are within those that were probed."""
    if not parameters.bytes_range or not pattern.messages:
        return [
            Validity(ValidityKind.DATA_SHEETS) if DATA_SHEET_SOURCE in parameters.provenance else VALID
        ] * pattern.sizes
    checks = [
        _check_message_sizes(entry, parameters, smallest, largest)
        for smallest, largest in zip(*(sizes.tolist() for sizes in pattern.extremes()), strict=True)
    ]
    ranks = pattern.ranks
    if entry.uses_bytes:
        probed = parameters.settings.get("ranks")
        fewest, most = parameters.settings.get("fitted_ranks") or (ranks, ranks)
        if probed and ranks > int(probed):
            beyond = f"probed up to {probed}"
        else:
            beyond = "" if fewest <= ranks <= most else f"fitted at {fewest} to {most}"
        of_ranks = Validity(ValidityKind.EXTRAPOLATED, f"{ranks} ranks, {beyond}") if beyond else VALID
        checks = [choose_foremost(check, of_ranks) for check in checks]
    vectors = [VALID] * pattern.sizes
    for kind, most, lengths in _find_vectors(parameters, pattern):
        for number in np.flatnonzero(lengths > most):
            long = f"{format_bytes(int(lengths[number]))} {WORKED_ON[kind]} at once"
            vectors[number] = Validity(ValidityKind.EXTRAPOLATED, f"{long}, measured up to {format_bytes(most)}")
    return list(map(choose_foremost, checks, vectors))


def _check_message_sizes(entry: Family, parameters: ParameterSet, smallest: float, largest: float) -> Validity:
    ends = [format_bytes(int(end)) for end in parameters.bytes_range]
    low, high = parameters.bytes_range
    if not entry.uses_bytes:
        within = low <= smallest and largest <= high
        return VALID if within else Validity(ValidityKind.SIZE, f"valid for {' to '.join(dict.fromkeys(ends))}")
    if largest > high:
        beyond = f"messages of {format_bytes(int(largest))}, probed up to {ends[1]}"
        return Validity(ValidityKind.EXTRAPOLATED, beyond)
    if smallest < low > SHORT_MESSAGE:
        beyond = f"messages of {format_bytes(int(smallest))}, probed from {ends[0]}"
        return Validity(ValidityKind.EXTRAPOLATED, beyond)
    return VALID


def _find_vectors(parameters: ParameterSet, pattern: Schedule) -> list[tuple[str, int, Array]]:
    """Return what ranks do with vectors, the longest that was measured in bytes, and the longest at each size of a
    stack. Where copies have no cost of their own, that of reductions is theirs."""
    reduced = parameters.vectors.get("reduce")
    known = {"reduce": reduced, "copy": parameters.vectors.get("copy", reduced)}
    return [(kind, most, pattern.longest_work(kind)) for kind, most in known.items() if most]


def widening(entry: Family, parameters: ParameterSet, pattern: Schedule) -> Array:
    """Return the factor by which the ends of the interval move away, for each size of a stack: 1 within what was
    probed."""
    apart = np.full(pattern.sizes, _spread(parameters, pattern) if pattern.messages else 1.0)
    if not parameters.bytes_range or not pattern.messages or not entry.uses_bytes:
        return apart
    low, high = (max(end, SHORT_MESSAGE) for end in parameters.bytes_range)
    smallest, largest = (np.maximum(sizes, SHORT_MESSAGE) for sizes in pattern.extremes())
    above = np.maximum(np.log2(largest / high), 0)
    for _, most, lengths in _find_vectors(parameters, pattern):
        above = np.maximum(above, np.log2(np.maximum(lengths, most) / most))
    doublings = above + np.maximum(np.log2(low / smallest), 0)
    if known := parameters.settings.get("ranks"):
        doublings = doublings + max(np.log2(pattern.ranks / int(known)), 0)
    return apart * np.exp(NORMAL_QUANTILE * estimate_typical_error(parameters) * np.sqrt(doublings))


def _spread(parameters: ParameterSet, pattern: Schedule) -> float:
    """Return by which factor messages over these distances may differ from those to which a model without placement
    was fitted."""
    if not (known := parameters.settings.get("distance_ratios")):
        return 1.0
    levels, apart = _find_classes(parameters, pattern)
    classes = set(parameters.settings.get("classes", ()))
    requested = [
        known[name] for name in (levels.names[distance] for distance in apart) if name in known and name not in classes
    ]
    fitted = [known[name] for name in parameters.settings["probed_classes"] if name in known and name not in classes]
    if not requested or not fitted:
        return 1.0
    longer = max(high for _, high in requested) / min(low for low, _ in fitted)
    shorter = max(high for _, high in fitted) / min(low for low, _ in requested)
    return float(max(longer, shorter, 1.0))


def estimate_typical_error(parameters: ParameterSet) -> float:
    """Return the typical error of the logarithm of a prediction.

    It is that of cases left out of the fit, else that of fitted cases; 0 for values without a fit.
    """
    if "error" in parameters.left_out:
        return float(np.log1p(parameters.left_out["error"]))
    ratios = [np.divide(curve.fitted, curve.measured) for curve in parameters.curves if min(curve.measured) > 0]
    logs = np.log(np.concatenate(ratios)[np.concatenate(ratios) > 0]) if ratios else np.zeros(1)
    return float(np.sqrt(np.mean(logs**2)))
