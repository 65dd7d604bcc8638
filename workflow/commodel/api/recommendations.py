"""Advice from Python: `advise` ranks the alternatives of one workload, `decide` returns the best of
each of several."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import pandas as pd

from commodel.advice import Workload
from commodel.advice import advise as rank_alternatives
from commodel.advice.decision_tables import decide as tabulate_decisions
from commodel.advice.evidence import (
    Evidence,
    collect_evidence,
    combine_sets,
    find_only_platform,
    replace_values,
)
from commodel.api.advice import Advice, Decisions
from commodel.api.campaigns import Run
from commodel.api.platform_evidence import find_platform_evidence
from commodel.api.predictions import Amounts, Source, join_amounts, list_sources, read_sets
from commodel.errors import UserError, locate_mistakes
from commodel.files.quantities import expand_axis, parse_statistic
from commodel.files.results_folder import Results
from commodel.interchange.rules import NO_ASSUMPTIONS, SIZE_INDEPENDENT_OPERATIONS, Assumptions
from commodel.parameters import ParameterSet
from commodel.patterns.operations import canonicalize_operation, find_required_ranks, has_size
from commodel.plan.planning import load_resources
from commodel.records import Statistic
from commodel.units import parse_bytes, parse_count

MAX_WORKLOADS = 100_000  # of one operation


def advise(
    operation: str,
    ranks: int | str | None = None,
    bytes: int | str | None = None,
    *,
    evidence: Source | Sequence[Source] = (),
    experiment: str | None = None,
    leaves: int | str | None = None,
    platform: str | None = None,
    layouts: Sequence[str] = (),
    only: Sequence[str] = (),
    values: Mapping[str, str] | None = None,
    statistic: str = Statistic.COMPLETION,
) -> Advice:
    """Return the alternatives for one workload, the best first: algorithms, trees and layouts.
    Printed, the result is what `commodel advise` prints.

    `evidence` is a `Run`, whose measured points weigh the models, or parameter sets. Without it,
    the evidence is that of the runs in `results`, or of one `experiment`. `platform` is one of the
    run, or a platform file; `only` names the algorithms or topologies to consider. `values` replace
    fitted ones, such as `{"L": "1us"}`. `statistic` says which ranks' times are ranked, such as
    `"rank mean"` for what OSU prints; the default is the time until completion.

    >>> advise("bcast", 16, "64KiB", experiment="demo", platform="local").frame  # doctest: +SKIP
    """
    amounts = (join_amounts(leaves), join_amounts(ranks), join_amounts(bytes))
    workloads = list_workloads([operation], *amounts, parse_statistic(statistic))
    if len(workloads) != 1:
        raise UserError(f"found {len(workloads)} workloads, wanted one; decide() takes several")
    settings = [f"{name}={value}" for name, value in (values or {}).items()]
    source = EvidenceSource(list_sources(evidence), platform, experiment, settings)
    return advise_workload(workloads[0], source, Candidates(layouts, only))


def decide(
    operations: str | Sequence[str],
    ranks: Amounts | None = None,
    bytes: Amounts | None = None,
    *,
    evidence: Source | Sequence[Source] = (),
    experiment: str | None = None,
    leaves: Amounts | None = None,
    platform: str | None = None,
    layouts: Sequence[str] = (),
    open_mpi: bool = False,
) -> Decisions:
    """Return the best alternative of each operation, number of ranks and size. Printed, the result
    is what `commodel advise` prints for several workloads. With `open_mpi`, only alternatives that
    Open MPI's rules can name for any program are considered; `to_rules` writes them.

    >>> decide(["bcast", "reduce"], "4:16:*2", "1KiB", experiment="demo", platform="local").frame  # doctest: +SKIP
    """
    names = [operations] if isinstance(operations, str) else list(operations)
    workloads = list_workloads(
        names, join_amounts(leaves), join_amounts(ranks), join_amounts(bytes)
    )
    source = EvidenceSource(list_sources(evidence), platform, experiment)
    candidates = Candidates(layouts)
    if open_mpi:
        for_rules = replace(candidates, assumptions=NO_ASSUMPTIONS)
        workloads, candidates = select_for_rules(workloads, for_rules, lambda text: None)
    return decide_workloads(workloads, source, candidates)


@dataclass(frozen=True)
class EvidenceSource:
    """Where the evidence for an advice comes from: parameter sets or a run, else the runs in the
    folder of results; and values in place of fitted ones."""

    sources: Sequence[Source] = ()
    platform: str | None = None
    experiment: str | None = None
    settings: Sequence[str] = ()
    # gets a line that names the folders of results
    print_note: Callable[[str], None] = lambda text: None

    def read(self, operation: str | None) -> Evidence:
        """Return the evidence on an operation."""
        evidence, folders = find_evidence(self.sources, self.platform, self.experiment, operation)
        if folders:
            self.print_note(describe_evidence_folders(evidence, folders))
        return replace_values(evidence, self.settings)


@dataclass(frozen=True)
class Candidates:
    """The alternatives to rank: layouts, and algorithms or topologies by name; all by default. With
    `assumptions`, only those that Open MPI's rules may name under them."""

    layouts: Sequence[str] = ()
    only: Sequence[str] = ()
    assumptions: Assumptions | None = None

    def list_choices(self, workload: Workload) -> Sequence[str]:
        if self.assumptions is None:
            return self.only
        from commodel.advice.rule_candidates import list_named_algorithms

        return list_named_algorithms(workload, self.only, self.assumptions)


def select_for_rules(
    workloads: Sequence[Workload], candidates: Candidates, progress: Callable[[str], None]
) -> tuple[list[Workload], Candidates]:
    """Return the workloads for which Open MPI's rules may name an algorithm, and the candidates on
    one layout."""
    from commodel.advice.rule_candidates import leave_out_unsafe

    if len(candidates.layouts) > 1:
        raise UserError(
            "Open MPI's rules hold for any layout; give one --layout: that of the programs"
        )
    candidates = replace(candidates, layouts=candidates.layouts or ("block",))
    return leave_out_unsafe(workloads, candidates.list_choices, progress), candidates


def advise_workload(workload: Workload, source: EvidenceSource, candidates: Candidates) -> Advice:
    """Return the ranked alternatives of a workload."""
    evidence = source.read(workload.operation)
    ranking = rank_alternatives(
        workload, evidence, candidates.layouts, candidates.list_choices(workload)
    )
    return Advice.of(ranking, evidence)


def decide_workloads(
    workloads: Sequence[Workload], source: EvidenceSource, candidates: Candidates
) -> Decisions:
    """Return the best alternative of each workload."""
    assumptions = candidates.assumptions
    same_for_all_sizes = () if assumptions is None else SIZE_INDEPENDENT_OPERATIONS
    tables: list[pd.DataFrame] = []
    sets: dict[tuple[str, str], ParameterSet] = {}
    for operation in dict.fromkeys(workload.operation for workload in workloads):
        evidence = source.read(operation)
        sets |= {(fitted.model, fitted.source): fitted for fitted in evidence.sets}
        of_operation = [workload for workload in workloads if workload.operation == operation]
        layouts, choices = candidates.layouts, candidates.list_choices
        tables.append(
            tabulate_decisions(of_operation, evidence, layouts, choices, same_for_all_sizes)
        )
    table = pd.concat(tables, ignore_index=True)
    return Decisions.of(table, list(sets.values()), assumptions)


def find_evidence(
    sources: Sequence[Source],
    platform: str | None,
    experiment: str | None,
    operation: str | None = None,
) -> tuple[Evidence, list[Path]]:
    """Return the evidence of sources, else that of a platform or an experiment, and its folders of
    results. Without an experiment, these are all runs of the platform that measured the
    operation."""
    if sources:
        return gather_evidence(sources, platform), []
    results = Path("results")
    if not (platform or experiment):
        runs = sorted(results.glob("*/comparison.csv"), key=lambda path: path.stat().st_mtime)
        if not runs:
            raise UserError(
                f"found no run in {results}, wanted --params FILE, or `commodel run EXPERIMENT` first"
            )
        platform = find_only_platform(runs[-1].parent.name, results)
    if not platform:
        assert experiment
        platform = find_only_platform(experiment, results)
    operations = [operation] if operation else []
    return find_platform_evidence(load_resources(platform), results, experiment, operations)


def describe_evidence_folders(evidence: Evidence, folders: Sequence[Path]) -> str:
    """Return a line that names the folders and the platform of the evidence, and the other
    platforms there."""
    names = dict.fromkeys(name for folder in folders for name in Results.of(folder).platforms())
    other_platforms = [name for name in names if name != evidence.resources.name]
    hint = (
        f"; --platform {' or '.join(other_platforms)} has results, too" if other_platforms else ""
    )
    return f"evidence: {', '.join(map(str, folders))}, platform {evidence.resources.name}{hint}"


def gather_evidence(sources: Source | Sequence[Source], platform: str | None = None) -> Evidence:
    """Return the parameter sets of the sources, with the points measured on the platform if a
    source is a run."""
    source_list = list_sources(sources)
    runs = [source for source in source_list if isinstance(source, Run)]
    if len(runs) > 1 or (runs and len(source_list) > 1):
        raise UserError("found a run beside other evidence, wanted one run, or parameter sets")
    if runs:
        (run,) = runs
        name = run.choose_platform(platform)
        return collect_evidence(
            run.parameter_sets(name), run.resources(name), Results.of(run.folder)
        )
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
            raise UserError("give ranks, or leaves of a tree, not both")
        if not amounts:
            raise UserError(f"ranks is missing; {name} needs a number of ranks")
        if has_size(name) and sizes is None:
            raise UserError(f"bytes is missing; {name} needs a message size")
        axis, min_count = ("leaves", 1) if leaves else ("ranks", 2)
        counts = _expand(axis, str(amounts), partial(parse_count, low=min_count))
        lengths = (
            _expand("bytes", sizes, parse_bytes) if sizes is not None and has_size(name) else [0]
        )
        if len(counts) * len(lengths) > MAX_WORKLOADS:
            raise UserError(
                f"found {len(counts) * len(lengths)} workloads, wanted at most {MAX_WORKLOADS}"
            )
        workloads += [
            Workload(name, size, **{axis: count}, statistic=statistic)
            for count in counts
            for size in lengths
        ]
    if not workloads:
        raise UserError("operation is missing")
    return workloads


def _expand(name: str, text: str, parse: Callable[[object], int]) -> list[int]:
    with locate_mistakes(key=name):
        return expand_axis(text, parse)
