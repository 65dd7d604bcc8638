"""Builds the one `Report` that every writer renders. Owns its first two sections: the summary and the comparison."""

from collections.abc import Mapping, Sequence

import pandas as pd

from commodel.compare.network import Network
from commodel.compare.ranking import ahead
from commodel.compare.recommend import favoured
from commodel.compare.table import crowded, is_said
from commodel.parameters import ParameterSet
from commodel.report import charts
from commodel.report.frames import LEAVES, PLACE, PLATFORM, SAMPLES, prepare, scaled
from commodel.report.sections import (
    conditions,
    crowding,
    evidence,
    following,
    gaps,
    latency,
    library,
    network,
    origins,
    overhead,
    parameters,
    standings,
    verdicts,
)
from commodel.report.sections.answers import answers, leads
from commodel.report.shape import MU, Answer, Column, Report, Section, Table, plain, table
from commodel.report.words import span
from commodel.results.traces import NO_TRACES, Traces

GLOSSARY = (
    (
        "mean μ",
        "mean of max(predicted, measured) / min(predicted, measured): 1 is exact, 2 a factor of two off, either way",
    ),
    (
        "grade",
        "good to a mean μ of 1.10, fair to 1.35, else poor; pricing under 80 % of the points, a family is not ranked",
    ),
    (
        "|error|, bias",
        "median of |predicted − measured| / measured; the same with its sign: positive is too slow a price",
    ),
    (
        "ahead alone",
        "all others are told apart: by over 1 % and the 95 % interval of the mean log difference, or worse everywhere",
    ),
    ("same prices", "equal to 0.1 % at every point: one model under two names on that platform"),
    ("fan-in", "most messages that one rank receives in one step of the pattern"),
    ("held out", "a point that the family's own fit has not seen; only those count"),
    ("measured", "median of the valid samples, with its 95 % interval"),
    (
        "predicted low and high",
        (
            "95 % by what the family was off at other jobs of the platform, never at this one; far from them wider; "
            "`interval` says on how many groups (jobs) and allocations it rests, `at least` with fewer than five of "
            "these; parameters only: nothing was measured that tells how far off the family is"
        ),
    ),
    ("parameters low and high", "95 % if the family were exactly right, and only its values uncertain"),
    ("inside", "share of measured medians that lie between predicted low and high; 95 % would be right"),
    (
        "picks best",
        "share of jobs for which the family's cheapest schedule is the fastest one measured, or tied with it",
    ),
    ("of ties", "share of jobs where it prices several schedules the same, as two layouts; the first of them counts"),
    ("regret", "measured time of the picked schedule over the fastest one measured, minus 1"),
    (
        "vote",
        "the weighted geometric mean of all families' prices; a family counts by 1 / (its mean squared log error)",
    ),
    ("pick / library", "measured time of the picked schedule over that of the library, geometric mean"),
    (
        "clear",
        "the 95 % intervals of the fastest and the next alternative do not overlap, and they are more than 1 % apart",
    ),
    ("job", "points that do the same work and differ in algorithm, topology or layout only"),
    ("schedule", "an alternative that is played, and priced, message by message"),
    ("library", "an alternative that is not: the MPI library's own collective, by whatever algorithm it chooses"),
    ("skew", "how far apart the ranks entered a sample, median"),
)

WAVES = (Column("waves", "waves", "count", "of several, the times measured and predicted are those between two"),)
WAVE = (
    "wave",
    (
        "a repetition, which a rank begins when it is itself done with the last; of a stream of waves the time between "
        "the ends of two is measured and priced, and latencies of the first and of the last stand beside it"
    ),
)
LATENCIES = (
    Column(
        "first",
        "first wave [µs]",
        "number",
        "median, from the common start to its end at the last rank; n/a: clocks are not known well enough",
    ),
    Column("last", "last wave [µs]", "number", "median, from when the first rank began it to its end at the last rank"),
)
ENDS = [(key, end) for key in ("measured", "predicted") for end in ("", "_low", "_high")]
ENDS += [("parameters", "_low"), ("parameters", "_high")]
TIMES = (
    "Jobs whose fastest alternative changes with the size come first. Solid: measured median with its 95 % interval. "
    "Dashed: price by the family that predicts this job best."
)


@pd.option_context("mode.string_storage", "python")  # Arrow's costs a third of a report's time in many small tables
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
    rebuilt: Sequence[Section] = (),
) -> Report:
    """`definitions` says what a parameter means, by (family, parameter), `families` gives title, equation, citation and
    what a family ignores, `passes` and `containers` are those of each platform, `rebuilt` comes from a paper; every
    other argument is a stage's output."""
    frame = prepare(comparison)
    simulated = set(frame.loc[frame["simulated"], "platform"]) | {
        parameters.platform for parameters in parameter_sets if parameters.simulated
    }
    simulated = {plain(name) for name in simulated}
    beside, gap = overhead.against(frame, containers or {}), gaps.prepare(unmeasured)
    probes = gaps.probes(gap, raw, passes or {})
    pictures, distances = network.sections(networks)
    sections = (
        *rebuilt,
        *pictures,
        summary(
            frame,
            simulated,
            probes,
            overhead.sentences(beside, containers or {}, simulated),
            [*crowding.sentences(frame, provenance or {}), *conditions.sentences(frame, provenance or {})],
        ),
        Section(
            "Comparison",
            "One row per point and family: the price beside the measurement, and the file of its samples.",
            (comparison_table(frame),),
        ),
        verdicts.errors(frame[frame["held_out"] & is_said(frame)]),
        *verdicts.choices(frame),
        *overhead.sections(beside, containers or {}, simulated),
        *gaps.sections(gap, simulated),
        *([parameters.models(families)] if families else []),
        parameters.parameters(parameter_sets, definitions or {}),
        latency.section(distributions, raw, simulated),
        *distances,
        evidence.fits(parameter_sets),
        evidence.raw_summary(raw, simulated),
        *origins.sections(provenance or {}, traces, simulated),
    )
    names = ", ".join(sorted(simulated))
    banner = f"SIMULATED: every measurement on {names} comes from a simulator, not from hardware." if simulated else ""
    when, results = origins.measured(provenance or {}, traces), traces.tools.get(origins.RESULTS, "")
    return Report(plain(experiment), plain(title or experiment), banner, sections, when, results, tuple(parameter_sets))


def comparison_table(frame: pd.DataFrame) -> Table:
    frame = frame.sort_values("simulated", kind="stable")  # what was measured on a machine comes first
    # Blank where a family made no choice or nothing can be compared; n/a is for what is missing and has a reason.
    blank = {"regret": ~frame["chosen"], "inside": frame["mu"].isna(), "leaves": frame["leaves"] == 0}
    blank |= dict.fromkeys(("processes", "processors"), ~(frame["processors"] > 0))
    prices = [f"{key}{end}" for key, end in ENDS if key != "measured"]
    blank |= dict.fromkeys((*prices, "relative_error", "mu", "held_out"), ~is_said(frame))
    times = [Column(f"{key}{end}", f"{key}{end.replace('_', ' ')} [µs]", "number") for key, end in ENDS]
    streams = (frame["waves"] > 1).any()
    columns = [
        *PLATFORM,
        *(Column(key, key) for key in ("operation", "choice", "kind", "layout")),
        Column("ranks", "ranks", "count"),
        LEAVES,
        Column("bytes", "bytes [B]", "count"),
        *(WAVES if streams else ()),
        Column("fan_in", "fan-in", "count", "most messages that one rank receives in one step"),
        Column("family", "family"),
        *times,
        *(LATENCIES if streams else ()),
        *(crowding.COLUMNS if crowded(frame).any() else ()),
        Column("relative_error", "relative error [%]", "signed"),
        Column("mu", "μ", "ratio", scale=MU),
        Column("inside", "inside", "flag", "the measured median lies between predicted low and high"),
        Column("interval", "interval", "text", "what predicted low and high rest on"),
        Column("chosen", "chosen", "flag", "the family would choose this alternative"),
        Column("tie", "tie", "flag", "chosen as the first of alternatives that the family prices the same"),
        Column("best", "best", "flag", "fastest measured in its job, of those that the family prices"),
        Column("regret", "regret [%]", "percent"),
        Column("held_out", "held out", "flag", "the family's own fit has not seen this point"),
        Column("status", "price status"),
        Column("measurement", "measurement"),
        Column("samples", "samples", "count"),
        Column("invalid", "invalid", "count", "samples discarded because a rank started late"),
        Column("stop", "stopped by"),
        Column("skew", "skew [µs]", "number"),
        Column("group", "job"),
        Column("point", "point"),
        *SAMPLES,
    ]
    return table("Comparison", "Predicted and measured", columns, scaled(frame), blank, fixed=4)


def summary(
    frame: pd.DataFrame, simulated: set[str], probes: list[str], containers: list[str], crowds: list[str]
) -> Section:
    priced = frame[is_said(frame)]
    judged = priced[priced["held_out"]]
    uses, classes, picked = favoured(frame), ahead(judged), following.picks(frame)
    blocks = [*answers(frame, uses, classes, picked, simulated, probes, crowds)]
    if containers:
        blocks.append(Answer("What the container costs", tuple(containers)))
    if not frame.empty:
        blocks += [*standings.families(priced)]
        blocks += [following.overview(picked)] if len(picked) else []
        blocks += [*charts.predicted_measured(judged)]
        if (lead := leads(classes, simulated)) is not None:
            blocks.append(lead)
        blocks += [standings.classes(classes, simulated), use_table(frame, uses)]
        if len(rows := library.against(frame)):
            blocks.append(library.overview(rows, simulated))
        if lines := charts.time_over_bytes(frame[frame["held_out"]]):
            blocks += [Answer("Time over message size", (TIMES,)), *lines]
    terms = (*GLOSSARY, *((WAVE,) if (frame["waves"] > 1).any() else ()))
    words = Answer("How to read this", tuple(f"{term}: {meaning}." for term, meaning in terms))
    return Section("Summary", "", (*blocks, words))


def use_table(frame: pd.DataFrame, uses: pd.DataFrame) -> Table:
    shown = uses.merge(frame[["platform", "simulated"]].drop_duplicates("platform"), "left", on="platform")
    shown = scaled(shown)
    shown["span"] = [span(row.first, row.last) for row in shown.itertuples()]
    shown["clearly"] = [f"{row.clear} of {row.sizes}" for row in shown.itertuples()]
    columns = [
        *PLATFORM,
        Column("operation", "operation"),
        PLACE,
        Column("size", "size"),
        Column("span", "message sizes"),
        Column("use", "fastest"),
        Column("next", "next best"),
        Column("gain_low", "next / fastest, min [×]", "times"),
        Column("gain_high", "next / fastest, max [×]", "times"),
        Column("over_low", "library / fastest, min [×]", "times", "1: the library's own choice is the fastest"),
        Column("over_high", "library / fastest, max [×]", "times"),
        Column("slowest", "slowest / fastest, max [×]", "times"),
        Column("clearly", "clear at (sizes)"),
    ]
    note = "Measured medians; neighbouring sizes with the same winner share a row. Between rows nothing was measured."
    marks = frozenset((row, 6) for row, one in enumerate(shown.itertuples()) if one.clear == one.sizes)
    return table("Use", "What to use", columns, shown, note=note, fixed=5, marks=marks)
