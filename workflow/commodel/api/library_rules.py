"""Rules for an MPI library's own collectives: the rules that each library can express (`Dialect`), and the search for
rules that pay.

`tune` takes operations, ranks and sizes. It returns the rules whose results were verified and whose gain was measured.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

import pandas as pd

from commodel.advice import Workload
from commodel.advice.alternatives import list_algorithms
from commodel.advice.evidence import Evidence, combine_sets
from commodel.advice.rule_validation import (
    MIN_GAIN_TO_VALIDATE,
    SCREENING_PAIRS,
    confirm_rules,
    drop_wrong_rules,
    measure_gains,
    select_for_screening,
    select_for_validation,
)
from commodel.advice.tuning import choose_algorithms, list_arms, list_rule_choices, search_choices
from commodel.api.platform_evidence import find_platform_evidence
from commodel.api.predictions import Amounts, Source, join_amounts, list_sources, read_sets
from commodel.api.recommendations import list_workloads
from commodel.api.tuning import ENVIRONMENT_FILE, Outcome, Tuning, make_gain_row
from commodel.errors import UserError, check_option_names
from commodel.files.atomic import read_json, write_json, write_text
from commodel.files.safe_paths import SafePath
from commodel.files.tables import write_table
from commodel.interchange import rules, selection
from commodel.interchange.rules import BENCHMARK_ASSUMPTIONS, NO_ASSUMPTIONS, Assumptions
from commodel.measure.library_collectives import LibraryTimer
from commodel.patterns.libraries import MPICH, OPEN_MPI
from commodel.patterns.operations import canonicalize_operation
from commodel.patterns.points import PlatformResources
from commodel.plan.config import find_config_file, load_platform
from commodel.plan.planning import make_resources
from commodel.platforms.build import build_toolchain, find_starter, get_program_folder
from commodel.platforms.launchers import LAUNCHERS, get_toolchain, require_job
from commodel.platforms.mpi_libraries import find_kind, find_library_version, find_shared_library
from commodel.platforms.platform import Platform
from commodel.platforms.tools import find_build_root
from commodel.records import LIBRARY, Choice, Measure, PlacedWorkload, Synchronisation
from commodel.results.campaign import open_lock
from commodel.sources import ROOT

HAN_VERSIONS = re.compile(r"Open MPI v([5-9]|\d\d)\.")  # prefer component `han` to `tuned` by default
TUNED_PRIORITY = "99"  # of the component `tuned`: higher than that of han, hcoll and ucc, which ignore its rules


@dataclass(frozen=True)
class Dialect:
    """The rules of one MPI library: file format, operations, and the algorithms that a rule can name."""

    library: str
    file: str  # name of the rules
    operations: Collection[str]
    names: Callable[[str, str, int, Assumptions], bool]  # whether a rule may name an algorithm
    write: Callable[[list[Choice], Assumptions], str]
    environment: Callable[[Path, Iterable[str]], Mapping[str, str]]  # of a file with rules for some operations
    changes_defaults: bool  # True if a rule also changes the library default at other sizes of the operation
    # Operations for which ranks of a correct program may look up different sizes.
    size_independent_operations: tuple[str, ...] = ()
    assumptions: Assumptions = NO_ASSUMPTIONS  # of the programs that will use the rules

    def can_name(self, operation: str, spec: str, ranks: int) -> bool:
        return self.names(operation, spec, ranks, self.assumptions)

    def text(self, choices: Iterable[Choice]) -> str:
        """Return the rules file for timing: our own program passes the same counts on all ranks."""
        return self._text(choices, BENCHMARK_ASSUMPTIONS)

    def user_text(self, choices: Iterable[Choice]) -> str:
        """Return the rules file for the user's programs, under the assumptions about them."""
        return self._text(choices, self.assumptions)

    def _text(self, choices: Iterable[Choice], assumptions: Assumptions) -> str:
        """Return the rules file. Numbers of ranks above the measured ones get no rule."""
        choices = list(choices)
        max_ranks = {row.operation: max(row.ranks, 0) for row in sorted(choices)}
        rules_above = (Choice(name, ranks + 1, 0, LIBRARY) for name, ranks in max_ranks.items())
        return self.write([*choices, *rules_above], assumptions)


def find_dialect(program: Path, start: Sequence[str] = ()) -> Dialect:
    """Return the rules dialect of the MPI library with which a native program was built. `start` is the command that
    starts one rank: some programs find their library only in the environment that it sets."""
    version = find_library_version([str(program)]) or find_library_version([*start, str(program)])
    if find_kind(version) == OPEN_MPI:
        return replace(OPEN_MPI_DIALECT, changes_defaults=HAN_VERSIONS.search(version) is not None)
    if find_kind(version) == MPICH:
        builtin_tree = selection.read_builtin_tree(find_shared_library(program))
        return replace(
            MPICH_DIALECT, write=lambda choices, assumptions: selection.format_selection(choices, builtin_tree)
        )
    raise UserError(f"found the MPI library '{version}', wanted Open MPI or MPICH")


def _make_open_mpi_environment(path: Path, operations: Iterable[str]) -> dict[str, str]:
    return {
        "OMPI_MCA_coll_tuned_priority": TUNED_PRIORITY,
        "OMPI_MCA_coll_tuned_use_dynamic_rules": "1",
        "OMPI_MCA_coll_tuned_dynamic_rules_filename": str(path),
    }


def _make_mpich_environment(path: Path, operations: Iterable[str]) -> dict[str, str]:
    """Return the environment for MPICH. Collectives of a device would precede the selection, so they are off for
    operations with a rule."""
    collectives = (selection.COLLECTIVES[operation][0].upper() for operation in sorted(set(operations)))
    settings = {f"MPIR_CVAR_{name}_DEVICE_COLLECTIVE": "0" for name in collectives}
    return {"MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE": str(path), **settings}


OPEN_MPI_DIALECT = Dialect(
    OPEN_MPI,
    "rules.conf",
    tuple(rules.COLLECTIVE_NUMBERS),
    lambda name, spec, ranks, assumptions: rules.can_select(name, spec, assumptions),
    rules.format_rules,
    _make_open_mpi_environment,
    changes_defaults=False,  # rule 0 is the default of `tuned`, unless another component has priority
    size_independent_operations=rules.SIZE_INDEPENDENT_OPERATIONS,
)
MPICH_DIALECT = Dialect(
    MPICH,
    "rules.json",
    tuple(selection.COLLECTIVES),
    lambda name, spec, ranks, assumptions: bool(selection.find_function(name, spec, ranks)),
    lambda choices, assumptions: "",
    _make_mpich_environment,
    changes_defaults=True,  # for an operation with a rule, the device's own collectives are off
)
OPTIONS_FILE, GAINS_FILE = "options.json", "gains.csv"
# For measuring a point.
POINT_PRECISION, MIN_SAMPLES, MAX_SAMPLES, POINT_SECONDS, POINT_TIMEOUT = 0.05, 5, 40, 0.1, 60.0


@dataclass(frozen=True)
class TuningRequest:
    """What to tune, on which assumptions about programs, and how long to measure. Without operations, all are tuned for
    which the MPI library has rules. Predictions come from `params`, else from the runs on the platform."""

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
    """Measure which rules make the collectives of a platform's MPI library faster, and write these. Printed, the result
    is what `commodel tune` prints.

    `operations` are all with rules by default. `evidence` are parameter sets for predictions; without them, the runs
    on the platform are used. `out` is the folder of the rules, `results/tune-PLATFORM` by default. `progress` is called
    with a line of text now and then. Further options are fields of `TuningRequest`, such as `minutes=10`.

    >>> tune("mycluster", ranks=64, bytes="8:1MiB:*16", minutes=10).sentence  # doctest: +SKIP
    """
    names = [operations] if isinstance(operations, str) else list(operations)
    amounts = str(join_amounts(ranks)), str(join_amounts(bytes))
    check_option_names(options, [field.name for field in fields(TuningRequest)], "tune")
    sources = list_sources(evidence)
    request = TuningRequest(platform, *amounts, names, params=sources, out=Path(out) if out else None, **options)
    return tune_library(request, progress or (lambda text: None))


def tune_library(request: TuningRequest, progress: Callable[[str], None]) -> Tuning:
    """Search for rules, verify their results, and keep those that pay."""
    platform = request.platform
    # Learned levels are not loaded, since Slurm may allocate other nodes.
    loaded = load_platform(find_config_file("platform", platform), use_learned_levels=False)
    launcher = LAUNCHERS[loaded.launcher]
    if launcher.simulated or loaded.overlay:
        raise UserError(f"platform '{platform}' has no MPI library with rules; wanted one that runs an MPI for real")
    if loaded.image:
        raise UserError(f"platform '{platform}' runs a container image; tune it from inside, with its own MPI")
    require_job(platform, loaded)
    toolchain = get_toolchain(loaded)
    build_toolchain(ROOT, toolchain)
    settings = [f"{name}={value}" for name, value in launcher.settings(os.geteuid()).items()]
    starter = find_starter(toolchain, launcher.starters)
    start = ["env", *settings, starter, "-n", "1"] if starter else []
    program = get_program_folder(find_build_root(), toolchain) / "library"
    dialect = replace(find_dialect(program, start), assumptions=request.assumptions)
    names = [canonicalize_operation(name) for name in request.operations] or list(dialect.operations)
    if unknown := [name for name in names if name not in dialect.operations]:
        raise UserError(f"{dialect.library} has no rules for '{unknown[0]}'; wanted: {', '.join(dialect.operations)}")
    workloads = request.list_workloads(names)
    folder = SafePath.at(request.out or Path("results") / f"tune-{platform}")
    measure = Measure(request.sync, POINT_PRECISION, MIN_SAMPLES, MAX_SAMPLES, POINT_SECONDS, 1, 1, POINT_TIMEOUT)
    timer = LibraryTimer(platform, loaded, make_resources(loaded), dialect, measure, folder)
    for workload in workloads:
        timer.point(workload)  # a workload that does not fit is refused before anything is measured
    evidence = _find_evidence(timer.resources, request, progress)
    folder.mkdir()
    with open_lock(folder, "another `commodel tune`"):
        _check_options(timer, workloads, loaded, request.assumptions)
        arms = list_arms(workloads, evidence, timer.resources, dialect.can_name, progress, dialect.changes_defaults)
        searched = search_choices(timer, arms, 60 * request.minutes, progress)
        chosen = choose_algorithms(searched, MIN_GAIN_TO_VALIDATE, dialect.size_independent_operations)
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
            timer, "validation", choices_to_validate, request.pairs, progress, dialect.changes_defaults
        )
        final = dict.fromkeys(choices, LIBRARY) | confirm_rules(
            validation, screening, dialect.size_independent_operations
        )
        dropped = {
            workload: name for workload, name in choices.items() if name not in (LIBRARY, final.get(workload, LIBRARY))
        }
        outcome = Outcome(timer, searched, screening, validation, final, dropped, wrong)
        _write_results(outcome)
    return Tuning.of(outcome)


def _find_evidence(
    resources: PlatformResources, request: TuningRequest, progress: Callable[[str], None]
) -> Evidence | None:
    """Return the evidence for predictions; None if there is none, so that the search measures more points."""
    if request.params:
        return combine_sets([entry for source in request.params for entry in read_sets(source)], resources)
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
    timer: LibraryTimer, workloads: Sequence[PlacedWorkload], platform: Platform, assumptions: Assumptions
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
            f"its results have other {differs}; give another --out, or remove this folder", file=timer.folder
        )


def _write_results(outcome: Outcome) -> None:
    """Write the rules that pay, the environment of a Slurm script, and all gains; no rules file if none pays."""
    timer, rows = outcome.timer, list_rule_choices(outcome.final.items())
    path, script = timer.folder / timer.dialect.file, timer.folder / ENVIRONMENT_FILE
    for file in (path, script):
        file.unlink(missing_ok=True)
    if rows:
        write_text(path, timer.dialect.user_text(rows))
        settings = timer.dialect.environment(path.parent.resolve() / path.name, {row.operation for row in rows})
        lines = [f"export {name}={shlex.quote(value)}\n" for name, value in settings.items()]
        write_text(script, "".join(lines))
    stages = {"screening": outcome.screening, "validation": outcome.validation}
    table = [make_gain_row(name, row) for name, stage in stages.items() for row in stage.rows]
    if table:
        write_table(timer.folder / GAINS_FILE, pd.DataFrame(table))


def list_named_algorithms(workload: Workload, only: Sequence[str], assumptions: Assumptions) -> list[str]:
    """Return the algorithms, or of these `only` some, that Open MPI's rules may name for a workload."""
    if workload.leaves:
        raise UserError("Open MPI's rules are of collectives: give --ranks, not --leaves")
    for spec in only:
        if not rules.can_select(workload.operation, spec):
            raise UserError(f"Open MPI's rules cannot name '{spec}' for {workload.operation}")
        if risk := rules.find_risk(workload.operation, spec, assumptions):
            raise UserError(f"found --only {spec} for {workload.operation}, which {risk}; {_suggest_option(risk)}")
    specs = only or list_algorithms(workload.operation, workload.ranks, workload.bytes)
    return [spec for spec in specs if rules.can_select(workload.operation, spec, assumptions)]


def leave_out_unsafe(
    workloads: Sequence[Workload], choices: Callable[[Workload], Sequence[str]], progress: Callable[[str], None]
) -> list[Workload]:
    """Return the workloads for which a rule may name an algorithm, and print which operations are left to Open MPI."""
    safe = [workload for workload in workloads if choices(workload)]
    for operation in dict.fromkeys(workload.operation for workload in workloads if workload not in safe):
        specs = next(
            list_algorithms(workload.operation, workload.ranks, workload.bytes)
            for workload in workloads
            if workload.operation == operation
        )
        risks = filter(None, (rules.find_risk(operation, spec) for spec in specs))
        risk = next(risks, rules.FAILS_WITH_MIXED_DATATYPES)
        text = f"no algorithm of {operation} is safe in a rule; {_suggest_option(risk)}"
        if not safe:
            raise UserError(text)
        progress(f"left to Open MPI: {text}")
    return safe


def _suggest_option(risk: str) -> str:
    option = "--commutative" if risk == rules.REORDERS_OPERANDS else "--same-types"
    return f"wanted: {option}, if this holds for all programs"
