"""Files that a stage makes, one for each model (`StageFiles`): a file is made again only if its
inputs have changed.

A record beside the files has a digest of each file and of its inputs. New files get their names
together (`publish`), since Snakemake removes the outputs of a job that fails: files made until then
wait beside them for the next run."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from commodel import sources
from commodel.errors import UserError
from commodel.extensions import list_usable_extensions
from commodel.files.atomic import read_json, write_json
from commodel.files.safe_paths import AnyPath, SafePath
from commodel.files.safe_reading import open_file

RECORD = ".inputs.json"
WAITING_SUFFIX = ".new"
# of entries that may change the messages
PATTERN_CONSTANTS = ("ALGORITHM", "OPERATION", "TOPOLOGY", "LAYOUT")


def list_model_code(model: str, *modules: str) -> list[str]:
    """Return the source files of a model and of some modules. A model of an extension depends on
    all files of it."""
    if sources.find_module_file(f"models.families.{model}"):
        return sources.list_source_files(*modules, f"models.families.{model}")
    return [*sources.list_source_files(*modules), *list_extension_code("FAMILY")]


def list_extension_code(*constants: str) -> list[str]:
    """Return the source files of the extensions that bring entries of some kinds."""
    files: list[str] = []
    for installed in list_usable_extensions():
        if any(map(installed.extension.list_modules, constants)):
            files += installed.list_files()
    return files


def list_section_code() -> list[str]:
    """Return the source files of the extensions that make sections of a report."""
    return [
        file
        for installed in list_usable_extensions()
        if installed.extension.sections
        for file in installed.list_files()
    ]


def list_fit_code(model: str) -> list[str]:
    """Return the source files that a model's fit to probes depends on."""
    return list_model_code(model, "fits.probe_fits")


def list_prediction_code(model: str) -> list[str]:
    """Return the source files that a model's predictions depend on. Patterns are found by folder,
    not by import."""
    folders = ("patterns/algorithms", "patterns/trees/topologies", "patterns/layouts")
    patterns: list[str] = []
    for folder in folders:
        patterns += map(str, sorted(sources.PACKAGE.glob(f"{folder}/*.py")))
    return [
        *list_model_code(model, "predictions.predictions"),
        *patterns,
        *list_extension_code(*PATTERN_CONSTANTS),
    ]


def digest_files(paths: Iterable[AnyPath]) -> str:
    """Return a digest of the content of some files, which may be large."""
    hashed = hashlib.sha256()
    for path in paths:
        with open_file(path) as stream:
            hashed.update(hashlib.file_digest(stream, "sha256").digest())
    return hashed.hexdigest()


def digest_inputs(code: Iterable[str | Path], *inputs: str | None) -> str:
    """Return a digest of source files, wherever they lie, and of further inputs as texts."""
    hashed = hashlib.sha256()
    for text in inputs:
        hashed.update(f"\0{text or ''}".encode())
    named = {(_name_source(Path(path)), Path(path)) for path in code}
    for name, path in sorted(named):
        hashed.update(b"\0%b\0%b" % (name.encode(), path.read_bytes()))
    return hashed.hexdigest()


def _name_source(path: Path) -> str:
    """Return the path of a source file within the package; of an extension, with its folder."""
    is_own = path.is_relative_to(sources.PACKAGE)
    return path.relative_to(sources.PACKAGE if is_own else path.parents[1]).as_posix()


class StageFiles:
    """The files of one stage in a folder."""

    def __init__(self, folder: SafePath) -> None:
        self.folder = folder
        self.digests: dict[str, str] = {}
        with suppress(UserError, FileNotFoundError):  # a damaged record is replaced
            recorded = read_json(folder / RECORD)
            self.digests = {name: text for name, text in recorded.items() if isinstance(text, str)}
        self.waiting: list[str] = []  # names of files to publish

    def is_current(self, name: str, digest: str) -> bool:
        """Return whether a file exists that was made from the inputs with this digest, and has not
        changed since."""
        wanted = self.digests.get(name)
        for path, waits in ((self._waiting_path(name), True), (self.folder / name, False)):
            if wanted and path.exists() and self._digest(path, digest) == wanted:
                self.waiting += [name] if waits else []
                return True
        return False

    def prepare(self, name: str) -> SafePath:
        """Return the path to which a new file is written."""
        return self._waiting_path(name)

    def record(self, name: str, digest: str) -> None:
        """Record the inputs of a new file, which has been written."""
        self.digests[name] = self._digest(self._waiting_path(name), digest)
        self.waiting.append(name)
        write_json(self.folder / RECORD, self.digests)

    def publish(self) -> None:
        """Give all new files their names."""
        for name in self.waiting:
            self._waiting_path(name).replace(self.folder / name)
        self.waiting.clear()

    def _waiting_path(self, name: str) -> SafePath:
        return self.folder / f".{name}{WAITING_SUFFIX}"

    def _digest(self, path: SafePath, inputs: str) -> str:
        return hashlib.sha256(f"{inputs} {digest_files([path])}".encode()).hexdigest()
