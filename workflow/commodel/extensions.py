"""Extensions: installed packages that bring models, algorithms, formats, verbs and more
(`list_extensions`).

A package is an extension if it has an entry point in the group `commodel.extensions` that names an
`Extension`. That object names modules as text, so that a module is imported only when its things
are used. An extension that cannot be imported is named in one line on the standard error, once, and
all else works.
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from importlib import metadata
from pathlib import Path
from typing import Any, Literal

from commodel.errors import UserError

GROUP = "commodel.extensions"
INTERFACE = 1  # number of the interface described here; a change that breaks extensions raises it

# Names of our own extensions, for the error where one is not installed.
OUR_NAMES = {
    "commodel_formats": (
        "extrap",
        "microbench",
        "mpiblib",
        "netgauge",
        "pico",
        "reprompi",
        "simgrid",
        "skampi",
        "taulop",
    ),
    "commodel_kernels": ("kernel", "layouts", "partition", "speeds", "summa", "wave2d"),
    "commodel_overlay": (
        "mrnet",
        "overlay",
        "overlay-broadcast",
        "overlay-classes",
        "overlay-reduce",
        "overlay-skew",
        "overlay-startup",
        "overlay-throughput",
    ),
    "commodel_tune": ("tune",),
}

# Parameters of entries that are names: `read_names`.
NAMES_OF_ENTRIES = ("operation", "short_name", "name")

# Field of an `Extension` with the modules that define a constant, by the constant.
MODULES_OF_CONSTANT = {
    "FAMILY": "models",
    "ALGORITHM": "algorithms",
    "OPERATION": "operations",
    "TOPOLOGY": "topologies",
    "LAYOUT": "layouts",
    "PROBE": "probes",
    "SUBSTRATE": "substrates",
    "FORMAT": "formats",
    "PAPER": "papers",
    "TOOL": "tools",
}


@dataclass(frozen=True)
class Extension:
    """Everything that a package brings. A module defines the constant of its kind: one entry, or a
    tuple of several."""

    title: str
    interface: int  # the INTERFACE for which it was written
    models: tuple[str, ...] = ()  # modules that define FAMILY
    algorithms: tuple[str, ...] = ()  # ALGORITHM
    operations: tuple[str, ...] = ()  # OPERATION
    topologies: tuple[str, ...] = ()  # TOPOLOGY
    layouts: tuple[str, ...] = ()  # LAYOUT
    probes: tuple[str, ...] = ()  # PROBE
    substrates: tuple[str, ...] = ()  # SUBSTRATE
    formats: tuple[str, ...] = ()  # FORMAT
    papers: tuple[str, ...] = ()  # PAPER
    tools: tuple[str, ...] = ()  # TOOL: programs that `commodel doctor` looks for
    # MODULE:FUNCTION of each function that returns further sentences of `commodel doctor`
    checks: tuple[str, ...] = ()
    verbs: Mapping[str, Verb] = field(default_factory=dict)  # by name
    # by verb, such as `import`, and name
    subcommands: Mapping[str, Mapping[str, Verb]] = field(default_factory=dict)
    # names in `commodel`, and MODULE:NAME of each
    functions: Mapping[str, str] = field(default_factory=dict)
    native: tuple[Native, ...] = ()
    # of an experiment's report, by name
    sections: Mapping[str, ReportSection] = field(default_factory=dict)
    columns: str = ""  # CSV of the columns of its tables in reports, relative to the package
    # keys of an experiment: MODULE:FUNCTION that reads a file
    inputs: Mapping[str, str] = field(default_factory=dict)
    # formats of `commodel.export`: MODULE:FUNCTION by name
    exports: Mapping[str, str] = field(default_factory=dict)

    def list_modules(self, constant: str) -> tuple[str, ...]:
        return getattr(self, MODULES_OF_CONSTANT[constant])


@dataclass(frozen=True)
class Verb:
    """A verb of the command line: where its click command is, as MODULE:FUNCTION, and its sentence
    in the help."""

    function: str
    sentence: str
    # first word of the title under which the help lists it, such as "Ask"
    group: str = "Extensions"

    def load(self) -> Any:
        return load_function(self.function)


@dataclass(frozen=True)
class Native:
    """Native programs: `commodel build TOOLCHAIN` compiles the folders in their order, each by its
    Makefile.

    Paths are relative to the package. The Makefile gets `BUILD`, the folder of the programs;
    `NATIVE`, that of the core's sources; and `MPICC`, or `CC` and `CXX`.
    """

    toolchain: str  # one of the core, such as mpi, which builds these too; or the extension's own
    folders: tuple[str, ...]
    sources: tuple[str, ...]  # patterns of files; if one changes, points are measured again
    core_sources: tuple[str, ...] = ()  # the same for files of the core, such as harness/*.[ch]
    compiler: str = ""  # of a toolchain of its own, such as cc
    sentence: str = ""  # on a toolchain of its own, for the help
    settings: str = ""  # MODULE:FUNCTION that returns further variables of make, by name


@dataclass(frozen=True)
class ReportSection:
    """A section of an experiment's report: the function that makes it, and its place.

    The function takes `SectionInputs` of `commodel.reports.report_inputs` and returns the sections,
    none if there is nothing to show. They have the name under which the extension lists this.
    """

    function: str  # as MODULE:FUNCTION
    # on the page: behind the findings, or behind the raw summary
    place: Literal["answers", "evidence"] = "evidence"
    # of the workbook, to which it is appended, such as Network; empty: a sheet of its own
    sheet: str = ""
    contents: str = ""  # of its own sheet, for the list of sheets


def load_function(place: str) -> Any:
    """Return the function or class at MODULE:NAME."""
    module, _, name = place.partition(":")
    return getattr(importlib.import_module(module), name)


@dataclass(frozen=True)
class InstalledExtension:
    """An extension: the name of its entry point, and its package. With a `problem`, it is not
    used."""

    name: str
    distribution: str
    version: str
    module: str
    extension: Extension = Extension("", INTERFACE)
    problem: str = ""

    def list_entries(self, constant: str, stem: str = "") -> Iterator[Any]:
        """Yield the entries of a kind: of all modules, or of those that are called `stem`. A module
        that cannot be imported is reported."""
        for name in self.extension.list_modules(constant):
            if stem and name.rpartition(".")[2] != stem:
                continue
            try:
                entries = getattr(importlib.import_module(name), constant)
            except Exception as error:
                report_problem(self.name, f"cannot import {name}: {describe_error(error)}")
                continue
            yield from entries if isinstance(entries, tuple) else (entries,)

    def list_brought(self) -> dict[str, list[str]]:
        """Return the names of everything that it brings, by kind."""
        brought = {
            kind: [entry.name for entry in self.list_entries(constant)]
            for constant, kind in MODULES_OF_CONSTANT.items()
        }
        subcommands = [
            f"{verb} {name}" for verb, parts in self.extension.subcommands.items() for name in parts
        ]
        brought["verbs"] = [*self.extension.verbs, *subcommands]
        brought["functions"] = list(self.extension.functions)
        brought["sections"] = list(self.extension.sections)
        brought["native"] = list(
            dict.fromkeys(native.toolchain for native in self.extension.native)
        )
        return {kind: names for kind, names in brought.items() if names}

    def list_files(self) -> list[str]:
        """Return the source files of its package."""
        return [
            str(path)
            for folder in _find_folders(self.module)
            for path in sorted(folder.rglob("*.py"))
        ]


@lru_cache
def list_extensions() -> tuple[InstalledExtension, ...]:
    """Return the installed extensions by name, those with a problem too."""
    points = sorted(metadata.entry_points(group=GROUP), key=lambda point: point.name)
    return tuple(_load(point) for point in points)


def list_usable_extensions() -> list[InstalledExtension]:
    return [installed for installed in list_extensions() if not installed.problem]


def list_subcommands(verb: str, taken: Collection[str] = ()) -> dict[str, Verb]:
    """Return the subcommands of a verb that extensions bring, by name. A name that is taken is
    reported, and left out."""
    brought: dict[str, Verb] = {}
    for installed in list_usable_extensions():
        for name, command in installed.extension.subcommands.get(verb, {}).items():
            if name in taken or name in brought:
                report_problem(
                    installed.name, f"found verb '{verb} {name}', which another package has"
                )
            else:
                brought[name] = command
    return brought


def list_exports() -> dict[str, str]:
    """Return the formats that `commodel.export` writes by functions of extensions: MODULE:FUNCTION
    by name."""
    further = [installed.extension.exports for installed in list_usable_extensions()]
    return {name: place for exports in further for name, place in exports.items()}


def list_checks() -> list[str]:
    """Return the sentences of all extensions for `commodel doctor`. A function that fails is
    reported."""
    sentences: list[str] = []
    for installed in list_usable_extensions():
        for place in installed.extension.checks:
            try:
                sentences += load_function(place)()
            except Exception as error:
                report_problem(installed.name, f"cannot run {place}: {describe_error(error)}")
    return sentences


def list_functions() -> dict[str, str]:
    """Return the names that extensions add to the package `commodel`, and where each is, as
    MODULE:NAME."""
    functions = [installed.extension.functions for installed in list_usable_extensions()]
    return {name: place for names in functions for name, place in names.items()}


def list_natives() -> list[tuple[str, Path, Native]]:
    """Return the native programs of extensions, with the extension's name and the folder of its
    package."""
    natives: list[tuple[str, Path, Native]] = []
    for installed in list_usable_extensions():
        for native in installed.extension.native:
            natives.append((installed.name, _find_folders(installed.module)[0], native))
    return natives


def list_sections() -> dict[str, ReportSection]:
    """Return the sections of reports that extensions make, by name."""
    sections = [installed.extension.sections for installed in list_usable_extensions()]
    return {name: section for named in sections for name, section in named.items()}


def list_column_files() -> list[Path]:
    """Return the files of extensions with columns of tables in reports."""
    return [
        _find_folders(installed.module)[0] / installed.extension.columns
        for installed in list_usable_extensions()
        if installed.extension.columns
    ]


def find_input_reader(key: str) -> Callable[[Any], object]:
    """Return the function of an extension that reads a file which an experiment names under a key,
    such as speeds."""
    for installed in list_usable_extensions():
        if key in installed.extension.inputs:
            return load_function(installed.extension.inputs[key])
    package = find_absent_package(key)
    reader = (
        f"which {package} reads, which is not installed" if package else "which no extension reads"
    )
    raise UserError(f"found files, {reader}", key=key)


def find_absent_package(name: str) -> str:
    """Return which of our own extensions brings a name; empty if none does, or if it is
    installed."""
    present = {installed.module.partition(".")[0] for installed in list_extensions()}
    for package, names in OUR_NAMES.items():
        if name in names and package not in present:
            return package
    return ""


def list_names_in_text(constant: str) -> list[tuple[str, ...]]:
    """Return the first two texts of each entry that extensions bring, read from the source text."""
    names: list[tuple[str, ...]] = []
    for installed in list_usable_extensions():
        for module in installed.extension.list_modules(constant):
            spec = importlib.util.find_spec(module)
            if spec is not None and spec.origin is not None:
                names += read_names(Path(spec.origin), constant)
    return names


def read_names(path: Path, constant: str) -> list[tuple[str, ...]]:
    """Return the first two texts of each entry that a file assigns to a constant, without importing
    it. Of texts that are given by a parameter's name, only names count."""
    names: list[tuple[str, ...]] = []
    for statement in ast.parse(path.read_bytes()).body:
        if not isinstance(statement, ast.Assign) or constant not in map(
            ast.unparse, statement.targets
        ):
            continue
        value = statement.value
        for entry in value.elts if isinstance(value, ast.Tuple) else [value]:
            if isinstance(entry, ast.Call):
                named = [word.value for word in entry.keywords if word.arg in NAMES_OF_ENTRIES]
                arguments = [*entry.args, *named]
                words = [str(word.value) for word in arguments if isinstance(word, ast.Constant)]
                names += [tuple(words[:2])] if words else []
    return names


@lru_cache
def report_problem(name: str, problem: str) -> None:
    """Print why a part of an extension is not used; each problem once."""
    print(f"commodel: extension {name}: {problem}; all else works", file=sys.stderr)


def describe_error(error: BaseException) -> str:
    """Return the kind and the first line of an error."""
    line = str(error).strip().partition("\n")[0]
    return f"{type(error).__name__}: {line}" if line else type(error).__name__


def _load(point: metadata.EntryPoint) -> InstalledExtension:
    distribution = point.dist.name if point.dist else "unknown"
    version = point.dist.version if point.dist else "unknown"
    problem, extension = "", Extension("", INTERFACE)
    try:
        loaded = point.load()
    except Exception as error:
        problem = f"cannot import {point.value}: {describe_error(error)}"
    else:
        if not isinstance(loaded, Extension):
            problem = f"found a {type(loaded).__name__} as {point.value}, wanted an Extension"
        elif loaded.interface != INTERFACE:
            problem = (
                f"found interface {loaded.interface}, wanted {INTERFACE}; install a version for "
                "this commodel"
            )
        else:
            extension = loaded
    if problem:
        report_problem(point.name, problem)
    return InstalledExtension(point.name, distribution, version, point.module, extension, problem)


def _find_folders(module: str) -> list[Path]:
    """Return the folders of the package that a module is in."""
    spec = importlib.util.find_spec(module.partition(".")[0])
    return [Path(folder) for folder in spec.submodule_search_locations or ()] if spec else []
