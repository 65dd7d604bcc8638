"""commodel families: the model families, what each is made of and what it leaves out."""

from __future__ import annotations

import json
import textwrap
from typing import TYPE_CHECKING

import click

from commodel.cli._output import show, style_option, table
from commodel.units import format_bytes

if TYPE_CHECKING:
    from commodel.models.families import Family


@click.command()
@click.argument("name", required=False)
@style_option
def families(name: str | None, style: str) -> None:
    """List the model families, or show one: equation, parameters, probes, citation, published sets."""
    from commodel.models.families import family, family_names

    entries = [family(name) for name in ([name] if name else family_names())]
    if name and style == "table":
        click.echo(sheet(entries[0]))
    elif style == "json":
        listed = [about(entry) for entry in entries]
        click.echo(json.dumps(listed[0] if name else listed, indent=1, ensure_ascii=False))
    else:
        show([row(entry) for entry in entries], style)


def row(entry: Family) -> dict[str, str]:
    names = (parameter.symbol for parameter in entry.parameters)
    return {"name": entry.name, "title": entry.title, "parameters": " ".join(names), "probes": " ".join(entry.probes)}


def about(entry: Family) -> dict[str, object]:
    names = ("name", "title", "citation", "equation", "ignores", "uses_bytes")
    parameters = [
        {key: getattr(parameter, key) for key in ("name", "unit", "meaning", "argument", "of")}
        | {"required": parameter.default is None and not parameter.optional}
        for parameter in entry.parameters
    ]
    return {name: getattr(entry, name) for name in names} | {
        "parameters": parameters,
        "probes": list(entry.probes),
        "settings": {key: list(allowed) for key, allowed in (entry.settings or {}).items()},
        "decides": dict(entry.decides or {}),
        "published": [path for path, _ in published(entry)],
    }


def published(entry: Family) -> list[tuple[str, str]]:
    """Files of values that papers print, and where from."""
    from commodel.models.parameter_sets import read_set
    from commodel.platforms.tools import ROOT

    folder = ROOT / "params" / "published" / entry.name.replace("_", "-")
    return [(str(path.relative_to(ROOT)), read_set(path).source) for path in sorted(folder.glob("*.yaml"))]


def sheet(entry: Family) -> str:
    from commodel.models.parameter_sets import read_set
    from commodel.platforms.tools import ROOT

    parameters = [
        {
            "parameter": parameter.symbol,
            "unit": parameter.unit,
            "meaning": parameter.about,
        }
        for parameter in entry.parameters
    ]
    size = "prices grow with the message" if entry.uses_bytes else "blind to the size of a message"
    lines = [
        entry.title,
        "",
        *textwrap.wrap(entry.citation, 100),
        "",
        *textwrap.wrap(entry.equation, 100, initial_indent="equation   ", subsequent_indent=" " * 11),
        *textwrap.wrap(entry.ignores, 88, initial_indent="ignores    ", subsequent_indent=" " * 11),
        f"probes     {', '.join(entry.probes)}",
        f"size       {size}",
    ]
    for name, allowed in (entry.settings or {}).items():
        about = f"{name}: {' or '.join(allowed)}. {(entry.decides or {}).get(name, '')}"
        lines += textwrap.wrap(about, 88, initial_indent="setting    ", subsequent_indent=" " * 11)
    lines += ["", table(parameters)] if parameters else ["", "no parameters"]
    for path, source in published(entry):
        ends = read_set(ROOT / path).bytes_range
        reach = f", {format_bytes(int(ends[0]))} to {format_bytes(int(ends[1]))}" if ends else ""
        lines += ["", f"published  {path}", f"           {source}{reach}"]
    return "\n".join(lines)
