"""Rules for an MPI library's own collectives (`tune`): those that pay are searched, verified and
measured."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

import pandas as pd

from commodel.advice.evidence import Evidence, combine_sets
from commodel.api.platform_evidence import find_platform_evidence
from commodel.api.predictions import Amounts, Source, join_amounts, list_sources, read_sets
from commodel.api.recommendations import list_workloads
from commodel.errors import UserError, check_option_names
from commodel.files.atomic import read_json, write_json, write_text
from commodel.files.safe_paths import SafePath
from commodel.files.tables import write_table
from commodel.interchange.rules import NO_ASSUMPTIONS, Assumptions
from commodel.patterns.operations import canonicalize_operation
from commodel.patterns.points import PlatformResources, make_point
from commodel.plan.config import find_config_file, load_platform
from commodel.plan.planning import make_resources
from commodel.platforms.build import build_toolchain, find_starter, get_program_folder
from commodel.platforms.launchers import LAUNCHERS, get_toolchain, require_job
from commodel.platforms.platform import Platform
from commodel.platforms.tools import find_build_root
from commodel.records import LIBRARY, Measure, PlacedWorkload, Synchronisation
from commodel.results.campaign import open_lock
from commodel.sources import ROOT
from commodel_tune.dialects import find_dialect
from commodel_tune.han_rules import HAN_FILE
from commodel_tune.hierarchical import Placement
from commodel_tune.mpich_compositions import COMPOSITIONS_FILE
from commodel_tune.results import ENVIRONMENT_FILE, Outcome, Tuning, make_gain_row
from commodel_tune.search import choose_algorithms, list_arms, list_rule_choices, search_choices
from commodel_tune.timer import LibraryTimer
from commodel_tune.validation import (
    MIN_GAIN_TO_VALIDATE,
    SCREENING_PAIRS,
    confirm_rules,
    drop_wrong_rules,
    measure_gains,
    select_for_screening,
    select_for_validation,
)

OPTIONS_FILE, GAINS_FILE = "options.json", "gains.csv"
# For measuring a point.
POINT_PRECISION, MIN_SAMPLES, MAX_SAMPLES, POINT_SECONDS, POINT_TIMEOUT = 0.05, 5, 40, 0.1, 60.0


@dataclass(frozen=True)
class TuningRequest:
    """What to tune, on which assumptions about programs, and how long to measure. Without
    operations, all are tuned for which the MPI library has rules. Predictions come from `params`,
    else from the runs on the platform."""

    platform: str
    ranks: str
    sizes: str
    operations: Sequence[str] = ()
    layout: str = "block"
    params: Sequence[Source] = ()
    experiment: str | None = None
    assumptions: Assumptions = NO_ASSUMPTIONS
    minutes: float = 5.0  # of the search
    pairs: int = 4  # of starts with rules and without, for validation
    sync: Synchronisation = "window"
    out: Path | None = None

    def list_workloads(self, operations: Sequence[str]) -> list[PlacedWorkload]:
        """Return a workload for each operation, number of ranks and size."""
        return [
            PlacedWorkload(workload.operation, workload.ranks, self.layout, workload.bytes)
            for workload in list_workloads(operations, ranks=self.ranks, sizes=self.sizes)
        ]


def tune(
    platform: str,
    ranks: Amounts,
    bytes: Amounts = "8:256KiB:*8",
    *,
    operations: str | Sequence[str] = (),
    evidence: Source | Sequence[Source] = (),
    out: str | Path | None = None,
    progress: Callable[[str], None] | None = None,
    **options: Any,
) -> Tuning:
    """Measure which rules make the collectives of a platform's MPI library faster, and write these.
    Printed, the result is what `commodel tune` prints.

    `operations` are all with rules by default. `evidence` are parameter sets for predictions;
    without them, the runs on the platform are used. `out` is the folder of the rules,
    `results/tune-PLATFORM` by default. `progress` is called with a line of text now and then.
    Further options are fields of `TuningRequest`, such as `minutes=10`.

    >>> tune("mycluster", ranks=64, bytes="8:1MiB:*16", minutes=10).sentence  # doctest: +SKIP
    """
    names = [operations] if isinstance(operations, str) else list(operations)
    amounts = str(join_amounts(ranks)), str(join_amounts(bytes))
    check_option_names(options, [field.name for field in fields(TuningRequest)], "tune")
    sources = list_sources(evidence)
    request = TuningRequest(
        platform, *amounts, names, params=sources, out=Path(out) if out else None, **options
    )
    return tune_library(request, progress or (lambda text: None))


def tune_library(request: TuningRequest, progress: Callable[[str], None]) -> Tuning:
    """Search for rules, verify their results, and keep those that pay."""
    platform = request.platform
    # Learned levels are not loaded, since Slurm may allocate other nodes.
    loaded = load_platform(find_config_file("platform", platform), use_learned_levels=False)
    launcher = LAUNCHERS[loaded.launcher]
    if launcher.simulated or not loaded.uses_mpi:
        raise UserError(
            f"platform '{platform}' has no MPI library with rules; wanted one that runs an MPI for real"
        )
    if loaded.image:
        raise UserError(
            f"platform '{platform}' runs a container image; tune it from inside, with its own MPI"
        )
    require_job(platform, loaded)
    toolchain = get_toolchain(loaded)
    build_toolchain(ROOT, toolchain)
    settings = [f"{name}={value}" for name, value in launcher.settings(os.geteuid()).items()]
    starter = find_starter(toolchain, launcher.starters)
    start = ["env", *settings, starter, "-n", "1"] if starter else []
    program = get_program_folder(find_build_root(), toolchain) / "library"
    dialect = replace(find_dialect(program, start), assumptions=request.assumptions)
    names = [canonicalize_operation(name) for name in request.operations] or list(
        dialect.operations
    )
    unknown = [name for name in names if name not in dialect.operations]
    if unknown:
        raise UserError(
            f"{dialect.library} has no rules for '{unknown[0]}'; wanted: {', '.join(dialect.operations)}"
        )
    workloads = request.list_workloads(names)
    folder = SafePath.at(request.out or Path("results") / f"tune-{platform}")
    measure = Measure(
        request.sync, POINT_PRECISION, MIN_SAMPLES, MAX_SAMPLES, POINT_SECONDS, 1, 1, POINT_TIMEOUT
    )
    resources = make_resources(loaded)
    dialect = replace(dialect, placements=_find_placements(resources, workloads))
    timer = LibraryTimer(platform, loaded, resources, dialect, measure, folder)
    for workload in workloads:
        timer.point(workload)  # a workload that does not fit is refused before anything is measured
    evidence = _find_evidence(timer.resources, request, progress)
    folder.mkdir()
    with open_lock(folder, "another `commodel tune`"):
        _check_options(timer, workloads, loaded, request.assumptions)
        arms = list_arms(
            workloads,
            evidence,
            timer.resources,
            dialect.can_name,
            progress,
            dialect.changes_defaults,
            dialect.list_further_specs,
        )
        searched = search_choices(timer, arms, 60 * request.minutes, progress)
        chosen = choose_algorithms(
            searched, MIN_GAIN_TO_VALIDATE, dialect.size_independent_operations
        )
        choices, wrong = drop_wrong_rules(timer, chosen, progress)
        screening = measure_gains(
            timer,
            "screening",
            select_for_screening(choices, dialect.changes_defaults),
            SCREENING_PAIRS,
            progress,
            dialect.changes_defaults,
        )
        choices_to_validate = dict.fromkeys(choices, LIBRARY) | select_for_validation(
            screening, dialect.size_independent_operations
        )
        validation = measure_gains(
            timer,
            "validation",
            choices_to_validate,
            request.pairs,
            progress,
            dialect.changes_defaults,
        )
        final = dict.fromkeys(choices, LIBRARY) | confirm_rules(
            validation, screening, dialect.size_independent_operations
        )
        dropped = {
            workload: name
            for workload, name in choices.items()
            if name not in (LIBRARY, final.get(workload, LIBRARY))
        }
        outcome = Outcome(timer, searched, screening, validation, final, dropped, wrong)
        _write_results(outcome)
    return Tuning.of(outcome)


def _find_placements(
    resources: PlatformResources, workloads: Sequence[PlacedWorkload]
) -> dict[int, Placement]:
    """Return the nodes of each number of ranks."""
    placements = {}
    for workload in workloads:
        point = make_point(resources, workload._asdict() | {"algorithm": LIBRARY})
        placements[point.ranks] = Placement(point.nodes, point.per_node)
    return placements


def _find_evidence(
    resources: PlatformResources, request: TuningRequest, progress: Callable[[str], None]
) -> Evidence | None:
    """Return the evidence for predictions; None if there is none, so that the search measures more
    points."""
    if request.params:
        return combine_sets(
            [fitted for source in request.params for fitted in read_sets(source)], resources
        )
    try:
        evidence, folders = find_platform_evidence(resources, Path("results"), request.experiment)
    except UserError as error:
        if request.experiment:
            raise
        progress(f"no predictions, so more points are measured: {error.message}")
        return None
    progress(f"predictions: {', '.join(map(str, folders))}")
    return evidence


def _check_options(
    timer: LibraryTimer,
    workloads: Sequence[PlacedWorkload],
    platform: Platform,
    assumptions: Assumptions,
) -> None:
    """Raise UserError if the folder has results of other options."""
    requested = {
        "platform": platform.digest,
        "library": timer.dialect.library,
        "sync": timer.measure.sync,
        "assumptions": asdict(assumptions),
        "workloads": [list(workload) for workload in workloads],
    }
    file = timer.folder / OPTIONS_FILE
    if not file.exists():
        write_json(file, requested)
        return
    before = read_json(file)
    if before != requested:
        differs = min(name for name in requested if before.get(name) != requested[name])
        raise UserError(
            f"its results have other {differs}; give another --out, or remove this folder",
            file=timer.folder,
        )


def _write_results(outcome: Outcome) -> None:
    """Write the rules that pay, the environment of a Slurm script, and all gains; no rules file if
    none pays."""
    timer, rows = outcome.timer, list_rule_choices(outcome.final.items())
    path, script = timer.folder / timer.dialect.file, timer.folder / ENVIRONMENT_FILE
    further = [timer.folder / name for name in (HAN_FILE, COMPOSITIONS_FILE)]
    for file in (path, script, *further):
        file.unlink(missing_ok=True)
    if rows:
        write_text(path, timer.dialect.user_text(rows))
        for name, text in timer.dialect.further_files(rows).items():
            write_text(timer.folder / name, text)
        settings = timer.dialect.environment(path.parent.resolve() / path.name, rows)
        lines = [f"export {name}={shlex.quote(value)}\n" for name, value in settings.items()]
        write_text(script, "".join(lines))
    stages = {"screening": outcome.screening, "validation": outcome.validation}
    table = [make_gain_row(name, row) for name, stage in stages.items() for row in stage.rows]
    if table:
        write_table(timer.folder / GAINS_FILE, pd.DataFrame(table))
