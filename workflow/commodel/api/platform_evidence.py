"""The evidence of a platform from its runs: `find_platform_evidence` merges all runs that measured
an operation."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

import pandas as pd

from commodel.advice.evidence import Evidence, read_measured
from commodel.compare.measured_defaults import read_library
from commodel.errors import UserError
from commodel.files.results_folder import Results
from commodel.models.parameter_sets import read_set
from commodel.parameters import ParameterSet
from commodel.patterns.operations import find_base_name
from commodel.patterns.points import PlatformResources
from commodel.plan.planning import load_plan


def find_platform_evidence(
    resources: PlatformResources,
    results: Path,
    experiment: str | None = None,
    operations: Collection[str] = (),
) -> tuple[Evidence, list[Path]]:
    """Return the evidence of a platform, and the folders of its results, the newest first: that of
    the given experiment, else all runs of the platform that measured one of the operations, else
    all of its runs. The platform of all runs has the description of the newest one."""
    platform, folders = resources.name, find_runs(resources.name, results, experiment)
    folders = folders if experiment else _select_same_platform(folders, platform)
    runs = [(folder, read_measured(folder, platform)) for folder in folders]
    wanted = set(map(find_base_name, operations))
    measuring = [
        run for run in runs if wanted.intersection(run[1]["operation"].map(find_base_name))
    ]
    runs = measuring or runs
    evidence = _merge_runs(runs, resources)
    return evidence, [folder.folder.root for folder, _ in runs]


RUN_ADVICE = (
    "run an experiment there (`commodel run`), or give --params: of its data sheet by `commodel "
    "fit sheet`"
)


def find_runs(platform: str, results: Path, experiment: str | None = None) -> list[Results]:
    """Return the folders with fitted values of a platform, of the given experiment or of all, the
    newest first."""
    paths = [Results.of(path) for path in sorted(results.glob("*")) if path.is_dir()]
    fitted = [folder for folder in paths if platform in folder.platforms()]
    folders = [folder for folder in fitted if experiment in (None, folder.folder.name)]
    if not folders:
        names = [entry.folder.name for entry in fitted]
        hint = f"these have: {', '.join(names)}" if names else RUN_ADVICE
        of_experiment = f" of experiment '{experiment}'" if experiment else ""
        raise UserError(f"found no fitted values{of_experiment} on platform '{platform}'; {hint}")
    return sorted(folders, key=_order_by_comparison, reverse=True)


def _order_by_comparison(folder: Results) -> tuple[float, str]:
    table = folder.table("comparison")
    return table.stat().st_mtime if table.exists() else 0.0, folder.folder.name


def _select_same_platform(folders: Sequence[Results], platform: str) -> list[Results]:
    """Return the folders whose plan describes the platform as that of the first folder does."""
    if len(folders) == 1:
        return list(folders)
    digests = [_read_platform_digest(folder, platform) for folder in folders]
    return [folder for folder, digest in zip(folders, digests, strict=True) if digest == digests[0]]


def _read_platform_digest(folder: Results, platform: str) -> str:
    """Return the digest of a platform in the plan of a run; empty without one."""
    if not folder.plan.exists():
        return ""
    planned = load_plan(folder.plan).platforms.get(platform)
    return planned.digest if planned else ""


def _merge_runs(
    runs: Sequence[tuple[Results, pd.DataFrame]], resources: PlatformResources
) -> Evidence:
    """Return the sets and measured points of several runs. Of a model or a point that several runs
    have, those of the first run are used."""
    sets: dict[str, ParameterSet] = {}
    tables: list[pd.DataFrame] = []
    known_points: set[str] = set()
    for folder, rows in runs:
        for path in folder.sets(resources.name):
            parameters = read_set(folder.find_set(resources.name, path.stem))
            if parameters.model not in sets or not sets[parameters.model].values:
                sets[parameters.model] = parameters
        tables.append(rows[~rows["point"].isin(known_points)])
        known_points.update(rows["point"])
    rows = pd.concat(tables, ignore_index=True) if len(tables) > 1 else tables[0]
    libraries = {read_library(folder, of_run) for folder, of_run in runs} - {""}
    library = libraries.pop() if len(libraries) == 1 else ""
    return Evidence(list(sets.values()), resources, rows[rows["held_out"]], rows, library)
