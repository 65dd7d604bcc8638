"""Provenance of a batch (`collect_provenance`): hosts, placement of ranks, versions, switches, and
caches of processors.

With it, the measurements can be assessed and repeated. The native programs record MPI, compiler,
hosts and clock themselves."""

import datetime
import os
import platform
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from commodel.errors import UserError
from commodel.files.safe_reading import read_text_or_empty
from commodel.measure.program_starts import StartContext
from commodel.plan.config import load_named_platform
from commodel.plan.planning import list_named_files
from commodel.platforms import cores
from commodel.platforms.container import describe_image
from commodel.platforms.cores import measure_busy_processors
from commodel.platforms.toolchains import compute_native_digest
from commodel.records import Batch, Plan
from commodel.results.provenance import find_revision, list_versions

GOVERNOR_FILE = Path("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")


def collect_provenance(
    plan: Plan, batch: Batch, node_entries: Mapping[str, Any] | None = None, setting: str = ""
) -> dict[str, Any]:
    """Return the provenance of a batch. `node_entries` come from `describe_nodes`."""
    platform_entry = plan.platforms[batch.platform]
    commit, dirty = find_revision()
    return {
        "experiment": plan.experiment,
        "experiment_digest": plan.digest,
        "platform": batch.platform,
        "platform_digest": platform_entry.digest,
        **({"files": files} if (files := _list_digests(plan, batch)) else {}),
        "launcher": platform_entry.launcher,
        "substrate": platform_entry.substrate,
        **({"setting": setting} if setting else {}),
        "simulated": platform_entry.simulated,
        "measure": asdict(plan.measure),
        "seed": plan.seed,
        "seeds": f"cases are shuffled by {plan.seed} in the first pass, one more in each further one; "
        f"bootstraps draw by {plan.seed}",
        **list_versions(),
        "commit": commit,
        "uncommitted_changes": dirty,
        "native_digest": compute_native_digest(platform_entry.substrate),
        "container": describe_image(image)
        if (image := load_named_platform(batch.platform).image)
        else {},
        "cpu": _read_cpu_name(),
        "cores": os.cpu_count(),
        # Other launchers measure on other machines than this one.
        **({"at_work": measure_busy_processors()} if platform_entry.launcher == "local" else {}),
        "governor": read_text_or_empty(GOVERNOR_FILE) or "unknown",
        "kernel": platform.release(),
        "machine": platform.node(),
        **(node_entries or {}),
        "slurm_job": os.environ.get("SLURM_JOB_ID", ""),
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
    }


def _list_digests(plan: Plan, batch: Batch) -> dict[str, str]:
    """Return the SHA-256 of each file that the points name."""
    return {
        path: plan.files[path].digest
        for _, path in list_named_files(batch.points)
        if path in plan.files
    }


def _read_cpu_name() -> str:
    lines = read_text_or_empty(Path("/proc/cpuinfo")).splitlines()
    return next(
        (line.partition(":")[2].strip() for line in lines if line.startswith("model name")),
        platform.machine(),
    )


def describe_nodes(context: StartContext) -> dict[str, Any]:
    """Return the names and levels of nodes and processors.

    `nodes` are the names of the nodes, in the order of the plan. `levels` has a group number for
    each node, `processors` for each processor of the machine that runs commodel. `levels_from` is
    the launcher, if it reports the levels (Slurm).
    """
    entries: dict[str, Any] = {"nodes": list(context.names)} if context.names else {}
    if not context.launcher.simulated and (processors := cores.find_processor_levels().group_lists):
        entries["processors"] = processors
    platform, launcher = context.platform, context.launcher
    find_levels = launcher.levels if not platform.levels and context.names else None
    try:
        hierarchy = (
            find_levels(context.starter, context.names) if find_levels else platform.hierarchy
        )
        levels = hierarchy.group_lists
    except UserError as error:
        return entries | {"levels_unknown": error.message}
    source = {"levels_from": platform.launcher} if find_levels else {}
    return entries | ({"levels": levels, **source} if levels else {})
