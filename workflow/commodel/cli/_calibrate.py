"""What `commodel calibrate` starts from, and what it measures."""

from __future__ import annotations

import datetime
import os
import re
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import click
import pandas as pd

from commodel.advice.evidence import of_files, of_platform, only_platform
from commodel.cli._kernel import files_of
from commodel.cli._progress import progress
from commodel.cli._setting import job_setting
from commodel.compare import calibration as calibrating
from commodel.compare.bands import errors_of
from commodel.compare.calibration import Taken, Witness
from commodel.errors import UserError
from commodel.files.columns import COMPARISON
from commodel.files.kept import standing_on
from commodel.files.paths import AnyPath, SafePath
from commodel.files.results import Results
from commodel.files.settings import parse_setting
from commodel.files.tables import read_table
from commodel.hierarchy import Hierarchy
from commodel.measure.now import measure_now
from commodel.parameters import Errors, ParameterSet
from commodel.patterns.points import Setting
from commodel.plan.config import find, load_platform
from commodel.plan.file import load_plan
from commodel.plan.setting import setting_of, setting_on
from commodel.records import Measure, Plan
from commodel.results.calibrations import (
    read_calibrations,
)

HASTE = Measure("window", 0.02, 10, 300, 0.5, 1, 2, 60.0)  # half a second a point
UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")
NODES = ("SLURM_JOB_NUM_NODES", "SLURM_NNODES")
LONGEST_NAME = 60  # characters of a folder


@dataclass(frozen=True, eq=False)
class Source:
    """The sets to be moved, and where there is one the campaign that they come from."""

    sets: Sequence[ParameterSet]
    platform: str = ""  # that they are of
    results: Results | None = None
    plan: Plan | None = None
    comparison: pd.DataFrame = field(default_factory=pd.DataFrame)
    errors: Mapping[str, Mapping[str, Errors]] = field(default_factory=dict)


@dataclass(frozen=True)
class Asked:
    site: Setting  # of the platform to measure on
    levels: Hierarchy
    simulated: bool
    setting: str
    nodes: int
    count: int
    aside: int

    @classmethod
    def of(
        cls, source: Source, platform: str | None, setting: str | None, count: int, aside: int, nodes: int | None
    ) -> Asked:
        if not (platform or source.platform):
            raise UserError("--platform is missing: the sets do not say where to measure")
        loaded = load_platform(find("platform", platform or source.platform))
        if loaded.overlay:
            raise UserError(f"platform '{loaded.name}' is an overlay network: only MPI is calibrated")
        job = os.environ.get("SLURM_JOB_ID", "")
        called = job_setting(setting) or loaded.setting or (parse_setting(f"job={job}") if job else "")
        offered = next((int(text) for name in NODES if (text := os.environ.get(name, "")).isdigit()), loaded.nodes)
        room = min(loaded.nodes, nodes or (offered if loaded.slurm else loaded.nodes))
        site = setting_of(loaded)
        return cls(site, loaded.hierarchy, loaded.simulated, called or f"{now():%Y-%m-%d %H.%M}", room, count, aside)


def now() -> datetime.datetime:
    return datetime.datetime.now(datetime.UTC)


def sets_of(results: Path, platform: str | None, experiment: str | None, params: Sequence[Path]) -> Source:
    """Of a campaign that has compared its prices, or of files."""
    if params:
        if experiment:
            raise UserError("give --params or --experiment")
        sets = of_files(files_of(params)).sets
        return Source(sets, next((entry.platform for entry in sets if entry.platform), ""))
    if not (platform or experiment):
        raise UserError("give --experiment or --platform of a run, or --params FILE…")
    own = experiment and platform not in Results.of(results / experiment).platforms()
    source_platform = only_platform(experiment, results) if own else platform
    evidence, folder = of_platform(setting_on(source_platform), results, experiment)
    results = Results.of(folder)
    comparison = read_table(results.table("comparison"), COMPARISON)
    comparison = comparison[comparison["platform"] == source_platform]
    errors = {entry.family: errors_of(comparison, source_platform, entry.family) for entry in evidence.sets}
    click.echo(f"prices: {folder}, platform {source_platform}", err=True)
    return Source(evidence.sets, source_platform, results, load_plan(results.plan), comparison, errors)


def folder_of(source: Source, asked: Asked, out: Path | None) -> AnyPath:
    """Where the sets go. A campaign's folder keeps those of every setting apart."""
    called = UNSAFE.sub("-", asked.setting).strip("-.")[:LONGEST_NAME] or "job"
    if out is None and source.results is None:
        out = Path(f"calibrated-{called}")
    folder = source.results.calibrated(called) if out is None else SafePath.given(out, out.parent)
    if out is None and (noted := read_calibrations(source.results).get(called)) and noted.setting != asked.setting:
        raise UserError(f"found the sets of setting '{noted.setting}' there; wanted another --setting", file=folder)
    return folder


def measured(source: Source, asked: Asked, quiet: bool) -> tuple[list[Taken], list[Taken]]:
    """What the points that tell most took here, and those kept aside."""
    kept_files = standing_on(source.results, source.plan.files) if source.plan else nullcontext()
    with kept_files, TemporaryDirectory(prefix="commodel-") as folder:
        picked, aside = _witnesses(source, asked)
        raw = SafePath.at(Path(folder).resolve()) / "raw"
        raw.mkdir()
        on_site = [replace(entry.point, platform=asked.site.name) for entry in (*picked, *aside)]
        alike = replace(HASTE, sync=source.plan.measure.sync) if source.plan else HASTE
        samples = measure_now("calibration", on_site, asked.site.name, alike, raw, progress(quiet))
    taken = [calibrating.taken(entry, own) for entry, own in zip((*picked, *aside), samples, strict=True)]
    used, kept = ([entry for entry in part if entry] for part in (taken[: len(picked)], taken[len(picked) :]))
    if len(used) < calibrating.FEWEST_POINTS:
        raise UserError(
            f"only {len(used)} of {len(picked)} points could be measured, wanted {calibrating.FEWEST_POINTS}"
        )
    return used, kept


def _witnesses(source: Source, asked: Asked) -> tuple[list[Witness], list[Witness]]:
    if source.plan:
        points = [point for point in source.plan.points if point.platform == source.platform]
        known = calibrating.known_witnesses(points, source.comparison, asked.nodes)
        if len(known) >= calibrating.FEWEST_POINTS:
            order = source.comparison[source.comparison["family"].ne("")].groupby("family")["mu"].mean().sort_values()
            ranked = sorted(source.sets, key=lambda entry: list(order.index).index(entry.family))
            return calibrating.picked(known, ranked, asked.levels, asked.count, asked.aside)
    messages, aside = calibrating.message_witnesses(replace(asked.site, nodes=asked.nodes))
    return messages[: asked.count], aside[: asked.aside]
