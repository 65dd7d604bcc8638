"""Parameter sets as YAML files (`read_parameters`, `write_parameters`)."""

from collections.abc import Iterable, Iterator
from dataclasses import asdict
from math import isfinite
from typing import Annotated, Any, Literal, Self

from annotated_types import Len
from pydantic import BaseModel, Field, FiniteFloat, TypeAdapter, model_validator

from commodel.errors import UserError, make_printable
from commodel.files.atomic import write_text
from commodel.files.fields import make_refusal
from commodel.files.quantities import parse_with_unit
from commodel.files.safe_paths import AnyPath
from commodel.files.safe_reading import MIB
from commodel.files.typed_records import parse_record
from commodel.files.yaml import Document, format_yaml, read_yaml
from commodel.hierarchy import MAX_SOCKETS
from commodel.parameters import ALL_OPERATIONS, Curve, Estimate, ParameterSet, StoredResiduals
from commodel.torus import MAX_DIMENSIONS, MAX_LENGTH
from commodel.units import MAX_COUNT, parse_count, show_value

MAX_FILE_BYTES = 8 * MIB  # enough for the draws of a table for each pair of several node types
PARAMETER_SET = TypeAdapter(ParameterSet)
Positive = Annotated[float, Field(gt=0)]
MAX_LINKS = 4096
# numbers that the residual model fits to an operation: of models, of models with a part of settings,
# and of the MPI default
NUMBERS_OF_SCALES = (7, 8, 9)
# Bounds of stored residuals: within them, nothing computed from them is infinite.
MAX_SCALE = 100.0
MAX_DEVIATIONS = 1e4
MAX_LOG = 100.0
MAX_AMOUNT = 1e18
RESIDUAL_BOUNDS = {
    "ranks": (1, MAX_AMOUNT),
    "nodes": (1, MAX_AMOUNT),
    "bytes": (0, MAX_AMOUNT),
    "log": (-MAX_LOG, MAX_LOG),
    "variance": (0, MAX_LOG),
}
MAX_NODE_PAIRS = 1 << 20


class Contention(BaseModel):
    """Concurrent messages that the model mispredicts: the smallest size, and measured over
    predicted time."""

    from_bytes: Annotated[float, Field(ge=0)]
    ratio: Positive


class SingleMessages(BaseModel):
    """Times of single messages by size, in seconds."""

    bytes: Annotated[list[Annotated[float, Field(ge=0)]], Field(min_length=1)]
    measured: list[Positive]
    predicted: list[Positive]

    @model_validator(mode="after")
    def check_lengths(self) -> Self:
        sizes = self.bytes
        if (
            not len(sizes) == len(self.measured) == len(self.predicted)
            or sorted(set(sizes)) != sizes
        ):
            raise make_refusal(
                f"found {len(sizes)} sizes, {len(self.measured)} measured and "
                f"{len(self.predicted)} predicted times; wanted rising sizes, and for each one both "
                "times"
            )
        return self


class MemoryCopies(BaseModel):
    """Rates of copies by several ranks of a node at once, in bytes per second: a column for each
    property of the cases."""

    type: list[str]
    procs: list[Annotated[int, Field(ge=1, le=MAX_COUNT)]]
    sockets: list[Annotated[int, Field(ge=0, le=MAX_COUNT)]]
    bytes: list[Annotated[int, Field(ge=1)]]
    rate: list[Positive]
    low: list[Positive]
    high: list[Positive]
    fastest: list[Positive]

    @model_validator(mode="after")
    def check_lengths(self) -> Self:
        cases = len(self.type)
        if not cases:
            raise make_refusal("found no case, wanted at least one", "type")
        for name, column in self:
            if len(column) != cases:
                raise make_refusal(
                    f"found {len(column)} values, wanted {cases} as in column type", name
                )
        return self


Ranks = Annotated[int, Field(ge=1, le=MAX_COUNT)]


# The concurrent messages that are mispredicted: `predictions.validity.CONTENTION_CASES` explains
# the words.
# sender's, receiver's type
BETWEEN_NODE_TYPES = Annotated[str, Field(pattern=r"^(row|fan)\.[a-z0-9-]+\.[a-z0-9-]+$")]
CONTENTION_CASE = Literal["nodes", "ranks", "rounds", "row", "fan"] | BETWEEN_NODE_TYPES


class Settings(BaseModel):
    """The settings that predictions use. Models check other settings themselves."""

    probed_classes: list[str] = []  # distance classes of the messages of the probes
    half_duplex: list[str] = []  # levels whose links carry one direction at a time
    # Least and most ranks, if the set was fitted to collective operations.
    fitted_ranks: tuple[Ranks, Ranks] | None = None
    # by level: parallel links of a group
    links: dict[str, Annotated[int, Field(ge=1, le=MAX_LINKS)]] = {}
    # by level: time per byte of each group's links over the model's c_out
    link_factors: dict[str, list[Positive]] = {}
    # Latency of each pair of nodes over that of its distance class: (0, 1), (0, 2), …, (1, 2), …
    pair_latency: Annotated[list[FiniteFloat], Len(max_length=MAX_NODE_PAIRS)] = []
    torus: Annotated[
        list[Annotated[int, Field(ge=2, le=MAX_LENGTH)]], Len(max_length=MAX_DIMENSIONS)
    ] = []
    # number of nodes of each node type
    types: dict[str, Annotated[int, Field(ge=0, le=MAX_COUNT)]] = {}
    # Round-trip time of a distance class over that of the first two nodes: the smallest and the
    # largest over all sizes.
    distance_ratios: dict[str, tuple[Positive, Positive]] = {}
    # Round-trip time of the slowest pair of nodes over that of the probed pair: among all pairs,
    # within a distance class, and between two node types.
    heterogeneity: Positive = 1.0
    heterogeneity_by_class: dict[str, Positive] = {}
    heterogeneity_by_types: dict[str, Positive] = {}
    contention: dict[CONTENTION_CASE, Contention] = {}
    # See `predictions/sockets.py`.
    sockets: Annotated[int, Field(ge=2, le=MAX_SOCKETS)] | None = None
    memory_bandwidth: dict[Literal["node", "host"], Positive] = {}
    memory_from: Annotated[int, Field(ge=0)] = 0
    memory_copies: MemoryCopies | None = None
    message_bandwidth: Positive | None = None
    single_messages: dict[str, SingleMessages] = {}  # by distance class


SETTINGS_TYPE = TypeAdapter(Settings)


def write_parameters(path: AnyPath, parameters: ParameterSet) -> None:
    """Write a parameter set as YAML file."""
    write_text(path, format_parameters(parameters))


def format_parameters(parameters: ParameterSet) -> str:
    """Return a parameter set as YAML text. Parameters come first, because people read them; curves
    and draws last."""
    document = {
        "model": parameters.model,
        "platform": parameters.platform,
        "simulated": parameters.simulated,
        "source": parameters.source,
        "bytes_range": list(parameters.bytes_range) if parameters.bytes_range else None,
        "vectors": dict(parameters.vectors),
        "forms": dict(parameters.forms),
        "settings": dict(parameters.settings),
        "parameters": {
            name: _collect_estimate_fields(value) for name, value in parameters.values.items()
        },
        "missing": dict(parameters.missing),
        "left_out": dict(parameters.left_out),
        "provenance": dict(parameters.provenance),
        "residuals": _collect_residuals(parameters.residuals) if parameters.residuals else None,
        "curves": [_collect_curve_fields(curve) for curve in parameters.curves],
        "draws": {name: _round_draws(draws) for name, draws in parameters.draws.items()},
    }
    return format_yaml(
        {key: value for key, value in document.items() if value not in (None, {}, [])}
    )


def _round_draws(draws: Iterable[float]) -> list[float]:
    return [float(f"{draw:.6g}") for draw in draws]


def _collect_estimate_fields(estimate: Estimate) -> dict[str, Any]:
    fields = {"value": estimate.value, "unit": estimate.unit}
    if not estimate.low == estimate.value == estimate.high:
        fields |= {"low": estimate.low, "high": estimate.high}
    fields |= {} if estimate.known else {"known": False}
    return fields | ({"note": estimate.note} if estimate.note else {})


def _collect_residuals(residuals: StoredResiduals) -> dict[str, Any]:
    columns: dict[str, Any] = {name: list(column) for name, column in residuals.columns.items()}
    scales = {name: list(values) for name, values in residuals.scales.items()}
    return {
        **columns,
        "scales": scales,
        "error": residuals.error,
        "deviations": dict(residuals.deviations),
    }


def _collect_curve_fields(curve: Curve) -> dict[str, Any]:
    finite = {
        name: value
        for name, value in asdict(curve).items()
        if not isinstance(value, float) or isfinite(value)
    }
    return {
        name: list(value) if isinstance(value, tuple) else value for name, value in finite.items()
    }


def read_parameters(path: AnyPath) -> ParameterSet:
    """Return the parameter set of a file; intervals may be omitted, as in sets written by hand."""
    return parse_parameters(read_yaml(path, MAX_FILE_BYTES))


def parse_parameters(document: Document) -> ParameterSet:
    """Return the parameter set of a YAML document, after all checks."""
    parameters = parse_record(PARAMETER_SET, _fill_defaults(document), document)
    parse_record(SETTINGS_TYPE, dict(parameters.settings), document, ("settings",))
    for key, complaint in _find_contradictions(parameters):
        raise document.error(key, complaint)
    return parameters


def _fill_defaults(document: Document) -> object:
    """Return the data of a document, with defaults for omitted entries such as intervals and
    units."""
    data = document.data
    if not isinstance(data, dict):
        return data
    full = {
        "platform": "",
        "source": data.get("citation", ""),
        **data,
        "parameters": data.get("parameters", {}),
    }
    full.pop("citation", None)
    if isinstance(full["parameters"], dict):
        full["parameters"] = {
            name: _complete_estimate(document, name, estimate)
            for name, estimate in full["parameters"].items()
        }
    return full


def _complete_estimate(document: Document, name: str, estimate: object) -> dict[str, Any]:
    """Return the fields of an estimate. Its value and the ends of its interval are numbers, or
    texts such as 5us."""
    estimate = dict(estimate) if isinstance(estimate, dict) else {"value": estimate}
    for key in ("value", "low", "high"):
        text = estimate.get(key)
        if isinstance(text, str):
            try:
                estimate[key], unit = parse_with_unit(text)
                if estimate.setdefault("unit", unit) != unit:
                    raise UserError(
                        f"found '{make_printable(text, 40)}' beside the unit {show_value(estimate['unit'])}, wanted one"
                    )
            except UserError as error:
                path = ("parameters", name, key)
                raise document.error(
                    path if document.has(path) else path[:2], error.found
                ) from None
    return {"unit": "", "low": estimate.get("value"), "high": estimate.get("value"), **estimate}


def _find_wrong_residuals(
    residuals: StoredResiduals,
) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Yield the key and a message for each inconsistency of stored residuals."""
    count = len(residuals.log)
    for name, column in residuals.columns.items():
        if len(column) != count or not count:
            yield (
                ("residuals", name),
                f"found {len(column)} values, wanted one for each of the {count} points",
            )
    for name, (least, largest) in RESIDUAL_BOUNDS.items():
        for number in residuals.columns[name]:
            if not least <= number <= largest:
                yield (
                    ("residuals", name),
                    f"found {number:g}, wanted a number from {least:g} to {largest:g}",
                )
                break
    if ALL_OPERATIONS not in residuals.scales:
        yield ("residuals", "scales"), f"wanted those of '{ALL_OPERATIONS}' operations"
    for name, values in residuals.scales.items():
        key = ("residuals", "scales", name)
        if len(values) not in NUMBERS_OF_SCALES:
            counts = " or ".join(map(str, NUMBERS_OF_SCALES))
            yield key, f"found {len(values)} numbers, wanted {counts}"
        for value in values:
            if not 0 < value <= MAX_SCALE:
                yield key, f"found {value:g}, wanted a number above 0 and at most {MAX_SCALE:g}"
    if not 0 <= residuals.error <= MAX_SCALE:
        yield (
            ("residuals", "error"),
            f"found {residuals.error:g}, wanted a number from 0 to {MAX_SCALE:g}",
        )
    in_bounds = all(0 < count <= MAX_DEVIATIONS for count in residuals.deviations.values())
    if "workload" not in residuals.deviations or not in_bounds:
        wanted = f"numbers above 0 and at most {MAX_DEVIATIONS:g}, among them that of a workload"
        yield ("residuals", "deviations"), f"wanted {wanted}"


def _find_contradictions(parameters: ParameterSet) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Yield the key and a message for each inconsistency that the types of the fields do not
    exclude."""
    if not parameters.values and not parameters.missing:
        yield ("parameters",), "found none, wanted a value for each parameter"
    if parameters.bytes_range and not 0 <= parameters.bytes_range[0] <= parameters.bytes_range[1]:
        yield ("bytes_range",), "found no range, wanted the smallest and the largest size"
    if parameters.left_out.get("error", 0.0) < 0:
        yield ("left_out", "error"), "found a number below 0"
    if "ranks" in parameters.settings:
        try:
            parse_count(parameters.settings["ranks"])
        except UserError as error:
            yield ("settings", "ranks"), error.message
    unknown = parameters.draws.keys() - parameters.values.keys()
    if unknown:
        yield ("draws",), f"found draws of '{make_printable(min(unknown), 60)}', which has no value"
    if len({len(draws) for draws in parameters.draws.values()}) > 1 or not all(
        parameters.draws.values()
    ):
        yield ("draws",), "found more of one value than of another, wanted equally many"
    if parameters.residuals is not None:
        yield from _find_wrong_residuals(parameters.residuals)
    for number, curve in enumerate(parameters.curves):
        if not 0 < len(curve.x) == len(curve.measured) == len(curve.fitted):
            yield ("curves", number), "found x, measured and fitted of different lengths"
