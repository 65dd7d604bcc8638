"""Operations that only an overlay network has, and the parameters that it adds to `reduce`."""

from typing import Any

from commodel.errors import UserError
from commodel.patterns.operations import (
    Operation,
    OperationParameter,
    make_choice_parameter,
    no_data,
)
from commodel.units import parse_seconds

SUBSTRATES = ("overlay", "mrnet")
FILTERS = ("sum", "min", "max", "average", "none", "concat")
# filters whose output is as long as all input: no reduction
FORWARDING_FILTERS = ("none", "concat")
MODES = ("waves", "synchronous", "timed")
SKEW_MODES = ("tree", "direct", "tree-error", "direct-error")
MAX_PAUSE = 1.0  # seconds of a filter, or between two waves: an answer times out after a minute


def _make_time_parameter(
    name: str, form: str, title: str, default: float, **properties: Any
) -> OperationParameter:
    """Return a parameter whose value is a time."""

    def read(text: str) -> float:
        seconds = parse_seconds(text)
        if seconds > MAX_PAUSE:
            raise UserError(f"found '{text}', wanted at most {MAX_PAUSE:g} s")
        return seconds

    def write(seconds: float) -> str:
        return f"{1e6 * seconds:.12g}us"

    return OperationParameter(
        name, form, title, read, write, default, substrates=SUBSTRATES, **properties
    )


REDUCE = (
    make_choice_parameter(
        "filter",
        FILTERS,
        "of an overlay network",
        substrates=SUBSTRATES,
        without_schedule=lambda name: name in FORWARDING_FILTERS,
    ),
    _make_time_parameter(
        "compute",
        "10us",
        "of an overlay network: seconds that each node computes instead of the filter; default 0",
        0.0,
        without_schedule=lambda seconds: seconds > 0,
    ),
    make_choice_parameter(
        "mode",
        MODES,
        "of an overlay network: the root requests each wave, and half the round trip counts (waves); all leaves send "
        "at an agreed time (synchronous); or each leaf sends once per period (timed)",
        substrates=SUBSTRATES,
    ),
    _make_time_parameter(
        "period", "10ms", "of mode timed: from one wave to the next; default 10 ms", 0.01
    ),
)
CLASSES = make_choice_parameter(
    "mode",
    ("binned", "all"),
    "checksums are sorted into classes on their way up, then one back-end of each class sends its data (binned); or "
    "all send",
    substrates=SUBSTRATES,
)
SKEW = make_choice_parameter(
    "mode",
    SKEW_MODES,
    "time of 100 rounds over each link (tree), or to each back-end (direct); or the error of the skews that they find, "
    "which are 10 ms",
    substrates=SUBSTRATES,
)


def _make_measured_only(name: str, bytes: str, *parameters: OperationParameter) -> Operation:
    """Return an operation that no schedule describes."""
    return Operation(
        name,
        bytes,
        no_data,
        no_data,
        parameters=parameters,
        substrates=SUBSTRATES,
        without_schedule=True,
    )


OPERATION = (
    _make_measured_only(
        "overlay-classes", "the data of each back-end, of which there are four kinds", CLASSES
    ),
    _make_measured_only("overlay-skew", "", SKEW),
    _make_measured_only("overlay-startup", ""),
)
