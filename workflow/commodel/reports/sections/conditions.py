"""Conditions of measurement that limit a report: oversubscription, scatter, other settings, missing and unmeasured
points.

Where more processes ran on a host than it has processors: no model of this project knows that they take turns.

Under which conditions points were measured that no probe and no model knows of: times that scatter, memory that a
computation may have used since, a machine that others were using, levels that a platform's file does not name, and
nodes that share what even the best family does not know.

How much jobs differ from each other: factors of latency and of time per byte, from calibrations and from batches.

What has no measurement, and why: the points and probe cases whose program crashed, hung, or had no time left; and
which prices have no interval, since nothing like them was measured.

What a reader misses: what was simulated, not measured, cut short or discarded, not priced, or priced in doubt.
"""

from collections.abc import Collection, Mapping

import pandas as pd

from commodel.compare.comparison import (
    UNSTEADY,
    Measurement,
    compute_spreads,
    has_schedule,
    is_library,
    is_oversubscribed,
    round_to_two_digits,
    select_measured_points,
)
from commodel.compare.model_ranking import rank_models
from commodel.compare.recalibration import CALIBRATED, differs_from_one
from commodel.files.tables import COMPARISON, with_defaults
from commodel.predictions.prediction_intervals import IntervalBasis
from commodel.predictions.validity import Validity, ValidityKind, are_of
from commodel.reports.shape import (
    Column,
    Section,
    by_frequency,
    columns_of,
    comma,
    count,
    finite,
    plain,
    shortened,
    simulation,
    table,
    tally,
)
from commodel.results.raw_samples import COUNTS, TEXTS, table_of


def describe_oversubscription(comparison: pd.DataFrame, provenance: Mapping[str, Mapping]) -> list[str]:
    """One for each platform with such points. `provenance` is by batch, its hosts a list."""
    once = select_measured_points(comparison)
    lines = []
    for platform, rows in once[is_oversubscribed(once)].groupby("platform"):
        about = [provenance.get(batch, {}) for batch in rows["batch"].unique()]
        hosts = list(dict.fromkeys(str(host) for batch in about for host in batch.get("hosts", ())))
        who = "sub-trees" if rows["topology"].fillna("").ne("").any() else "ranks"
        few, many = int(rows["processes"].min()), int(rows["processes"].max())
        processes = f"{many}" if few == many else f"{few} to {many}"
        share = f"{processes} processes share {count(int(rows['processors'].min()), 'processor')}"
        points = count(len(rows), "point")
        where = shortened(hosts) if hosts else "a host"
        what = f"{who} take turns; models that let them go on at the same time are too low ({points})"
        lines.append(f"{platform}: {share} on {where}: {what}.")
    return lines


NEEDED = ["point", "platform", "operation", "batch", "measured", "measured_low", "measured_high", "predicted"]
KERNELS = ("summa", "wave2d")
WORTH_TELLING = 1.1  # times as long as the price
DOUBTFUL = 0.1  # of the prices of the family that predicts best: fewer are not worth a word
LOOK = "; a slow node or levels without a name may do that: `probes: [auto, nodepairs]`, then `commodel show network`"
NETWORK = (ValidityKind.CONTENTION, ValidityKind.PLACEMENT, ValidityKind.NOT_PROBED)
BUSY = 0.25  # of the processors, by others before a batch began


def list_anomalies(
    comparison: pd.DataFrame, provenance: Mapping[str, Mapping], paired: Collection[str] = ()
) -> list[str]:
    """All that the first screen calls odd about how points were measured. `paired`: platforms of which pairs of nodes
    were timed."""
    comparison = with_defaults(comparison, COMPARISON)
    of_machines = describe_oversubscription(comparison, provenance), describe_conditions(comparison, provenance)
    return [*_unnamed(comparison), *of_machines[0], *of_machines[1], *_doubted(comparison, paired)]


def _unnamed(comparison: pd.DataFrame) -> list[str]:
    """Platforms whose nodes are near and far, which their files do not say."""
    unnamed = are_of(ValidityKind.UNNAMED_LEVELS, comparison["validity"])
    doubted = comparison[unnamed].drop_duplicates("platform")
    help = "`commodel show network EXPERIMENT --levels` tells them, after `probes: [auto, nodepairs]`"
    return [
        f"{platform}: {Validity.parse(validity).explanation}: {help}; then only what is new is measured."
        for platform, validity in zip(doubted["platform"], doubted["validity"], strict=True)
    ]


def _doubted(comparison: pd.DataFrame, paired: Collection[str]) -> list[str]:
    """Platforms whose network does what no family here knows, as far as the one that predicts best says so."""
    lines = []
    for platform, part in comparison.groupby("platform", sort=False):
        families = rank_models(part)["family"]
        rows = part[part["held_out"] & part["mu"].notna() & part["family"].isin(families[:1])]
        named = rows.loc[~are_of(ValidityKind.UNNAMED_LEVELS, rows["validity"]), "validity"]
        doubts = named[[any(map(Validity.parse(text).is_of, NETWORK)) for text in named]]
        if len(doubts) <= DOUBTFUL * len(rows):
            continue
        why = doubts.mode().iloc[0]
        line = (
            f"{platform}: the best family, {families.iloc[0]}, doubts {len(doubts)} of {count(len(rows), 'prediction')}"
        )
        unseen = (
            platform not in paired and Validity.parse(why).is_of(ValidityKind.CONTENTION) and rows["reach"].eq("").all()
        )
        lines.append(f"{line}: {why}{LOOK if unseen else ''}.")
    return lines


def describe_conditions(comparison: pd.DataFrame, provenance: Mapping[str, Mapping]) -> list[str]:
    """Of measured points; simulated machines have neither caches nor others on them."""
    real = comparison.loc[comparison["measured"].notna() & ~comparison["simulated"].astype(bool), NEEDED]
    real = real.assign(spread=compute_spreads(real))
    steady = real[real["spread"] <= UNSTEADY]
    return [*_unsteady(real), *_cold(steady), *_busy(real, provenance)]


def _unsteady(real: pd.DataFrame) -> list[str]:
    lines = []
    for platform, points in real.drop_duplicates("point").groupby("platform"):
        if wild := int((points["spread"] > UNSTEADY).sum()):
            known = f"{wild} of {count(len(points), 'measured median')} {'is' if wild == 1 else 'are'} known"
            factors = f"to a factor of {UNSTEADY:g} at best, of {round_to_two_digits(points['spread'].max())} at worst"
            why = "samples scatter or passes differ, as where others use the machine; measure again when it is idle"
            lines.append(f"{platform}: {known} {factors}: {why}.")
    return lines


def _cold(real: pd.DataFrame) -> list[str]:
    lines = []
    kernels = real["operation"].str.split(":").str[0].isin(KERNELS)
    for platform, rows in real[kernels].groupby("platform"):
        ratio = (rows["measured"] / rows["predicted"]).median()
        if ratio > WORTH_TELLING:
            points = count(rows["point"].nunique(), "point")
            lines.append(
                f"{platform}: kernels took {ratio:.2g} times their prices ({points}, median of all families). They "
                "compute between their messages, which may then leave memory that is no longer in the caches; no probe "
                "does that."
            )
    return lines


def _busy(real: pd.DataFrame, provenance: Mapping[str, Mapping]) -> list[str]:
    """Where the driver runs on the machine that is measured."""
    lines = []
    for platform, rows in real.groupby("platform"):
        about = [provenance.get(batch, {}) for batch in rows["batch"].unique()]
        recorded = [(entry.get("at_work"), entry.get("cores")) for entry in about]
        known = [(at_work, int(cores)) for at_work, cores in recorded if finite(at_work) and finite(cores)]
        at_work, cores = max(known, default=(0.0, 1))
        if at_work > BUSY * cores:
            lines.append(
                f"{platform}: the machine was busy before measuring began: others kept {at_work:.1f} of its "
                f"{count(cores, 'processor')} at work."
            )
    return lines


SETTINGS_NOTE = (
    "A factor is that of the job over what the prices are of: of all values in seconds, and of all that grow with the "
    "size of a message. Against the same points: what the job took beside what the campaign took. Against prices: what "
    "a family is off with more ranks, or on more nodes, is among it."
)
WHAT = (("latency", "latency"), ("per_byte", "time per byte"))
JOBS_NAMED = 3  # jobs that the first screen names


def describe_settings(drift: pd.DataFrame) -> list[str]:
    """Of jobs measured at the same points that differ beyond doubt; the one that differs most first."""
    known = drift[drift["against"] == CALIBRATED]
    lines = []
    for row in known.to_dict("records"):
        parts = [
            (max(row[f"{key}_value"], 1 / row[f"{key}_value"]), _part(row, key, name))
            for key, name in WHAT
            if differs_from_one(row[f"{key}_low"], row[f"{key}_high"])
        ]
        if parts:
            text = f"In job {plain(row['job'])} {' and '.join(part for _, part in parts)} that of the campaign"
            after = f": prices are {row['before']:.2f} times off there, {row['after']:.2f} after `commodel calibrate`"
            lines.append((max(parts)[0], f"{text}{after if row['after'] == row['after'] else ''}."))
    return [text for _, text in sorted(lines, reverse=True)[:JOBS_NAMED]]


def _part(row: dict, key: str, name: str) -> str:
    value, low, high = (row[f"{key}_{end}"] for end in ("value", "low", "high"))
    return f"{name} is {value:.3g}× [{low:.3g}, {high:.3g}]"


def list_settings(drift: pd.DataFrame) -> list[Section]:
    """None where there is but one job."""
    if drift.empty:
        return []
    shown = drift.assign(simulated=drift["simulated"].map(simulation))
    shown["checked"] = drift["checked"].where(drift["checked"] > 0)
    for key in ("platform", "job", "date", "family"):
        shown[key] = shown[key].map(plain)
    factors = [
        Column(f"{key}_{end}", f"{name}{'' if end == 'value' else f' {end}'} [×]", "ratio")
        for key, name in WHAT
        for end in ("value", "low", "high")
    ]
    columns = [
        *columns_of("Jobs", "platform", "family"),
        *factors,
        *columns_of("Jobs", "points", "checked"),
    ]
    jobs = table("Jobs", "How much jobs differ", columns, shown, note=SETTINGS_NOTE, fixed=2)
    return [Section("Jobs", "Times of other jobs beside those that the prices are of.", (jobs,))]


GAPS_NOTE = (
    "budget: its batch had no time left. timeout: it ran past its limit. crash: its program failed. unfinished: its "
    "batch did not finish. late: in every sample a rank came after the common start, as on a node with more busy ranks "
    "than cores, or a clock was set. No score counts these. `commodel run EXPERIMENT --retry` tries them again."
)


def prepare(unmeasured: pd.DataFrame | None) -> pd.DataFrame:
    """The table as reports have it, in their order; empty where everything was measured."""
    frame = (unmeasured if unmeasured is not None else table_of([])).astype(object)
    for key in TEXTS:
        frame[key] = [plain(value) for value in frame[key]]
    for key in COUNTS:
        frame[key] = [None if pd.isna(number) else number for number in frame[key]]
    return frame.sort_values(["platform", "kind", "status", "name", "choice"], kind="stable").reset_index(drop=True)


def list_unmeasured(frame: pd.DataFrame, simulated: set[str]) -> list[Section]:
    """Nothing where everything was measured."""
    if frame.empty:
        return []
    shown_counts = [key for key in COUNTS if key != "waves" or frame[key].notna().any()]
    columns = [
        *columns_of("Unmeasured", "platform", "layout"),
        *(Column(key, "bytes [B]" if key == "bytes" else key, "count") for key in shown_counts),
        *columns_of("Unmeasured", "batch", "reason"),
    ]
    shown = frame.assign(simulated=[simulation(name in simulated) for name in frame["platform"]])
    made = table("Unmeasured", "What has no measurement, and why", columns, shown.astype(object), fixed=3)
    return [Section("Not measured", GAPS_NOTE, (made,))]


def describe_unmeasured_points(once: pd.DataFrame) -> list[str]:
    """Of a comparison with one row a point: how many have no measurement, why, and what that leaves open."""
    lacking = once[once["measured"].isna()]
    if lacking.empty:
        return []
    reasons = [Measurement.parse(text).reason or "reason unknown" for text in lacking["measurement"]]
    where = f" ({tally(lacking['platform'])})" if once["platform"].nunique() > 1 else ""
    verb = "was" if len(lacking) == 1 else "were"
    lines = [f"{len(lacking)} of {count(len(once), 'point')} {verb} not measured: {format_counts(reasons)}{where}."]
    open_jobs = set(lacking["group"]) & set(once.loc[once["measured"].notna(), "group"])
    if open_jobs:
        lines.append(
            f"In {count(len(open_jobs), 'job')} an alternative has no measurement: the fastest there is the fastest of "
            "those that have."
        )
    return lines


def describe_missing_passes(once: pd.DataFrame) -> list[str]:
    """Of a comparison with one row a point: those that were measured in some of their passes only."""
    outcomes = [f"with {number}" for text in once["measurement"] if (number := Measurement.parse(text).passes)]
    if not outcomes:
        return []
    verb = "has" if len(outcomes) == 1 else "have"
    line = f"{count(len(outcomes), 'point')} {verb} some passes only, {format_counts(outcomes)}: "
    line += "in the others every sample came late, the time of the batch was over, or three cases in a row had failed. "
    return [line + "Their intervals hold less of what changes from pass to pass."]


def describe_unmeasured_probes(
    frame: pd.DataFrame, raw: pd.DataFrame | None, requested: Mapping[str, int]
) -> list[str]:
    """Probe cases without samples, which fits had to do without; and those of the summary of raw samples that have
    fewer passes than were asked for on their platform."""
    lines, lacking = [], frame[frame["kind"] == "probe"]
    if len(lacking):
        line = f"{count(len(lacking), 'probe case')} {'was' if len(lacking) == 1 else 'were'} not measured: "
        lines.append(
            f"{line}{format_counts(lacking['status'])} ({tally(lacking['name'])}); the fits saw the others only."
        )
    if raw is not None:
        few = raw[(raw["kind"] == "probe") & (raw["passes"] < raw["platform"].map(requested))]
        if len(few):
            has = "has" if len(few) == 1 else "have"
            line = f"{count(len(few), 'probe case')} {has} some passes only ({tally(few['name'])}): intervals "
            lines.append(f"{line}of what is fitted from them hold less of what changes from pass to pass.")
    return lines


def format_counts(reasons) -> str:
    """`2 budget and 1 crash`: the most frequent first."""
    return comma([f"{number} {reason}" for reason, number in by_frequency(reasons)[:6]])


def describe_missing_intervals(part: pd.DataFrame, family: str) -> list[str]:
    """Which points of a platform have no interval that rests on errors, as those on more nodes than one may have none
    where all others are within one."""
    places = part.loc[part["family"] == family, "interval"].map(lambda text: IntervalBasis.parse(text).unmeasured)
    return [
        f"{count(number, 'prediction')} of {family} {'has' if number == 1 else 'have'} no interval by errors, only "
        f"that of "
        f"the parameters: no other job was measured {place}"
        for place, number in places[places != ""].value_counts().items()
    ]


def describe_missing(comparison: pd.DataFrame, simulated: set[str], probes: list[str]) -> list[str]:
    once, lines = comparison.drop_duplicates("point"), []
    for platform in sorted(simulated & set(once["platform"])):
        lines.append(f"{platform}: its measurements come from a simulator, not from hardware.")
    for platform in sorted(simulated & set(once.loc[is_library(once), "platform"])):
        lines.append(
            f"{platform}: its MPI library is SimGrid, whose own selector chooses the algorithms (smpi/coll-selector, "
            "`default` unless the platform sets it); a real library may choose better or worse."
        )
    lines += [*describe_unmeasured_points(once), *describe_missing_passes(once), *probes]
    short = once[once["measured"].notna() & ~once["stop"].isin(["precision", ""])]
    if len(short):
        why = tally(short["stop"])
        lines.append(f"{count(len(short), 'point')} stopped before the asked precision was reached (limit hit: {why}).")
    discarded = once["invalid"].sum()
    if discarded:
        lines.append(
            f"{int(discarded)} of {int(discarded + once['samples'].sum())} samples discarded: a rank started late."
        )
    predictions = comparison.loc[has_schedule(comparison), ["family", "predicted", "validity", "held_out"]]
    seen = predictions[~predictions["held_out"]]
    if len(seen):
        of_all = f"{len(seen)} of {count(len(predictions), 'prediction')}"
        line = f"{of_all} not held out: the family's own fit has seen the point"
        lines.append(f"{line} ({tally(seen['family'])}). They are listed, but count in no figure.")
    lacking = predictions[predictions["predicted"].isna()]
    if len(lacking):
        lines.append(f"{len(lacking)} of {count(len(predictions), 'prediction')} missing ({tally(lacking['family'])}).")
    doubtful = predictions[
        predictions["predicted"].notna() & ~predictions["validity"].isin([ValidityKind.VALID.value, ""])
    ]
    if len(doubtful):
        kinds = doubtful["family"] + " " + doubtful["validity"].map(lambda text: Validity.parse(text).label)
        lines.append(
            f"{len(doubtful)} of {count(len(predictions), 'prediction')} doubtful ({tally(kinds)}); see column "
            f"`validity`."
        )
    return lines or ["Nothing: every point was measured to the asked precision and priced by every family."]
