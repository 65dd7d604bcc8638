"""Which messages of a tree its price waits for, as people read it."""

from dataclasses import dataclass
from pathlib import Path

from commodel.errors import UserError
from commodel.models.parameter_sets import read_set
from commodel.patterns.points import Setting, make_point
from commodel.price.predictions import waits
from commodel.units import format_bytes, format_seconds, parse_bytes


@dataclass(frozen=True)
class Answering:
    rows: list[dict[str, object]]
    words: dict[int, str]  # of the message between a node and its parent
    about: str


def answering(spec: str, operation: str, size: str, params: Path) -> Answering:
    parameters = read_set(params)
    point = make_point(Setting.unlimited(), {"operation": operation, "topology": spec, "bytes": parse_bytes(size)})
    if (waited := waits(point, parameters)) is None:
        lacking = "is not replayed message by message, and does not tell which its price waits for"
        raise UserError(f"family {parameters.family} {lacking}", file=params)
    rows, words = [], {}
    for src, dst, seconds in waited.messages:
        share = f"{100 * seconds / waited.price:.0f} %"
        rows.append({"from": src, "to": dst, "seconds": format_seconds(seconds), "share": share})
        words[max(src, dst)] = f"{src} to {dst}: {format_seconds(seconds)}, {share}"
    working = f", {format_seconds(waited.work)} of work" if waited.work else ""
    price = f"{format_seconds(waited.price)} by {parameters.family}"
    asked = f"{operation} over {spec}, {format_bytes(point.bytes)}: {price}"
    return Answering(rows, words, f"{asked}, which waits for {len(rows)} of {point.ranks - 1} messages{working}")
