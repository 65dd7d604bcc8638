"""Advice from Python: `advise` ranks the alternatives of one workload, `decide` returns the best of each of several."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path

import pandas as pd

from commodel import records
from commodel.advice import Advice, Workload
from commodel.advice import advise as rank_alternatives
from commodel.advice.decision_tables import decide as decide_workloads
from commodel.advice.evidence import (
    Evidence,
    collect_evidence,
    combine_sets,
    find_only_platform,
    replace_values,
)
from commodel.api.campaigns import Run
from commodel.api.platform_evidence import find_platform_evidence
from commodel.api.predictions import Amounts, Source, join_amounts, list_sources, read_sets
from commodel.errors import UserError, locate_mistakes
from commodel.files.quantities import expand_axis, parse_statistic
from commodel.files.results_folder import Results
from commodel.patterns.operations import OVERLAY, canonicalize_operation, find_required_ranks, has_size
from commodel.patterns.points import PlatformResources
from commodel.plan.duration import Durations
from commodel.plan.experiments import Measure
from commodel.plan.planning import load_resources
from commodel.records import Point, Statistic
from commodel.units import parse_bytes, parse_count

MAX_WORKLOADS = 100_000  # of one operation


def advise(
    operation: str,
    ranks: int | str | None = None,
    bytes: int | str | None = None,
    *,
    evidence: Source | Sequence[Source],
    leaves: int | str | None = None,
    platform: str | None = None,
    layouts: Sequence[str] = (),
    only: Sequence[str] = (),
    values: Mapping[str, str] | None = None,
    statistic: str = Statistic.COMPLETION,
) -> Advice:
    """Return the alternatives for one workload from the fastest on: algorithms, trees and layouts.

    `evidence` is a `Run`, whose measured points weigh the models, or parameter sets; `platform` one of the run, or a
    platform file; `only` names the algorithms or topologies to consider. The result's `frame` is a DataFrame, its
    `sentence` the answer; its `notes` state limits and reasons. `values` replace fitted ones, such as `{"L": "1us"}`.
    `statistic` says which ranks' times are ranked, such as `"rank mean"` for what OSU prints; the default is the time
    until completion.
    """
    amounts = (join_amounts(leaves), join_amounts(ranks), join_amounts(bytes))
    workloads = list_workloads([operation], *amounts, parse_statistic(statistic))
    if len(workloads) != 1:
        raise UserError(f"found {len(workloads)} workloads, wanted one; decide() takes several")
    settings = [f"{name}={value}" for name, value in (values or {}).items()]
    return rank_alternatives(workloads[0], replace_values(gather_evidence(evidence, platform), settings), layouts, only)


def decide(
    operations: str | Sequence[str],
    ranks: Amounts | None = None,
    bytes: Amounts | None = None,
    *,
    evidence: Source | Sequence[Source],
    leaves: Amounts | None = None,
    platform: str | None = None,
    layouts: Sequence[str] = (),
) -> pd.DataFrame:
    """Return a decision table: the best alternative of each operation, number of ranks and size."""
    names = [operations] if isinstance(operations, str) else list(operations)
    workloads = list_workloads(names, join_amounts(leaves), join_amounts(ranks), join_amounts(bytes))
    return decide_workloads(workloads, gather_evidence(evidence, platform), layouts, lambda workload: ())


def find_evidence(
    files: Sequence[Path], platform: str | None, experiment: str | None, operation: str | None = None
) -> tuple[Evidence, list[Path]]:
    """Return the evidence in files, else that of a platform or an experiment, and its folders of results. Without an
    experiment, these are all runs of the platform that measured the operation."""
    if files:
        return gather_evidence(files, platform), []
    results = Path("results")
    if not (platform or experiment):
        runs = sorted(results.glob("*/comparison.csv"), key=lambda path: path.stat().st_mtime)
        if not runs:
            raise UserError(f"found no run in {results}, wanted --params FILE, or `commodel run EXPERIMENT` first")
        platform = find_only_platform(runs[-1].parent.name, results)
    if not platform:
        assert experiment
        platform = find_only_platform(experiment, results)
    operations = [operation] if operation else []
    return find_platform_evidence(load_resources(platform), results, experiment, operations)


def describe_evidence_folders(evidence: Evidence, folders: Sequence[Path]) -> str:
    """Return a line that names the folders and the platform of the evidence, and the other platforms there."""
    names = dict.fromkeys(name for folder in folders for name in Results.of(folder).platforms())
    other_platforms = [name for name in names if name != evidence.resources.name]
    hint = f"; --platform {' or '.join(other_platforms)} has results, too" if other_platforms else ""
    return f"evidence: {', '.join(map(str, folders))}, platform {evidence.resources.name}{hint}"


def estimate_measuring(point: Point, resources: PlatformResources) -> float:
    """Return the seconds to measure a point with the default settings, as a plan does; NaN without a platform."""
    if not resources.launcher:
        return math.nan
    settings = records.Measure(**Measure.model_validate({}).model_dump())
    return Durations(resources.launcher, settings, resources.substrate == OVERLAY).estimate_point(point)


def gather_evidence(sources: Source | Sequence[Source], platform: str | None = None) -> Evidence:
    """Return the parameter sets of the sources, with the points measured on the platform if a source is a run."""
    source_list = list_sources(sources)
    runs = [source for source in source_list if isinstance(source, Run)]
    if len(runs) > 1 or (runs and len(source_list) > 1):
        raise UserError("found a run beside other evidence, wanted one run, or parameter sets")
    if runs:
        (run,) = runs
        name = run.choose_platform(platform)
        return collect_evidence(run.parameter_sets(name), run.resources(name), Results.of(run.folder))
    sets = [parameters for source in source_list for parameters in read_sets(source)]
    return combine_sets(sets, load_resources(platform) if platform else None)


def list_workloads(
    operations: Iterable[str],
    leaves: str | None = None,
    ranks: str | None = None,
    sizes: str | None = None,
    statistic: Statistic = Statistic.COMPLETION,
) -> list[Workload]:
    """Return a workload for each operation, number of leaves or ranks, and size."""
    workloads = []
    for operation in operations:
        name = canonicalize_operation(operation)
        amounts = leaves or ranks or find_required_ranks(name)
        if leaves and ranks:
            raise UserError("give ranks, or leaves of a tree on an overlay network, not both")
        if not amounts:
            raise UserError(f"ranks is missing; {name} needs a number of ranks")
        if has_size(name) and sizes is None:
            raise UserError(f"bytes is missing; {name} needs a message size")
        axis, min_count = ("leaves", 1) if leaves else ("ranks", 2)
        counts = _expand(axis, str(amounts), partial(parse_count, low=min_count))
        lengths = _expand("bytes", sizes, parse_bytes) if sizes is not None and has_size(name) else [0]
        if len(counts) * len(lengths) > MAX_WORKLOADS:
            raise UserError(f"found {len(counts) * len(lengths)} workloads, wanted at most {MAX_WORKLOADS}")
        workloads += [
            Workload(name, size, **{axis: count}, statistic=statistic) for count in counts for size in lengths
        ]
    if not workloads:
        raise UserError("operation is missing")
    return workloads


def _expand(name: str, text: str, parse: Callable[[object], int]) -> list[int]:
    with locate_mistakes(key=name):
        return expand_axis(text, parse)
