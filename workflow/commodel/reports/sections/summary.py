"""The first sentences of a report: the best model, the alternatives to use, their certainty, and
missing measurements.

`make_sections` builds the sheets Summary, Findings, Standings (ranking of models) and What to use.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

import pandas as pd

from commodel.compare.alternatives import find_fastest, join_sizes
from commodel.compare.comparison import select_measured_points, summarize_choices
from commodel.compare.model_ranking import (
    MAX_MU_FAIR,
    drop_equal_models,
    find_best_model,
    find_equal_models,
    find_tied_models,
    grade_error,
    group_by_operation,
    rank_by_class,
)
from commodel.predictions.interval_basis import IntervalBasis
from commodel.records import RECOMMENDED
from commodel.reports.charts import make_simulation_mark
from commodel.reports.elements import (
    AnsweredQuestion,
    Block,
    Remark,
    Section,
    Table,
    format_count,
    format_error,
    format_percent,
    format_ratio,
    format_simulated,
    format_size,
    format_size_range,
    join_words,
    label_platform,
    make_table,
    select_columns,
    shorten_list,
    to_plain_value,
)
from commodel.reports.evaluated_campaign import EvaluatedCampaign
from commodel.reports.sections import measurement_conditions, rankings, recommended_steps
from commodel.units import format_seconds

MIN_COVERAGE = 0.9  # of medians inside
MAX_LEADS = 8  # sentences
RECOMMENDED_FIRST = "The recommended prediction"
BEST_MODEL = "Which model predicts best"
WHAT_TO_USE = "What to use"
CERTAINTY = "How certain this is"
MISSING = "What is missing"
# sentences of a platform, twelve at most; sheet Findings has all
MAX_SENTENCES = {RECOMMENDED_FIRST: 2, BEST_MODEL: 3, WHAT_TO_USE: 3, CERTAINTY: 2, MISSING: 2}
FINDINGS = "Findings"
MAX_RECOMMENDED = 2  # alternatives


@dataclass(frozen=True, slots=True)
class Findings:
    """All sentences on a platform that answer one question."""

    platform: str
    question: str
    sentences: tuple[str, ...]

    @property
    def complete(self) -> bool:
        return len(self.sentences) <= MAX_SENTENCES[self.question]

    def summarize(self, simulated: set[str]) -> AnsweredQuestion:
        """Return the first sentences, up to the limit of the Summary."""
        shown = list(self.sentences)
        limit = MAX_SENTENCES[self.question]
        if not self.complete:
            shown = [
                *shown[: limit - 1],
                f"{len(shown) - limit + 1} more findings: see {FINDINGS}.",
            ]
        return AnsweredQuestion(
            f"{self.question}: {label_platform(self.platform, simulated)}", tuple(shown)
        )


def find_answers(
    campaign: EvaluatedCampaign, fastest_rows: pd.DataFrame, remarks: Mapping[str, Sequence[Remark]]
) -> list[Findings]:
    """Return the findings on each platform, measured platforms first. `fastest_rows` come from
    `alternatives.join_sizes`, `remarks` are further sentences by question."""
    simulated = campaign.simulated
    findings: list[Findings] = []
    platforms = {*campaign.frame["platform"]}
    for remarks_of_question in remarks.values():
        platforms |= {to_plain_value(remark.platform) for remark in remarks_of_question}
    for platform in sorted(platforms, key=lambda platform: (platform in simulated, platform)):
        part = campaign.only(platform)
        sentences: dict[str, Sequence[str]] = dict.fromkeys(MAX_SENTENCES, ())
        if len(part.frame):
            fastest = fastest_rows[fastest_rows["platform"] == platform]
            gains = rankings.compare_with_default(part.frame)
            sentences |= {
                BEST_MODEL: describe_best_model(part),
                WHAT_TO_USE: describe_what_to_use(fastest, gains),
                CERTAINTY: describe_certainty(part),
                MISSING: measurement_conditions.describe_missing(part.frame, platform in simulated),
            }
        for question, lines in sentences.items():
            texts = [
                remark.text
                for remark in remarks.get(question, ())
                if to_plain_value(remark.platform) == platform
            ]
            # Many remarks do not displace the answer.
            joined = (*texts[:1], *lines[:1], *texts[1:], *lines[1:])
            findings += [Findings(platform, question, joined)] if joined else []
    return findings


def tabulate_findings(findings: Sequence[Findings], simulated: set[str]) -> Section:
    rows = []
    for finding in findings:
        mark = format_simulated(finding.platform in simulated)
        rows += [
            (finding.platform, mark, finding.question, sentence) for sentence in finding.sentences
        ]
    note = "All findings, of which the Summary has the first of each question."
    return Section(
        FINDINGS,
        note,
        (
            Table(
                name=FINDINGS,
                title="Findings",
                columns=select_columns(FINDINGS),
                rows=tuple(rows),
                fixed=3,
            ),
        ),
    )


def describe_recommended(summary: pd.DataFrame) -> list[Remark]:
    """Return the errors, regret and intervals of the recommended prediction of each platform, then
    those of the best single model."""
    remarks = []
    for row in summary.itertuples():
        name = (
            "It"
            if row.prediction == RECOMMENDED
            else f"The best single model at these points, {row.prediction},"
        )
        line = (
            f"{name} has a mean error of {format_error(row.mu_mean)} (worst "
            f"{format_error(row.mu_max)})"
        )
        line += (
            f" at {format_count(row.points, 'held-out point')}"
            if row.prediction == RECOMMENDED
            else ""
        )
        if row.regret_mean == row.regret_mean:
            line += (
                f", regret without the MPI default {format_percent(row.regret_mean)} on average"
                f" and {format_percent(row.regret_max)} at worst"
            )
        if row.width == row.width:
            line += f"; {format_percent(row.coverage)} of medians lie in its intervals, "
            line += f"with a median high/low of {format_ratio(row.width)}"
        remarks.append(Remark(row.platform, f"{line}."))
    return remarks


def describe_best_model(campaign: EvaluatedCampaign) -> list[str]:
    """Return the best model with its error, the tied and the next models, and the operations
    without a good model."""
    held_out = campaign.held_out
    best = campaign.best
    if held_out.empty:
        return []
    if held_out["mu"].isna().all():
        return ["No point has both a prediction and a measurement."]
    if best is None:
        return ["Every model predicts 0 for some point. No model can be recommended."]
    tied = find_tied_models(held_out, best)
    equal = find_equal_models(held_out, best["model"])
    verdict = "has the lowest mean error," if tied else "predicts best: mean error"
    line = f"{best['model']} {verdict} {format_error(best['mu_mean'])} "
    line += f"on {format_count(best['points'], 'held-out point')}"
    line += (
        f", median |error| {format_percent(best['abs_error_median'])}, bias "
        f"{format_percent(best['bias'], sign=True)} "
    )
    lines = [f"{line}({grade_error(best['mu_mean'])})."]
    names = {model: f"{model} ({format_error(mu)})" for model, mu in campaign.mean_errors.items()}
    next_models = [
        names[model] for model in drop_equal_models(held_out, 3)[1:] if model not in tied
    ]
    line = (
        f"Statistically tied with it: {shorten_list([names[model] for model in tied])}. "
        if tied
        else ""
    )
    line += f"Equal predictions: {shorten_list(equal)}. " if equal else ""
    line += f"Next: {join_words(next_models)}." if next_models else ""
    lines += [line.strip()] if line else []
    poor = []
    for operation, rows in group_by_operation(held_out):
        best_there = find_best_model(rows)
        if best_there is None:
            poor.append(f"{operation} (no comparable point)")
        elif best_there["mu_mean"] > MAX_MU_FAIR:
            poor.append(
                f"{operation} (best: {best_there['model']}, {format_error(best_there['mu_mean'])})"
            )
    return [*lines, f"No model predicts {join_words(poor)} well."] if poor else lines


def describe_what_to_use(fastest_rows: pd.DataFrame, rows: pd.DataFrame) -> list[str]:
    """Return how often the MPI default is the fastest, and the recommended alternatives, the most
    valuable first. `fastest_rows` are from `join_sizes`, `rows` from `compare_with_default`."""
    if rows.empty:
        if fastest_rows.empty:
            return ["No workload has two measured alternatives."]
        lines = []
        for operation, part in fastest_rows.groupby("operation"):
            row = part[part["ranks_or_leaves"] == part["ranks_or_leaves"].max()].iloc[-1]
            sizes = format_size_range(row["smallest"], row["largest"])
            tied = "" if row["clear_sizes"] else f" It is statistically tied with {row['second']}."
            lines.append(f"Use {row['fastest']} for {operation} on {row['size']} {sizes}.{tied}")
        return lines
    recommended = rankings.list_recommendations(rows)
    if not recommended:
        workloads = format_count(len(rows), "workload")
        return [
            f"Keep the MPI default: no alternative is clearly faster in {workloads} measured with it."
        ]
    lines = [recommendation.sentence for recommendation in recommended]
    lines = [rankings.describe_default(rows), *lines[:MAX_RECOMMENDED]]
    default_operations = sorted(
        set(rows["operation"]) - {recommendation.operation for recommendation in recommended}
    )
    return (
        [*lines, f"Keep the MPI default for {join_words(default_operations)}."]
        if default_operations
        else lines
    )


def list_leads(classes: pd.DataFrame) -> list[AnsweredQuestion]:
    """Return the classes in which one model alone is the best; empty without any."""
    lines: list[str] = []
    for platform, rows in classes.groupby("platform"):
        name = f"{platform}{make_simulation_mark(rows)}"
        lines += [f"{name}: {line}." for line in describe_leads(rows)]
    return (
        [AnsweredQuestion("Where one model is clearly the best", tuple(lines[:MAX_LEADS]))]
        if lines
        else []
    )


def describe_certainty(campaign: EvaluatedCampaign) -> list[str]:
    """Return sentences on the precision of medians, the coverage of the best model's intervals, and
    the regret of its choices, on one platform."""
    points = select_measured_points(campaign.frame)
    held_out = campaign.held_out
    best = campaign.best
    if points.empty:
        return []
    half_width = (
        (points["measured_high"] - points["measured_low"]) / 2 / points["measured"]
    ).median()
    line = f"{format_count(len(points), 'point')} measured; "
    line += f"confidence intervals of medians are typically ±{format_percent(half_width)} (95 %)."
    skewed = int((points["skew"] > 0.1 * points["measured"]).sum())
    if skewed:
        skew = format_seconds(points["skew"].median())
        line += (
            f" The start skew (median {skew}) exceeds 10 % of the time at "
            f"{format_count(skewed, 'point')}."
        )
    lines = [line]
    if best is None:
        return lines
    family = best["model"]
    inside = best["covered_share"]
    words = held_out.loc[(held_out["model"] == family) & held_out["mu"].notna(), "basis"]
    bases = list(map(IntervalBasis.parse, words))
    covers = f"cover {format_percent(inside)} of the held-out medians"
    if 2 * sum(basis.of_residuals for basis in bases) < max(len(bases), 1):
        line = (
            f"Parameter intervals of {family} {covers}. They exclude the error of the model itself."
        )
    else:
        verdict = "" if inside >= MIN_COVERAGE else "; they are too narrow"
        line = f"Prediction intervals of {family} {covers} (target: 95 %{verdict})."
        if any(basis.is_lower_bound for basis in bases):
            line += " They rest on fewer than five allocations and may be too narrow."
    lines += [line, *measurement_conditions.describe_missing_intervals(held_out, family)]
    return [*lines, *describe_choices(family, campaign.frame)]


def describe_choices(model: str, part: pd.DataFrame) -> list[str]:
    """Return gain and regret of choosing by a model; empty without a choice."""
    chosen = part[(part["model"] == model) & part["chosen"]]
    if chosen.empty:
        return []
    choice = summarize_choices(part[part["model"] == model], ["model"]).iloc[0]
    line = f"{model} chooses the fastest of the {rankings.PREDICTED}, or a tied one, in "
    line += (
        f"{format_percent(choice['right'])} of {format_count(choice['workloads'], 'workload')} "
        "with several"
    )
    over = choice["over_default"]
    if over > 0:
        line += (
            f", {rankings.compare_choices(over, rankings.compare_with_default(part))} the MPI "
            "default on average"
        )
        line += "" if choice["defaults"] == choice["workloads"] else f" of {choice['defaults']:.0f}"
    if not choice["regret_max"] > 0:
        return [f"{line}; regret none."]
    row = chosen.sort_values("regret", ascending=False, na_position="last").iloc[0]
    line += (
        f"; regret {format_percent(choice['regret_mean'])} mean, "
        f"{format_percent(choice['regret_max'])} worst"
    )
    return [
        f"{line} ({row['alternative_label']} for {row['operation']}, {row['size']}, {format_size(row['bytes'])})."
    ]


def describe_leads(rows: pd.DataFrame) -> list[str]:
    """Return, for each model that alone is the best in some class of one platform, the classes and
    the widest lead."""
    clear = rows[rows["enough"] & (rows["tied"].str.len() == 0)]
    lines = []
    for family, classes in sorted(clear.groupby("best"), key=lambda item: (-len(item[1]), item[0])):
        places = [
            f"{operation} at fan-in {fan_in} ({', '.join(entry['size_class'])})"
            for (operation, fan_in), entry in classes.groupby(["operation", "fan_in"], sort=False)
        ]
        gaps = classes.dropna(subset=["mu_next"])
        line = f"{family} is clearly the best for {shorten_list(places, 4)}"
        if len(gaps):
            widest = gaps.loc[(gaps["mu_next"] / gaps["mu"]).idxmax()]
            line += f"; widest lead: mean error {format_error(widest['mu'])}, "
            line += f"next {widest['next']} with {format_error(widest['mu_next'])}"
        lines.append(line)
    return lines


MODELS_NOTE = (
    "Errors of each model's predictions and regret of its choices, by platform and by class of "
    "workload."
)
FASTEST_NOTE = (
    "The fastest measured alternative of each workload, and its gain over the MPI default. "
)
FASTEST_NOTE += f"Clear: not statistically tied. Tied: {rankings.TIE_RULE}."
TIMES_NOTE = (
    "Workloads whose fastest alternative changes with the message size come first. Dots: measured medians with "
    "their 95 % confidence intervals. Dashed: predictions of the best model of the workload. Wide: the MPI default."
)


def make_sections(
    campaign: EvaluatedCampaign, probes: list[Remark], containers: list[str]
) -> list[Section]:
    """Return the sheets Summary, Findings, Standings and What to use. `probes` are remarks on
    missing probe cases, `containers` sentences on their overhead."""
    frame = campaign.frame
    held_out = campaign.held_out
    simulated = campaign.simulated
    times = campaign.times
    recommended = campaign.recommended
    choices = campaign.choices
    fastest_rows, classes = (
        _sort_measured_first(rows, simulated)
        for rows in (join_sizes(find_fastest(frame)), rank_by_class(held_out))
    )
    remarks = {
        RECOMMENDED_FIRST: describe_recommended(recommended),
        BEST_MODEL: campaign.anomalies,
        MISSING: probes,
    }
    findings = find_answers(campaign, fastest_rows, remarks)
    blocks: list[Block] = [finding.summarize(simulated) for finding in findings]
    if frame.empty:
        blocks.append(
            AnsweredQuestion(
                MISSING,
                ("The comparison has no points: nothing was planned, or nothing was compared.",),
            )
        )
    if campaign.settings:
        blocks.append(
            AnsweredQuestion(
                "Differences between allocations",
                tuple(remark.text for remark in campaign.settings),
            )
        )
    if containers:
        blocks.append(AnsweredQuestion("Overhead of the container", tuple(containers)))
    blocks += campaign.scatters.values()
    first = Section("Summary", "", tuple(blocks))
    sections = (
        [first]
        if all(finding.complete for finding in findings)
        else [first, tabulate_findings(findings, simulated)]
    )
    if frame.empty:
        return sections
    standing: list[Block] = (
        [rankings.tabulate_recommended(recommended, campaign.baselines)] if len(recommended) else []
    )
    standing += recommended_steps.explain(campaign.recommended_rows, frame)
    standing += rankings.tabulate_models(frame, held_out)
    standing += [rankings.tabulate_choices(choices)] if len(choices) else []
    standing += [*list_leads(classes), rankings.tabulate_classes(classes)]
    gains = rankings.compare_with_default(frame)
    what_to_use: list[Block] = [_tabulate_fastest(fastest_rows)]
    what_to_use += [rankings.tabulate_default_gains(gains)] if len(gains) else []
    what_to_use += (
        [AnsweredQuestion("Time over message size", (TIMES_NOTE,)), *chain(*times.values())]
        if times
        else []
    )
    sections.append(Section("Standings", MODELS_NOTE, tuple(standing)))
    return [*sections, Section("What to use", FASTEST_NOTE, tuple(what_to_use))]


def _sort_measured_first(rows: pd.DataFrame, simulated: set[str]) -> pd.DataFrame:
    """Return the rows of measured platforms before those of simulated ones, otherwise in their
    order."""
    rows = rows.assign(simulated=rows["platform"].isin(simulated))
    return rows.sort_values("simulated", kind="stable", ignore_index=True)


def _tabulate_fastest(fastest_rows: pd.DataFrame) -> Table:
    shown = fastest_rows.assign(
        span=[format_size_range(row.smallest, row.largest) for row in fastest_rows.itertuples()],
        clear_at=[f"{row.clear_sizes} of {row.sizes}" for row in fastest_rows.itertuples()],
    )
    note = "Measured medians. Neighbouring sizes with the same fastest alternative share a row."
    marks = {"fastest": shown["clear_sizes"] == shown["sizes"]}
    return make_table("Fastest alternatives", "What to use", shown, note=note, fixed=5, marks=marks)
