"""Where a batch's numbers come from: everything a reader needs to trust them or to repeat them."""

import datetime
import hashlib
import os
import platform
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from functools import lru_cache
from importlib import metadata
from pathlib import Path

from pydantic import TypeAdapter

from commodel import __version__
from commodel.errors import UserError
from commodel.files.paths import AnyPath
from commodel.files.settings import parse_setting
from commodel.files.typed import read_json_record
from commodel.plan.config import planned_platform
from commodel.plan.keeping import named
from commodel.platforms.container import about
from commodel.platforms.cores import at_work
from commodel.platforms.tools import ROOT, native_digest
from commodel.records import Batch, Plan
from commodel.sources import INSTALLED

PACKAGE = Path(__file__).parents[1]
PACKAGES = ("numpy", "pandas", "scipy", "snakemake")  # whose versions can change a number


@dataclass(frozen=True, slots=True)
class Program:
    """What a native program says of itself and its ranks, as far as reports tell it."""

    mpi: str = ""
    compiler: str = ""
    flags: str = ""
    clock: str = ""
    clock_resolution: float | None = None  # seconds
    clock_uncertainty: float | None = None
    hosts: tuple[str, ...] = ()  # of its ranks
    processors: int | None = None  # of the first of them
    computing: str = ""  # what a kernel computes with


PROGRAM = TypeAdapter(Program)


def read_program(path: AnyPath) -> Program:
    return read_json_record(PROGRAM, path)


@dataclass(frozen=True, slots=True)
class Noted:
    """What is read back of a batch's provenance."""

    setting: str = ""


NOTED = TypeAdapter(Noted)


def setting_of(path: AnyPath) -> str:
    """The setting that a batch was measured in, where its provenance says one."""
    if not path.exists():
        return ""
    try:
        return parse_setting(read_json_record(NOTED, path).setting)
    except UserError as error:
        raise UserError(error.found, file=path, key=error.key or "setting") from None


def same_setting(path: AnyPath, wanted: str) -> str:
    """Of a batch that has samples and goes on: those of one batch are of one setting. Who says none goes on in that."""
    began = setting_of(path)
    if wanted not in ("", began):
        what = f"in setting '{began}'" if began else "without a setting"
        instead = "a platform file that says `setting:` has batches of its own"
        raise UserError(f"found setting '{wanted}', but this batch was begun {what}; {instead}", file=path)
    return began


def processors(paths: Iterable[AnyPath]) -> int | None:
    """Those that the programs of a batch saw on their first host; None where none says."""
    return min((number for path in paths if (number := read_program(path).processors)), default=None)


def provenance(
    plan: Plan, batch: Batch, places: Mapping[str, object] | None = None, setting: str = ""
) -> dict[str, object]:
    """Of the measuring side. What only the programs know (MPI, compiler, hosts, clock) they write themselves. `places`
    says where nodes and processors are."""
    where = plan.platforms[batch.platform]
    commit, dirty = revision()
    return {
        "experiment": plan.experiment,
        "experiment_digest": plan.digest,
        "platform": batch.platform,
        "platform_digest": where.digest,
        **({"files": files} if (files := _files(plan, batch)) else {}),
        "launcher": where.launcher,
        "substrate": where.substrate,
        **({"setting": setting} if setting else {}),
        "simulated": where.simulated,
        "measure": asdict(plan.measure),
        "seed": plan.seed,
        "seeds": f"cases are shuffled by {plan.seed} in the first pass, one more in each further one; "
        f"bootstraps draw by {plan.seed}",
        **versions(),
        "commit": commit,
        "uncommitted_changes": dirty,
        "native_digest": native_digest(where.substrate),
        "container": about(image) if (image := planned_platform(batch.platform).image) else {},
        "cpu": _cpu(),
        "cores": os.cpu_count(),
        **({"at_work": at_work()} if where.launcher == "local" else {}),  # elsewhere this is no node
        "governor": _read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor") or "unknown",
        "kernel": platform.release(),
        "machine": platform.node(),
        **(places or {}),
        "slurm_job": os.environ.get("SLURM_JOB_ID", ""),
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
    }


def _files(plan: Plan, batch: Batch) -> dict[str, str]:
    """SHA-256 of each file that its points name."""
    return {path: plan.files[path].digest for _, path in named(batch.points) if path in plan.files}


def commit() -> str:
    """As texts name it: an edited clone is not what its commit is."""
    commit, dirty = revision()
    return f"{commit}-dirty" if dirty else commit


@lru_cache
def revision() -> tuple[str, bool | None]:
    """The commit of the clone and whether it was changed since; in an image or an installation, what was noted
    when that was built."""
    if ROOT != INSTALLED and (commit := _git("rev-parse", "HEAD")):
        return commit, bool(_git("status", "--porcelain", "--untracked-files=no"))
    noted = _read(str(ROOT / "COMMIT"))
    return (noted.removesuffix("-dirty"), noted.endswith("-dirty")) if noted else ("unknown", None)


def versions(more: tuple[str, ...] = ()) -> dict[str, str]:
    """Of this program and of what computes for it. A digest of its Python files tells an edited one from a release."""
    installed = {"commodel": __version__, "code_digest": code_digest(), "python": platform.python_version()}
    for name in (*PACKAGES, *more):
        try:
            installed[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            installed[name] = "not installed"
    return installed


@lru_cache
def code_digest() -> str:
    content = (
        path.relative_to(PACKAGE).as_posix().encode() + b"\0" + path.read_bytes()
        for path in sorted(PACKAGE.rglob("*.py"))
    )
    return hashlib.blake2b(b"\0".join(content), digest_size=6).hexdigest()


def _git(*arguments: str) -> str:
    try:
        run = subprocess.run(
            ["git", "-C", str(ROOT), *arguments], capture_output=True, text=True, check=False, timeout=20
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return run.stdout.strip() if run.returncode == 0 else ""


def _cpu() -> str:
    lines = _read("/proc/cpuinfo").splitlines()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())


def _read(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8").strip()
    except OSError:
        return ""
