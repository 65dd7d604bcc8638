"""The first screen of a platform: the recommended prediction, what to use, what that gains, the
network, and anomalies.

`make_first_screens` returns a screen for each platform: four tiles, the map of the fastest
alternatives (workload × message size), the map of mean errors (recommended prediction and models ×
operation), and two charts."""

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from operator import itemgetter

import pandas as pd

from commodel.compare import combined_prediction
from commodel.compare.alternatives import find_fastest
from commodel.compare.comparison import summarize_choices, summarize_errors
from commodel.compare.model_ranking import (
    MAX_MU_FAIR,
    drop_equal_models,
    find_base_operations,
    find_tied_models,
    group_by_operation,
    sort_by_error,
)
from commodel.compare.network import MeasuredNetwork, tabulate_distance_classes
from commodel.models.keys import Pair
from commodel.parameters import Estimate, ParameterSet
from commodel.predictions.residual_model import COVERAGE
from commodel.predictions.validity import Validity, ValidityKind
from commodel.records import DEFAULT_LABEL, RECOMMENDED
from commodel.reports.charts import assign_colours, name_without_argument
from commodel.reports.elements import (
    ALL_OPERATIONS,
    MICRO,
    MU_SCALE,
    TIED_PREFIX,
    Cell,
    FirstScreen,
    Grid,
    SourceRows,
    Table,
    Tile,
    capitalize,
    format_count,
    format_error,
    format_percent,
    format_ratio,
    format_size,
    is_finite_number,
    join_words,
    link_rows,
    mix_scale_colour,
    shorten_list,
    to_plain_value,
)
from commodel.reports.evaluated_campaign import EvaluatedCampaign
from commodel.reports.sections import measurement_conditions, rankings
from commodel.reports.sections.network import format_bandwidth
from commodel.units import format_seconds

DEFAULT_COLOUR, FLAGGED_COLOUR = "#FEFEFE", "#E4E7EA"
FASTEST_NOTE = (
    f"Outlined: the MPI default is the fastest. ≈: statistically tied ({rankings.TIE_RULE})."
)
ERRORS_NOTE = (
    "Mean error factor μ of held-out points: 1.02 is an error of 2 %. Grey: most predictions are "
    "flagged."
)
KEEP_DEFAULT = "Keep the MPI default"


def make_fastest_grid(part: pd.DataFrame) -> Grid:
    """Return the map of the fastest alternatives. Neighbouring rows with the same content are
    joined."""
    rows = find_fastest(part).sort_values(
        ["operation", "placement", "size", "ranks_or_leaves", "bytes"], kind="stable"
    )
    sizes = sorted(rows["bytes"].unique())
    colours = assign_colours(rows.loc[~rows["is_default"], "fastest"])
    labels: list[tuple[str, str]] = []
    cells = []
    for (operation, placement), workloads in rows.groupby(["operation", "placement"]):
        several_placements = rows.loc[rows["operation"] == operation, "placement"].nunique() > 1
        rows_by_label = []
        for (_, label), rows_of_label in workloads.groupby(["ranks_or_leaves", "size"]):
            rows_by_label.append((label, {row.bytes: row for row in rows_of_label.itertuples()}))
        for _, group in groupby(
            rows_by_label,
            key=lambda entry: {length: name_fastest(row) for length, row in entry[1].items()},
        ):
            equal_rows = list(group)
            label, row_of_size = equal_rows[-1]
            for length, row in row_of_size.items():
                filters = (("size", label),) if len(equal_rows) == 1 else ()
                filters = (("operation", operation), *filters, ("bytes", str(length)))
                fill = (
                    DEFAULT_COLOUR
                    if row.is_default
                    else colours[name_without_argument(row.fastest)]
                )
                tooltip = describe_fastest(operation, label, row)
                source = link_rows("Comparison", point=row.point)
                cell = Cell(
                    row=len(labels),
                    column=sizes.index(length),
                    text=name_fastest(row),
                    fill=fill,
                    tooltip=tooltip,
                    marked=row.is_default,
                    filters=filters,
                    source=source,
                )
                cells.append(cell)
            joined_label = join_labels([label for label, _ in equal_rows])
            labels.append(
                (operation, f"{joined_label}, {placement}" if several_placements else joined_label)
            )
    columns = tuple(format_size(length) for length in sizes)
    outcomes = rankings.compare_with_default(part)["outcome"]
    workloads = format_count(len(outcomes), "workload")
    title = f"An alternative beats the MPI default in {(outcomes == 'faster').sum()} of {workloads}"
    title = title if len(outcomes) else "The fastest alternatives"
    return Grid(
        name="fastest",
        title=title,
        note=FASTEST_NOTE,
        rows=tuple(labels),
        columns=columns,
        cells=tuple(cells),
        corner="message size",
        side="ranks or leaves",
    )


def name_fastest(row) -> str:
    return (TIED_PREFIX if row.ties else "") + (DEFAULT_LABEL if row.is_default else row.fastest)


def describe_fastest(operation: str, label: str, row) -> str:
    fastest = f"{name_fastest(row).removeprefix(TIED_PREFIX)}, {format_seconds(row.measured)}"
    line = f"{operation}, {label}, {format_size(row.bytes)}: {fastest}"
    if row.ties:
        line += f"; statistically tied with {shorten_list(list(row.ties), 4)}"
    else:
        line += f"; {row.second_over_fastest:.2f}× faster than {row.second}"
    no_default = row.is_default or not math.isfinite(row.default_over_fastest)
    return (
        line
        if no_default
        else f"{line}; {row.default_over_fastest:.2f}× faster than the MPI default"
    )


def join_labels(labels: list[str]) -> str:
    """Return the range of some labels: `8–32` for ranks, `8–32 leaves` for other quantities."""
    texts = [label.removesuffix(" ranks") for label in labels]
    if len(texts) == 1:
        return texts[0]
    first = texts[0].partition(" ")
    last = texts[-1].partition(" ")
    return f"{first[0]}–{last[0]}{last[1]}{last[2]}"


def make_error_grid(campaign: EvaluatedCampaign) -> Grid:
    """Return the map of mean errors on one platform. The recommended prediction is first, then the
    best model; models that predict only some points are last."""
    best = campaign.best
    held_out = campaign.held_out_with_recommended
    errors = held_out.assign(operation=find_base_operations(held_out)).sort_values(
        "operation", kind="stable"
    )
    names = errors["operation"].unique().tolist()
    over_all = summarize_errors(errors.assign(operation=ALL_OPERATIONS), ["operation", "model"])
    rows = pd.concat([over_all, summarize_errors(errors, ["operation", "model"])])
    families = sort_by_error(over_all)["model"].tolist()
    leading = [RECOMMENDED] if best is None else [RECOMMENDED, best["model"]]
    families.sort(key=lambda model: leading.index(model) if model in leading else len(leading))
    columns = [ALL_OPERATIONS, *names] if len(names) > 1 else names
    validities = errors.groupby(["operation", "model"])["validity"].agg(list).to_dict()
    cells = []
    for row in rows.itertuples():
        if row.operation not in columns:
            continue
        mostly_invalid = row.points_valid < 0.5 * row.points
        tooltip = (
            f"{row.model}, {row.operation}: mean μ {format_ratio(row.mu_mean)} over "
            f"{int(row.points)} points"
        )
        if mostly_invalid:
            kinds = Counter(
                Validity.parse(text).label
                for text in validities.get((row.operation, row.model), ())
            )
            kinds.pop(ValidityKind.VALID.value, None)
            tooltip += (
                f"; {join_words([name for name, _ in kinds.most_common(2)])}" if kinds else ""
            )
        filters = (("operation", row.operation),) if row.operation != ALL_OPERATIONS else ()
        cell = Cell(
            row=families.index(row.model),
            column=columns.index(row.operation),
            text=format_mu(row.mu_mean),
            fill=FLAGGED_COLOUR if mostly_invalid else colour_error(row.mu_mean),
            tooltip=tooltip,
            filters=(("model", row.model), *filters),
            source=link_mean_error(campaign.platform, row.operation, row.model),
        )
        cells.append(cell)
    row_labels = tuple(("", family) for family in families)
    title = "Mean error by model and operation"
    if best is not None:
        tied = find_tied_models(campaign.held_out, best)
        verdict = (
            "has the lowest mean error of the models,"
            if tied
            else "predicts best of the models: mean error"
        )
        title = f"{best['model']} {verdict} {format_error(best['mu_mean'])}"
        title += f"; statistically tied: {shorten_list(tied, 2)}" if tied else ""
    return Grid(
        name="errors",
        title=title,
        note=ERRORS_NOTE,
        rows=row_labels,
        columns=tuple(columns),
        cells=tuple(cells),
        corner="operation",
        side="model",
    )


def link_mean_error(platform: str, operation: str, model: str) -> SourceRows:
    """Return the reference to the table cell of a model's mean μ."""
    if operation == ALL_OPERATIONS:
        return link_rows("Errors by model", "mu_mean", platform=platform, model=model)
    return link_rows("Mean μ by operation", f"= {model}", platform=platform, operation=operation)


def format_mu(mu: float) -> str:
    return "∞" if mu == math.inf else f"{mu:.2f}" if mu < 10 else f"{mu:,.0f}"


def colour_error(mu: float) -> str:
    """Return the colour of a mean μ by the scale of the tables: green is good, orange is bad."""
    if mu <= MU_SCALE.middle:
        return mix_scale_colour(0.5 * (mu - MU_SCALE.good) / (MU_SCALE.middle - MU_SCALE.good))
    return mix_scale_colour(0.5 + 0.5 * (mu - MU_SCALE.middle) / (MU_SCALE.bad - MU_SCALE.middle))


HALF_TRIP = "Half a round trip of an empty message"
WITHOUT_OVERHEADS = "Latency L, without the overheads of sender and receiver,"
# Parameters for latency and time per byte, and a text on what the latency includes.
LATENCY_PARAMETERS = (
    ("alpha", "beta", HALF_TRIP),
    ("alpha.a", "beta.a", HALF_TRIP),
    ("L", "G", WITHOUT_OVERHEADS),
)


def summarize_network(
    sets: Sequence[ParameterSet], networks: Sequence[MeasuredNetwork], trips: Sequence[Mapping]
) -> Tile:
    """Return latency and bandwidth as measured between the nearest nodes, else between two ranks,
    else as fitted."""
    for network in networks:
        rows = tabulate_distance_classes(network)
        near = rows.iloc[0]
        far = rows.iloc[-1]
        headline = format_network(near["latency"], near["bandwidth"])
        ends = [format_seconds(near[end]) for end in ("latency_low", "latency_high")]
        sentence = "Half a round trip and bandwidth between two nodes"
        sentence += f" ({ends[0]} to {ends[1]})" if ends[0] != ends[1] else ""
        if len(rows) > 1:
            farthest = format_network(far["latency"], far["bandwidth"])
            sentence += f"; {len(rows)} distance classes, the farthest {farthest}"
        source = link_rows(
            "Classes", platform=to_plain_value(network.platform), **{"class": near["class"]}
        )
        return Tile("Network", headline, f"{sentence}.", source=source)
    trips = [trip for trip in trips if trip["median"] > 0]
    if trips:
        pair = min((trip["pair"] for trip in trips), key=lambda pair: Pair.parse(pair).within)
        trips = sorted((trip for trip in trips if trip["pair"] == pair), key=itemgetter("bytes"))
        setting = trips[0].get("setting", "")
        trips = [trip for trip in trips if trip.get("setting", "") == setting]
        short = trips[0]
        long = trips[-1]
        median, low, high = (short[key] / MICRO for key in ("median", "low", "high"))
        headline = format_network(median, long["bytes"] / (long["median"] / MICRO))
        spread = format_interval(low, high) or (
            " (identical in all samples)" if short["min"] == short["max"] else ""
        )
        sentence = f"Half a round trip of {short['label']}{spread} and bandwidth at {long['label']}"
        sentence += ", between two ranks of one node" if Pair.parse(pair).within else ""
        sentence += f", in setting {setting}" if setting else ""
        keys = [key for key in ("platform", "setting", "pair", "bytes") if key in short]
        source = link_rows("Latency", "median", **{key: short[key] for key in keys})
        return Tile("Network", headline, f"{sentence}.", source=source)
    for latency, byte_time, quantity in LATENCY_PARAMETERS:
        for fitted in sets:
            constant = fitted.values.get(latency)
            per_byte = find_asymptotic_value(fitted, byte_time)
            if constant is None or per_byte is None or not constant.known:
                continue
            if constant.value > 0 and per_byte.value > 0:
                headline = format_network(constant.value, 1 / per_byte.value)
                sentence = (
                    f"{quantity}{format_interval(constant.low, constant.high)} and bandwidth of "
                    "long messages"
                )
                sentence += f", fitted by {fitted.model}."
                row_keys = {
                    "platform": to_plain_value(fitted.platform),
                    "model": fitted.model,
                    "name": latency,
                }
                source = link_rows("Parameters", "value", **row_keys)
                return Tile("Network", headline, to_plain_value(sentence), source=source)
    return Tile("Network", "not fitted", "No fitted model separates latency and bandwidth.")


def format_network(latency: float, bandwidth: float) -> str:
    return f"{format_seconds(latency)}, {format_bandwidth(bandwidth)}"


def find_asymptotic_value(fitted: ParameterSet, name: str) -> Estimate | None:
    """Return the value of a parameter for the longest messages: that of its last piece."""
    pieces = [key for key in fitted.values if re.fullmatch(rf"{re.escape(name)}\d*", key)]
    return fitted.values[max(pieces, key=lambda key: (len(key), key))] if pieces else None


def format_interval(low: float, high: float) -> str:
    return f" [{format_seconds(low)}, {format_seconds(high)}]" if low < high else ""


MAX_SENTENCES = 3
MAX_CONDITIONS = 2  # listed anomalies; of these, conditions of measurement


def make_first_screens(campaign: EvaluatedCampaign, latencies: Table) -> tuple[FirstScreen, ...]:
    """Return the first screen of each platform, measured platforms before simulated ones.
    `latencies` are half the round trips by message size."""
    keys = [column.key for column in latencies.columns]
    trips = [dict(zip(keys, row, strict=True)) for row in latencies.rows]
    platforms = campaign.frame.drop_duplicates("platform").sort_values(
        ["simulated", "platform"], kind="stable"
    )
    screens = []
    for platform in platforms["platform"]:
        trips_of_platform = [trip for trip in trips if trip["platform"] == platform]
        screens.append(make_first_screen(campaign.only(platform), trips_of_platform))
    return tuple(screens)


def make_first_screen(campaign: EvaluatedCampaign, trips: Sequence[Mapping]) -> FirstScreen:
    """Return the first screen of a campaign on one platform."""
    platform = campaign.platform
    frame = campaign.frame
    simulated = bool(frame["simulated"].any())
    alternatives = make_fastest_grid(frame)
    tiles = (
        summarize_prediction(campaign),
        summarize_default_gains(platform, frame, bool(alternatives.cells)),
        summarize_gain(campaign),
        summarize_network(campaign.sets, campaign.networks, trips),
    )
    return FirstScreen(
        platform=platform,
        simulated=simulated,
        origin=describe_measurement(frame, list(campaign.provenance.values()), simulated),
        tiles=tiles,
        fastest=alternatives,
        errors=make_error_grid(campaign),
        anomalies=list_anomalies(campaign),
        scatter=campaign.scatters.get(platform),
        times=next(iter(campaign.times.get(platform, ())), None),
    )


def describe_measurement(part: pd.DataFrame, batches: Sequence[Mapping], simulated: bool) -> str:
    """Return where the data come from, as far as it is known: `measured · 2026-11-21 · 32 hosts ·
    up to 64 ranks · MPICH 5.0 · no container · commit ab12cd3`."""

    def list_values(key: str) -> list[str]:
        return sorted({str(batch[key]) for batch in batches if batch.get(key)})

    days = [text[:10] for text in list_values("date")]
    commits = [text[:7] for text in list_values("commit")]
    hosts = {str(host) for batch in batches for host in batch.get("hosts") or ()}
    containers = {describe_container(batch.get("container")) for batch in batches}
    texts = [
        "simulated" if simulated else "measured",
        " to ".join(dict.fromkeys([*days[:1], *days[-1:]])),
        format_count(len(hosts), "host") if hosts and not simulated else "",
        f"up to {int(part['ranks'].max())} ranks",
        shorten_list(sorted(set(map(shorten_version, list_values("mpi")))), 2),
        shorten_list(sorted(containers), 2),
        f"commit {shorten_list(commits, 2)}" if commits else "",
    ]
    return to_plain_value(" · ".join(filter(None, texts)))


def shorten_version(text: str) -> str:
    """Return the name and version of an MPI library, such as `MPICH 5.0.2`, from its version
    text."""
    match = re.match(r"(\S+(?: MPI)?)\D*?(\d+(?:\.\d+)*)", text)
    return f"{match[1]} {match[2]}" if match else text


def describe_container(container: object) -> str:
    """Return the container that programs ran in, by the file of its image."""
    image = container.get("image") if isinstance(container, Mapping) else None
    return f"container {str(image).rpartition('/')[2]}" if image else "no container"


def summarize_prediction(campaign: EvaluatedCampaign) -> Tile:
    """Return the error of the recommended prediction; that of the best model if too little was
    measured."""
    recommended = campaign.recommended[campaign.recommended["prediction"] == RECOMMENDED]
    if campaign.best is None:
        return Tile("Best model", "none", "No model predicts a time above 0 for a measured point.")
    if recommended.empty:
        return summarize_best_model(campaign, campaign.best)
    row = recommended.iloc[0]
    line = f"Mean error on {format_count(row['points'], 'held-out point')}."
    if row["width"] == row["width"]:
        line += f" {format_percent(row['coverage'])} of measured times lie in its intervals "
        line += f"(median high/low {format_ratio(row['width'])})."
    for other in campaign.recommended.drop(recommended.index).itertuples():
        hindsight = ", known only after the measurement" if other.mu_mean < row["mu_mean"] else ""
        line += (
            f" Best single model there: {other.prediction} "
            f"({format_error(other.mu_mean)}{hindsight})."
        )
    source = link_rows("Recommended", "mu_mean", platform=campaign.platform, prediction=RECOMMENDED)
    return Tile(
        "Recommended prediction", f"error {format_error(row['mu_mean'])}", line, source=source
    )


def summarize_best_model(campaign: EvaluatedCampaign, best: pd.Series) -> Tile:
    held_out = campaign.held_out
    tied = find_tied_models(held_out, best)
    next_models = drop_equal_models(held_out, 3)[1:]
    line = f"Mean error on {format_count(best['points'], 'held-out point')}."
    for label, names in (("Statistically tied", [name for name in next_models if name in tied]),
                         ("Next", [name for name in next_models if name not in tied])):  # fmt: skip
        line += (
            f" {label}: {join_words([f'{name} ({format_error(campaign.mean_errors[name])})' for name in names])}."
            if names
            else ""
        )
    poor = []
    for name, part in group_by_operation(held_out):
        of_best = part.loc[(part["model"] == best["model"]) & part["mu"].notna(), "mu"]
        if of_best.size and of_best.mean() > MAX_MU_FAIR:
            poor.append(name)
    line += f" Poor for {shorten_list(poor, 3)}." if poor else ""
    source = link_mean_error(campaign.platform, ALL_OPERATIONS, best["model"])
    return Tile(
        "Best model", f"{best['model']}, error {format_error(best['mu_mean'])}", line, source=source
    )


def summarize_default_gains(platform: str, part: pd.DataFrame, has_choice: bool) -> Tile:
    tile = Tile(
        "What to use", "nothing to choose", "No workload was measured with two alternatives."
    )
    tile = replace(tile, source=link_rows("Selection", platform=platform))
    if not has_choice:
        return tile
    rows = rankings.compare_with_default(part)
    if rows.empty:
        line = "The MPI default was not measured. Only alternatives are compared."
        return replace(tile, headline="see the map", sentence=line)
    counts = {name: int((rows["outcome"] == name).sum()) for name in rankings.OUTCOMES}
    shares = (
        ("alternative", counts["faster"]),
        ("tied", counts["tied"]),
        ("MPI default", counts["slower"]),
    )
    total = f"Counts: {format_count(len(rows), 'workload')} measured with the MPI default."
    recommendations = rankings.list_recommendations(rows)
    if not recommendations:
        line = (
            f"No alternative is clearly faster in {format_count(len(rows), 'workload')} measured "
            "with it."
        )
        return replace(tile, headline=KEEP_DEFAULT, sentence=line, shares=shares)
    first = recommendations[0]
    headline = f"{first.alternative} for {first.operation}"
    return replace(tile, headline=headline, sentence=f"{first.scope} {total}", shares=shares)


def summarize_gain(campaign: EvaluatedCampaign) -> Tile:
    """Return the gain over the MPI default by choices of the recommended prediction; of the best
    model if too little was measured."""
    platform = campaign.platform
    frame = campaign.frame
    choices = campaign.choices
    best = campaign.best
    if len(choices):
        choice = combined_prediction.summarize_recommended_choices(
            choices.assign(operation=ALL_OPERATIONS)
        ).iloc[0]
        choice["over_default"] = 1 / choice["gain"]
        operations = choices["operation"].unique()
        operation = ALL_OPERATIONS if len(operations) > 1 else operations[0]
        source = link_rows("Recommended choices", platform=platform, operation=operation)
        return replace(
            describe_gain("the recommended prediction", choice, frame, "with"), source=source
        )
    by_best = frame[frame["model"] == best["model"]] if best is not None else frame.iloc[:0]
    if best is None or not by_best["chosen"].any():
        return Tile(
            "Gain",
            "nothing to choose",
            "No workload has two alternatives that are measured and predicted.",
        )
    choice = summarize_choices(by_best, ["model"]).iloc[0]
    source = link_rows("Regret by model", platform=platform, model=best["model"])
    return replace(describe_gain(best["model"], choice, frame, "without"), source=source)


def describe_gain(model: str, choice: pd.Series, part: pd.DataFrame, preposition: str) -> Tile:
    """Return the gain and the regret of a model's choices, `with` or `without` the MPI default as
    an alternative."""
    question = "Gain"
    over_default = choice["over_default"]
    regret = (
        f"{format_percent(choice['regret_mean'])} mean, {format_percent(choice['regret_max'])} "
        "worst."
    )
    regret = regret if choice["regret_max"] > 0 else "none."
    regret = (
        f"Regret {preposition} the MPI default: {regret}"
        if over_default > 0
        else f"Regret: {regret}"
    )
    workloads = (
        f"{format_count(choice['workloads'], 'workload')} with several predicted alternatives"
    )
    with_default = (
        f"{format_count(choice['defaults'], 'workload')} with several predicted alternatives"
    )
    with_default += (
        "" if choice["defaults"] == choice["workloads"] else " and a measured MPI default"
    )
    if not over_default > 0:
        line = f"Choices by {model} are the fastest alternative, or tied with it, in "
        line += f"{format_percent(choice['right'])} of {workloads}."
        return Tile(question, f"{format_percent(choice['right'])} right", f"{line} {regret}")
    rows = rankings.compare_with_default(part)
    comparison = rankings.compare_choices(over_default, rows)
    line = (
        f"Choices by {model} are {comparison} the MPI default (geometric mean of {with_default}). "
        f"{regret}"
    )
    if comparison.endswith(" slower than"):
        return Tile(
            question,
            "only in some workloads" if rankings.list_recommendations(rows) else KEEP_DEFAULT,
            line,
        )
    if comparison.endswith(" faster than"):
        return Tile(question, comparison.removesuffix(" than"), line)
    return Tile(question, "none on average", line)


def list_anomalies(campaign: EvaluatedCampaign) -> tuple[str, ...]:
    """Return the most important anomalies: missing points, conditions of measurement, intervals,
    discarded samples."""
    points = campaign.frame.drop_duplicates("point")
    best = campaign.best
    lines = measurement_conditions.describe_unmeasured_points(points)[:1]
    lines += [remark.text for remark in (*campaign.anomalies, *campaign.settings)][:MAX_CONDITIONS]
    if best is not None:
        lines += measurement_conditions.describe_missing_intervals(campaign.held_out, best["model"])
        coverage = best["covered_share"]
        if is_finite_number(coverage):
            sampling_error = 2 * math.sqrt(COVERAGE * (1 - COVERAGE) / best["points"])
            line = (
                f"Intervals of {best['model']} cover {format_percent(coverage)} of the measured "
                "medians "
            )
            line += "(target: 95 %)."
            lines += [line] if abs(coverage - COVERAGE) > sampling_error else []
    discarded = int(points["invalid"].sum())
    sample_count = int(points["samples"].sum())
    if discarded > 0.1 * (discarded + sample_count):
        lines.append(
            f"{discarded:,} of {discarded + sample_count:,} samples were discarded because a rank started late."
        )
    return tuple(to_plain_value(capitalize(line)) for line in lines[:MAX_SENTENCES])
