"""Finds what the files of a folder define: one constant per file, named like its file, none twice."""

import importlib
import pkgutil
from functools import lru_cache

from commodel.errors import UserError, suggest


@lru_cache
def discover(folder: str, constant: str) -> dict[str, object]:
    """All entries of `commodel.<folder>`, by name. A file's stem is its entry's name with '-' as '_'."""
    package = importlib.import_module(f"commodel.{folder}")
    found: dict[str, object] = {}
    for module_info in pkgutil.iter_modules(package.__path__):
        module = importlib.import_module(f"{package.__name__}.{module_info.name}")
        entry = getattr(module, constant, None)
        if entry is None:
            raise ImportError(f"{module.__file__}: no {constant} in it")
        if entry.name.replace("-", "_") != module_info.name:
            raise ImportError(f"{module.__file__}: {constant}.name is '{entry.name}', the file says otherwise")
        found[entry.name] = entry
    return found


def lookup(folder: str, constant: str, name: str):
    """The entry called `name`, or a UserError that says which names there are."""
    entries = discover(folder, constant)
    try:
        return entries[name]
    except KeyError:
        raise UserError(f"unknown {constant.lower()} '{name}'; {suggest(name, entries)}") from None
