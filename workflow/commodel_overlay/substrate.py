"""The overlay network, and MRNet, as substrates of platforms: what they can run, and typical
times."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from commodel.errors import UserError, locate_mistakes
from commodel.patterns.operations import (
    MIN_RANKS,
    fill_parameters,
    find_operation,
    parse_parameters,
)
from commodel.patterns.pattern_files import is_pattern_file
from commodel.substrates import Alias, Substrate
from commodel_overlay.operations import OPERATION, REDUCE
from commodel_overlay.probe_cases import has_equivalent

OPERATIONS = ("bcast", *(entry.name for entry in OPERATION), "reduce")  # that it runs


def check(combination: Mapping[str, Any]) -> None:
    """Refuse a combination of operation, tree and waves that an overlay network does not
    support."""
    name = combination["operation"]
    if is_pattern_file(name):
        raise UserError(
            f"found '{name}', but an overlay network runs {', '.join(OPERATIONS)}", key="operation"
        )
    _check_operation(name)
    if combination.get("algorithm"):
        message = (
            f"found '{combination['algorithm']}', but an overlay network has no algorithms; give "
            "a topology"
        )
        raise UserError(message, key="algorithm")
    if not combination.get("topology"):
        raise UserError(f"on an overlay network {name} needs a topology", key="operation")
    _check_waves(name, combination["waves"])


def _check_operation(name: str) -> None:
    with locate_mistakes(key="operation"):
        entry, values = find_operation(name), parse_parameters(name)
    if entry.name not in OPERATIONS:
        raise UserError(
            f"found '{entry.name}', but an overlay network runs {', '.join(OPERATIONS)}",
            key="operation",
        )
    if "compute" in values and "filter" in values:
        raise UserError("found compute and filter, wanted one of them", key="operation")
    if "period" in values and values.get("mode") != "timed":
        raise UserError("found period, which only mode=timed has", key="operation")


def _check_waves(name: str, waves: int) -> None:
    entry, values = find_operation(name), fill_parameters(name, MIN_RANKS, "overlay")
    mode = values.get("mode", "waves")
    if waves > 1 and not (entry.bytes and mode == "waves"):
        subject = f"mode={mode}" if entry.bytes else entry.name
        raise UserError(f"found several waves, which {subject} does not have", key="waves")
    if waves == 1 and mode == "waves" and values.get("compute"):
        message = (
            "found compute with one wave, whose time is half a round trip with half of the computation; "
            "wanted mode=synchronous or timed, or several waves"
        )
        raise UserError(message, key="operation")


OVERLAY = Substrate(
    name="overlay",
    title="an overlay network",
    launchers=("local", "hosts", "slurm"),
    starts="commodel_overlay.starts",
    check=check,
    runs_case=has_equivalent,
    latency=1e-4,
    bandwidth=1e9,
    seconds_per_case=0.2,
    aliases={
        "overlay-reduce": Alias("reduce"),
        "overlay-broadcast": Alias("bcast"),
        "overlay-throughput": Alias("reduce", waves=50),
    },
    parameters={"reduce": REDUCE},
)
SUBSTRATE = (
    OVERLAY,
    replace(OVERLAY, name="mrnet", title="MRNet", launchers=("local",)),
)
