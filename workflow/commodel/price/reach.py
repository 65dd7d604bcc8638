"""How far parameters reach: what a price should be doubted for, and how much wider its interval is beyond what was
probed.

Beyond the probed range the logarithm of a price is taken to go astray like a random walk: with every doubling of the
message above it (or of what is combined or copied at once) or halving below it, or doubling of the ranks where a family
counts them, it errs once more by what it errs at probe cases that its fit has not seen. Messages of up to
SHORT_MESSAGE bytes count as one size.
"""

import numpy as np

from commodel.hierarchy import Hierarchy
from commodel.models import Array
from commodel.models.families import Family
from commodel.models.pricing.pairs import rank_types
from commodel.parameters import SHEETS, ParameterSet
from commodel.patterns.repeated import Long
from commodel.patterns.schedule import Schedule
from commodel.price.alone import alone, as_long, misfits
from commodel.price.meeting import meeting
from commodel.price.model import Model
from commodel.price.status import PriceStatus, foremost
from commodel.price.unlike import unlike, unlike_types
from commodel.stats import NORMAL
from commodel.units import format_bytes

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
    if (uneven := float(parameters.settings.get("uneven", 1.0))) > 1 and _between_nodes(pattern):
        far = f"nodes are up to {uneven:.1f} times as far from each other as those probed"
        return PriceStatus.UNNAMED.because(far)
    far = _beyond_probes(entry, parameters, pattern) or unlike(parameters, *_classes(parameters, pattern))
    return far or unlike_types(entry, parameters, pattern.node)


def _misfitting(parameters: ParameterSet, pattern: Schedule) -> list[str]:
    """At each size of a stack whether its messages are mispriced even where each is alone."""
    return [
        PriceStatus.MISFIT.because(f"even alone its messages take {as_long(times)}") if misfits(times) else ""
        for times in alone(parameters, pattern).tolist()
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


def _between_nodes(pattern: Schedule) -> bool:
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
    """How many times longer, or shorter, than those that a family blind to placement was fitted to messages may take
    that are as far from each other as these."""
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
