"""What `commodel tune` is asked for, and what it leaves in its folder."""

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import pandas as pd

from commodel.advice.arms import Job
from commodel.advice.evidence import of_files, of_platform
from commodel.advice.ground import Evidence
from commodel.advice.proof import WORTH
from commodel.advice.trial import TRIAL, Row, Stage, drop_wrong, on_trial, prove, proven, worth_a_proof
from commodel.advice.tuning import Search, arms_of, chosen, rules_of, search
from commodel.cli._dialects import dialect
from commodel.cli._jobs import jobs_of
from commodel.errors import UserError
from commodel.files.atomic import read_json, write_json, write_text
from commodel.files.paths import SafePath
from commodel.files.tables import write_table
from commodel.interchange.rules import Assumptions
from commodel.measure.ruled import Place
from commodel.patterns.operations import own_spelling
from commodel.patterns.points import Setting
from commodel.plan.config import find, load_platform
from commodel.plan.setting import setting_of
from commodel.platforms.build import build, programs
from commodel.platforms.launchers import launcher, require_job, toolchain
from commodel.platforms.platform import Platform
from commodel.platforms.tools import ROOT, workshop
from commodel.records import LIBRARY, Measure
from commodel.results.holding import held

ASKED, GAINS, ENVIRONMENT = "asked.json", "gains.csv", "environment.sh"
PRECISION, FEWEST_SAMPLES, MOST_SAMPLES, SECONDS, TIMEOUT = 0.05, 5, 40, 0.1, 60.0  # how a point is measured


@dataclass(frozen=True)
class Outcome:
    place: Place
    search: Search
    trial: Stage
    proof: Stage  # of the rules that paid in the trial
    final: Mapping[Job, str]  # the rules that are left
    dropped: Mapping[Job, str]  # rules that did not pay
    wrong: Mapping[tuple[str, str], str]  # rules that gave wrong results: why, by operation and algorithm


def tuned(
    operations,
    ranks,
    sizes,
    platform,
    layout,
    params,
    experiment,
    minutes,
    pairs,
    sync,
    out,
    assumptions: Assumptions,
    say: Callable,
) -> Outcome:
    """Everything, from what was asked to the rules that are right and pay."""
    loaded = load_platform(find("platform", platform))
    how = launcher(loaded.launcher)
    if how.simulated or loaded.overlay:
        raise UserError(f"platform '{platform}' has no MPI library with rules; wanted one that runs an MPI for real")
    if loaded.image:
        raise UserError(f"platform '{platform}' runs a container image; tune it from inside, with its own MPI")
    require_job(platform, loaded)
    build(ROOT, toolchain(loaded))
    speaks = replace(dialect(programs(workshop(), toolchain(loaded)) / "library"), assumptions=assumptions)
    operations = [own_spelling(name) for name in operations] or speaks.operations
    if unknown := [name for name in operations if name not in speaks.operations]:
        raise UserError(f"{speaks.library} has no rules for '{unknown[0]}'; wanted: {', '.join(speaks.operations)}")
    asked = jobs_of(operations, None, ranks, sizes)
    jobs = [(job.operation, job.ranks, layout, job.bytes) for job in asked]
    folder = SafePath.at(out or Path("results") / f"tune-{platform}")
    measure = Measure(sync, PRECISION, FEWEST_SAMPLES, MOST_SAMPLES, SECONDS, 1, 1, TIMEOUT)
    place = Place(platform, loaded, setting_of(loaded), speaks, measure, folder, say)
    for job in jobs:
        place.point(job)  # what does not fit is refused before anything is measured
    evidence = _evidence(place.setting, params, experiment, say)
    folder.mkdir()
    with held(folder, "another `commodel tune`"):
        _same_as_before(place, jobs, loaded)
        arms = arms_of(jobs, evidence, place.setting, speaks.can_name, say, speaks.spread)
        searched = search(place, arms, 60 * minutes, say)
        choices, wrong = drop_wrong(place, chosen(searched, WORTH, speaks.one_for_all_sizes), say)
        trial = prove(place, "trial", on_trial(choices, speaks.spread), TRIAL, say, speaks.spread)
        paying = dict.fromkeys(choices, LIBRARY) | worth_a_proof(trial, speaks.one_for_all_sizes)
        proof = prove(place, "proof", paying, pairs, say, speaks.spread)
        final = dict.fromkeys(choices, LIBRARY) | proven(proof, trial, speaks.one_for_all_sizes)
        dropped = {job: name for job, name in choices.items() if name not in (LIBRARY, final.get(job, LIBRARY))}
        outcome = Outcome(place, searched, trial, proof, final, dropped, wrong)
        _write(outcome)
    return outcome


def _evidence(setting: Setting, params, experiment: str | None, say: Callable) -> Evidence | None:
    """What prices rest on; None where nothing is known, which costs more points."""
    if params:
        return of_files(params, setting)
    try:
        evidence, folder = of_platform(setting, Path("results"), experiment)
    except UserError as error:
        if experiment:
            raise
        say(f"no prices, so more points are measured: {error.message}")
        return None
    say(f"prices: {folder}")
    return evidence


def _same_as_before(place: Place, jobs: Sequence[Job], platform: Platform) -> None:
    """A folder is of one question: what was timed for another is no answer."""
    asked = {
        "platform": platform.digest,
        "library": place.dialect.library,
        "sync": place.measure.sync,
        "assumptions": asdict(place.dialect.assumptions),
        "jobs": [list(job) for job in jobs],
    }
    file = place.folder / ASKED
    if not file.exists():
        write_json(file, asked)
    elif (before := read_json(file)) != asked:
        differs = min(name for name in asked if before.get(name) != asked[name])
        raise UserError(
            f"its results are of other {differs}; wanted another --out, or this folder gone", file=place.folder
        )


def _write(outcome: Outcome) -> None:
    """The rules that pay, what a job's script has to say for them, and all gains; no rules where none pays."""
    place, rows = outcome.place, rules_of(outcome.final.items())
    path, script = place.folder / place.dialect.file, place.folder / ENVIRONMENT
    for file in (path, script):
        file.unlink(missing_ok=True)
    if rows:
        write_text(path, place.dialect.offered(rows))
        settings = place.dialect.environment(path.parent.resolve() / path.name, {row.operation for row in rows})
        lines = [f"export {name}={shlex.quote(value)}\n" for name, value in settings.items()]
        write_text(script, "".join(lines))
    stages = {"trial": outcome.trial, "proof": outcome.proof}
    table = [plain(name, row) for name, stage in stages.items() for row in stage.rows]
    if table:
        write_table(place.folder / GAINS, pd.DataFrame(table))


def plain(stage: str, row: Row) -> dict:
    """A row of the table of gains."""
    operation, ranks, layout, size = row.job
    names = {"stage": stage, "operation": operation, "ranks": ranks, "layout": layout, "from_bytes": size}
    gain = row.gain
    times = {"with_rules": gain.with_rules, "without": gain.without}
    return (
        names
        | {"bytes": row.size, "algorithm": row.algorithm}
        | times
        | {"gain": gain.times, "gain_low": gain.low, "gain_high": gain.high}
    )
