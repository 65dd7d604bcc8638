"""A plan as a file has it, which anybody may have written: every field is of the type and form that stages take for
granted, and what is not has its key in the message."""

import re
from collections.abc import Mapping
from dataclasses import fields, replace

from pydantic import ValidationError

from commodel.errors import UserError, one_line
from commodel.files.yaml import key_name
from commodel.plan.experiments import Measure
from commodel.records import Batch, Case, Plan, Point

FOLDER = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,120}")
PLAIN = {str: str, int: int, float: int | float, bool: bool, Mapping[str, object]: Mapping}  # types of fields
MOST = 2**63  # of any number in a plan
WANTED = {str: "text", int: "a whole number", bool: "true or false", Mapping: "a mapping"}
PLATFORM = {"title": str, "launcher": str, "simulated": bool, "digest": str, "nodes": int, "cores": int}
NEEDED = {"launcher", "simulated", "digest"}  # of these
CONTAINER = {"image", "digest", "model", "native"}


def plan_of(data: dict) -> Plan:
    batches = tuple(
        typed(
            Batch,
            batch
            | {
                "points": tuple(typed(Point, point) for point in batch["points"]),
                "cases": tuple(typed(Case, case | {"where": tuple(case["where"])}) for case in batch["cases"]),
            },
        )
        for batch in data["batches"]
    )
    lists = {"families": tuple(data["families"]), "probes": {k: tuple(v) for k, v in data["probes"].items()}}
    found = typed(Plan, data | lists | {"batches": batches})
    names = {"experiment": [found.experiment], "platforms": found.platforms, "families": found.families}
    names |= {"batches": [batch.name for batch in batches], "probes": found.probes}
    for key, entries in names.items():
        for name in entries:
            if not isinstance(name, str) or not FOLDER.fullmatch(name):
                raise UserError(f"found '{one_line(name, 60)}', wanted a name", key=key)
    for name, about in found.platforms.items():
        _check_platform(f"platforms.{name}", about)
    for batch in batches:
        if batch.platform not in found.platforms:
            raise UserError(f"found no platform '{one_line(batch.platform, 60)}'", key=f"batches.{batch.name}")
        if not batch.ids:
            raise UserError("found no cases in it", key=f"batches.{batch.name}")
        for case in batch.cases:
            if not all(isinstance(value, str | int | float) for value in case.settings.values()):
                raise UserError("found a setting that is neither text nor number", key=f"batches.{batch.name}")
            if not all(isinstance(node, int) and node >= 0 for node in case.where):
                raise UserError("found a node that is no whole number", key=f"batches.{batch.name}")
    return replace(found, measure=_measure(found.measure))


def _check_platform(key: str, about: object) -> None:
    """What a plan says of a platform: all that it must, and each of its type."""
    if not isinstance(about, Mapping):
        raise UserError(f"found '{one_line(about, 60)}', wanted a mapping", key=key)
    for name in sorted(NEEDED - about.keys()):
        raise UserError(f"found no key '{name}'", key=key)
    parts = [(key, about, PLATFORM), (f"{key}.types", about.get("types", {}), int)]
    parts += [(f"{key}.container", about.get("container", {}), str)]
    for place, part, kinds in parts:
        if not isinstance(part, Mapping):
            raise UserError(f"found '{one_line(part, 60)}', wanted a mapping", key=place)
        for name, value in part.items():
            kind = kinds.get(name, object) if isinstance(kinds, dict) else kinds
            if not isinstance(value, kind) or (isinstance(value, bool) and kind is int):
                found = f"found '{one_line(value, 60)}', wanted {WANTED[kind]}"
                raise UserError(found, key=f"{place}.{one_line(name, 60)}")
    if about.get("container") and about["container"].keys() != CONTAINER:
        raise UserError(f"wanted the keys {', '.join(sorted(CONTAINER))}", key=f"{key}.container")


def _measure(settings: Mapping[str, object]) -> dict[str, object]:
    """As an experiment may have them; the plan has all times in seconds."""
    timeout = settings.get("timeout")
    if isinstance(timeout, int | float) and not isinstance(timeout, bool):
        settings = {**settings, "timeout": f"{timeout!r} s"}
    try:
        return Measure.model_validate(settings).model_dump()
    except ValidationError as errors:
        first = errors.errors(include_url=False)[0]
        said = first["ctx"]["message"] if first["type"] == "refused" else first["msg"]
        raise UserError(said, key=key_name(("measure", *first["loc"]))) from None


def typed(kind: type, data: Mapping[str, object]):
    """A record from JSON, each field of the type that its class says: a file may have been written by anybody."""
    found = kind(**data)
    for each in fields(kind):
        value, wanted = getattr(found, each.name), PLAIN.get(each.type)
        if wanted and (not isinstance(value, wanted) or (isinstance(value, bool) and wanted is not bool)):
            raise TypeError(f"{kind.__name__.lower()}.{each.name} is '{one_line(value, 60)}'")
        if isinstance(value, int | float) and not 0 <= value < MOST:
            raise ValueError(f"{kind.__name__.lower()}.{each.name} is '{one_line(value, 60)}'")
    return found
