"""Builds the one `Report` that every writer renders."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

import pandas as pd

from commodel.compare.kernels import Partition
from commodel.compare.network import Network
from commodel.compare.trees import PricedTree
from commodel.models.speeds import Speeds
from commodel.parameters import ParameterSet
from commodel.report import charts
from commodel.report.frames import judged, prepare
from commodel.report.sections import (
    conditions,
    evidence,
    gaps,
    jobs,
    kernels,
    latency,
    network,
    origins,
    overhead,
    parameters,
    prices,
    summary,
    trees,
    verdicts,
)
from commodel.report.sections.front import fronts
from commodel.report.shape import Report, Section
from commodel.report.values import plain
from commodel.results.traces import NO_TRACES, Traces


def build(
    comparison: pd.DataFrame,
    parameter_sets: Sequence[ParameterSet] = (),
    raw: pd.DataFrame | None = None,
    provenance: Mapping[str, Mapping] | None = None,
    *,
    experiment: str,
    title: str = "",
    distributions: pd.DataFrame | None = None,
    definitions: Mapping[tuple[str, str], str] | None = None,
    families: Mapping[str, Mapping[str, str]] | None = None,
    unmeasured: pd.DataFrame | None = None,
    passes: Mapping[str, int] | None = None,
    containers: Mapping[str, Mapping] | None = None,
    traces: Traces = NO_TRACES,
    networks: Sequence[Network] = (),
    drift: pd.DataFrame | None = None,
    rebuilt: Sequence[Section] = (),
    partitions: tuple[Sequence[Partition], Sequence[str]] = ((), ()),
    speeds: Mapping[str, Speeds] = MappingProxyType({}),
    tree_prices: Sequence[PricedTree] = (),
    samples: Section | None = None,
) -> Report:
    """`definitions` says what a parameter means, by (family, parameter), `families` gives title, equation, citation and
    what a family ignores, `passes` and `containers` are those of each platform, `rebuilt` comes from a paper,
    `partitions` from `compare.kernels`, `tree_prices` from `compare.trees`, `speeds` are files by name; every other
    argument is a stage's output."""
    # Arrow's texts cost a third of a report's time in many small tables.
    with pd.option_context("mode.string_storage", "python"):
        frame = prepare(comparison)
        del comparison  # a caller that gave it away has its memory back
        simulated = set(frame.loc[frame["simulated"], "platform"]) | {
            parameters.platform for parameters in parameter_sets if parameters.simulated
        }
        simulated = {plain(name) for name in simulated}
        beside, gap = overhead.against(frame, containers or {}), gaps.prepare(unmeasured)
        probes = gaps.probes(gap, raw, passes or {})
        pictures, distances = network.sections(networks)
        paired = {seen.platform for seen in networks}
        odd = [*network.slow(networks), *conditions.odd(frame, provenance or {}, paired)]
        differing = jobs.sentences(drift) if drift is not None else []
        trusted = judged(frame)
        scatters, times = charts.predicted_measured(trusted), charts.time_over_bytes(frame)
        answers = summary.sections(
            frame,
            trusted,
            scatters,
            times,
            simulated,
            probes,
            overhead.sentences(beside, containers or {}, simulated),
            odd,
            differing,
        )
        of_kernels = kernels.sections(*partitions, frame, speeds, raw, simulated)
        errors = verdicts.errors(trusted)
        choices = verdicts.choices(frame)
        odd = [*odd, *differing]
        latencies = latency.section(distributions, raw, simulated)
        (trips,) = latencies.tables
        first = fronts(frame, trusted, scatters, times, parameter_sets, networks, trips, provenance or {}, odd)
        del trusted
        sections = (
            *rebuilt,
            *pictures,
            *answers,
            *of_kernels,
            *trees.sections(tree_prices, simulated),
            prices.section(frame),  # last of those that need all rows: it keeps them
            errors,
            *choices,
            *overhead.sections(beside, containers or {}, simulated),
            *(jobs.sections(drift) if drift is not None else []),
            *gaps.sections(gap, simulated),
            *([parameters.models(families)] if families else []),
            parameters.parameters(parameter_sets, definitions or {}),
            latencies,
            *distances,
            evidence.fits(parameter_sets),
            evidence.raw_summary(raw, simulated),
            *origins.sections(provenance or {}, traces, simulated),
        )
        names = ", ".join(sorted(simulated))
        banner = (
            f"SIMULATED: every measurement on {names} comes from a simulator, not from hardware." if simulated else ""
        )
        when, results = origins.measured(provenance or {}, traces), traces.tools.get(origins.RESULTS, "")
        about = (plain(experiment), plain(title or experiment), banner)
        return Report(*about, sections, when, results, tuple(parameter_sets), first, samples)
