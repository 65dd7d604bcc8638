"""What a reader sees first behind the overview: answers and what their words mean; how families stand; what to use."""

from collections.abc import Mapping, Sequence
from itertools import chain

import pandas as pd

from commodel.compare.ranking import ahead
from commodel.compare.recommend import favoured
from commodel.report.frames import PLACE, PLATFORM, scaled
from commodel.report.sections import following, library, standings
from commodel.report.sections.answers import answers, leads
from commodel.report.shape import Answer, Chart, Column, Section, Table, table
from commodel.report.words import span

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
    uses, classes = (_measured_first(rows, simulated) for rows in (favoured(frame), ahead(judged)))
    picked = following.picks(frame)
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
    standing += [following.overview(picked)] if len(picked) else []
    lead = leads(classes, simulated)
    standing += [lead] if lead is not None else []
    standing += [standings.classes(classes, simulated)]
    gains = library.against(frame)
    use = [_use(frame, uses), *([library.overview(gains, simulated)] if len(gains) else [])]
    use += [Answer("Time over message size", (TIMES,)), *chain(*times.values())] if times else []
    return [first, Section("Standings", STANDINGS, tuple(standing)), Section("What to use", USE, tuple(use))]


def _measured_first(rows: pd.DataFrame, simulated: set[str]) -> pd.DataFrame:
    """What was measured on a machine before what was simulated; else as it was."""
    return rows.sort_values("platform", key=lambda names: names.isin(simulated), kind="stable", ignore_index=True)


def _use(frame: pd.DataFrame, uses: pd.DataFrame) -> Table:
    shown = uses.merge(frame[["platform", "simulated"]].drop_duplicates("platform"), "left", on="platform")
    shown = scaled(shown)
    shown["span"] = [span(row.smallest, row.largest) for row in shown.itertuples()]
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
    marks = frozenset((row, 6) for row, winner in enumerate(shown.itertuples()) if winner.clear == winner.sizes)
    return table("Use", "What to use", columns, shown, note=note, fixed=5, marks=marks)
