"""Finds what the files of a folder define: one constant per file, named like its file, none twice."""

import importlib
import pkgutil
from functools import lru_cache

from commodel.errors import UserError, suggest


@lru_cache
def discover(folder: str, constant: str) -> dict[str, object]:
    """All entries of `commodel.<folder>`, by name. A file's stem is its entry's name with '-' as '_'."""
    entries: dict[str, object] = {}
    for stem in _stems(folder):
        entry = _defined(folder, constant, stem)
        entries[entry.name] = entry
    return entries


@lru_cache
def _stems(folder: str) -> tuple[str, ...]:
    package = importlib.import_module(f"commodel.{folder}")
    return tuple(module.name for module in pkgutil.iter_modules(package.__path__))


def _defined(folder: str, constant: str, stem: str):
    module = importlib.import_module(f"commodel.{folder}.{stem}")
    entry = getattr(module, constant, None)
    if entry is None:
        raise ImportError(f"{module.__file__}: no {constant} in it")
    if entry.name.replace("-", "_") != stem:
        raise ImportError(f"{module.__file__}: {constant}.name is '{entry.name}', the file says otherwise")
    return entry


def lookup(folder: str, constant: str, name: str):
    """The entry called `name`, or a UserError that says which names there are. Only its file is imported."""
    stem = name.replace("-", "_")
    if stem in _stems(folder) and (entry := _defined(folder, constant, stem)).name == name:
        return entry
    raise UserError(f"unknown {constant.lower()} '{name}'; {suggest(name, discover(folder, constant))}")
