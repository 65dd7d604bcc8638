"""Registries of models, algorithms, layouts and the like (`discover`, `lookup`). A registry is a
folder of the package, with what extensions bring.

Every file of the folder defines the same constant, such as `ALGORITHM`. It holds one entry with a
`name`, which is the name of the file, or a tuple of several entries.
"""

import importlib
import pkgutil
from functools import lru_cache
from itertools import chain
from typing import Any

from commodel.errors import UserError, find_similar_name, suggest_name
from commodel.extensions import (
    find_absent_package,
    list_names_in_text,
    list_usable_extensions,
    read_names,
)
from commodel.sources import PACKAGE

NOUNS = {"FAMILY": "model"}  # that users read, where it is not the name of the constant


@lru_cache
def discover(folder: str, constant: str) -> dict[str, Any]:
    """Return the entries of `commodel.<folder>` and of extensions by name, in alphabetical order.

    A name that two packages bring is an error.
    """
    entries: dict[str, Any] = {}
    for stem in _list_modules(folder):
        for entry in _import_entries(folder, constant, stem):
            if entry.name in entries:
                raise ImportError(f"commodel.{folder}.{stem}: a second {constant} '{entry.name}'")
            entries[entry.name] = entry
    brought = discover_in_extensions(constant)
    for name in entries.keys() & brought.keys():
        _refuse_second(constant, name, "commodel", find_distribution(constant, name))
    return dict(sorted((entries | brought).items()))


@lru_cache
def discover_in_extensions(constant: str) -> dict[str, Any]:
    """Return the entries of one kind that extensions bring, by name."""
    entries: dict[str, Any] = {}
    distributions: dict[str, str] = {}
    for installed in list_usable_extensions():
        for entry in installed.list_entries(constant):
            if entry.name in entries:
                _refuse_second(
                    constant, entry.name, distributions[entry.name], installed.distribution
                )
            entries[entry.name] = entry
            distributions[entry.name] = installed.distribution
    return entries


def find_distribution(constant: str, name: str) -> str:
    """Return the package of the extension that brings an entry; empty if none does."""
    for installed in list_usable_extensions():
        if any(entry.name == name for entry in installed.list_entries(constant)):
            return installed.distribution
    return ""


def list_names(folder: str, constant: str) -> list[tuple[str, ...]]:
    """Return the first two texts of each entry, such as name and title, for completion and help.

    They are read from the source text, because importing the modules takes longer.
    """
    names: list[tuple[str, ...]] = []
    for path in sorted((PACKAGE / folder.replace(".", "/")).glob("[a-z]*.py")):
        names += read_names(path, constant)
    return names + list_names_in_text(constant)


@lru_cache
def _list_modules(folder: str) -> tuple[str, ...]:
    package = importlib.import_module(f"commodel.{folder}")
    found = pkgutil.iter_modules(package.__path__)
    return tuple(module.name for module in found if not module.ispkg)


def _import_entries(folder: str, constant: str, stem: str) -> tuple[Any, ...]:
    """Return the entries of the module `stem`. A single entry has the name of its module, with '-'
    for '_'."""
    module = importlib.import_module(f"commodel.{folder}.{stem}")
    entry = getattr(module, constant, None)
    if entry is None:
        raise ImportError(f"{module.__file__} defines no {constant}")
    if isinstance(entry, tuple):
        return entry
    if entry.name.replace("-", "_") != stem:
        raise ImportError(
            f"{module.__file__}: {constant}.name is '{entry.name}', wanted the name of the file"
        )
    return (entry,)


def _refuse_second(constant: str, name: str, first: str, second: str) -> None:
    noun = NOUNS.get(constant, constant.lower())
    raise UserError(f"found {noun} '{name}' in two packages, {first} and {second}; uninstall one")


def lookup(folder: str, constant: str, name: str) -> Any:
    """Return the entry called `name`; an error lists similar names. Only the file of that name is
    imported, if it exists in the registry's folder or in an extension."""
    stem = name.replace("-", "_")
    own = _import_entries(folder, constant, stem) if stem in _list_modules(folder) else ()
    entries = {entry.name: entry for entry in own}
    if name not in entries:
        brought = chain.from_iterable(
            extension.list_entries(constant, stem) for extension in list_usable_extensions()
        )
        entries = {entry.name: entry for entry in brought}
    if name not in entries:
        entries = discover(folder, constant)
    if name in entries:
        return entries[name]
    noun = NOUNS.get(constant, constant.lower())
    message = f"unknown {noun} '{name}'; {suggest_name(name, entries)}"
    package = find_absent_package(name)
    if package:
        message = f"{noun} '{name}' is in {package}, which is not installed"
    elif not find_similar_name(name, entries):
        message += "; or install the extension that brings it"
    raise UserError(message)
