"""The sentences a report starts with: whom to trust, what to use, how sure that is, what is missing.

What a reader sees first behind the overview: answers and what their words mean; how families stand; what to use."""

from collections.abc import Mapping, Sequence
from itertools import chain

import pandas as pd

from commodel.compare.alternatives import find_fastest, join_sizes
from commodel.compare.comparison import select_measured_points, summarize_choices
from commodel.compare.model_ranking import (
    FAIR,
    by_operation,
    drop_equal_models,
    find_best_model,
    find_equal_models,
    find_tied_models,
    grade,
    rank_by_class,
    rank_models,
)
from commodel.predictions.prediction_intervals import IntervalBasis
from commodel.reports.frames import scale_to_shown_units, select_salient
from commodel.reports.sections import conditions, standings
from commodel.reports.shape import (
    Answer,
    Chart,
    Section,
    Table,
    columns_of,
    comma,
    count,
    gain,
    origin,
    percent,
    ratio,
    shortened,
    size,
    span,
    table,
)
from commodel.units import format_seconds

GOOD_SHARE = 0.9  # of medians inside
MOST_SENTENCES = 8  # sentences to one question; the tables have the rest


def answers(
    comparison: pd.DataFrame,
    judged: pd.DataFrame,
    uses: pd.DataFrame,
    classes: pd.DataFrame,
    picked: pd.DataFrame,
    simulated: set[str],
    probes: list[str],
    crowds: list[str],
) -> list[Answer]:
    """The four answers; `judged` comes from `frames.judged`, `uses` from `alternatives.join_sizes`, `classes` from
    `ranking.ahead`, `picked` from `following.picks`, `probes` from `gaps.probes`, `crowds` from `crowding.sentences`.
    Families are judged by points that their own fit has not seen."""
    if comparison.empty:
        return [
            Answer(
                "What is missing", ("The comparison holds no points: nothing was planned, or nothing was compared.",)
            )
        ]
    trusted = {
        platform: find_best_model(judged[judged["platform"] == platform]) for platform in set(comparison["platform"])
    }
    sections = {
        "Which model to trust": crowds
        + [
            line
            for platform, part in judged.groupby("platform")
            for line in trust(
                part, trusted[platform], origin(platform, simulated), classes[classes["platform"] == platform]
            )
        ],
        "What to use": [
            *choices(uses, simulated),
            *standings.library_sentences(standings.compare_with_library(comparison), simulated),
        ],
        "How sure this is": [
            line
            for platform, part in select_salient(comparison).groupby("platform")
            for line in certainty(
                part,
                judged[judged["platform"] == platform],
                trusted[platform],
                picked[picked["platform"] == platform],
                origin(platform, simulated),
            )
        ],
        "What is missing": conditions.describe_missing(comparison, simulated, probes),
    }
    names = {*comparison["family"], *comparison["operation"]}
    order = sorted(set(comparison["platform"]), key=lambda platform: (platform in simulated, platform))
    wheres = {platform: origin(platform, simulated) for platform in order}
    return [answer for question, lines in sections.items() for answer in by_platform(question, lines, wheres, names)]


def by_platform(question: str, lines: list[str], wheres: dict[str, str], names: set[str]) -> list[Answer]:
    """An answer for each platform that sentences begin with, which its heading names once; last what is said of all.
    Names of families and operations keep their small letters."""
    groups: dict[str, list[str]] = {}
    for line in lines:
        starts = {start: where for name, where in wheres.items() for start in (name, where)}
        start = max((start for start in starts if line.startswith((f"{start}: ", f"{start}, "))), key=len, default="")
        statement = line[len(start) + 2 :] if start else line
        if not statement.startswith(tuple(f"{name}{end}" for name in names for end in " :,")):
            statement = statement[0].upper() + statement[1:]
        groups.setdefault(starts.get(start, ""), []).append(statement)
    named = [where for where in wheres.values() if where in groups]
    headings = [(f"{question}: {where}", groups[where]) for where in named]
    headings += [(question, groups[""])] if "" in groups else []
    return [Answer(heading, tuple(sentences)) for heading, sentences in headings]


def trust(part: pd.DataFrame, best: pd.Series | None, where: str, classes: pd.DataFrame) -> list[str]:
    """The best family, the two after it, those that are as good, and who is ahead where. `part` is held out."""
    if part["mu"].notna().sum() == 0:
        return [f"{where}: no point has both a price and a measurement."]
    if best is None:
        return [f"{where}: every family prices something at 0, which is infinitely wrong; none can be trusted."]
    line = (
        f"{where}: {best['family']} predicts best (mean μ {best['mu_mean']:.2f} over {count(best['points'], 'point')}, "
        f"median |error| {percent(best['abs_error_median'])}, bias {percent(best['bias'], sign=True)}): "
        f"{grade(best['mu_mean'])}."
    )
    rows, tied, same = rank_models(part), find_tied_models(part, best), find_equal_models(part, best["family"])
    mu = dict(zip(rows["family"], rows["mu_mean"], strict=True))
    after = [f"{family} ({ratio(mu[family])})" for family in drop_equal_models(part, rows, 3)[1:]]
    line += f" {shortened(same)} {'prediction' if len(same) > 1 else 'predictions'} the same." if same else ""
    line += f" Next: {comma(after)}." if after else ""
    line += f" Not told apart from {best['family']} by these points: {shortened(tied)}." if tied else ""
    lines = [line]
    if len(rows) > 3:
        everyone = ", ".join(f"{row.family} {ratio(row.mu_mean)}" for row in rows.itertuples())
        lines.append(f"{where}, all by mean μ: {everyone}.")
    operations = []
    for operation, some_rows in by_operation(part):
        first = find_best_model(some_rows)
        if first is None:
            operations.append(f"{operation}: no comparable point")
        elif first["mu_mean"] > FAIR:
            operations.append(f"{operation}: none (best is {first['family']} at μ {first['mu_mean']:.2f})")
        else:
            operations.append(f"{operation}: {first['family']} ({first['mu_mean']:.2f}, {grade(first['mu_mean'])})")
    if len(operations) > 1:
        lines.append(f"{where}, by operation (mean μ): {'; '.join(operations)}.")
    if len(rows) > 1:
        lines.append(f"{where}: {ahead_counts(classes)}.")
    return lines


def leads(classes: pd.DataFrame, simulated: set[str]) -> Answer | None:
    """Where each family is ahead alone; nothing where none is."""
    lines = [
        f"{origin(platform, simulated)}: {line}."
        for platform, rows in classes.groupby("platform")
        for line in ahead_lines(rows)[:MOST_SENTENCES]
    ]
    return Answer("Where each family is ahead", tuple(lines)) if lines else None


def choices(uses: pd.DataFrame, simulated: set[str]) -> list[str]:
    """One sentence for the largest job of every platform and operation."""
    if uses.empty:
        return ["No job has two measured alternatives, so there is nothing to choose between."]
    lines = []
    for (platform, operation), part in uses.groupby(["platform", "operation"]):
        largest = part.loc[part["count"].idxmax(), "size"]
        job = part[part["size"] == largest]
        job = job[job["place"] == job["place"].iloc[0]]
        runs = [f"{row.use} {span(row.smallest, row.largest)} ({gain(row)})" for row in job.itertuples()]
        lines.append(
            f"{origin(platform, simulated)}, {operation} over {largest}, {job['place'].iloc[0]}: {'; '.join(runs)}."
        )
    if len(lines) > MOST_SENTENCES:
        lines = [*lines[:MOST_SENTENCES], f"{count(len(lines) - MOST_SENTENCES, 'more operation')}: see the table."]
    return lines


def certainty(
    part: pd.DataFrame, judged: pd.DataFrame, best: pd.Series | None, picked: pd.DataFrame, where: str
) -> list[str]:
    once = select_measured_points(part)
    if once.empty:
        return []
    half = ((once["measured_high"] - once["measured_low"]) / 2 / once["measured"]).median()
    known = f"each median known to ±{percent(half)} within its own run (95 %, typical)"
    line = f"{where}: {count(len(once), 'point')} measured, {known}."
    loud = int((once["skew"] > 0.1 * once["measured"]).sum())
    if loud:
        skew = format_seconds(once["skew"].median())
        line += f" Start skew (typically {skew}) exceeds 10 % of the time at {count(loud, 'point')}: doubt those."
    lines = [line]
    if best is None:
        return lines
    family, inside = best["family"], best["inside_share"]
    words = judged.loc[(judged["family"] == family) & judged["mu"].notna(), "interval"]
    bases = list(map(IntervalBasis.parse, words))
    alone, of = (
        not 2 * sum(basis.of_residuals for basis in bases) >= max(len(bases), 1),
        f"{percent(inside)} of the measured medians",
    )
    if alone:
        line = f"the interval of {family} holds {of}: it is of its parameters only, not of how far off the model is"
    else:
        verdict = "as it should" if inside >= GOOD_SHARE else "95 % expected: it is too narrow"
        line = f"the interval of {family}, by its errors at other jobs, holds {of} ({verdict})"
        line += (
            ", and is at least so wide: it rests on fewer than five allocations"
            if any(basis.is_lower_bound for basis in bases)
            else ""
        )
    lines.append(f"{where}: {line}.")
    lines += [f"{where}: {line}." for line in conditions.describe_missing_intervals(judged, family)]
    return lines + [f"{where}: {line}." for line in [*choosing_by(family, part), *standings.combined_sentence(picked)]]


def choosing_by(family: str, part: pd.DataFrame) -> list[str]:
    """What it brings and costs to choose by this family; empty where it had nothing to choose."""
    chosen = part[(part["family"] == family) & part["chosen"]]
    if chosen.empty:
        return []
    pick = summarize_choices(part[part["family"] == family], ["family"]).iloc[0]
    right, jobs = percent(pick["right"]), count(pick["groups"], "job")
    line = f"choosing by {family} finds the fastest schedule (or a tie) in {right} of {jobs}"
    if (over := pick["over_library"]) > 0:
        gains = f"{1 / over:.2f}× faster than" if over < 1 else f"{over:.2f}× the time of"
        line += f", on average {gains} the library's own choice"
    if not pick["regret_max"] > 0:
        return [f"{line}; the choice costs nothing"]
    line += f"; the choice costs {percent(pick['regret_mean'])} on average, {percent(pick['regret_max'])} at worst"
    row = chosen.sort_values("regret", ascending=False, na_position="last").iloc[0]
    return [f"{line} ({row['way']} for {row['operation']}, {row['size']}, {size(row['bytes'])})"]


def ahead_counts(rows: pd.DataFrame) -> str:
    """How the classes of one platform are shared out: who has the lowest mean μ in how many, and who does beyond
    doubt."""
    alone = rows[rows["enough"] & (rows["tied"].str.len() == 0)]["best"].value_counts()
    wins = rows.loc[rows["best"] != "", "best"].value_counts()
    shares = [
        f"{name} in {number}" + (f" ({alone[name]} alone)" if name in alone else "")
        for name, number in sorted(wins.items(), key=lambda item: (-alone.get(item[0], 0), -item[1], item[0]))
    ]
    text = f"ahead by class of operation, fan-in and size: {shortened(shares)}, of {len(rows)}"
    return text if len(alone) else f"{text}; nowhere alone: other families are statistically tied, or points are few"


def ahead_lines(rows: pd.DataFrame) -> list[str]:
    """For each family that is ahead alone somewhere on one platform: where, and how far."""
    alone = rows[rows["enough"] & (rows["tied"].str.len() == 0)]
    lines = []
    for family, classes in sorted(alone.groupby("best"), key=lambda item: (-len(item[1]), item[0])):
        places = [
            f"{operation} at fan-in {fan_in} ({', '.join(entry['size_class'])})"
            for (operation, fan_in), entry in classes.groupby(["operation", "fan_in"], sort=False)
        ]
        gaps = classes.dropna(subset=["mu_next"])
        line = f"{family} is ahead alone in {shortened(places, 4)}"
        if len(gaps):
            widest = gaps.loc[(gaps["mu_next"] / gaps["mu"]).idxmax()]
            line += f"; furthest at μ {ratio(widest['mu'])}, next {widest['next']} at {ratio(widest['mu_next'])}"
        lines.append(line)
    return lines


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
            "these; parameters only: nothing was measured that tells how far off the family is, at all, or within one "
            "node, or between nodes"
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

WAVE = (
    "wave",
    (
        "a repetition, which a rank begins when it is itself done with the last; of a stream of waves the time between "
        "the ends of two is measured and priced, and latencies of the first and of the last stand beside it"
    ),
)
STANDINGS = "How well families predict and choose, on each platform, and which one is ahead where."
USE = "The fastest alternative measured of each job, and what it gains over the MPI library's own choice."
TIMES = (
    "Jobs whose fastest alternative changes with the size come first. Solid: measured median with its 95 % interval. "
    "Dashed: price by the family that predicts this job best."
)


def sections(
    frame: pd.DataFrame,
    judged: pd.DataFrame,
    scatters: Mapping[str, Chart],
    times: Mapping[str, Sequence[Chart]],
    simulated: set[str],
    probes: list[str],
    containers: list[str],
    odd: list[str],
    differing: list[str],
) -> list[Section]:
    """Summary, Standings, What to use: tables of one sheet share its columns, so that each has those that are alike."""
    uses, classes = (
        _measured_first(rows, simulated) for rows in (join_sizes(find_fastest(frame)), rank_by_class(judged))
    )
    picked = standings.combined_picks(frame)
    blocks = [*answers(frame, judged, uses, classes, picked, simulated, probes, odd)]
    if differing:
        blocks.append(Answer("How jobs differ", tuple(differing)))
    if containers:
        blocks.append(Answer("What the container costs", tuple(containers)))
    blocks += [*scatters.values()]
    terms = (*GLOSSARY, *((WAVE,) if (frame["waves"] > 1).any() else ()))
    words = Answer("How to read this", tuple(f"{term}: {meaning}." for term, meaning in terms))
    first = Section("Summary", "", (*blocks, words))
    if frame.empty:
        return [first]
    standing = [*standings.families(frame, judged)]
    standing += [standings.combined_overview(picked)] if len(picked) else []
    lead = leads(classes, simulated)
    standing += [lead] if lead is not None else []
    standing += [standings.classes(classes, simulated)]
    gains = standings.compare_with_library(frame)
    use = [_use(frame, uses), *([standings.library_overview(gains, simulated)] if len(gains) else [])]
    use += [Answer("Time over message size", (TIMES,)), *chain(*times.values())] if times else []
    return [first, Section("Standings", STANDINGS, tuple(standing)), Section("What to use", USE, tuple(use))]


def _measured_first(rows: pd.DataFrame, simulated: set[str]) -> pd.DataFrame:
    """What was measured on a machine before what was simulated; else as it was."""
    return rows.sort_values("platform", key=lambda names: names.isin(simulated), kind="stable", ignore_index=True)


def _use(frame: pd.DataFrame, uses: pd.DataFrame) -> Table:
    shown = uses.merge(frame[["platform", "simulated"]].drop_duplicates("platform"), "left", on="platform")
    shown = scale_to_shown_units(shown)
    shown["span"] = [span(row.smallest, row.largest) for row in shown.itertuples()]
    shown["clearly"] = [f"{row.clear} of {row.sizes}" for row in shown.itertuples()]
    columns = columns_of("Use")
    note = "Measured medians; neighbouring sizes with the same winner share a row. Between rows nothing was measured."
    marks = frozenset((row, 6) for row, winner in enumerate(shown.itertuples()) if winner.clear == winner.sizes)
    return table("Use", "What to use", columns, shown, note=note, fixed=5, marks=marks)
