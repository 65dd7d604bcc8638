"""What the network is in one figure, for the first screen: a latency and a bandwidth, measured where they were."""

import re
from collections.abc import Mapping, Sequence
from operator import itemgetter

from commodel.compare.network import Network, classes
from commodel.models.keys import Pair
from commodel.parameters import Estimate, ParameterSet
from commodel.report.front import Behind, Tile
from commodel.report.matrix import digits
from commodel.report.sections.network import rate_unit
from commodel.report.shape import MICRO
from commodel.report.values import plain
from commodel.units import format_seconds

HALF, ALONE = "Half a round trip of an empty message", "L, without the overheads of the two ends,"
PAIRS = (("alpha", "beta", HALF), ("alpha.a", "beta.a", HALF), ("L", "G", ALONE))  # a latency and a time a byte


def net(
    sets: Sequence[ParameterSet], networks: Sequence[Network], trips: Sequence[Mapping]
) -> tuple[Tile, Behind | None]:
    """What was measured between the nearest nodes, else between two ranks, else what was fitted."""
    for network in networks:
        rows = classes(network)
        near, far = rows.iloc[0], rows.iloc[-1]
        figure = f"{format_seconds(near['latency'])}, {rate(near['bandwidth'])}"
        ends = [format_seconds(near[end]) for end in ("latency_low", "latency_high")]
        line = "Half a round trip and bandwidth between two nodes"
        line += f" ({ends[0]} to {ends[1]})" if ends[0] != ends[1] else ""
        if len(rows) > 1:
            farthest = f"{format_seconds(far['latency'])}, {rate(far['bandwidth'])}"
            line += f"; {len(rows)} classes of distance, the farthest {farthest}"
        where = (("platform", plain(network.platform)), ("class", near["class"]))
        return Tile("Network", figure, f"{line}."), Behind("Classes", where)
    if trips := [trip for trip in trips if trip["median"] > 0]:
        pair = min((trip["pair"] for trip in trips), key=lambda pair: Pair.parse(pair).within)
        trips = sorted((trip for trip in trips if trip["pair"] == pair), key=itemgetter("bytes"))
        short, long = trips[0], trips[-1]
        median, low, high = (short[key] / MICRO for key in ("median", "low", "high"))
        figure = f"{format_seconds(median)}, {rate(long['bytes'] / (long['median'] / MICRO))}"
        spread = interval(low, high) or " (the same in every sample)"
        line = f"Half a round trip of {short['label']}{spread} and bandwidth at {long['label']}"
        line += ", between two ranks of one node" if Pair.parse(pair).within else ""
        where = (("platform", short["platform"]), ("pair", pair), ("bytes", short["bytes"]))
        return Tile("Network", figure, f"{line}."), Behind("Latency", where, "median")
    for latency, byte, what in PAIRS:
        for fitted in sets:
            constant, per_byte = fitted.values.get(latency), of_longest(fitted, byte)
            if (
                constant is not None
                and per_byte is not None
                and constant.known
                and constant.value > 0
                and per_byte.value > 0
            ):
                figure = f"{format_seconds(constant.value)}, {rate(1 / per_byte.value)}"
                line = f"{what}{interval(constant.low, constant.high)} and bandwidth of long messages"
                line += f", as {fitted.family} fits them"
                named = (("platform", plain(fitted.platform)), ("family", fitted.family), ("name", latency))
                return Tile("Network", plain(figure), plain(f"{line}.")), Behind("Parameters", named, "value")
    return Tile("Network", "not fitted", "No family that was fitted tells a latency and a bandwidth apart."), None


def of_longest(fitted: ParameterSet, name: str) -> Estimate | None:
    """A value that may be other where messages are longer: the last one."""
    pieces = [key for key in fitted.values if re.fullmatch(rf"{re.escape(name)}\d*", key)]
    return fitted.values[max(pieces, key=lambda key: (len(key), key))] if pieces else None


def interval(low: float, high: float) -> str:
    return f" [{format_seconds(low)}, {format_seconds(high)}]" if low < high else ""


def rate(bandwidth: float) -> str:
    unit, scale = rate_unit(bandwidth)
    return f"{digits(bandwidth / scale)} {unit}"
