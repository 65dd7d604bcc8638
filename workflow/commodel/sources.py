"""Which files of this package a module rests on: what has to be newer than a result for the result to be made again.

Found in the import statements, not by importing. What a registry finds by its folder is not among them.
"""

import re
from functools import lru_cache
from pathlib import Path

PACKAGE = Path(__file__).parent  # the folder of this package, `commodel`
INSTALLED = PACKAGE.resolve() / "clone"  # where a wheel puts what a clone has beside the package
# Of the clone, or of its counterpart: Snakefile, params, profiles, native sources.
ROOT = (INSTALLED if INSTALLED.is_dir() else PACKAGE.parents[1]).resolve()

IMPORT = re.compile(rf"^ *from ({PACKAGE.name}\b[\w.]*) import (\([^)]*\)|.*)", re.MULTILINE)
COMMENT = re.compile("#.*")
NAME = re.compile(r"(?<!\bas )\b(?!as\b)\w+")


def sources(*modules: str) -> list[str]:
    """Return the files of some modules (`fit`, `families.tan`) and of everything they import, however far down. A name
    that is no module is an error: without its files, results would not be made again when code changes."""
    files: set[Path] = set()
    waiting = [_existing_file_of(name) for name in modules]
    while waiting:
        path = waiting.pop()
        if path not in files:
            files.add(path)
            waiting += imported(path) + rooms_of(path)
    return sorted(str(path) for path in files)


def file_of(name: str) -> Path | None:
    """`families.logp-tan` is in families/logp_tan.py, `families` in families/__init__.py."""
    place = PACKAGE.joinpath(*name.replace("-", "_").split("."))
    return next((path for path in (place.with_suffix(".py"), place / "__init__.py") if path.exists()), None)


def _existing_file_of(name: str) -> Path:
    if (path := file_of(name)) is None:
        raise ValueError(f"found no module {PACKAGE.name}.{name}")
    return path


def rooms_of(path: Path) -> tuple[Path, ...]:
    """Python runs the `__init__.py` of every folder on the way to a file."""
    return tuple(folder / "__init__.py" for folder in path.parents if PACKAGE in folder.parents)


@lru_cache
def imported(path: Path) -> tuple[Path, ...]:
    """Read off the text, which `ruff format` keeps in this form: a syntax tree of every file takes most of a second,
    and each call of Snakemake asks."""
    names: list[str] = []
    for module, given in IMPORT.findall(COMMENT.sub("", path.read_text(encoding="utf-8"))):
        names += [module, *(f"{module}.{name}" for name in NAME.findall(given))]
    stems = [name.partition(".")[2] for name in names]
    return tuple(file for stem in stems if stem and (file := file_of(stem)))
