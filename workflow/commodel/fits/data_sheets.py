"""Parameter sets from data sheets (`of_sheets`): latency and bandwidth of a network's links, without any measurement.

Only models with values by distance class are possible. The set and every prediction from it name this source.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from commodel.errors import UserError
from commodel.hierarchy import NODE, Hierarchy
from commodel.models.families import family, unit
from commodel.models.keys import in_class, key
from commodel.parameters import DATA_SHEET_SOURCE, Estimate, ParameterSet

NOT_SAID = "data sheets do not say it: taken as 0"


@dataclass(frozen=True)
class Costs:
    """Times that follow from data sheets. By distance class: seconds of an empty message, and seconds per byte. By
    level: seconds per byte of all traffic that leaves a group. Software takes its time at each end of a message."""

    levels: Hierarchy
    alone: Mapping[str, tuple[float, float]]
    shared: Mapping[str, float]
    overhead: float
    eager: float | None


def of_sheets(name: str, platform: str, costs: Costs) -> ParameterSet:
    families = ("shares", *ALONE)
    if name not in families:
        raise UserError(f"data sheets do not say what family {name} asks; wanted {', '.join(families)}")
    entry, levels = family(name), costs.levels
    settings: dict[str, object] = (
        {"levels": levels.settings, "probed_classes": list(costs.alone)} if levels.groups else {}
    )
    if name == "shares":
        numbers = _shares(costs)
    else:
        nearest, *others = (distance for distance in costs.alone if distance != NODE)
        numbers = ALONE[name](*costs.alone[nearest], costs.overhead)
        others += [NODE] if NODE in costs.alone else []
        if levels.groups and others:
            settings["classes"] = others
            for distance in others:
                of_class = ALONE[name](*costs.alone[distance], costs.overhead)
                whole = {text: bool(entry.by_name[text.partition(".")[0]].argument) for text in of_class}
                numbers |= {in_class(text, distance, whole[text]): value for text, value in of_class.items()}
    missing = {"gamma": NOT_SAID} | ({} if costs.overhead else {"overhead of software": NOT_SAID})
    return ParameterSet(
        name,
        platform,
        DATA_SHEET_SOURCE,
        {text: Estimate(value, unit(entry, text, {}), value, value) for text, value in numbers.items()},
        settings=settings,
        missing=missing,
        provenance={DATA_SHEET_SOURCE: platform},
    )


def _shares(costs: Costs) -> dict[str, float]:
    numbers = {"o_s": costs.overhead, "o_r": costs.overhead}
    for name, (latency, byte) in costs.alone.items():
        numbers |= {key("L", name, "a"): latency, key("G", name, "a"): byte}
    numbers |= {key("c_out", level, "a"): byte for level, byte in costs.shared.items()}
    return numbers if costs.eager is None else numbers | {"S": float(costs.eager)}


def _hockney(latency: float, byte: float, overhead: float) -> dict[str, float]:
    return {"alpha.a": latency + 2 * overhead, "beta.a": byte}


def _loggp(latency: float, byte: float, overhead: float) -> dict[str, float]:
    return {"L": latency, "o_s": overhead, "o_r": overhead, "g": overhead, "G": byte}


ALONE: Mapping[str, Callable[[float, float, float], dict[str, float]]] = {"hockney": _hockney, "loggp": _loggp}
