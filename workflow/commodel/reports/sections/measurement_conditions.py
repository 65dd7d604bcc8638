"""Conditions of measurement that limit a report, and missing measurements.

`list_anomalies` returns, as remarks on platforms: oversubscribed hosts, medians that scatter,
kernels with cold caches, machines in use by others, levels that the platform file does not name,
and contention that the best model lacks. `describe_settings` and `list_settings` compare
allocations (calibrations and batches) by their latency and bandwidth factors. `describe_missing`
lists missing points, discarded samples, and flagged or missing predictions.
"""

from collections.abc import Collection, Mapping
from typing import Any

import pandas as pd

from commodel.compare.comparison import (
    MAX_CERTAIN_SPREAD,
    Measurement,
    compute_spreads,
    has_computation,
    has_schedule,
    is_library_default,
    is_oversubscribed,
    list_model_failures,
    round_to_two_digits,
    select_measured_points,
)
from commodel.compare.model_ranking import rank_models
from commodel.compare.recalibration import BASIS_SAME_POINTS, differs_from_one
from commodel.files.tables import COMPARISON, add_default_columns
from commodel.predictions.interval_basis import IntervalBasis
from commodel.predictions.validity import Validity, ValidityKind, are_of
from commodel.reports.elements import (
    Remark,
    Section,
    capitalize,
    count_by_frequency,
    count_with_verb,
    format_count,
    format_error,
    format_tally,
    is_finite_number,
    join_words,
    make_table,
    select_columns,
    shorten_list,
    to_plain_value,
)
from commodel.results.raw_samples import COUNT_COLUMNS, TEXT_COLUMNS, tabulate_unmeasured


def describe_oversubscription(
    comparison: pd.DataFrame, provenance: Mapping[str, Mapping[str, Any]]
) -> list[Remark]:
    """Return a remark on each platform where more processes ran on a host than it has processors.
    `provenance` is by batch."""
    measured_points = select_measured_points(comparison)
    lines = []
    for platform, rows in measured_points[is_oversubscribed(measured_points)].groupby("platform"):
        batches = [provenance.get(batch, {}) for batch in rows["batch"].unique()]
        hosts = list(
            dict.fromkeys(str(host) for batch in batches for host in batch.get("hosts", ()))
        )
        processes = " to ".join(
            dict.fromkeys(
                str(int(end)) for end in (rows["processes"].min(), rows["processes"].max())
            )
        )
        text = (
            f"{processes} processes share {format_count(rows['processors'].min(), 'processor')} on "
        )
        text += f"{shorten_list(hosts) or 'a host'} at {format_count(len(rows), 'point')}. "
        lines.append(
            Remark(platform, f"{text}Models assume a processor each, and predict too short times.")
        )
    return lines


NEEDED_COLUMNS = [
    "point",
    "platform",
    "operation",
    "batch",
    "measured",
    "measured_low",
    "measured_high",
    "seconds",
    "processes",
    "processors",
]
MIN_SLOWDOWN = 1.1  # measured over predicted time of kernels that a remark reports
MIN_FLAGGED_SHARE = 0.1  # share of the best model's predictions that a remark reports
NETWORK_HINT = (
    " Possible causes: a slow node, or unnamed levels. Add `probes: [auto, nodepairs]` and run "
    "`commodel show network`."
)
NETWORK_FLAGS = (ValidityKind.CONTENTION, ValidityKind.PLACEMENT, ValidityKind.NOT_PROBED)
MIN_BUSY_SHARE = 0.25  # share of processors that other processes occupied before a batch


def list_anomalies(
    comparison: pd.DataFrame,
    provenance: Mapping[str, Mapping[str, Any]],
    paired: Collection[str] = (),
) -> list[Remark]:
    """Return the models that failed by an error of the program, then the anomalies of measurement.
    `paired` are the platforms with measured pairs of nodes."""
    comparison = add_default_columns(comparison, COMPARISON)
    failures = [failure for failure in list_model_failures(comparison) if failure.is_program_error]
    return [
        *(Remark(failure.platform, failure.sentence) for failure in failures),
        *_find_unnamed_levels(comparison, paired),
        *describe_oversubscription(comparison, provenance),
        *describe_conditions(comparison, provenance),
        *_find_flagged_networks(comparison, paired),
    ]


def _find_unnamed_levels(comparison: pd.DataFrame, paired: Collection[str]) -> list[Remark]:
    """Return a remark on each platform with levels that its file does not name, or whose pairs
    differ otherwise."""
    unnamed = are_of(ValidityKind.UNNAMED_LEVELS, comparison["validity"])
    affected = comparison[unnamed].drop_duplicates("platform")
    remedy = "Add `probes: [auto, nodepairs]`, run again, and copy the levels"
    remedy += " of `commodel show network EXPERIMENT --levels`."
    without_levels = (
        "The measured pairs form no levels: only model `shares` has a latency for each pair."
    )
    return [
        Remark(
            platform,
            f"{capitalize(Validity.parse(validity).explanation)}. {without_levels if platform in paired else remedy}",
        )
        for platform, validity in zip(affected["platform"], affected["validity"], strict=True)
    ]


def _find_flagged_networks(comparison: pd.DataFrame, paired: Collection[str]) -> list[Remark]:
    """Return a remark on each platform where more than a tenth of the best model's predictions have
    a network flag."""
    lines = []
    for platform, part in comparison.groupby("platform", sort=False):
        families = rank_models(part)["model"]
        rows = part[part["held_out"] & part["mu"].notna() & part["model"].isin(families[:1])]
        validities = rows.loc[~are_of(ValidityKind.UNNAMED_LEVELS, rows["validity"]), "validity"]
        flagged = validities[
            [any(map(Validity.parse(text).is_of, NETWORK_FLAGS)) for text in validities]
        ]
        if len(flagged) <= MIN_FLAGGED_SHARE * len(rows):
            continue
        kinds = flagged.map(lambda text: Validity.parse(text).label)
        causes = [flagged[kinds == label].mode().iloc[0] for label, _ in count_by_frequency(kinds)]
        counts = [
            f"{number} {cause}"
            for (_, number), cause in zip(count_by_frequency(kinds), causes, strict=True)
        ]
        sentence = (
            f"{len(flagged)} of {format_count(len(rows), 'prediction')} of the best model, "
            f"{families.iloc[0]}, "
        )
        sentence += "are flagged"
        suggests_node_pairs = (
            platform not in paired
            and Validity.parse(causes[0]).is_of(ValidityKind.CONTENTION)
            and rows["levels_crossed"].eq("").all()
        )
        lines.append(
            Remark(
                platform,
                f"{sentence}: {'; '.join(counts)}.{NETWORK_HINT if suggests_node_pairs else ''}",
            )
        )
    return lines


def describe_conditions(
    comparison: pd.DataFrame, provenance: Mapping[str, Mapping[str, Any]]
) -> list[Remark]:
    """Return remarks on measured points. Simulated machines have no caches and no other users."""
    real = comparison.loc[
        comparison["measured"].notna() & ~comparison["simulated"].astype(bool), NEEDED_COLUMNS
    ]
    real = real.assign(spread=compute_spreads(real))
    # kernels that share processors are slow for that reason
    steady = real[(real["spread"] <= MAX_CERTAIN_SPREAD) & ~is_oversubscribed(real)]
    return [
        *_find_unsteady_medians(real),
        *_find_slow_kernels(steady),
        *_find_busy_machines(real, provenance),
    ]


def _find_unsteady_medians(real: pd.DataFrame) -> list[Remark]:
    lines = []
    for platform, points in real.drop_duplicates("point").groupby("platform"):
        unsteady_count = int((points["spread"] > MAX_CERTAIN_SPREAD).sum())
        if unsteady_count:
            verb = "is" if unsteady_count == 1 else "are"
            text = (
                f"{unsteady_count} of {format_count(len(points), 'median')} {verb} uncertain by "
                "more than a factor "
            )
            text += (
                f"of {MAX_CERTAIN_SPREAD:g} ({round_to_two_digits(points['spread'].max())} at "
                "worst). "
            )
            lines.append(Remark(platform, f"{text}Measure again on an idle machine."))
    return lines


def _find_slow_kernels(real: pd.DataFrame) -> list[Remark]:
    lines = []
    for platform, rows in real[has_computation(real)].groupby("platform"):
        ratio = (rows["measured"] / rows["seconds"]).median()
        if ratio > MIN_SLOWDOWN:
            points = format_count(rows["point"].nunique(), "point")
            text = (
                f"Kernels took {ratio:.2g} times the predicted time ({points}, median of all "
                "models). "
            )
            text += (
                "They compute between messages, whose data may then be out of the caches. No "
                "probe does so."
            )
            lines.append(Remark(platform, text))
    return lines


def _find_busy_machines(
    real: pd.DataFrame, provenance: Mapping[str, Mapping[str, Any]]
) -> list[Remark]:
    """Return a remark on each platform with load from other processes before a batch."""
    lines = []
    for platform, rows in real.groupby("platform"):
        batches = [provenance.get(batch, {}) for batch in rows["batch"].unique()]
        loads = [(batch.get("at_work"), batch.get("cores")) for batch in batches]
        finite_loads = [
            (busy, cores)
            for busy, cores in loads
            if is_finite_number(busy) and is_finite_number(cores)
        ]
        busy, cores = max(finite_loads, default=(0.0, 1))
        if busy > MIN_BUSY_SHARE * int(cores):
            share = f"{busy:.1f} of {format_count(cores, 'processor')}"
            lines.append(
                Remark(
                    platform,
                    f"The machine was in use: other processes occupied {share} before the run.",
                )
            )
    return lines


SETTINGS_NOTE = (
    "The latency factor scales all parameters in seconds, the factor of the time per byte those in seconds per byte. "
    "Compared with the same points: times in the allocation over times in the campaign. Compared with predictions: the "
    "factors include the model's own error on other ranks and nodes."
)
FACTORS = (("latency", "latency"), ("per_byte", "time per byte"))
MAX_ALLOCATIONS = 3  # remarks on the first screen


def describe_settings(drift: pd.DataFrame) -> list[Remark]:
    """Return remarks on allocations that differ significantly at the same points, the largest
    difference first."""
    lines = []
    for row in drift[drift["compared_with"] == BASIS_SAME_POINTS].to_dict("records"):
        parts = [
            (max(row[f"{key}_value"], 1 / row[f"{key}_value"]), _describe_factor(row, key, name))
            for key, name in FACTORS
            if differs_from_one(row[f"{key}_low"], row[f"{key}_high"])
        ]
        if parts:
            factors = " and ".join(part for _, part in parts)
            text = f"In {to_plain_value(row['allocation'])}, {factors} that of the campaign"
            error_note = (
                f"; mean error there: {format_error(row['before'])}, after `commodel calibrate`: "
            )
            error_note += format_error(row["after"])
            text = f"{text}{error_note if row['after'] == row['after'] else ''}."
            lines.append((max(parts)[0], Remark(to_plain_value(row["platform"]), text)))
    return [text for _, text in sorted(lines, reverse=True)[:MAX_ALLOCATIONS]]


def _describe_factor(row: dict, key: str, name: str) -> str:
    value, low, high = (row[f"{key}_{end}"] for end in ("value", "low", "high"))
    return f"{name} is {value:.3g}× [{low:.3g}, {high:.3g}]"


def list_settings(drift: pd.DataFrame) -> list[Section]:
    """Return the section on allocations; none if there is only one."""
    if drift.empty:
        return []
    shown = drift.assign(checked=drift["checked"].where(drift["checked"] > 0))
    title = "Factors of latency and time per byte by allocation"
    table = make_table("Allocations", title, shown, note=SETTINGS_NOTE, fixed=2)
    note = "Times in each allocation, compared with those of the campaign, or with predictions."
    return [Section("Allocations", note, (table,))]


GAPS_NOTE = (
    "budget: the batch had no time left. timeout: the case exceeded its limit. crash: the program failed. unfinished: "
    "the batch did not finish. late: in every sample a rank missed the common start (busy cores, or a clock was set). "
    "These points count in no score. `commodel run EXPERIMENT --retry` measures them again."
)


def prepare_unmeasured(unmeasured: pd.DataFrame | None) -> pd.DataFrame:
    """Return the table of missing points, sorted; empty if everything was measured."""
    frame = (unmeasured if unmeasured is not None else tabulate_unmeasured([])).astype(object)
    frame = frame.assign(**{key: frame[key].map(to_plain_value) for key in TEXT_COLUMNS})
    frame[COUNT_COLUMNS] = frame[COUNT_COLUMNS].where(frame[COUNT_COLUMNS].notna(), None)
    order = ["platform", "kind", "status", "name", "alternative"]
    return frame.sort_values(order, kind="stable", ignore_index=True)


def list_unmeasured(frame: pd.DataFrame) -> list[Section]:
    """Return the section of missing points; none if everything was measured."""
    if frame.empty:
        return []
    columns = select_columns(
        "Not measured", without=() if frame["waves"].notna().any() else ("waves",)
    )
    table = make_table(
        "Not measured", "Points and probes without a measurement", frame, columns, fixed=3
    )
    return [Section("Not measured", GAPS_NOTE, (table,))]


def describe_unmeasured_points(points: pd.DataFrame) -> list[str]:
    """Return sentences on unmeasured points and the consequences. The comparison has one row a
    point."""
    missing = points[points["measured"].isna()]
    if missing.empty:
        return []
    reasons = [
        Measurement.parse(text).reason or "reason unknown" for text in missing["measurement"]
    ]
    verb = "was" if len(missing) == 1 else "were"
    lines = [
        f"{len(missing)} of {format_count(len(points), 'point')} {verb} not measured: {format_counts(reasons)}."
    ]
    incomplete = set(missing["workload"]) & set(points.loc[points["measured"].notna(), "workload"])
    if incomplete:
        count = count_with_verb(len(incomplete), "workload", "lacks")
        lines.append(f"{count} an alternative. Only measured ones are compared.")
    return lines


def describe_missing_passes(points: pd.DataFrame) -> list[str]:
    """Return a sentence on the points that were measured in only some of their passes. The
    comparison has one row a point."""
    passes = [Measurement.parse(text).passes for text in points["measurement"]]
    outcomes = [f"with {number}" for number in filter(None, passes)]
    if not outcomes:
        return []
    line = (
        f"{count_with_verb(len(outcomes), 'point', 'has')} only some passes "
        f"({format_counts(outcomes)})."
    )
    return [f"{line} Their intervals lack part of the variation between passes."]


def describe_unmeasured_probes(
    frame: pd.DataFrame, raw: pd.DataFrame, passes: Mapping[str, int]
) -> list[Remark]:
    """Return remarks on probe cases without samples, and on those with fewer passes than planned on
    their platform."""
    lines = []
    for platform, missing in frame[frame["kind"] == "probe"].groupby("platform"):
        text = f"{count_with_verb(len(missing), 'probe case', 'was')} not measured: "
        lines.append(
            Remark(
                platform,
                f"{text}{format_counts(missing['status'])} ({format_tally(missing['name'])}).",
            )
        )
    incomplete = raw[(raw["kind"] == "probe") & (raw["passes"] < raw["platform"].map(passes))]
    for platform, rows in incomplete.groupby("platform"):
        text = (
            f"{count_with_verb(len(rows), 'probe case', 'has')} only some passes "
            f"({format_tally(rows['name'])}). "
        )
        text += "Intervals of parameters lack part of the variation between passes."
        lines.append(Remark(to_plain_value(platform), text))
    return lines


def format_counts(reasons) -> str:
    """Return counted reasons, the most frequent first: `2 budget and 1 crash`."""
    return join_words([f"{number} {reason}" for reason, number in count_by_frequency(reasons)[:6]])


def describe_missing_intervals(part: pd.DataFrame, model: str) -> list[str]:
    """Return how many predictions of a model on a platform have a parameter interval only, and
    why."""
    unmeasured_placements = part.loc[part["model"] == model, "basis"].map(
        lambda text: IntervalBasis.parse(text).unmeasured
    )
    return [
        f"{count_with_verb(number, 'prediction', 'has', f' of {model}')} a parameter interval only: "
        f"no other workload was measured {placement}."
        for placement, number in unmeasured_placements[unmeasured_placements != ""]
        .value_counts()
        .items()
    ]


def _describe_missing_fits(comparison: pd.DataFrame) -> list[str]:
    """Return a sentence for each reason for which models have no fit; anomalies have errors of the
    program."""
    families: dict[str, list[str]] = {}
    for failure in list_model_failures(comparison):
        if not failure.is_program_error:
            families.setdefault(failure.validity.reason, []).append(failure.model)
    return [f"No fit of {join_words(names)}: {reason}." for reason, names in families.items()]


def describe_missing(comparison: pd.DataFrame, simulated: bool) -> list[str]:
    """Return sentences on what a platform's comparison lacks: measurements, passes, precision,
    samples, predictions."""
    points = comparison.drop_duplicates("point")
    lines = []
    if simulated and is_library_default(points).any():
        lines.append(
            "The MPI default is SimGrid's own selection of algorithms. A real library may choose differently."
        )
    lines += [*describe_unmeasured_points(points), *describe_missing_passes(points)]
    coarse = points[
        points["measured"].notna() & ~points["stop"].isin(["equal samples", "precision", ""])
    ]
    if len(coarse):
        count = count_with_verb(len(coarse), "point", "lacks")
        lines.append(f"{count} the wanted precision (limit: {format_tally(coarse['stop'])}).")
    discarded = points["invalid"].sum()
    if discarded:
        total = int(discarded + points["samples"].sum())
        lines.append(
            f"{int(discarded)} of {total} samples were discarded because a rank started late."
        )
    predicted = comparison.loc[
        has_schedule(comparison), ["model", "seconds", "validity", "held_out"]
    ]
    total_text = format_count(len(predicted), "prediction")
    fitted = predicted[~predicted["held_out"]]
    if len(fitted):
        lines.append(
            f"{len(fitted)} of {total_text} are not held out ({format_tally(fitted['model'])}): not counted."
        )
    missing = predicted[predicted["seconds"].isna()]
    if len(missing):
        lines.append(
            f"{len(missing)} of {total_text} are missing ({format_tally(missing['model'])})."
        )
    lines += _describe_missing_fits(comparison)
    flagged = predicted[
        predicted["seconds"].notna() & ~predicted["validity"].isin([ValidityKind.VALID.value, ""])
    ]
    if len(flagged):
        kinds = (
            flagged["model"]
            + " "
            + flagged["validity"].map(lambda text: Validity.parse(text).label)
        )
        lines.append(f"{len(flagged)} of {total_text} are flagged ({format_tally(kinds)}).")
    return lines or [
        "Nothing: all points have the wanted precision and a prediction of every model."
    ]
