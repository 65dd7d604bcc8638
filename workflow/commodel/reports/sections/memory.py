"""The table of copies by the ranks of a node at once, which show the bandwidth of its memory."""

from collections.abc import Iterable, Sequence
from typing import Any

from commodel.models.fitting.memory import COPIES
from commodel.parameters import MEMORY_BANDWIDTH, MEMORY_FROM, ParameterSet
from commodel.reports.elements import Section, make_table, to_plain_value
from commodel.units import format_bytes

GIGA = 1e9
RATES = ("rate", "low", "high", "fastest")
NOTE = (
    "Each copied byte counts once; STREAM's copy counts it twice, as read and as written. Fastest: "
    "the fastest sample."
)


def make_sections(sets: Sequence[ParameterSet]) -> list[Section]:
    """Return the section on the memory of nodes; none without probe `memory`."""
    by_platform: dict[str, ParameterSet] = {}
    for fitted in sets:
        if COPIES in fitted.settings:
            by_platform.setdefault(fitted.platform, fitted)
    if not by_platform:
        return []
    rows: list[dict[str, Any]] = []
    sentences = [NOTE]
    for fitted in by_platform.values():
        rows += list_rows(fitted)
        platform = to_plain_value(fitted.platform)
        sentences.append(f"{platform}: {describe_limit(fitted)}.")
    table = make_table("Memory", "Copies by ranks of a node at once", rows)
    return [Section("Memory", " ".join(sentences), (table,))]


def list_rows(fitted: ParameterSet) -> Iterable[dict[str, Any]]:
    """Yield a row for each case, with rates in GB/s."""
    copies = fitted.settings[COPIES]
    for number, bytes in enumerate(copies["bytes"]):
        yield {
            "platform": to_plain_value(fitted.platform),
            "simulated": fitted.simulated,
            "type": copies["type"][number],
            "procs": copies["procs"][number],
            "sockets": copies["sockets"][number] or None,
            "bytes": bytes,
            **{name: copies[name][number] / GIGA for name in RATES},
        }


def describe_limit(fitted: ParameterSet) -> str:
    """Return which limit predictions get from the copies."""
    settings = fitted.settings
    if MEMORY_BANDWIDTH not in settings and fitted.simulated:
        return "no limit of the memory was found, since each further rank adds as much as the first"
    if MEMORY_BANDWIDTH not in settings:
        return "no limit of the memory was found, since long copies by all ranks were not measured"
    (bandwidth,) = settings[MEMORY_BANDWIDTH].values()
    shortest = settings.get(MEMORY_FROM)
    of_messages = f", for messages from {format_bytes(shortest)} on" if shortest else ""
    return f"predictions copy at most {bandwidth / GIGA:.3g} GB/s within a node{of_messages}"
