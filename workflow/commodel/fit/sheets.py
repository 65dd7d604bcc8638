"""Parameters that nobody measured: what the data sheets of a network say of its messages, for families whose values go
by distance class. The set says so of itself, and so does every price."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from commodel.errors import UserError
from commodel.hierarchy import NODE, Hierarchy
from commodel.models.families import family, unit
from commodel.models.keys import in_class, key
from commodel.parameters import SHEETS, Estimate, ParameterSet

NOT_SAID = "data sheets do not say it: taken as 0"


@dataclass(frozen=True)
class Said:
    """What follows from the sheets: by distance class seconds of a message without bytes, and of each byte of it; by
    level seconds of each byte of all that leaves a group. Software takes its time at each end of a message."""

    levels: Hierarchy
    alone: Mapping[str, tuple[float, float]]
    shared: Mapping[str, float]
    overhead: float
    eager: float | None


def of_sheets(name: str, platform: str, said: Said) -> ParameterSet:
    known = ("shares", *ALONE)
    if name not in known:
        raise UserError(f"data sheets do not say what family {name} asks; wanted {', '.join(known)}")
    entry, levels = family(name), said.levels
    settings: dict[str, object] = {"levels": levels.settings, "probed": list(said.alone)} if levels.groups else {}
    if name == "shares":
        numbers = _shares(said)
    else:
        nearest, *others = (distance for distance in said.alone if distance != NODE)
        numbers = ALONE[name](*said.alone[nearest], said.overhead)
        others += [NODE] if NODE in said.alone else []
        if levels.groups and others:
            settings["classes"] = others
            for distance in others:
                own = ALONE[name](*said.alone[distance], said.overhead)
                whole = {text: bool(entry.by_name[text.partition(".")[0]].argument) for text in own}
                numbers |= {in_class(text, distance, whole[text]): value for text, value in own.items()}
    missing = {"gamma": NOT_SAID} | ({} if said.overhead else {"overhead of software": NOT_SAID})
    return ParameterSet(
        name,
        platform,
        SHEETS,
        {text: Estimate(value, unit(entry, text, {}), value, value) for text, value in numbers.items()},
        settings=settings,
        missing=missing,
        provenance={SHEETS: platform},
    )


def _shares(said: Said) -> dict[str, float]:
    numbers = {"o_s": said.overhead, "o_r": said.overhead}
    for name, (latency, byte) in said.alone.items():
        numbers |= {key("L", name, "a"): latency, key("G", name, "a"): byte}
    numbers |= {key("c_out", level, "a"): byte for level, byte in said.shared.items()}
    return numbers if said.eager is None else numbers | {"S": float(said.eager)}


def _hockney(latency: float, byte: float, overhead: float) -> dict[str, float]:
    return {"alpha.a": latency + 2 * overhead, "beta.a": byte}


def _loggp(latency: float, byte: float, overhead: float) -> dict[str, float]:
    return {"L": latency, "o_s": overhead, "o_r": overhead, "g": overhead, "G": byte}


ALONE: Mapping[str, Callable[[float, float, float], dict[str, float]]] = {"hockney": _hockney, "loggp": _loggp}
