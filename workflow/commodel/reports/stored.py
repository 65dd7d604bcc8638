"""The report of a folder of results: reads what the stages left there, and nothing else. `commodel report` writes it,
and `--verify` lays it beside a workbook."""

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pandas as pd

from commodel.compare.alternatives import fastest_trees
from commodel.compare.kernels import partitions
from commodel.compare.network import networks, places
from commodel.compare.recalibration import drift
from commodel.errors import UserError
from commodel.files.atomic import read_json
from commodel.files.cache import reached, standing_on
from commodel.files.results_folder import Results
from commodel.files.safe_paths import AnyPath
from commodel.files.tables import COMPARISON, DISTRIBUTIONS, SUMMARY, read_table
from commodel.models.families import family, meanings
from commodel.models.parameter_sets import read_set
from commodel.models.speeds import Speeds, read_speeds
from commodel.plan.planning import load_plan
from commodel.predictions.papers import Evidence, paper
from commodel.records import Plan
from commodel.reports.content import build
from commodel.reports.machine_names import hider, machines, ranges, results_from, short, siblings
from commodel.reports.sections import conditions, network, papers
from commodel.reports.sections import sample_sections as samples_sheet
from commodel.reports.sections.origins import RESULTS
from commodel.reports.shape import Report
from commodel.results.provenance import Traces, attempts, digests, read_program, texts, versions
from commodel.results.raw_samples import read_unmeasured
from commodel.results.recalibrations import read_calibrations as calibrations

PROGRAM_KEYS = ("mpi", "compiler", "flags", "clock")
CLOCK_KEYS = ("clock_resolution", "clock_uncertainty")  # seconds, of which the worst counts
ANONYMOUS, SAMPLES = "anonymous", "samples"


def stored(
    folder: AnyPath,
    anonymous: bool = False,
    tools: Mapping[str, str] | None = None,
    beside: Path | None = None,
    samples: bool = False,
) -> Report:
    """`anonymous` replaces the names of machines by numbers, for reports that leave the house and have no links.
    `tools` are the versions that an earlier report says it was written with, and the way from it to the results;
    otherwise those that are here, and the way from the folder `beside`. `samples`: with all of them, too."""
    results = Results.of(folder)
    plan = load_plan(results.plan)
    with standing_on(results, plan.files):
        return _report(plan, results, anonymous, tools, beside, samples)


def odd_conditions(results: Results, comparison: pd.DataFrame) -> list[str]:
    """What the report of these results calls odd about the machines, for who looks at the terminal only."""
    plan = load_plan(results.plan)
    provenance = _provenance(plan, results)
    seen = networks(read_table(results.table("summary"), SUMMARY), places(plan, provenance))
    paired = {entry.platform for entry in seen}
    return [*network.slow(seen), *conditions.odd(comparison, _with_ranges(provenance), paired)]


def _report(
    plan: Plan, results: Results, anonymous: bool, tools: Mapping[str, str] | None, beside: Path | None, samples: bool
) -> Report:
    provenance, traces = _provenance(plan, results), _traces(plan, results)
    unmeasured = read_unmeasured(results.table("unmeasured"))
    comparison = read_table(results.table("comparison"), COMPARISON)
    raw = read_table(results.table("summary"), SUMMARY)
    if anonymous:
        traces = replace(traces, tools={**traces.tools, ANONYMOUS: "machines have numbers for names"})
        names = machines(provenance, traces, results)
        messages = [entry["outcome"] for entry in traces.attempts]
        messages += [] if unmeasured is None else unmeasured["reason"].tolist()
        hide = hider(names | siblings(names, messages))
        provenance = hide(provenance)
        traces = replace(traces, attempts=tuple(hide(list(traces.attempts))), texts=hide(traces.texts))
        if unmeasured is not None:
            unmeasured["reason"] = hide(unmeasured["reason"].tolist())
        for frame in (comparison, raw):
            for key in {"batch", "raw"} & set(frame):
                frame[key] = frame[key].map({name: hide(name) for name in frame[key].unique()})
    elif beside is not None and (way := results_from(beside, str(results.folder))):
        traces = replace(traces, tools={**traces.tools, RESULTS: way})
    if samples:
        traces = replace(traces, tools={**traces.tools, SAMPLES: "every sample has a row of its own"})
    if tools is not None:
        traces = replace(traces, tools=tools)
    seen = networks(raw, places(plan, provenance))
    provenance = _with_ranges(provenance)
    tried = tuple(entry | {"nodes": ", ".join(ranges(entry["nodes"]))} for entry in traces.attempts)
    traces = replace(traces, attempts=tried)
    sets = [read_set(results.fitted(platform, name)) for platform in plan.platforms for name in plan.families]
    simulated = {name: about.simulated for name, about in plan.platforms.items()}
    evidence = Evidence(comparison, raw, tuple(sets), simulated)
    crowds = conditions.describe_oversubscription(comparison, provenance)
    (made, unread), (speeds, unreadable) = partitions(plan), _speeds(plan)
    rebuilt = papers.sections(paper(plan.paper), evidence, crowds) if plan.paper else ()
    tree_prices = fastest_trees(plan, comparison, sets)
    drifted = drift(plan, comparison, sets, calibrations(results))
    handed = [comparison]
    del comparison, evidence
    return build(
        handed.pop(),  # which is large, and of no use any more
        sets,
        raw,
        provenance,
        experiment=plan.experiment,
        title=plan.title,
        distributions=read_table(results.table("distributions"), DISTRIBUTIONS),
        definitions=meanings(plan.families),
        families={name: _about(name) for name in plan.families},
        unmeasured=unmeasured,
        passes={name: plan.passes(name) for name in plan.platforms},
        containers={name: about.container for name, about in plan.platforms.items() if about.container},
        traces=traces,
        networks=seen,
        drift=drifted,
        partitions=(made, [*unread, *unreadable]),
        speeds=speeds,
        tree_prices=tree_prices,
        rebuilt=rebuilt,
        samples=samples_sheet.samples_section(plan, results, raw) if samples else None,
    )


def _speeds(plan: Plan) -> tuple[dict[str, Speeds], list[str]]:
    """Of the files that the plan names, and a line for each that cannot be read."""
    speeds, unreadable = {}, []
    for name in (name for name, file in plan.files.items() if file.kind == "speeds"):
        try:
            speeds[name] = read_speeds(reached(name))
        except UserError as error:
            unreadable.append(f"Speeds are not shown: {error.message}.")
    return speeds, unreadable


def _about(name: str) -> dict[str, str]:
    return {key: getattr(family(name), key) for key in ("title", "citation", "equation", "ignores")}


def _traces(plan: Plan, results: Results) -> Traces:
    tried = tuple(entry for batch in plan.batches for entry in attempts(batch, results.all_raw))
    shown = texts(results.folder, plan.files)
    return Traces(
        digests(plan, results.folder), tried, shown, versions(("xlsxwriter", "vl-convert-python")), plan.files
    )


def _with_ranges(provenance: Mapping[str, Mapping]) -> dict[str, dict]:
    return {batch: {**about, **short(about)} for batch, about in provenance.items()}


def _provenance(plan: Plan, results: Results) -> dict[str, dict]:
    """Of each batch: what the driver wrote, and what its programs wrote about themselves. A batch that never ran has
    said nothing."""
    batches = {}
    for batch in plan.batches:
        path = results.provenance(batch.name)
        about = read_json(path) if path.exists() else {"platform": batch.platform, "date": ""}
        programs = [read_program(path) for path in results.programs(batch.name)]
        for key in PROGRAM_KEYS:
            about[key] = ", ".join(sorted({getattr(program, key) for program in programs}))
        for key in CLOCK_KEYS:
            numbers = [value for program in programs if (value := getattr(program, key)) is not None]
            about[key] = f"{max(numbers):.3g}" if numbers else ""
        # Reports travel: whose folder it was is nobody's matter.
        about["compiler"] = re.sub(r"\S*/", "", about["compiler"])
        if computing := {re.sub(r"\S*/", "", program.computing) for program in programs} - {""}:
            about["computing"] = ", ".join(sorted(computing))
        about["hosts"] = sorted({host for program in programs for host in program.hosts})
        if "measure" in about:
            about["measure"] = json.dumps(about["measure"], sort_keys=True)
        batches[batch.name] = about
    return batches
