"""Provenance of a batch (`provenance`): hosts, placement of ranks, versions, switches, and caches of processors.

It is what a reader needs to trust or repeat the measurements, as far as the driver knows it. The programs themselves
record MPI, compiler, hosts and clock.
"""

import datetime
import os
import platform
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

from commodel.errors import UserError
from commodel.files.safe_reading import read_text_or_empty
from commodel.measure.starts import Rig
from commodel.plan.config import planned_platform
from commodel.plan.planning import list_named_files
from commodel.platforms import cores
from commodel.platforms.container import about
from commodel.platforms.cores import measure_busy_processors
from commodel.platforms.tools import native_digest
from commodel.records import Batch, Plan
from commodel.results.provenance import find_revision, list_versions

GOVERNOR = Path("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")


def provenance(
    plan: Plan, batch: Batch, places: Mapping[str, object] | None = None, setting: str = ""
) -> dict[str, object]:
    """Return the provenance of a batch; `places` has the levels of nodes and processors."""
    where = plan.platforms[batch.platform]
    commit, dirty = find_revision()
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
        **list_versions(),
        "commit": commit,
        "uncommitted_changes": dirty,
        "native_digest": native_digest(where.substrate),
        "container": about(image) if (image := planned_platform(batch.platform).image) else {},
        "cpu": _cpu(),
        "cores": os.cpu_count(),
        **({"at_work": measure_busy_processors()} if where.launcher == "local" else {}),  # elsewhere this is no node
        "governor": read_text_or_empty(GOVERNOR) or "unknown",
        "kernel": platform.release(),
        "machine": platform.node(),
        **(places or {}),
        "slurm_job": os.environ.get("SLURM_JOB_ID", ""),
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
    }


def _files(plan: Plan, batch: Batch) -> dict[str, str]:
    """Return the SHA-256 of each file that points name."""
    return {path: plan.files[path].digest for _, path in list_named_files(batch.points) if path in plan.files}


def _cpu() -> str:
    lines = read_text_or_empty(Path("/proc/cpuinfo")).splitlines()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())


def places(rig: Rig) -> dict[str, object]:
    """Return where nodes and processors are.

    `nodes` are the names of the plan's nodes, in its order. `levels` has a group number for each of them, `processors`
    for each processor of the driver's machine. `levels_from` is the launcher, if its site reports the levels.
    """
    about: dict[str, object] = {"nodes": list(rig.names)} if rig.names else {}
    if not rig.how.simulated and (processors := cores.levels().settings):
        about["processors"] = processors
    from_site = not rig.platform.levels and rig.how.levels and rig.names
    try:
        levels = (rig.how.levels(rig.starter, rig.names) if from_site else rig.platform.hierarchy).settings
    except UserError as error:
        return about | {"levels_unknown": error.message}
    source = {"levels_from": rig.platform.launcher} if from_site else {}
    return about | ({"levels": levels, **source} if levels else {})
