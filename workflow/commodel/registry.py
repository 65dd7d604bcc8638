"""Finds what the files of a folder define. A constant holds one entry, named like its file, or a table of several."""

import ast
import importlib
import pkgutil
from functools import lru_cache

from commodel.errors import UserError, suggest
from commodel.sources import HERE


@lru_cache
def discover(folder: str, constant: str) -> dict[str, object]:
    """Return all entries of `commodel.<folder>` in the order of their names; refuse a name that is there twice."""
    entries: dict[str, object] = {}
    for stem in _stems(folder):
        for entry in _defined(folder, constant, stem):
            if entry.name in entries:
                raise ImportError(f"commodel.{folder}.{stem}: {constant} '{entry.name}' is there already")
            entries[entry.name] = entry
    return dict(sorted(entries.items()))


def list_names(folder: str, constant: str) -> list[tuple[str, ...]]:
    """Return the first two texts of each entry as its file has them, its name in front, for completion and help: to
    import what the entries need would take longer."""
    names = []
    for path in sorted((HERE / folder.replace(".", "/")).glob("[a-z]*.py")):
        for statement in ast.parse(path.read_bytes()).body:
            if isinstance(statement, ast.Assign) and ast.unparse(statement.targets) == constant:
                table = statement.value.elts if isinstance(statement.value, ast.Tuple) else [statement.value]
                texts = [[word.value for word in entry.args if isinstance(word, ast.Constant)] for entry in table]
                names += [tuple(words[:2]) for words in texts if words]
    return names


@lru_cache
def _stems(folder: str) -> tuple[str, ...]:
    package = importlib.import_module(f"commodel.{folder}")
    return tuple(module.name for module in pkgutil.iter_modules(package.__path__))


def _defined(folder: str, constant: str, stem: str) -> tuple:
    """Return the entries of a file. The stem of a file with one entry is its name with '-' as '_'."""
    module = importlib.import_module(f"commodel.{folder}.{stem}")
    entry = getattr(module, constant, None)
    if entry is None:
        raise ImportError(f"{module.__file__}: no {constant} in it")
    if isinstance(entry, tuple):
        return entry
    if entry.name.replace("-", "_") != stem:
        raise ImportError(f"{module.__file__}: {constant}.name is '{entry.name}', the file says otherwise")
    return (entry,)


def lookup(folder: str, constant: str, name: str):
    """Return the entry called `name`, or refuse it with the names that there are. If a file is called so, only that is
    imported."""
    stem = name.replace("-", "_")
    own = _defined(folder, constant, stem) if stem in _stems(folder) else ()
    known = {entry.name: entry for entry in own}
    if name in known:
        return known[name]
    known = discover(folder, constant)
    if name in known:
        return known[name]
    raise UserError(f"unknown {constant.lower()} '{name}'; {suggest(name, known)}")
