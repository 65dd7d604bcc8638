"""Provenance of results: the setting and the programs of a batch (`read_setting`, `read_program`),
the digests, attempts and inputs of an experiment (`ExperimentProvenance`), and the version of the
code (`find_revision`, `list_versions`).

A report prints the digest of every result file, the attempts at each batch, and the texts of the
inputs. The version of the code is its commit, its release, and the versions of the packages that
can change a number.
"""

import hashlib
import platform
import re
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from importlib import metadata
from typing import Any

from pydantic import TypeAdapter

from commodel import __version__
from commodel.errors import UserError
from commodel.extensions import list_usable_extensions
from commodel.files.quantities import parse_setting
from commodel.files.results_folder import COPIES_FOLDER, Results
from commodel.files.safe_paths import AnyPath, SafePath
from commodel.files.safe_reading import MIB, open_bounded, read_text, read_text_or_empty
from commodel.files.tables import MAX_TABLE_BYTES
from commodel.files.typed_records import read_json_record
from commodel.records import ArchivedFile, Batch, Plan
from commodel.results.attempts import read_attempts
from commodel.sources import INSTALLED, PACKAGE, ROOT


@dataclass(frozen=True, slots=True)
class ProgramDescription:
    """The part of a native program's description of itself and its ranks that reports show."""

    mpi: str = ""
    compiler: str = ""
    flags: str = ""
    clock: str = ""
    clock_resolution: float | None = None  # seconds
    clock_uncertainty: float | None = None
    hosts: tuple[str, ...] = ()  # of its ranks
    processors: int | None = None  # of the first of them
    computing: str = ""  # device and library with which a kernel computes


PROGRAM_ADAPTER = TypeAdapter(ProgramDescription)


def read_program(path: AnyPath) -> ProgramDescription:
    return read_json_record(PROGRAM_ADAPTER, path)


@dataclass(frozen=True, slots=True)
class RecordedSetting:
    """The part of a batch's provenance that is read back."""

    setting: str = ""


SETTING_ADAPTER = TypeAdapter(RecordedSetting)


def read_setting(path: AnyPath) -> str:
    """Return the setting in which a batch was measured; empty if its provenance names none."""
    if not path.exists():
        return ""
    try:
        return parse_setting(read_json_record(SETTING_ADAPTER, path).setting)
    except UserError as error:
        raise UserError(error.found, file=path, key=error.key or "setting") from None


def check_setting(path: AnyPath, wanted: str) -> str:
    """Return the setting of a batch that was begun; raise an error if `wanted` names another one.

    All samples of a batch are of one setting. If `wanted` is empty, the batch continues in its own
    setting.
    """
    began = read_setting(path)
    if wanted not in ("", began):
        began_text = f"in setting '{began}'" if began else "without a setting"
        instead = (
            "to measure in it, give the platform file the key `setting:`, for batches of their own"
        )
        raise UserError(
            f"found setting '{wanted}', but this batch was begun {began_text}; {instead}", file=path
        )
    return began


def count_processors(paths: Iterable[AnyPath]) -> int | None:
    """Return the least number of processors that the programs of a batch report of their first
    host; None if none reports it."""
    counts = [read_program(path).processors for path in paths]
    return min(filter(None, counts), default=None)


def find_mpi_version(paths: Iterable[AnyPath]) -> str:
    """Return the version text of the MPI library that the programs of a batch report; empty if they
    report none, or several."""
    texts = {read_program(path).mpi for path in paths} - {""}
    return texts.pop() if len(texts) == 1 else ""


MAX_INPUT_BYTES = 64 * MIB  # of an experiment or platform file
MAX_SHOWN_BYTES = 16 << 10  # of a file whose text reports print
BINARY = re.compile(r"[\0\ufffd]")


@dataclass(frozen=True)
class ExperimentProvenance:
    """The provenance of an experiment: `files` has the digests of results by name, `attempts` a
    record for each attempt at a batch, `texts` the texts of inputs by name."""

    files: Mapping[str, str] = field(default_factory=dict)
    attempts: tuple[Mapping[str, Any], ...] = ()
    texts: Mapping[str, str] = field(default_factory=dict)
    tools: Mapping[str, str] = field(default_factory=dict)
    # by the path in the experiment file
    inputs: Mapping[str, ArchivedFile] = field(default_factory=dict)


NO_PROVENANCE = ExperimentProvenance()


def compute_digests(plan: Plan, folder: AnyPath) -> dict[str, str]:
    """Return the SHA-256 of each result file, by its name below `folder`.

    The raw files of a batch have one digest: that of the list of their digests and names, as
    sha256sum prints it.
    """
    results = Results.of(folder)
    stages = results.stages(plan.platforms, plan.models)
    digests = {
        path.below(results.folder): _compute_sha256(path) for path in stages if path.exists()
    }
    for batch in plan.batches:
        raw = results.measured(batch.name)
        if raw:
            digest_list = "".join(f"{_compute_sha256(path)}  {path.name}\n" for path in raw)
            digests[f"raw/{batch.name}"] = hashlib.sha256(digest_list.encode()).hexdigest()
    return digests


def _compute_sha256(path: SafePath) -> str:
    with open_bounded(path, MAX_TABLE_BYTES, "a smaller file") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def list_attempts(batch: Batch, raw: AnyPath) -> Iterator[dict[str, Any]]:
    """Yield a record of each attempt at a batch; nothing if no attempts were recorded."""
    stored = read_attempts(raw / batch.name).attempts
    for number, attempt in enumerate(stored, 1):
        unknown = number == len(stored) and attempt.ended is None  # it may still run
        outcome = "no end recorded" if unknown else attempt.outcome_text
        record = {
            "batch": batch.name,
            "platform": batch.platform,
            "attempt": number,
            "nodes": list(attempt.nodes),
        }
        record |= {
            key: getattr(attempt, key) for key in ("host", "job", "commit", "started", "ended")
        }
        yield record | {"outcome": outcome}


def read_input_texts(
    folder: AnyPath, files: Mapping[str, ArchivedFile] | None = None
) -> dict[str, str]:
    """Return the texts of the inputs by name: the experiment, its platforms, then short files that
    the plan depends on.

    These are patterns, partitions and published sets. Trees and rank files are left out, since they
    name machines.
    """
    results = Results.of(folder)
    shown = {
        f"{path.parent.name}/{path.name}": read_text(
            path, MAX_INPUT_BYTES, "an experiment or a platform", strict=False
        )
        for path in results.inputs()
        if path.parent.name != COPIES_FOLDER
    }
    short = {
        name: results.copy(file.copy)
        for name, file in (files or {}).items()
        if file.kind in ("pattern", "partition", "published")
        and file.copy
        and file.bytes <= MAX_SHOWN_BYTES
    }
    shown |= {
        name: read_text(copy, MAX_SHOWN_BYTES, "a copy", strict=False)
        for name, copy in short.items()
        if copy.exists()
    }
    return {
        name: text for name, text in shown.items() if name not in short or not BINARY.search(text)
    }


PACKAGES = ("numpy", "pandas", "scipy", "snakemake")


def describe_commit() -> str:
    """Return the commit of the code, with the suffix `-dirty` if the clone has other changes."""
    commit, dirty = find_revision()
    return f"{commit}-dirty" if dirty else commit


@lru_cache
def find_revision() -> tuple[str, bool | None]:
    """Return the commit of the clone, and whether its files have changed since.

    In an image or an installation, both are as they were recorded when it was built.
    """
    commit = _run_git("rev-parse", "HEAD") if ROOT != INSTALLED else ""
    if commit:
        return commit, bool(_run_git("status", "--porcelain", "--untracked-files=no"))
    recorded = read_text_or_empty(ROOT / "COMMIT")
    return (
        (recorded.removesuffix("-dirty"), recorded.endswith("-dirty"))
        if recorded
        else ("unknown", None)
    )


def list_versions(programs: tuple[str, ...] = ()) -> dict[str, str]:
    """Return the versions of this program, its libraries and extensions.

    The code digest differs if released code was edited.
    """
    installed = {
        "commodel": __version__,
        "code_digest": compute_code_digest(),
        "python": platform.python_version(),
    }
    for name in (*PACKAGES, *programs):
        try:
            installed[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            installed[name] = "not installed"
    return installed | {
        extension.distribution: extension.version for extension in list_usable_extensions()
    }


@lru_cache
def compute_code_digest() -> str:
    content = (
        path.relative_to(PACKAGE).as_posix().encode() + b"\0" + path.read_bytes()
        for path in sorted([*PACKAGE.rglob("*.py"), *PACKAGE.rglob("*.csv")])
    )
    return hashlib.blake2b(b"\0".join(content), digest_size=6).hexdigest()


def _run_git(*arguments: str) -> str:
    try:
        run = subprocess.run(
            ["git", "-C", str(ROOT), *arguments],
            capture_output=True,
            text=True,
            check=False,
            timeout=20,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return run.stdout.strip() if run.returncode == 0 else ""
