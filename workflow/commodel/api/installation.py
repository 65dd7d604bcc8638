"""The programs that commodel uses, from Python: `doctor` returns which of them are installed
here. `check_slurm` proves that Slurm starts them."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from getpass import getuser
from pathlib import Path
from typing import Any

from commodel.api.result import Answer
from commodel.api.snakemake_runs import find_project_profile
from commodel.errors import UserError
from commodel.extensions import InstalledExtension, list_checks, list_extensions
from commodel.files.yaml import read_yaml
from commodel.plan.config import load_platform
from commodel.platforms.slurm_site import SlurmPartition, describe_mpi, read_site
from commodel.platforms.slurm_start import (
    OK,
    WRONG,
    Clock,
    Finding,
    StartCheck,
    check_start,
    find_folder,
)
from commodel.platforms.tools import TOOLS, Tool, find_tool, read_version
from commodel.platforms.transport import detect_node_transport
from commodel.registry import discover_in_extensions

MISSING = "missing"
MAX_VERSION = 45  # characters of a version


@dataclass(frozen=True, eq=False, repr=False)
class Programs(Answer):
    """The programs that commodel uses: a row for each, with its version, its place and its
    purpose."""

    @property
    def missing(self) -> list[str]:
        """The names of the programs that are not installed."""
        return [row["tool"] for row in self.rows if row["found"] == MISSING]


def doctor() -> Programs:
    """List the programs that commodel uses, and which of them are missing. Printed, the result is
    what `commodel doctor` prints.

    >>> doctor().frame  # doctest: +SKIP
    """
    rows = [_describe_tool(tool) for tool in (*TOOLS, *discover_in_extensions("TOOL").values())]
    missing = [row["tool"] for row in rows if row["found"] == MISSING]
    missing_text = f"; missing: {', '.join(missing)}" if missing else ""
    sentence = f"{len(rows) - len(missing)} of {len(rows)} programs are installed{missing_text}."
    transport = detect_node_transport()
    notes = [f"Messages between two ranks here: {transport}."] if transport else []
    cores = os.cpu_count()
    notes.append(
        f"{cores} cores here: measure with at most {cores} ranks, because MPI libraries busy-wait."
    )
    notes += list_checks()
    notes += [
        _describe_extension(installed)
        for installed in list_extensions()
        if installed.distribution != "commodel"
    ]
    provenance = [
        {"source": row["where"], "tool": row["tool"]} for row in rows if row["found"] != MISSING
    ]
    return Programs(rows, sentence, notes, provenance)


def _describe_extension(installed: InstalledExtension) -> str:
    """Return a sentence on an extension that another package brings."""
    problem = f", not used: {installed.problem}" if installed.problem else ""
    return (
        f"Extension {installed.name} of package {installed.distribution} "
        f"{installed.version}{problem}."
    )


def _describe_tool(tool: Tool) -> Mapping[str, Any]:
    path = find_tool(tool.program)
    version = read_version([path, *tool.version_arguments]) if path else MISSING
    purpose = tool.purpose if path else f"{tool.purpose}; install: {tool.installation}"
    return {
        "tool": tool.name,
        "found": version[:MAX_VERSION],
        "where": path or "-",
        "needed for": purpose,
    }


@dataclass(frozen=True, eq=False, repr=False)
class SlurmStart(Answer):
    """What a job proved about the start of MPI programs by Slurm: a row for each property, with its
    state (`ok`, `wrong` or `unknown`), what was found, and the remedy."""

    @property
    def is_wrong(self) -> bool:
        """Whether something has to be mended, or nothing started."""
        states = {row["check"]: row["state"] for row in self.rows}
        return WRONG in states.values() or states["job"] != OK


def check_slurm(
    partition: str = "",
    *,
    seconds: float = 60,
    progress: Callable[[str], None] | None = None,
) -> SlurmStart:
    """Prove by a job of two nodes and some seconds that Slurm starts MPI programs.

    The job uses the partition, account and options of the profile `slurm`, and the value of
    `srun --mpi=` of the partition's platform file, as `init` writes them. `partition` replaces that
    of the profile. After `seconds` the job is cancelled, and the rest is `unknown`. `progress` is
    called with a line of text now and then.

    >>> check_slurm("standard").frame  # doctest: +SKIP
    """
    clock = Clock(seconds)
    settings = _read_profile()
    wanted = partition or settings.get("slurm_partition", "")
    site = read_site(wanted, getuser(), describe_mpi(), clock.ask)
    check = _make_check(site, settings)
    findings = check_start(check, clock, progress or (lambda text: None))
    rows = [asdict(finding) for finding in findings]
    notes = [f"The files of the job are in {check.folder}."]
    provenance = [{"source": str(check.folder / name)} for name in ("job.sh", "job.log")]
    return SlurmStart(rows, _describe_findings(findings), notes, provenance)


def _read_profile() -> dict[str, str]:
    """Return the texts of the profile `slurm` that jobs of measurements use."""
    folder = find_project_profile("slurm")
    data = read_yaml(folder / "config.yaml").data if folder else {}
    sections = data if isinstance(data, dict) else {}
    settings: dict[str, str] = {"profile": str(folder / "config.yaml")} if folder else {}
    resources = sections.get("set-resources")
    measured = resources.get("measure") if isinstance(resources, dict) else {}
    for section in (sections.get("default-resources"), measured):
        if isinstance(section, dict):
            settings |= {name: str(value).strip("'") for name, value in section.items()}
    return settings


def _make_check(site: SlurmPartition, settings: Mapping[str, str]) -> StartCheck:
    path = Path("params/platforms") / f"{site.name}.yaml"
    platform = load_platform(path) if path.is_file() else None
    mpi, source = site.mpi, "srun --mpi=list"
    if platform and platform.slurm:
        mpi, source = platform.slurm.mpi, str(path)
    try:
        options = shlex.split(settings.get("slurm_extra", ""))
    except ValueError as error:
        raise UserError(f"found {error}", file=settings["profile"], key="slurm_extra") from None
    constraint = settings.get("constraint", "")
    options += [f"--constraint={constraint}"] if constraint else []
    return StartCheck(
        folder=find_folder(),
        partition=site.partition,
        account=settings.get("slurm_account", site.account),
        options=options,
        mpi=mpi,
        mpi_source=source,
        nodes=min(site.nodes, 2),
        ranks_per_node=min(site.cores, 2),
        profile=_shorten(settings.get("profile", "profiles/slurm/config.yaml")),
    )


def _shorten(path: str) -> str:
    """Return a path relative to the current folder, if it is below it."""
    relative = os.path.relpath(path)
    return path if relative.startswith("..") else relative


def _describe_findings(findings: list[Finding]) -> str:
    first = findings[0]
    wrong = [finding.check for finding in findings if finding.state == WRONG]
    started = any(finding.check == "start" and finding.state == OK for finding in findings)
    if started:
        mended = f", but to be mended: {', '.join(wrong)}" if wrong else ""
        return f"Slurm starts MPI programs{mended}."
    if first.state == OK:
        return "Slurm runs jobs, but does not start MPI programs."
    return f"Nothing is proved: {first.found}."
