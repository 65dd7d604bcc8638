"""The source files that a module depends on (`list_source_files`): if one is newer than a result,
Snakemake makes the result again.

They are found in the import statements, without importing. Modules that a registry discovers in a
folder are missing.
"""

import re
from functools import lru_cache
from pathlib import Path

PACKAGE = Path(__file__).parent  # the folder of this package, `commodel`
# in an installed wheel, the files that a clone has besides the package
INSTALLED = PACKAGE.resolve() / "clone"
# The folder of Snakefile, params, profiles and native sources: the clone, or its counterpart in an
# installation.
ROOT = (INSTALLED if INSTALLED.is_dir() else PACKAGE.parents[1]).resolve()

IMPORT = re.compile(rf"^ *from ({PACKAGE.name}\b[\w.]*) import (\([^)]*\)|.*)", re.MULTILINE)
COMMENT = re.compile("#.*")
NAME = re.compile(r"(?<!\bas )\b(?!as\b)\w+")


def list_source_files(*modules: str) -> list[str]:
    """Return the files of some modules (`fit`, `families.tan`) and of all modules that they import,
    directly or not.

    A name that is no module is an error: without its files, results would not be made again when
    code changes.
    """
    files: set[Path] = set()
    pending = [_require_module_file(name) for name in modules]
    while pending:
        path = pending.pop()
        if path not in files:
            files.add(path)
            pending += list_imported_files(path) + list_init_files(path)
    return sorted(str(path) for path in files)


def find_module_file(name: str) -> Path | None:
    """Return the file of a module: families/logp_tan.py for `families.logp-tan`,
    families/__init__.py for `models`."""
    module_path = PACKAGE.joinpath(*name.replace("-", "_").split("."))
    return next(
        (
            path
            for path in (module_path.with_suffix(".py"), module_path / "__init__.py")
            if path.exists()
        ),
        None,
    )


def _require_module_file(name: str) -> Path:
    path = find_module_file(name)
    if path is None:
        raise ValueError(f"found no module {PACKAGE.name}.{name}")
    return path


def list_init_files(path: Path) -> tuple[Path, ...]:
    """Return the `__init__.py` of every folder above a file: Python runs them when the file is
    imported."""
    return tuple(folder / "__init__.py" for folder in path.parents if PACKAGE in folder.parents)


@lru_cache
def list_imported_files(path: Path) -> tuple[Path, ...]:
    """Return the files that a file imports, found by regular expressions in the form that `ruff
    format` keeps.

    Syntax trees of all files would add most of a second to each call of Snakemake.
    """
    names: list[str] = []
    for module, names_text in IMPORT.findall(COMMENT.sub("", path.read_text(encoding="utf-8"))):
        names += [module, *(f"{module}.{name}" for name in NAME.findall(names_text))]
    stems = [name.partition(".")[2] for name in names]
    return tuple(file for stem in stems if stem and (file := find_module_file(stem)))
