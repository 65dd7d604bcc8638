"""Campaigns from Python: `run` measures an experiment and writes its report, `load` returns the
results of a run as a `Run`, and `report` writes the workbook and page."""

from __future__ import annotations

import html
import os
import re
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from commodel.api.charts import load_altair
from commodel.api.imports import is_imported
from commodel.api.outcomes import describe_scores, find_anomalies, format_best_rows, tabulate_scores
from commodel.api.result import Answer, Result
from commodel.api.snakemake_runs import (
    Display,
    RunFailedError,
    find_project_profile,
    make_snakemake_command,
    run_in_terminal,
    run_with_display,
)
from commodel.compare.comparison import list_model_failures
from commodel.compare.recommended import split_recommended
from commodel.errors import UserError, locate_mistakes, suggest_name
from commodel.files.cache import use_archived_inputs
from commodel.files.results_folder import Results
from commodel.files.tables import COMPARISON, OBSERVATIONS, SUMMARY, read_table
from commodel.files.text_tables import format_answer
from commodel.models.parameter_sets import read_set
from commodel.parameters import ParameterSet
from commodel.patterns.points import PlatformResources
from commodel.plan.config import find_config_file, load_named_platform, load_platform
from commodel.plan.plan_tables import summarize_plan
from commodel.plan.planning import (
    find_launcher,
    find_missing_compiler,
    load_plan,
    make_plan,
    make_resources,
    require_mpi_types,
    write_plan,
)
from commodel.plan.surveys import is_survey
from commodel.platforms.launchers import require_hosts
from commodel.platforms.slurm import NO_SBATCH, require_configuration
from commodel.records import Batch, Plan
from commodel.results.campaign import (
    OTHER_RUN,
    Campaign,
    find_results,
    forget_failures,
    forget_surveys,
    open_lock,
    reopen_batches,
)
from commodel.results.interim_answers import FOLDER as SO_FAR
from commodel.results.interim_answers import Answers, read_so_far
from commodel.results.raw_samples import read_unmeasured
from commodel.units import format_count, parse_fraction

if TYPE_CHECKING:
    import altair

    from commodel.reports.elements import Report


@dataclass(frozen=True, eq=False, repr=False)
class Run(Result):
    """The results of one experiment as tables, parameter sets and charts. Printed, they are what
    `commodel run` prints: the errors of the recommended prediction and of the best models.

    Times are in seconds, sizes in bytes. Tables are read when they are first used.
    """

    folder: Path

    @cached_property
    def plan(self) -> Plan:
        """The plan of the experiment: points, batches, platforms and models."""
        return load_plan(self._results.plan)

    @property
    def experiment(self) -> str:
        return self.plan.experiment

    @property
    def platforms(self) -> list[str]:
        return list(self.plan.platforms)

    @property
    def models(self) -> list[str]:
        return list(self.plan.models)

    @cached_property
    def rows(self) -> Sequence[Mapping[str, Any]]:
        """The errors of the recommended prediction and of each model on each platform, the lowest
        first."""
        return tabulate_scores(self.comparison)

    @cached_property
    def sentence(self) -> str:
        """The prediction to use on each platform, with its mean error."""
        return describe_scores(self.rows)

    @cached_property
    def notes(self) -> Sequence[str]:
        """The anomalies of the measurements."""
        return find_anomalies(self._results, self.comparison)

    @cached_property
    def provenance(self) -> Sequence[Mapping[str, str]]:
        """The platform and the folder of raw samples of each batch."""
        return [
            {
                "batch": batch.name,
                "platform": batch.platform,
                "source": str(self.folder / "raw" / batch.name),
            }
            for batch in self.plan.batches
        ]

    @property
    def has_program_errors(self) -> bool:
        """Whether an error of the program stopped a model."""
        return any(failure.is_program_error for failure in list_model_failures(self.comparison))

    def text(self, verbose: bool = True) -> str:
        """Return the sentence, the best models of each platform, the anomalies, and the files of
        the report."""
        answer = format_answer(self.sentence, format_best_rows(self.rows), self.notes, verbose)
        reports = [
            str(Path("reports") / self.folder.name / name)
            for name in (f"{self.folder.name}.xlsx", "index.html")
        ]
        return "\n".join([answer, "", *reports])

    @cached_property
    def comparison(self) -> pd.DataFrame:
        """Predicted beside measured times: a row for each point and model, the recommended
        prediction first."""
        return read_table(self._results.table("comparison"), COMPARISON)

    @cached_property
    def recommended(self) -> pd.DataFrame:
        """The recommended prediction of each point, in the columns of `comparison`. It never uses
        the point's workload; `predict` and `advise` use all points."""
        return split_recommended(self.comparison)[1].reset_index(drop=True)

    @cached_property
    def observations(self) -> pd.DataFrame:
        """All raw samples, of points and of probes."""
        return read_table(self._results.table("observations"), OBSERVATIONS)

    @cached_property
    def summary(self) -> pd.DataFrame:
        """Median, interval and number of samples of each point and probe case."""
        return read_table(self._results.table("summary"), SUMMARY)

    @cached_property
    def unmeasured(self) -> pd.DataFrame:
        """Points and probe cases that could not be measured, each with the reason."""
        return read_unmeasured(self._results.table("unmeasured"))

    def parameter_set(self, platform: str, model: str) -> ParameterSet:
        """Return the fitted values of a model on a platform, with its errors on held-out points
        where it has any."""
        for name, names in ((platform, self.platforms), (model, self.models)):
            if name not in names:
                raise UserError(f"found no '{name}' in {self.folder}; {suggest_name(name, names)}")
        return read_set(self._results.find_set(platform, model))

    def parameter_sets(self, platform: str | None = None) -> list[ParameterSet]:
        """Return the fitted values of all models on a platform; of the only one by default."""
        sets = [self.parameter_set(self.choose_platform(platform), model) for model in self.models]
        return [parameters for parameters in sets if parameters.values]

    def parameters(self, platform: str, model: str) -> pd.DataFrame:
        """Return the fitted values of a model on a platform: value, 95 % interval and unit of
        each."""
        return tabulate_parameters(self.parameter_set(platform, model))

    def choose_platform(self, platform: str | None = None) -> str:
        """Return the platform of that name, or the only one."""
        if platform is None and len(self.platforms) > 1:
            raise UserError(
                f"{self.folder} has results on {', '.join(self.platforms)}; give one of them: platform=NAME"
            )
        name = platform or self.platforms[0]
        if name not in self.platforms:
            raise UserError(
                f"found no platform '{name}' in {self.folder}; {suggest_name(name, self.platforms)}"
            )
        return name

    def resources(self, platform: str) -> PlatformResources:
        """Return the nodes of a platform at the time of the experiment."""
        self._results.check()
        with use_archived_inputs(self._results, self.plan.files):
            return make_resources(
                load_platform(self.folder / "inputs" / "platforms" / f"{platform}.yaml")
            )

    @cached_property
    def charts(self) -> dict[str, dict[str, Any]]:
        """The Vega-Lite specification of every chart of the report, by name."""
        from commodel.reports.pictures.render import choose_file_name, list_pictures

        names: set[str] = set()
        return {
            choose_file_name(name, names): specification
            for name, specification in list_pictures(self._report, every=True)
        }

    def plot(self, chart: str = "predicted") -> altair.Chart:
        """Return the first chart of the report whose name begins with this; `list(run.charts)` has
        the names."""
        wanted = re.sub(r"[^a-z0-9]+", "-", chart.lower())
        for name, specification in self.charts.items():
            if name.startswith(wanted):
                return load_altair().Chart.from_dict(specification)
        raise UserError(f"found no chart '{chart}'; {suggest_name(chart, list(self.charts))}")

    def __repr__(self) -> str:
        return (
            f"Run({str(self.folder)!r}): {len(self.plan.points)} points on "
            f"{', '.join(self.platforms)}"
        )

    def __str__(self) -> str:
        return self.text() if self._results.table("comparison").exists() else repr(self)

    def _repr_html_(self) -> str:
        """Return the size of the experiment, the prediction to use, and the mean error of each
        model, for notebooks."""
        text = f"<p>{html.escape(repr(self))}</p>"
        return text + super()._repr_html_() if self._results.table("comparison").exists() else text

    @cached_property
    def _report(self) -> Report:
        from commodel.reports.stored_results import build_stored_report

        return build_stored_report(self.folder)

    @property
    def _results(self) -> Results:
        return Results.of(self.folder)


def tabulate_parameters(parameters: ParameterSet) -> pd.DataFrame:
    """Return a parameter set as a table: value, 95 % interval and unit of each parameter."""
    rows = {
        name: (estimate.value, estimate.low, estimate.high, estimate.unit, estimate.note)
        for name, estimate in parameters.values.items()
    }
    return pd.DataFrame.from_dict(
        rows, orient="index", columns=["value", "low", "high", "unit", "note"]
    )


def load(folder: str | Path) -> Run:
    """Return the results of an experiment that was run: `load("results/demo")`."""
    if Path(folder).exists() and not Path(folder).is_dir():
        raise UserError("found a file, wanted a folder of results", file=folder)
    results = Results.of(Path(folder))
    results.check()
    load_plan(results.plan)
    return Run(Path(folder).absolute())


class CallbackDisplay:
    """Passes progress and messages to a function of the user."""

    def __init__(self, callback: Callable[[str], None] | None) -> None:
        self.callback = callback or (lambda text: None)

    def show_progress(self, text: str, last: bool = False) -> None:
        self.callback(text)

    show_message = show_progress

    def clear(self) -> None:
        pass


def run(
    experiment: str | Path,
    *,
    only: str | None = None,
    profile: str | None = None,
    cores: int | None = None,
    retry: bool = False,
    survey: bool = True,
    until: float | str | None = None,
    progress: Callable[[str], None] | None = None,
) -> Run:
    """Measure, fit, predict, compare and report an experiment, and return its results.

    Finished stages are not repeated. `only` is the one platform to measure, `profile` a Snakemake
    profile such as `slurm`. With `retry`, points that were given up are measured again. Without
    `survey`, the levels of a network are those that its platform file names. With `until`, such as
    `"5%"`, measuring ends once the mean expected regret of the advice is below it; the next run
    measures the rest. `progress` is called with a line of text now and then.

    The table `unmeasured` of the results lists the points that could not be measured.
    """
    limit = None if until is None else parse_regret(until)
    request = CampaignRequest(str(experiment), only, profile, cores, survey, until=limit)
    folder, _ = run_campaign(request, retry, CallbackDisplay(progress))
    return load(folder)


@dataclass(frozen=True)
class CampaignRequest:
    """Which experiment to run, and how: on one platform only, by a Snakemake profile, on some
    cores, with or without a survey of the network. `verbose`: also print which models need each
    probe. `until`: the expected regret of the advice, below which measuring ends."""

    experiment: str
    only: str | None = None
    profile: str | None = None
    cores: int | None = None
    survey: bool = True
    verbose: bool = False
    until: float | None = None

    @property
    def settings(self) -> dict[str, Any]:
        """The settings of the workflow."""
        path = find_config_file("experiment", self.experiment)
        return {"experiment": path, "only": self.only, "survey": None if self.survey else False}

    def make_plan(self) -> Plan:
        return make_plan(self.experiment, Path.cwd(), self.only, self.survey)


@dataclass(frozen=True)
class Limit:
    """The expected regret of the advice below which measuring ends."""

    regret: float
    digest: str  # of the experiment

    def is_met(self, answers: Answers) -> bool:
        # Answers to another version of the experiment do not know all its workloads.
        return answers.digest == self.digest and answers.regret < self.regret


def run_campaign(request: CampaignRequest, retry: bool, display: Display) -> tuple[Path, int]:
    """Return the results folder of an experiment after its report is written, and the workflow's
    exit code: not 0 if some batches did not finish."""
    experiment, settings = request.experiment, request.settings
    command = partial(make_snakemake_command, cores=request.cores, profile=request.profile)
    command(settings=settings)  # an unknown profile is refused before anything is done
    folder = find_results(experiment)
    Results(folder).check()
    # The workflow shares the lock, and keeps the folder locked without this process.
    with open_lock(folder, OTHER_RUN) as lock:
        campaign = Campaign(request.make_plan(), folder, lock)
        forget_surveys(campaign)
        require_jobs(campaign, request.profile)
        require_compilers(campaign.plan, campaign.unfinished)
        write_plan(campaign.plan, experiment, Path.cwd())
        if retry:
            retried = f"cases given up before, to be measured again: {forget_failures(campaign)}"
            display.show_progress(retried, last=True)
            _forget_failed_models(campaign.results)
        reopen_batches(campaign)
        remaining = campaign.list_remaining_work()
        summary = summarize_plan(campaign.plan, remaining, verbose=request.verbose)
        for line in summary if remaining else summary[:1]:
            display.show_progress(line, last=True)
        limit = None
        if request.until is not None and campaign.unfinished:
            limit = Limit(request.until, campaign.plan.digest)
        code = _run_workflow(campaign, command, settings, display, limit)
        if not replace(campaign, plan=load_plan(campaign.results.plan)).unfinished:
            # a copy of all samples, which nobody needs any more
            (folder / SO_FAR).remove_tree()
        return Path(str(folder)), code


def parse_regret(value: object) -> float:
    """Return a limit of the expected regret, such as 5% or 0.05."""
    with locate_mistakes(key="until"):
        return parse_fraction(value)


def _find_enough(campaign: Campaign, limit: Limit | None) -> Answers | None:
    """Return the first answers if they are enough to end measuring before all is measured."""
    answers = read_so_far(campaign.folder)
    if limit is None or answers is None or not limit.is_met(answers):
        return None
    # a survey changes the plan
    plan = load_plan(campaign.results.plan)
    return answers if replace(campaign, plan=plan).unfinished else None


def _forget_failed_models(results: Results) -> None:
    """Remove the sets and predictions of models that failed by an error of the program, so that
    they are made again."""
    table = results.table("comparison")
    if not table.exists():
        return
    failures = [
        failure
        for failure in list_model_failures(read_table(table, COMPARISON))
        if failure.is_program_error
    ]
    for failure in failures:
        results.fitted(failure.platform, failure.model).unlink(missing_ok=True)
        results.predictions(failure.model).unlink(missing_ok=True)
    if failures:
        table.unlink()


def show_dry_run(request: CampaignRequest, display: Display) -> int:
    """Print the rules that the workflow would run and return its exit code."""
    command = make_snakemake_command(request.settings, request.cores, request.profile)
    folder = find_results(request.experiment)
    Results(folder).check()
    campaign = Campaign(request.make_plan(), folder)
    require_compilers(campaign.plan, campaign.unfinished)
    for line in summarize_plan(
        campaign.plan, campaign.list_remaining_work(), verbose=request.verbose
    ):
        display.show_progress(line, last=True)
    return run_in_terminal([*command, "--dry-run"])


def _run_workflow(
    campaign: Campaign,
    command: Callable[..., list[str]],
    settings: dict[str, Any],
    display: Display,
    limit: Limit | None,
) -> int:
    """Return Snakemake's exit code. Damaged raw files are moved aside when they are collected, and
    their batches are measured again. If some batches fail, the rest is reported without them. Once
    the expected regret of the advice is below the limit, batches that run are stopped, as by Ctrl-C,
    and what is measured is reported."""
    settings = settings | {"quiet": True}
    finish = {"finish": True}
    finished = campaign.finished
    code = 0
    if not _find_enough(campaign, limit):
        first = settings | ({"so_far": True} if limit else {})
        is_enough = limit.is_met if limit else None
        code = run_with_display(campaign, command(settings=first), "run", display, is_enough)
    answers = _find_enough(campaign, limit)
    if limit and answers:
        display.show_message(
            f"commodel: the expected regret of the advice is {100 * answers.regret:.1f} %, below "
            f"{100 * limit.regret:g} %: measuring ends; the next run measures the rest"
        )
        return run_with_display(campaign, command(settings=settings | finish), "finish", display)
    if code and any(batch in campaign.unfinished for batch in finished):
        display.show_message(
            "commodel: cases whose damaged files were moved aside are measured again"
        )
        code = run_with_display(campaign, command(settings=settings), "again", display)
    failed_surveys = [batch for batch in campaign.unfinished if is_survey(batch)]
    if code and failed_surveys:
        names = ", ".join(batch.platform for batch in failed_surveys)
        display.show_message(
            f"commodel: the survey of {names} failed: the levels of platform files are used instead"
        )
        settings |= {"survey": False}
        plan = make_plan(str(settings["experiment"]), Path.cwd(), settings["only"], survey=False)
        campaign = replace(campaign, plan=plan)
        code = run_with_display(campaign, command(settings=settings), "unsurveyed", display)
    unfinished_count, count = len(campaign.unfinished), len(campaign.plan.batches)
    if code and 0 < unfinished_count < count:
        failed = run_with_display(campaign, command(settings=settings | finish), "finish", display)
        if failed:
            raise RunFailedError(failed)
        display.show_message(
            f"commodel: {unfinished_count} of {count} batches did not finish; their points are marked as not measured;"
            " run again to try them again"
        )
    elif code:
        raise RunFailedError(code)
    return code


def require_jobs(campaign: Campaign, profile: str | None) -> None:
    """Refuse platforms that are measured inside jobs, if this process is in no job and none can be
    submitted."""
    for batch in campaign.unfinished:
        require_hosts(load_named_platform(batch.platform), batch.nodes)
    if os.environ.get("SLURM_JOB_ID") or not campaign.unfinished:
        return
    name = profile or os.environ.get("SNAKEMAKE_PROFILE") or "local"
    project_profile = find_project_profile(name)
    # The content of a site's profile is unknown; it is assumed to submit jobs.
    content = (
        (project_profile / "config.yaml").read_text(encoding="utf-8")
        if project_profile
        else "\nexecutor:"
    )
    if "\nexecutor: slurm" in content:
        if not shutil.which("sbatch"):
            raise UserError(
                f"{NO_SBATCH}, by which profile '{name}' submits jobs; wanted: a login node of the cluster"
            )
        require_configuration()
    for batch in campaign.unfinished:
        if find_launcher(campaign.plan, batch.name).in_job and "\nexecutor:" not in content:
            raise UserError(
                f"platform '{batch.platform}' is measured inside Slurm jobs, which no profile submits; "
                f"wanted: commodel run {campaign.plan.experiment} --profile slurm"
            )
    require_mpi_types(campaign.plan, campaign.unfinished)


def require_compilers(plan: Plan, batches: Iterable[Batch]) -> None:
    """Refuse platforms whose compiler is missing. Snakemake would only report a missing input
    file."""
    missing_compilers = {
        batch.platform: find_missing_compiler(plan, batch.name)
        for batch in {batch.platform: batch for batch in batches}.values()
    }
    for platform, compiler in missing_compilers.items():
        if compiler:
            compilable = [name for name in plan.platforms if not missing_compilers.get(name)]
            instead = (
                f"; without it: commodel run {plan.experiment} --only {compilable[0]}"
                if compilable
                else ""
            )
            raise UserError(
                f"no {compiler} found, which platform '{platform}' needs: see commodel doctor{instead}"
            )


@dataclass(frozen=True, eq=False, repr=False)
class ReportFiles(Answer):
    """The files of a report: a row for each."""

    @classmethod
    def of(cls, files: Sequence[Path], source: Path) -> ReportFiles:
        rows = [{"file": str(file), "bytes": file.stat().st_size} for file in files]
        from commodel.reports.pictures.render import find_obstacle  # slow to load

        sentence = f"{format_count(len(files), 'file')} of the report on {source}."
        obstacle = find_obstacle()
        notes = [f"static pictures were not drawn: {obstacle}"] if obstacle else []
        return cls(rows, sentence, notes, [{"source": str(source)}])

    @property
    def files(self) -> list[Path]:
        """The paths of all files written."""
        return [Path(row["file"]) for row in self.rows]

    def text(self, verbose: bool = True) -> str:
        """Return the paths, a line each."""
        return "\n".join(row["file"] for row in self.rows)


def report(
    run: Run | str | Path,
    out: str | Path | None = None,
    *,
    anonymous: bool = False,
    samples: bool = False,
    so_far: bool = False,
    pictures: str | Path | None = None,
    every_chart: bool = False,
) -> ReportFiles:
    """Write the Excel workbook and the HTML page of a run, or of a folder of imported measurements,
    and return the files.

    `anonymous` replaces the names of machines by numbers; `samples` adds a sheet of all samples.
    `so_far` writes only the page, of a campaign that still measures, with its first answers.
    `pictures` is a folder for the charts of the first screen as SVG and PNG, or for all with
    `every_chart`; the report is then written only with `out`.

    >>> report("results/demo", out="reports/demo").files  # doctest: +SKIP
    """
    from commodel.reports.pictures.render import start_drawing  # slow to load

    if so_far:
        if anonymous or samples or pictures:
            raise UserError("found so_far with another option, wanted the page only")
        from commodel.api.interim_reports import report_so_far  # which uses this module

        return report_so_far(run.folder if isinstance(run, Run) else Path(run), out)
    start_drawing()  # takes half a second, in which the report is built
    from commodel.reports import build_stored_report, draw_charts_early, write_report

    folder = run.folder if isinstance(run, Run) else Path(run)
    target = Path(out) if out else None if pictures else Path("reports") / folder.absolute().name
    if is_imported(folder):
        if anonymous or samples:
            option = "anonymous" if anonymous else "samples"
            raise UserError(f"found '{option}', wanted results: {folder} has imported measurements")
        from commodel.api.imported_reports import report_imported  # slow to load

        pictures_folder = Path(pictures) if pictures else None
        return ReportFiles.of(report_imported(folder, target, pictures_folder, every_chart), folder)
    draw_fits = draw_charts_early if target else lambda charts: None
    stored_report = build_stored_report(folder, anonymous, target, samples, draw_fits)
    files = write_report(stored_report, target, Path(pictures) if pictures else None, every_chart)
    return ReportFiles.of(files, folder)
