"""The report of a campaign that still measures (`report_so_far`): the page, and the first answers.

It works on a copy of what was measured, in the folder `so-far` of the results, so that the stages
of the campaign are not disturbed. The page states how much of the measuring time is over, and a
browser loads it again every minute.
"""

from __future__ import annotations

import math
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from commodel.advice import Ranking, Workload
from commodel.advice import advise as rank_alternatives
from commodel.advice.evidence import Evidence
from commodel.api.campaigns import ReportFiles, Run, load
from commodel.api.comparisons import collect_results, compare_results
from commodel.api.plan_predictions import PlanRequest
from commodel.api.probe_fits import ProbeFitRequest
from commodel.api.recommendations import gather_evidence
from commodel.errors import UserError
from commodel.files.atomic import write_json
from commodel.files.results_folder import DONE, PLAN, Results, list_folder
from commodel.parallel import use_processes
from commodel.plan.planning import load_plan
from commodel.records import Plan, Point, Statistic
from commodel.results.campaign import Campaign
from commodel.results.interim_answers import ANSWERS, FOLDER, read_so_far
from commodel.results.progress import StatusReader
from commodel.units import format_bytes, format_count, format_extent, format_seconds

if TYPE_CHECKING:
    from commodel.reports.elements import FirstScreen

MAX_WORKLOADS = 40  # of a platform that are advised: some seconds
WITHOUT_ANSWER = ("none", "nothing to choose")  # headlines before points are measured
MAX_SHOWN = 4  # workloads of a platform that are shown


def report_so_far(folder: str | Path, out: str | Path | None = None, cores: int = 1) -> ReportFiles:
    """Write the page of what is measured so far, and the answers; return the page."""
    from commodel.reports import build_stored_report, write_html  # slow to load

    folder = Path(folder)
    target = Path(out) if out else Path("reports") / folder.absolute().name
    results = Results.of(folder)
    plan = load_plan(results.plan)
    status = StatusReader(Campaign(plan, results.folder)).read("", time.time())
    percent = min(math.floor(100 * status.fraction_done), 99)
    if not status.measured:
        raise UserError("found nothing measured yet", file=folder)
    page = target / "index.html"
    known = read_so_far(folder)
    is_complete = not Campaign(plan, results.folder).unfinished
    if is_complete or (known and known.measured == status.measured and page.exists()):
        return ReportFiles.of([page] if page.exists() else [], folder)
    copy = folder / FOLDER
    _copy_measured(results, plan, copy)
    _analyse(plan, copy, cores)
    run = load(copy)
    report = build_stored_report(copy, output_folder=target)
    report = replace(report, incomplete=f"incomplete, {percent} %")
    answers = _find_answers(run, report.screens)
    data = {"percent": percent, "measured": status.measured, "lines": answers.lines}
    # before any point is measured, intervals do not have the errors of models
    has_points = bool(run.comparison["measured"].notna().any())
    regret = answers.mean_regret if has_points else None
    data |= {"workloads": len(answers.regrets), "regret": regret, "digest": plan.digest}
    write_json(Results.of(copy).folder / ANSWERS, data)
    # otherwise the campaign writes its report now
    if Campaign(plan, results.folder).unfinished:
        target.mkdir(parents=True, exist_ok=True)
        write_html(report, page)
    return ReportFiles.of([page] if page.exists() else [], folder)


def _copy_measured(results: Results, plan: Plan, copy: Path) -> None:
    """Copy the plan, its inputs, and the complete samples of all batches. Files that are there
    already are kept."""
    sources = [results.plan, *results.inputs()]
    for batch in plan.batches:
        folder = results.raw(batch.name)
        sources += [path for path in list_folder(folder) if path.suffix in (".csv", ".json")]
        sources += [path for path in list_folder(folder) if path.name == DONE]
    for source in sources:
        target = copy / source.below(results.folder)
        _copy_file(Path(str(source)), target)


def _copy_file(source: Path, target: Path) -> None:
    try:
        state = source.stat()
    except FileNotFoundError:  # it was moved a moment ago
        return
    if target.exists():
        known = target.stat()
        if (known.st_size, known.st_mtime_ns) == (state.st_size, state.st_mtime_ns):
            return
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy2(source, target, follow_symlinks=False)


def _analyse(plan: Plan, copy: Path, cores: int) -> None:
    """Collect, fit, predict and compare in the copy."""
    collect_results(plan, copy, None, unfinished=True)
    file = copy / PLAN
    sets = []
    with use_processes(cores):
        for platform in plan.platforms:
            fitted = copy / "fitted" / platform
            fitted.mkdir(parents=True, exist_ok=True)
            ProbeFitRequest.of(file, None, platform, list(plan.models)).fit(fitted)
            sets.append(fitted)
        predictions = copy / "predictions"
        predictions.mkdir(exist_ok=True)
        PlanRequest.of(file, sets, None, []).predict(predictions)
    compare_results(copy, None, sets=True, cores=cores)


@dataclass(frozen=True)
class InterimAnswers:
    """Lines of answers, and the expected regret of the advice in each workload."""

    lines: list[str]
    regrets: list[float]

    @property
    def mean_regret(self) -> float | None:
        return sum(self.regrets) / len(self.regrets) if self.regrets else None


def _find_answers(run: Run, screens: Sequence[FirstScreen]) -> InterimAnswers:
    """Return the headlines of the first screens, and the advice for workloads of the plan with
    several alternatives."""
    found = InterimAnswers([], [])
    for screen in screens:
        name = f"{screen.platform} (simulated)" if screen.simulated else screen.platform
        headlines = [tile.headline for tile in screen.tiles if tile.headline not in WITHOUT_ANSWER]
        found.lines.append(f"{name}: {'; '.join(headlines)}")
        rankings = list(_advise_workloads(run, screen.platform))
        found.regrets.extend(_get_regret(ranking) for ranking in rankings)
        worst = sorted(rankings, key=_get_regret, reverse=True)[:MAX_SHOWN]
        found.lines.extend(_describe_ranking(ranking) for ranking in worst)
    if found.mean_regret is not None:
        count = format_count(len(found.regrets), "workload")
        found.lines.append(
            f"expected regret of the advice: {100 * found.mean_regret:.1f} % on average over {count}"
        )
    return found


def _get_regret(ranking: Ranking) -> float:
    return float(ranking.frame["regret"].iloc[0])


def _describe_ranking(ranking: Ranking) -> str:
    """Return the alternative to use, its time with interval, and the expected regret."""
    best = ranking.frame.iloc[0]
    workload = ranking.workload
    extent = format_extent(workload.leaves, workload.ranks or workload.leaves + 1)
    interval = ""
    if best["low"] == best["low"]:
        interval = f" ({format_seconds(best['low'])} to {format_seconds(best['high'])})"
    return (
        f"{workload.operation} over {extent}, {format_bytes(workload.bytes)}: {best['alternative']}, "
        f"{format_seconds(best['seconds'])}{interval}, expected regret {100 * best['regret']:.0f} %"
    )


def _advise_workloads(run: Run, platform: str) -> Iterator[Ranking]:
    """Yield the advice for workloads of the plan, among its own alternatives."""
    try:
        evidence = gather_evidence(run, platform)
    except UserError:  # no model is fitted yet
        return
    groups = _group_points(run.plan.points, platform)
    step = max(1, math.ceil(len(groups) / MAX_WORKLOADS))
    for workload, points in list(groups.items())[::step]:
        ranking = _advise(workload, points, evidence)
        if ranking is not None and not math.isnan(_get_regret(ranking)):
            yield ranking


def _group_points(points: Sequence[Point], platform: str) -> Mapping[Workload, list[Point]]:
    """Return the points of the workloads with several alternatives."""
    groups: dict[Workload, list[Point]] = {}
    for point in points:
        is_usable = point.predictable and point.waves == 1
        if point.platform != platform or not is_usable:
            continue
        if point.statistic is not Statistic.COMPLETION:
            continue
        ranks = 0 if point.leaves else point.ranks
        workload = Workload(point.operation, point.bytes, leaves=point.leaves, ranks=ranks)
        groups.setdefault(workload, []).append(point)
    return {
        workload: members
        for workload, members in groups.items()
        if len({point.alternative for point in members}) > 1
    }


def _advise(workload: Workload, points: Sequence[Point], evidence: Evidence) -> Ranking | None:
    """Return the advice among the alternatives of some points, on the layout of most of them."""
    layouts = [point.layout for point in points]
    layout = max(dict.fromkeys(layouts), key=layouts.count)
    names = list(dict.fromkeys(point.alternative for point in points if point.layout == layout))
    try:
        return rank_alternatives(workload, evidence, (layout,), names, streams=False)
    except UserError:  # an operation without models, or a pattern file
        return None
