"""Parameter sets as YAML files, and back."""

from math import isfinite

import yaml

from commodel.errors import UserError
from commodel.files.atomic import write_text
from commodel.files.paths import AnyPath
from commodel.files.yaml import read as read_yaml
from commodel.records import Curve, Estimate, ParameterSet
from commodel.units import parse_count


def write_parameters(path: AnyPath, parameters: ParameterSet) -> None:
    write_text(path, parameters_text(parameters))


def parameters_text(parameters: ParameterSet) -> str:
    """Parameters first, for people; curves and draws, for charts and intervals, at the end."""
    document = {
        "family": parameters.family,
        "platform": parameters.platform,
        "simulated": parameters.simulated,
        "source": parameters.source,
        "bytes_range": list(parameters.bytes_range) if parameters.bytes_range else None,
        "forms": dict(parameters.forms),
        "settings": dict(parameters.settings),
        "parameters": {name: _estimate_fields(value) for name, value in parameters.values.items()},
        "missing": dict(parameters.missing),
        "left_out": dict(parameters.left_out),
        "provenance": dict(parameters.provenance),
        "curves": [_curve_fields(curve) for curve in parameters.curves],
        "draws": {name: [float(f"{draw:.6g}") for draw in draws] for name, draws in parameters.draws.items()},
    }
    kept = {key: value for key, value in document.items() if value not in (None, {}, [])}
    return yaml.safe_dump(kept, sort_keys=False, allow_unicode=True, default_flow_style=None, width=120)


def _estimate_fields(estimate: Estimate) -> dict:
    fields = {"value": estimate.value, "unit": estimate.unit}
    if not estimate.low == estimate.value == estimate.high:
        fields |= {"low": estimate.low, "high": estimate.high}
    fields |= {} if estimate.known else {"known": False}
    return fields | ({"note": estimate.note} if estimate.note else {})


def _curve_fields(curve: Curve) -> dict:
    fields = {name: getattr(curve, name) for name in Curve.__slots__}
    finite = {name: value for name, value in fields.items() if not isinstance(value, float) or isfinite(value)}
    return {name: list(value) if isinstance(value, tuple) else value for name, value in finite.items()}


def read_parameters(path: AnyPath) -> ParameterSet:
    """A parameter set from a file that commodel or a person wrote; an interval may be left out."""
    document = read_yaml(path)
    data = document.data

    def fail(message: str, *key: str):
        raise UserError(message, file=path, line=document.line(key), key=".".join(key))

    if not isinstance(data, dict):
        fail("wanted the keys family, parameters, …")
    known = {
        "family",
        "platform",
        "simulated",
        "source",
        "citation",
        "bytes_range",
        "forms",
        "settings",
        "missing",
        "left_out",
        "parameters",
        "provenance",
    }
    for key in data:
        if key not in known | {"curves", "draws"}:
            fail(f"unknown key '{key}'", key)
    if not isinstance(data.get("family"), str):
        fail("wanted the name of a family", "family")
    entries = data.get("parameters", {})
    if not isinstance(entries, dict) or not (entries or data.get("missing")):
        fail("wanted a value for each parameter", "parameters")
    values = {}
    for name, entry in entries.items():
        entry = entry if isinstance(entry, dict) else {"value": entry}
        try:
            value = _finite(entry["value"])
            low, high = float(entry.get("low", value)), float(entry.get("high", value))
            known = entry.get("known", True) is not False
            values[name] = Estimate(value, str(entry.get("unit", "")), low, high, str(entry.get("note", "")), known)
        except (KeyError, TypeError, ValueError, OverflowError):
            fail(f"found {entry!r}, wanted a number, or value, unit, low and high", "parameters", name)
    try:
        found = ParameterSet(
            family=data["family"],
            platform=str(data.get("platform", "")),
            source=str(data.get("source", data.get("citation", ""))),
            values=values,
            forms={name: str(form) for name, form in data.get("forms", {}).items()},
            settings=dict(data.get("settings", {})),
            missing={name: str(why) for name, why in data.get("missing", {}).items()},
            left_out={name: _finite(number) for name, number in data.get("left_out", {}).items()},
            simulated=bool(data.get("simulated", False)),
            bytes_range=tuple(_finite(end) for end in data["bytes_range"]) if "bytes_range" in data else None,
            curves=tuple(_curve(entry) for entry in data.get("curves", [])),
            draws={name: tuple(_finite(draw) for draw in draws) for name, draws in data.get("draws", {}).items()},
            provenance=dict(data.get("provenance", {})),
        )
        _check(found)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError, UserError) as error:
        fail(f"damaged: {error}")
    return found


def _check(found: ParameterSet) -> None:
    """What prices and reports take for granted."""
    if found.bytes_range and not (len(found.bytes_range) == 2 and 0 <= found.bytes_range[0] <= found.bytes_range[1]):
        raise ValueError("bytes_range is no range")
    if found.left_out.get("error", 0.0) < 0:
        raise ValueError("left_out.error is below 0")
    if "ranks" in found.settings:
        parse_count(found.settings["ranks"])
    if unknown := found.draws.keys() - found.values.keys():
        raise ValueError(f"draws of {min(unknown)}, which has no value")
    if len({len(draws) for draws in found.draws.values()}) > 1 or not all(found.draws.values()):
        raise ValueError("draws are not equally many")
    for curve in found.curves:
        if not 0 < len(curve.x) == len(curve.measured) == len(curve.fitted):
            raise ValueError(f"the curve '{curve.title}' has columns that are not equally long")


def _finite(value: object) -> float:
    number = float(value)
    if not isfinite(number):
        raise ValueError(f"{number} is no number")
    return number


def _curve(entry: dict) -> Curve:
    columns = {name: tuple(_finite(value) for value in entry[name]) for name in ("x", "measured", "fitted")}
    texts = {name: str(entry[name]) for name in ("title", "x_label", "y_label", "form")}
    return Curve(**texts, **columns, **{name: float(entry.get(name, "nan")) for name in ("r2", "aic", "left_out")})
