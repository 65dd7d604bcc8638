"""The public functions and classes with their signatures, as the site's page of the API shows
them."""

import inspect
import re

import commodel
from commodel.extensions import list_functions


def describe_functions() -> str:
    """Return a section for each public name: signature, docstring, and the attributes and methods
    of a class."""
    names = [*commodel._MODULES, *list_functions()]
    return "\n".join(_describe(name, getattr(commodel, name)) for name in names)


def _describe(name: str, thing: object) -> str:
    title = name if inspect.isclass(thing) else f"{name}{_signature(thing)}"
    text = re.sub(
        r"^(>>> .*?)(?:  # doctest.*)?$", r"    \1", inspect.getdoc(thing) or "", flags=re.MULTILINE
    )
    parts = [f"## {name}", f"```python\ncommodel.{title}\n```", text]
    members = vars(thing).items() if inspect.isclass(thing) else ()
    rows = [
        row
        for member, value in members
        if not member.startswith("_") and (row := _row(member, value))
    ]
    if rows:
        parts.append("\n".join(["| attribute or method | |", "|---|---|", *rows]))
    return "\n\n".join(parts) + "\n"


def _row(name: str, value: object) -> str:
    """Return a row of a class's table; attributes without a docstring are explained by their
    class."""
    described = getattr(value, "func", None) or getattr(value, "fget", None) or value
    text = (inspect.getdoc(described) or "").split("\n\n")[0].replace("\n", " ")
    if not text or not callable(described):
        return ""
    called = f"{name}{_signature(described)}" if described is value else name
    return f"| `{called.replace('|', '∣')}` | {text} |"


def _signature(function: object) -> str:
    return (
        str(inspect.signature(function))
        .replace("'", "")
        .replace("self, ", "")
        .replace("(self)", "()")
    )
