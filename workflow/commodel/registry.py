"""Registries of models, algorithms, layouts and the like (`discover`, `lookup`). A registry is a folder of the package.

Every file of the folder defines the same constant, such as `ALGORITHM`. It holds one entry with a `name`, which is the
name of the file, or a tuple of several entries.
"""

import ast
import importlib
import pkgutil
from functools import lru_cache
from typing import Any

from commodel.errors import UserError, suggest_name
from commodel.sources import PACKAGE

NOUNS = {"FAMILY": "model"}  # that users read, where it is not the name of the constant


@lru_cache
def discover(folder: str, constant: str) -> dict[str, Any]:
    """Return the entries of `commodel.<folder>` by name, in alphabetical order; raise an error if two have one name."""
    entries: dict[str, Any] = {}
    for stem in _list_modules(folder):
        for entry in _import_entries(folder, constant, stem):
            if entry.name in entries:
                raise ImportError(f"commodel.{folder}.{stem}: a second {constant} '{entry.name}'")
            entries[entry.name] = entry
    return dict(sorted(entries.items()))


def list_names(folder: str, constant: str) -> list[tuple[str, ...]]:
    """Return the first two texts of each entry, such as name and title, for completion and help.

    They are read from the source text, because importing the modules takes longer.
    """
    names: list[tuple[str, ...]] = []
    for path in sorted((PACKAGE / folder.replace(".", "/")).glob("[a-z]*.py")):
        for statement in ast.parse(path.read_bytes()).body:
            if isinstance(statement, ast.Assign) and [ast.unparse(target) for target in statement.targets] == [
                constant
            ]:
                table = statement.value.elts if isinstance(statement.value, ast.Tuple) else [statement.value]
                for entry in table:
                    constants = (
                        [word for word in entry.args if isinstance(word, ast.Constant)]
                        if isinstance(entry, ast.Call)
                        else []
                    )
                    words = [str(word.value) for word in constants]
                    names += [tuple(words[:2])] if words else []
    return names


@lru_cache
def _list_modules(folder: str) -> tuple[str, ...]:
    package = importlib.import_module(f"commodel.{folder}")
    return tuple(module.name for module in pkgutil.iter_modules(package.__path__))


def _import_entries(folder: str, constant: str, stem: str) -> tuple[Any, ...]:
    """Return the entries of the module `stem`. A single entry has the name of its module, with '-' for '_'."""
    module = importlib.import_module(f"commodel.{folder}.{stem}")
    entry = getattr(module, constant, None)
    if entry is None:
        raise ImportError(f"{module.__file__} defines no {constant}")
    if isinstance(entry, tuple):
        return entry
    if entry.name.replace("-", "_") != stem:
        raise ImportError(f"{module.__file__}: {constant}.name is '{entry.name}', wanted the name of the file")
    return (entry,)


def lookup(folder: str, constant: str, name: str) -> Any:
    """Return the entry called `name`; an error lists similar names. Only the file of that name is imported, if it
    exists."""
    stem = name.replace("-", "_")
    own = _import_entries(folder, constant, stem) if stem in _list_modules(folder) else ()
    entries = {entry.name: entry for entry in own}
    if name not in entries:
        entries = discover(folder, constant)
    if name in entries:
        return entries[name]
    noun = NOUNS.get(constant, constant.lower())
    raise UserError(f"unknown {noun} '{name}'; {suggest_name(name, entries)}")
