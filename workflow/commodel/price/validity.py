"""Validity of a prediction: the status of each predicted time, and the checks that set it (single messages, contention,
heterogeneous nodes, range of the fit).

`doubts` returns the status of each size. It combines four checks:

- single messages: the ratio of measured round trips to their predictions, at every size. The interval of a pattern is
  shifted by that ratio;
- contention: probe `mixture`, to which no model is fitted, shows which concurrent messages a model mispredicts;
- heterogeneous nodes: pairs of one distance class, or of several node types, whose round trips differ although the
  model predicts one time for all;
- range: beyond the probed sizes and ranks the residual is modelled as a random walk. Each doubling of the message above
  the range (or of what is combined or copied at once), each halving below it, and each doubling of the ranks if the
  model counts them, adds the error at probe cases that were left out of the fit. Messages of up to SHORT_MESSAGE bytes
  count as one size.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import Enum
from typing import NamedTuple

import numpy as np

from commodel.hierarchy import Hierarchy
from commodel.models import Array
from commodel.models.families import Family
from commodel.models.keys import Pair
from commodel.models.pricing.values import rank_types
from commodel.models.probes.mixture import OTHERS, ROUNDS
from commodel.parameters import SHEETS, ParameterSet
from commodel.patterns.repeated import Long, Rounds
from commodel.patterns.schedule import Schedule
from commodel.price.model import Model
from commodel.stats import NORMAL
from commodel.units import format_bytes

SMALLEST_SIZE = 1  # bytes; an empty message takes as long
OFF = 1.5  # times: a price that is off by less is one that we can live with
FEW_ROUNDS = 64  # so many are all looked at


def misfits(times: float) -> bool:
    """Whether what takes so many times as long as it is priced is priced wrong."""
    return max(times, 1 / times) > OFF


def as_long(times: float) -> str:
    return f"{times:.1f} times as long as priced" if times > 1 else f"only {times:.2f} of their price"


def at_worst(times: float) -> str:
    return f"up to {as_long(times)}" if times > 1 else f"as little as {times:.2f} of their price"


def single_message_ratios(parameters: ParameterSet, pattern: Schedule) -> Array:
    """Return measured over predicted time of the messages of each size of a stack, each sent alone; 1 without a
    probe."""
    known = parameters.settings.get("alone")
    if not known or not pattern.messages:
        return np.ones(pattern.sizes)
    took, priced = np.zeros(pattern.sizes), np.zeros(pattern.sizes)
    levels = Hierarchy.of(parameters.settings.get("levels", {}))
    for count, part in _parts(pattern):
        distance = levels.distance(part.node[part.src], part.node[part.dst])
        bytes = part.bytes.reshape(pattern.sizes, -1)
        for number, name in enumerate(levels.names):
            if name in known and (there := distance == number).any():
                sizes = np.maximum(bytes[:, there], SMALLEST_SIZE)
                took += count * _at(sizes, known[name], "took")
                priced += count * _at(sizes, known[name], "priced")
    return np.divide(took, priced, out=np.ones(pattern.sizes), where=priced > 0)


def _parts(pattern: Schedule) -> Iterator[tuple[int, Schedule]]:
    """What is written down, and of rounds the middle one for all where they are many."""
    for part in pattern.parts if isinstance(pattern, Long) else (pattern,):
        if isinstance(part, Rounds):
            numbers = range(part.count) if part.count <= FEW_ROUNDS else (part.count // 2,)
            yield from ((part.count // len(numbers), part.round(number, pattern.node)) for number in numbers)
        elif part.messages:
            yield 1, part


def _at(sizes: Array, known: Mapping[str, list[float]], key: str) -> Array:
    """The sum over messages at each size of a stack; between two sizes as on a line of logarithms."""
    known_sizes = np.log(np.maximum(known["bytes"], SMALLEST_SIZE))
    return np.exp(np.interp(np.log(sizes), known_sizes, np.log(known[key]))).sum(axis=-1)


class PriceStatus(Enum):
    """How far a price is to be trusted, or why there is none. Tables have it as text, with the reason after a colon; a
    family may have a doubt of its own, in words of its own."""

    OK = "ok"
    EXTRAPOLATED = "extrapolated"
    BLIND = "blind to size"  # no say in a choice: sizes that the family does not see are part of it
    NOT_PROBED = "not probed"  # ranks are farther from each other, or nearer, than those of any probe
    UNPLACED = "blind to placement"  # the family prices ranks near and far alike
    UNNAMED = "blind to placement", "the platform's file names no levels"  # so that no family can know better
    MISFIT = "misfit"  # a message alone takes much longer, or shorter, than it is priced
    CROWDED = "blind to contention"  # messages meet on links of the network that the family knows nothing of
    SHEETS = SHEETS
    NOT_PRICED = "not priced"
    NOT_FITTED = "not fitted"
    LIBRARY = "library"  # what the MPI library does by itself is measured only
    UNSAID = "measured only"  # no schedule says what it does

    def __init__(self, word: str, cause: str = "") -> None:
        self.word, self.cause = word, cause

    def because(self, reason: str) -> str:
        return f"{self.word}: {reason}, and {self.cause}" if self.cause else f"{self.word}: {reason}"

    @classmethod
    def votes(cls, text: str) -> bool:
        """Whether a price of this status has a say in a choice; what is extrapolated has, too."""
        return not cls.BLIND.of(text)

    def of(self, text: str) -> bool:
        """Whether a text is this status, whatever its reason; what has a cause of its own is that without one, too."""
        return word(text) == self.word and text.endswith(self.cause)


def foremost(*texts: str) -> str:
    """Of all that a price is doubted for what is told of it: what takes its say, wherever it stands, else the first."""
    doubts = [text for text in texts if text not in ("", PriceStatus.OK.value)]
    silencing = (text for text in doubts if not PriceStatus.votes(text))
    return next(silencing, doubts[0] if doubts else PriceStatus.OK.value)


def word(text: str) -> str:
    """What a price is worth, without the reason."""
    return text.partition(":")[0]


def reason(text: str) -> str:
    return text.partition(": ")[2]


class Kind(NamedTuple):
    messages: str  # that were not priced well
    meets: Callable[[Schedule, float], list[bool]]  # whether a pattern has such, at least so long, at each of its sizes


def meeting(parameters: ParameterSet, pattern: Schedule, waves: float = 1) -> list[str]:
    """At each size of a stack why its price is shaky; of several waves all messages follow each other in a row."""
    texts, off = [""] * pattern.sizes, parameters.settings.get("crowded")
    if not off or not pattern.messages:
        return texts
    order = list(KINDS)
    for name in sorted(off, key=lambda name: (order.index(name.partition(".")[0]), name)):
        kind, (base, _, ends) = KINDS[name.partition(".")[0]], name.partition(".")
        times, least = float(off[name]["times"]), float(off[name]["from"])
        size = f", from {format_bytes(int(least))} on," if least else ""
        where = " between {} and {} nodes".format(*ends.split(".")) if ends else ""
        why = PriceStatus.CROWDED.because(f"messages {kind.messages}{where}{size} took {at_worst(times)}")
        if ends:
            meets = _of_types(parameters, pattern, least, base, ends.split("."), waves)
        else:
            meets = (_between_nodes if waves != 1 and name == ROW else kind.meets)(pattern, least)
        texts = [text or (why if meet else "") for text, meet in zip(texts, meets, strict=True)]
    return texts


def _of_types(
    parameters: ParameterSet, pattern: Schedule, least: float, kind: str, ends: list[str], waves: float
) -> list[bool]:
    """Return at each size whether a pattern has a row, or a fan, between nodes of these two types: from one node of the
    first to some of the second, or for a fan back. Of several waves all messages are a row."""
    types = parameters.settings.get("types") or {}
    if any(end not in types for end in ends):
        return [False] * pattern.sizes
    of_rank = np.array(list(types))[rank_types(pattern.node, types)]
    first, second = (of_rank == end for end in ends)
    if isinstance(pattern, Long):  # in whose rounds each rank sends one message and gets one
        return [False] * pattern.sizes
    between = pattern.node[pattern.src] != pattern.node[pattern.dst]
    there = between & first[pattern.src] & second[pattern.dst]
    if kind == ROW and waves != 1:
        return (there & _long(pattern, least)).any(axis=-1).tolist()
    if kind == ROW:
        return _as_many(pattern, there, least)
    back = between & second[pattern.src] & first[pattern.dst]
    return _from_hubs(pattern, least, ((there, pattern.src), (back, pattern.dst)))


def _several_at_a_time(pattern: Schedule, least: float) -> list[bool]:
    """Whether messages leave several nodes at a time, and enter several."""
    if isinstance(pattern, Long):
        return ((len(np.unique(pattern.node)) > 2) & (pattern.extremes()[1] >= least)).tolist()
    nodes = pattern.node[pattern.src], pattern.node[pattern.dst]
    large = (nodes[0] != nodes[1]) & _long(pattern, least)
    return [all(_differ(pattern.step[rows], of[rows]) for of in nodes) for rows in large]


def _of_shared_nodes(pattern: Schedule, least: float) -> list[bool]:
    """The same where several ranks share a node."""
    return _several_at_a_time(pattern, least) if np.bincount(pattern.node).max() > 1 else [False] * pattern.sizes


def _passed_on(pattern: Schedule, least: float) -> list[bool]:
    """Whether a rank sends one of another node as many messages as the probe does."""
    if isinstance(pattern, Long):
        rounds = [part for part in pattern.parts if isinstance(part, Rounds) and part.repeats]
        around = any(part.count >= ROUNDS * part.turn for part in rounds)
        return (around & (len(np.unique(pattern.node)) > 1) & (pattern.extremes()[1] >= least)).tolist()
    between = pattern.node[pattern.src] != pattern.node[pattern.dst]
    return _as_many(pattern, between, least)


def _one_after_another(pattern: Schedule, least: float) -> list[bool]:
    """Whether a rank sends one of another node as many messages as the probe does before it gets any."""
    if isinstance(pattern, Long):  # in rounds that repeat all ranks get messages
        parts = [part for part in pattern.parts if not isinstance(part, Rounds) and part.messages]
        return [any(any(_one_after_another(part, least)) for part in parts)]
    between = pattern.node[pattern.src] != pattern.node[pattern.dst]
    first = np.full(pattern.ranks, pattern.last_step + 1)
    np.minimum.at(first, pattern.dst, pattern.dst_wait)
    return _as_many(pattern, between & (pattern.step < first[pattern.src]), least)


def _as_many(pattern: Schedule, chosen: np.ndarray, least: float) -> list[bool]:
    """Whether of the chosen messages as many as the probe has are of one pair."""
    pair, counts = pattern.src * pattern.ranks + pattern.dst, []
    for large in _long(pattern, least):
        counts.append(np.unique(pair[chosen & large], return_counts=True)[1].max(initial=0))
    return [count >= ROUNDS for count in counts]


def _fanned(pattern: Schedule, least: float) -> list[bool]:
    """Whether a rank sends to several others at a time, or takes from them, half as many as in the probe."""
    if isinstance(pattern, Long):  # in whose rounds each has one of each
        return [False] * pattern.sizes
    between = pattern.node[pattern.src] != pattern.node[pattern.dst]
    return _from_hubs(pattern, least, ((between, pattern.src), (between, pattern.dst)))


def _from_hubs(pattern: Schedule, least: float, parts: Sequence[tuple[np.ndarray, np.ndarray]]) -> list[bool]:
    """Return at each size whether some step has half as many messages as the probe at one rank; each part is a choice
    of messages and the ends that count."""
    counts = []
    for large in _long(pattern, least):
        ends = (pattern.step[chosen & large] * pattern.ranks + hub[chosen & large] for chosen, hub in parts)
        counts.append(max(np.unique(of_end, return_counts=True)[1].max(initial=0) for of_end in ends))
    return [2 * count >= OTHERS for count in counts]


def _between_nodes(pattern: Schedule, least: float) -> list[bool]:
    """Whether there are any between nodes."""
    if isinstance(pattern, Long):
        return ((len(np.unique(pattern.node)) > 1) & (pattern.extremes()[1] >= least)).tolist()
    between = pattern.node[pattern.src] != pattern.node[pattern.dst]
    return (between & _long(pattern, least)).any(axis=-1).tolist()


def _long(pattern: Schedule, least: float) -> np.ndarray:
    """Of each message at each size of a stack whether it is at least so long."""
    return np.atleast_2d(pattern.bytes).reshape(pattern.sizes, -1) >= least


def _differ(step: np.ndarray, node: np.ndarray) -> bool:
    """Whether messages of some step are of different nodes."""
    of_step = np.unique(np.stack([step, node]), axis=1)[0]
    return len(of_step) > len(np.unique(of_step))


ROW = "row"
KINDS = {  # as `crowded` of a set has them
    "rounds": Kind("passed on around all nodes", _passed_on),
    ROW: Kind("in a row to one receiver", _one_after_another),
    "ranks": Kind("of all ranks at once", _of_shared_nodes),
    "nodes": Kind("of all nodes at once", _several_at_a_time),
    "fan": Kind("between one node and several others", _fanned),
}


def explain_unequal_pairs(parameters: ParameterSet, levels: Hierarchy, apart: Sequence[int]) -> str:
    """Return the status of messages in the distance classes `apart` if round trips within one differ, else nothing.
    Values are of one pair of nodes, or of the median of a few."""
    known = parameters.settings.get("unlike", {})
    for distance in reversed(apart):
        if times := known.get(levels.names[distance]):
            pairs = f"pairs of {levels.crossed(distance)} are up to {float(times):.1f} times as far from each other"
            return PriceStatus.UNPLACED.because(f"{pairs} as others, and priced alike")
    return ""


def explain_unequal_types(entry: Family, parameters: ParameterSet, node: np.ndarray) -> str:
    """Return the status of ranks on these nodes if their types differ in round trips, else nothing. Values by distance
    class were fitted to the first nodes, other values may be of any nodes."""
    known, types = (parameters.settings.get(name, {}) for name in ("unlike_types", "types"))
    if entry.by_type or not (known and types) or len(nodes := np.unique(node)) < 2:
        return ""
    of = np.searchsorted(np.cumsum(list(types.values())), nodes, side="right")
    names = [*types, list(types)[-1]]  # of more nodes than there are
    present = [names[number] for number in np.minimum(of, len(types)).tolist()]
    pairs = {str(Pair(one, two)) for place, one in enumerate(present) for two in present[place + 1 :]}
    times = max((known.get(pair, 1.0) for pair in pairs), default=1.0) if entry.by_class else max(known.values())
    if times == 1:
        return ""
    differ = f"though their round trips differ by a factor of up to {float(times):.1f}"
    return PriceStatus.UNPLACED.because(f"nodes of several types are priced alike, {differ}")


SHORT_MESSAGE = 64
OK = PriceStatus.OK.value
WORKED_ON = {"reduce": "combined", "copy": "copied"}


def doubts(model: Model, parameters: ParameterSet, pattern: Schedule, waves: float = 1) -> list[str]:
    """For each size of a stack `ok`, or why the parameters do not reach this far. Sizes that the family does not see
    come first: with any other doubt a price has a say in a choice."""
    doubted = _placed(model.entry, parameters, pattern) if pattern.messages else ""
    doubted = doubted or (model.entry.doubts and model.entry.doubts(pattern, model.values)) or ""
    doubted = [doubted] * pattern.sizes if isinstance(doubted, str) else doubted
    several = zip(doubted, meeting(parameters, pattern, waves), _misfitting(parameters, pattern), strict=True)
    texts = [text or together or misfit for text, together, misfit in several]
    if not parameters.bytes_range or not pattern.messages:
        well = PriceStatus.SHEETS.value if SHEETS in parameters.provenance else OK
        return [text or well for text in texts]
    ends = zip(*(sizes.tolist() for sizes in pattern.extremes()), strict=True)
    reached = (_reach(model.entry, parameters, pattern.ranks, *end) for end in ends)
    several = zip(texts, reached, _too_long(parameters, pattern), strict=True)
    return [foremost(*doubts_of_size) for doubts_of_size in several]


def _classes(parameters: ParameterSet, pattern: Schedule) -> tuple[Hierarchy, list[int]]:
    """The levels of a network that was probed for them, and the distance classes that messages are of."""
    levels = Hierarchy.of(parameters.settings.get("levels", {}))
    if isinstance(pattern, Long):
        return levels, levels.classes(pattern.node)
    return levels, levels.apart(pattern.node, pattern.src, pattern.dst)


def _placed(entry: Family, parameters: ParameterSet, pattern: Schedule) -> str:
    """Whether a network of several levels was probed as far and as near as messages go, and the family sees it."""
    if (uneven := float(parameters.settings.get("uneven", 1.0))) > 1 and _selects_network_messages(pattern):
        far = f"nodes are up to {uneven:.1f} times as far from each other as those probed"
        return PriceStatus.UNNAMED.because(far)
    far = _beyond_probes(entry, parameters, pattern) or explain_unequal_pairs(
        parameters, *_classes(parameters, pattern)
    )
    return far or explain_unequal_types(entry, parameters, pattern.node)


def _misfitting(parameters: ParameterSet, pattern: Schedule) -> list[str]:
    """At each size of a stack whether its messages are mispriced even where each is alone."""
    return [
        PriceStatus.MISFIT.because(f"even alone its messages take {as_long(times)}") if misfits(times) else ""
        for times in single_message_ratios(parameters, pattern).tolist()
    ]


def _beyond_probes(entry: Family, parameters: ParameterSet, pattern: Schedule) -> str:
    """Whether messages go no farther than probes did, and the family sees how far."""
    if "probed" not in parameters.settings:
        return ""
    levels, apart = _classes(parameters, pattern)
    probed, classes = set(parameters.settings["probed"]), set(parameters.settings.get("classes", ()))
    if lacking := [levels.crossed(distance) for distance in apart if levels.names[distance] not in probed]:
        return PriceStatus.NOT_PROBED.because(f"ranks in {lacking[-1]}")
    if entry.sees_classes:
        return ""
    if classes and (other := _other_type(entry, parameters, pattern)):
        return PriceStatus.UNPLACED.because(other)
    far = [distance for distance in apart if distance and levels.names[distance] not in classes]
    alike = [name for name in levels.names[1:] if name in probed - classes]
    if not far or len(alike) == 1:
        if classes and (crowded := _crowded(levels, pattern, apart)):
            return PriceStatus.CROWDED.because(f"several messages at a time between ranks in {levels.crossed(crowded)}")
        return ""
    blind = "nearer ones" if len(far) > 1 else "others that are nearer or farther"
    return PriceStatus.UNPLACED.because(f"ranks in {levels.crossed(far[-1])} are priced as {blind}")


def _selects_network_messages(pattern: Schedule) -> bool:
    if isinstance(pattern, Long):
        return len(np.unique(pattern.node)) > 1
    return bool((pattern.node[pattern.src] != pattern.node[pattern.dst]).any())


def _other_type(entry: Family, parameters: ParameterSet, pattern: Schedule) -> str:
    """Whether ranks sit on nodes of another type than those that values by distance class are of."""
    types = parameters.settings.get("types")
    if not types or entry.by_type or not (of_ranks := rank_types(pattern.node, types)).any():
        return ""
    names = list(types)
    return f"ranks on {names[of_ranks.max()]} nodes are priced as on {names[0]} ones"


def _crowded(levels: Hierarchy, pattern: Schedule, apart: list[int]) -> int:
    """The nearest class of messages of which several at a time leave a group, or enter one; 0: there is none."""
    if isinstance(pattern, Long):  # in a round all ranks send
        return next((distance for distance in apart if distance > 1), 0)
    src, dst = pattern.node[pattern.src], pattern.node[pattern.dst]
    for distance, group in enumerate(levels.columns if levels.groups else (), 2):
        crossing = group[src] != group[dst]
        for end in (src, dst):
            meeting = np.unique(np.stack([pattern.step, group[end]])[:, crossing], axis=1, return_counts=True)[1]
            if (meeting > 1).any():
                return distance
    return 0


def _reach(entry: Family, parameters: ParameterSet, ranks: int, smallest: float, largest: float) -> str:
    low, high = parameters.bytes_range
    beyond = PriceStatus.EXTRAPOLATED.because
    if not entry.uses_bytes:
        if low <= smallest and largest <= high:
            return OK
        ends = dict.fromkeys(format_bytes(int(end)) for end in (low, high))
        return PriceStatus.BLIND.because(f"holds for {' to '.join(ends)}")
    if largest > high:
        return beyond(f"messages of {format_bytes(int(largest))}, probed up to {format_bytes(int(high))}")
    if smallest < low > SHORT_MESSAGE:
        return beyond(f"messages of {format_bytes(int(smallest))}, probed from {format_bytes(int(low))}")
    known = parameters.settings.get("ranks")
    if known and ranks > int(known):
        return beyond(f"{ranks} ranks, probed up to {known}")
    fewest, most = parameters.settings.get("fitted_ranks") or (ranks, ranks)
    if not fewest <= ranks <= most:
        return beyond(f"{ranks} ranks, fitted at {fewest} to {most}")
    return OK


def _vectors(parameters: ParameterSet, pattern: Schedule) -> list[tuple[str, int, Array]]:
    """What ranks do with vectors, of how many bytes they did it at most when it was measured, and of how many they do
    it at each size of a stack. Where copies have no cost of their own, that of reductions is theirs."""
    reduced = parameters.vectors.get("reduce")
    known = {"reduce": reduced, "copy": parameters.vectors.get("copy", reduced)}
    return [(kind, most, pattern.longest_work(kind)) for kind, most in known.items() if most]


def _too_long(parameters: ParameterSet, pattern: Schedule) -> list[str]:
    """At each size of a stack whether vectors are longer than those that were measured."""
    texts = [""] * pattern.sizes
    for kind, most, lengths in _vectors(parameters, pattern):
        for number in np.flatnonzero(lengths > most):
            long = f"{format_bytes(int(lengths[number]))} {WORKED_ON[kind]} at once"
            texts[number] = PriceStatus.EXTRAPOLATED.because(f"{long}, measured up to {format_bytes(most)}")
    return texts


def widening(entry: Family, parameters: ParameterSet, pattern: Schedule) -> Array:
    """The factor by which the ends of the interval move away, for each size of a stack: 1 within what was probed."""
    apart = np.full(pattern.sizes, _spread(parameters, pattern) if pattern.messages else 1.0)
    if not parameters.bytes_range or not pattern.messages or not entry.uses_bytes:
        return apart
    low, high = (max(end, SHORT_MESSAGE) for end in parameters.bytes_range)
    smallest, largest = (np.maximum(sizes, SHORT_MESSAGE) for sizes in pattern.extremes())
    above = np.maximum(np.log2(largest / high), 0)
    for _, most, lengths in _vectors(parameters, pattern):
        above = np.maximum(above, np.log2(np.maximum(lengths, most) / most))
    doublings = above + np.maximum(np.log2(low / smallest), 0)
    if known := parameters.settings.get("ranks"):
        doublings = doublings + max(np.log2(pattern.ranks / int(known)), 0)
    return apart * np.exp(NORMAL * typical_error(parameters) * np.sqrt(doublings))


def _spread(parameters: ParameterSet, pattern: Schedule) -> float:
    """Return by which factor messages over these distances may differ from those to which a model without placement
    was fitted."""
    if not (known := parameters.settings.get("apart")):
        return 1.0
    levels, apart = _classes(parameters, pattern)
    classes = set(parameters.settings.get("classes", ()))
    asked = [
        known[name] for name in (levels.names[distance] for distance in apart) if name in known and name not in classes
    ]
    fitted = [known[name] for name in parameters.settings["probed"] if name in known and name not in classes]
    if not asked or not fitted:
        return 1.0
    longer = max(high for _, high in asked) / min(low for low, _ in fitted)
    shorter = max(high for _, high in fitted) / min(low for low, _ in asked)
    return float(max(longer, shorter, 1.0))


def typical_error(parameters: ParameterSet) -> float:
    """Of the logarithm of a price: at cases left out of the fit; where there are none, at those that it has seen; 0 for
    values that nobody fitted."""
    if "error" in parameters.left_out:
        return float(np.log1p(parameters.left_out["error"]))
    ratios = [np.divide(curve.fitted, curve.measured) for curve in parameters.curves if min(curve.measured) > 0]
    logs = np.log(np.concatenate(ratios)[np.concatenate(ratios) > 0]) if ratios else np.zeros(1)
    return float(np.sqrt(np.mean(logs**2)))
