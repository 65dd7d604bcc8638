"""Recalibration in the present allocation (`calibrate`): which sets are scaled, what is measured,
and which files are written."""

from __future__ import annotations

import datetime
import os
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from math import inf, isfinite
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pandas as pd

from commodel.advice.evidence import combine_sets, find_only_platform
from commodel.api.platform_evidence import find_platform_evidence, find_runs
from commodel.api.predictions import read_sets
from commodel.api.result import Answer, describe_sources
from commodel.compare import recalibration as calibrating
from commodel.compare.comparison_intervals import read_residuals
from commodel.compare.recalibration import CalibrationPoint, CalibrationTime, RecalibratedSet
from commodel.compare.recommended import split_recommended
from commodel.errors import UserError
from commodel.files.cache import use_archived_inputs
from commodel.files.parameter_sets import write_parameters
from commodel.files.quantities import parse_setting
from commodel.files.results_folder import Results
from commodel.files.safe_paths import AnyPath, SafePath
from commodel.files.tables import COMPARISON, read_table
from commodel.files.text_tables import format_answer, format_table
from commodel.hierarchy import Hierarchy
from commodel.measure.batch import Progress, find_setting, measure_now
from commodel.parameters import ParameterSet, StoredResiduals
from commodel.patterns.points import PlatformResources
from commodel.plan.config import load_named_platform
from commodel.plan.planning import load_plan, load_resources, make_resources
from commodel.records import Measure, Plan
from commodel.results.recalibrations import (
    Calibration,
    RecordedFactor,
    RecordedFactors,
    RecordedPoint,
    read_calibrations,
    write_calibration,
)
from commodel.units import format_count, format_seconds

QUICK_MEASURE = Measure("window", 0.02, 10, 300, 0.5, 1, 2, 60.0)  # at most 0.5 s for each point
UNSAFE_CHARACTERS = re.compile(r"[^A-Za-z0-9._-]+")
NODE_COUNT_VARIABLES = ("SLURM_JOB_NUM_NODES", "SLURM_NNODES")
MAX_NAME_LENGTH = 60  # characters of a folder's name


@dataclass(frozen=True, eq=False)
class RecalibrationSource:
    """The sets to scale, and the campaign of their origin if there is one."""

    sets: Sequence[ParameterSet]
    platform: str = ""  # platform of the sets
    results: Results | None = None
    plan: Plan | None = None
    comparison: pd.DataFrame = field(default_factory=pd.DataFrame)
    residuals: Mapping[str, StoredResiduals | None] = field(default_factory=dict)


@dataclass(frozen=True, eq=False, repr=False)
class Recalibration(Answer):
    """Fitted models adapted to this allocation: a row for each, with its factors and its errors
    before and after."""

    sets: Sequence[RecalibratedSet]
    folder: Path  # of the adapted sets
    left_out: Sequence[str]  # sentences on sets that could not be adapted

    def text(self, verbose: bool = True) -> str:
        table = format_table([_make_shown_row(fitted) for fitted in self.sets])
        return format_answer(self.sentence, table, self.notes, verbose)


@dataclass(frozen=True)
class RecalibrationRequest:
    """A request for a recalibration: where to measure, on how many nodes, and how many points."""

    resources: PlatformResources  # of the platform to measure on
    levels: Hierarchy
    simulated: bool
    setting: str
    nodes: int
    count: int
    held_out_count: int

    @classmethod
    def of(
        cls,
        source: RecalibrationSource,
        platform: str | None,
        setting: str | None,
        count: int,
        held_out_count: int,
        nodes: int | None,
    ) -> RecalibrationRequest:
        if not (platform or source.platform):
            raise UserError("--platform is missing: the sets name no platform to measure on")
        loaded = load_named_platform(platform or source.platform)
        if not loaded.uses_mpi:
            raise UserError(
                f"platform '{loaded.name}' has substrate '{loaded.substrate}': only MPI is calibrated"
            )
        slurm_job = os.environ.get("SLURM_JOB_ID", "")
        setting_name = (
            find_setting(setting)
            or loaded.setting
            or (parse_setting(f"job={slurm_job}") if slurm_job else "")
        )
        allocated = next(
            (
                int(text)
                for name in NODE_COUNT_VARIABLES
                if (text := os.environ.get(name, "")).isdigit()
            ),
            loaded.nodes,
        )
        node_count = min(loaded.nodes, nodes or (allocated if loaded.slurm else loaded.nodes))
        return cls(
            make_resources(loaded),
            loaded.hierarchy,
            loaded.simulated,
            setting_name or f"{read_clock():%Y-%m-%d %H.%M}",
            node_count,
            count,
            held_out_count,
        )


def read_clock() -> datetime.datetime:
    return datetime.datetime.now(datetime.UTC)


def read_source(
    results: Path, platform: str | None, experiment: str | None, params: Sequence[Path]
) -> RecalibrationSource:
    """Return the sets of a campaign that was compared, or of files."""
    if params:
        if experiment:
            raise UserError("give --params or --experiment")
        sets = combine_sets([fitted for file in params for fitted in read_sets(file)]).sets
        return RecalibrationSource(
            sets, next((fitted.platform for fitted in sets if fitted.platform), "")
        )
    if not (platform or experiment):
        raise UserError("give --experiment or --platform of a run, or --params FILE…")
    if experiment and (
        not platform or platform not in Results.of(results / experiment).platforms()
    ):
        source_platform = find_only_platform(experiment, results)
    else:
        assert platform
        source_platform = platform
    campaign = find_runs(source_platform, results, experiment)[0]
    evidence, _ = find_platform_evidence(
        load_resources(source_platform), results, campaign.folder.name
    )
    comparison, _ = split_recommended(read_table(campaign.table("comparison"), COMPARISON))
    comparison = comparison[comparison["platform"] == source_platform]
    residuals = {
        fitted.model: read_residuals(comparison, source_platform, fitted.model)
        for fitted in evidence.sets
    }
    return RecalibrationSource(
        evidence.sets, source_platform, campaign, load_plan(campaign.plan), comparison, residuals
    )


def calibrate(
    platform: str | None = None,
    *,
    experiment: str | None = None,
    parameters: str | Path | Sequence[str | Path] = (),
    setting: str | None = None,
    points: int = 6,
    held_out: int = 6,
    nodes: int | None = None,
    out: str | Path | None = None,
    progress: Progress = lambda text: None,
) -> Recalibration:
    """Adapt the fitted models of a run, or of files of `parameters`, to this allocation, by a few
    points that are measured now. Printed, the result is what `commodel calibrate` prints.

    `points` are measured for the factors, and `held_out` ones for the errors before and after.
    `out` is the folder of the adapted sets, by default in the run's results.

    >>> calibrate(experiment="demo").frame  # doctest: +SKIP
    """
    files = [parameters] if isinstance(parameters, str | Path) else parameters
    source = read_source(Path("results"), platform, experiment, [Path(file) for file in files])
    request = RecalibrationRequest.of(source, platform, setting, points, held_out, nodes)
    return recalibrate(source, request, Path(out) if out else None, progress)


def recalibrate(
    source: RecalibrationSource, request: RecalibrationRequest, out: Path | None, progress: Progress
) -> Recalibration:
    """Measure here, adapt the sets of a source, and write them into a folder."""
    folder = choose_folder(source, request, out)
    used, held_out_times = measure_calibration_points(source, request, progress)
    adapted, reasons = calibrating.recalibrate_sets(
        source.sets, used, held_out_times, request.setting, source.residuals
    )
    if not adapted:
        raise UserError(
            "; ".join(
                ["no parameter set could be recalibrated to this allocation", *reasons.values()]
            )
        )
    write_recalibration(source, request, used, held_out_times, adapted, folder)
    seconds = sum(timed.seconds for timed in (*used, *held_out_times))
    best = min(
        adapted,
        key=lambda calibrated: calibrated.after if calibrated.after == calibrated.after else inf,
    )
    errors = (
        f" (mean error μ {best.before:.3g} before, {best.after:.3g} after)" if best.checked else ""
    )
    count = format_count(len(adapted), "model")
    sentence = f"{count} adapted to this allocation; best: {best.parameters.model}{errors}."
    points = f"factors from {format_count(len(used), 'point')}"
    points += f", errors at {format_count(len(held_out_times), 'held-out point')}"
    notes = [f"{points}; to run each once takes {format_seconds(seconds)}."]
    rows = [_make_row(calibrated) for calibrated in adapted]
    path = Path(str(folder))
    return Recalibration(
        rows, sentence, notes, describe_sources(source.sets), adapted, path, list(reasons.values())
    )


def _make_shown_row(calibrated: RecalibratedSet) -> dict[str, Any]:
    per_byte = (
        "as latency: estimated together"
        if calibrated.factors.together
        else calibrated.factors.per_byte.text
    )
    errors = {
        "μ before": calibrated.before,
        "μ after": calibrated.after,
        "held-out points": calibrated.checked,
    }
    factors = {"latency factor": calibrated.factors.latency.text, "time per byte factor": per_byte}
    return {"model": calibrated.parameters.model, **factors, **errors}


def _make_row(calibrated: RecalibratedSet) -> dict[str, Any]:
    record = record_factors(calibrated)
    factor_columns = {
        f"{name}_{end}": getattr(factor, end) if factor.known else None
        for name, factor in (("latency", record.latency), ("per_byte", record.per_byte))
        for end in ("value", "low", "high")
    }
    columns = {
        name: getattr(record, name)
        for name in ("together", "points", "scatter", "before", "after", "checked")
    }
    return {"model": calibrated.parameters.model, **factor_columns, **columns}


def choose_folder(
    source: RecalibrationSource, requested: RecalibrationRequest, out: Path | None
) -> AnyPath:
    """Return the folder of the scaled sets. A campaign has one folder for each setting."""
    folder_name = (
        UNSAFE_CHARACTERS.sub("-", requested.setting).strip("-.")[:MAX_NAME_LENGTH] or "job"
    )
    if source.results is None or out:
        out = out or Path(f"calibrated-{folder_name}")
        return SafePath.of_argument(out, out.parent)
    folder, recorded = (
        source.results.calibrated(folder_name),
        read_calibrations(source.results).get(folder_name),
    )
    if recorded and recorded.setting != requested.setting:
        raise UserError(
            f"found the sets of setting '{recorded.setting}' there; wanted another --setting",
            file=folder,
        )
    return folder


def measure_calibration_points(
    source: RecalibrationSource, requested: RecalibrationRequest, progress: Callable[[str], None]
) -> tuple[list[CalibrationTime], list[CalibrationTime]]:
    """Return the times of the informative points and of the held-out points in this allocation."""
    archived_files = (
        use_archived_inputs(source.results, source.plan.files)
        if source.plan and source.results
        else nullcontext()
    )
    with archived_files, TemporaryDirectory(prefix="commodel-") as folder:
        informative, held_out_points = _choose_calibration_points(source, requested)
        candidates = [*informative, *held_out_points]
        raw = SafePath.at(Path(folder).resolve()) / "raw"
        raw.mkdir()
        points = [
            replace(candidate.point, platform=requested.resources.name) for candidate in candidates
        ]
        settings = (
            replace(QUICK_MEASURE, sync=source.plan.measure.sync) if source.plan else QUICK_MEASURE
        )
        samples = measure_now(
            "calibration", points, requested.resources.name, settings, raw, progress
        )
    times = list(map(calibrating.summarize_samples, candidates, samples))
    used, held_out_times = (
        list(filter(None, part)) for part in (times[: len(informative)], times[len(informative) :])
    )
    if len(used) < calibrating.MIN_POINTS_OF_FACTORS:
        raise UserError(
            f"only {len(used)} of {len(informative)} points could be measured, "
            f"wanted {calibrating.MIN_POINTS_OF_FACTORS}"
        )
    return used, held_out_times


def _choose_calibration_points(
    source: RecalibrationSource, requested: RecalibrationRequest
) -> tuple[list[CalibrationPoint], list[CalibrationPoint]]:
    if source.plan:
        points = [point for point in source.plan.points if point.platform == source.platform]
        campaign_points = calibrating.list_campaign_points(
            points, source.comparison, requested.nodes
        )
        if len(campaign_points) >= calibrating.MIN_POINTS_OF_FACTORS:
            order = (
                source.comparison[source.comparison["model"].ne("")]
                .groupby("model")["mu"]
                .mean()
                .sort_values()
            )
            ranked = sorted(source.sets, key=lambda fitted: list(order.index).index(fitted.model))
            return calibrating.select_calibration_points(
                campaign_points, ranked, requested.levels, requested.count, requested.held_out_count
            )
    messages, held_out_points = calibrating.list_single_messages(
        replace(requested.resources, nodes=requested.nodes)
    )
    return messages[: requested.count], held_out_points[: requested.held_out_count]


def record_factors(calibrated: RecalibratedSet) -> RecordedFactors:
    fitted = calibrated.factors
    latency, per_byte = (
        RecordedFactor(factor.value, factor.low, factor.high, factor.known)
        for factor in (fitted.latency, fitted.per_byte)
    )
    before, after = (
        error if isfinite(error) else None for error in (calibrated.before, calibrated.after)
    )
    return RecordedFactors(
        latency,
        per_byte,
        fitted.together,
        fitted.points,
        fitted.scatter,
        before,
        after,
        calibrated.checked,
    )


def write_recalibration(
    source: RecalibrationSource,
    requested: RecalibrationRequest,
    used: Sequence[CalibrationTime],
    held_out_times: Sequence[CalibrationTime],
    calibrations: Sequence[RecalibratedSet],
    folder: AnyPath,
) -> None:
    """Write the scaled sets. The measurements are written last, so a folder without them is
    incomplete."""
    for calibrated in calibrations:
        scaled = calibrated.parameters
        recalibrated = replace(
            scaled,
            platform=requested.resources.name,
            simulated=scaled.simulated or requested.simulated,
        )
        write_parameters(folder / f"{scaled.model}.yaml", recalibrated)
    points = [
        *(_record_point(timed, True) for timed in used),
        *(_record_point(timed, False) for timed in held_out_times),
    ]
    calibration = Calibration(
        requested.setting,
        source.platform or requested.resources.name,
        requested.resources.name,
        requested.simulated,
        read_clock().isoformat(timespec="seconds"),
        tuple(points),
        {calibrated.parameters.model: record_factors(calibrated) for calibrated in calibrations},
    )
    write_calibration(folder, calibration)


def _record_point(timed: CalibrationTime, used: bool) -> RecordedPoint:
    point, campaign_seconds = timed.calibration_point.point, timed.calibration_point.seconds
    fields = (point.operation, point.alternative, point.layout, point.ranks, point.bytes)
    return RecordedPoint(
        *fields, timed.seconds, campaign_seconds if isfinite(campaign_seconds) else None, used
    )
