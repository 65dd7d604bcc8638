"""A decision table: which algorithm for which number of ranks and message size, by the advice on each."""

from collections.abc import Iterator, Sequence

import pandas as pd

from commodel.advise import Advice, Evidence, Job, advise

COLUMNS = ("operation", "ranks", "leaves", "bytes", "algorithm", "layout", "seconds", "low", "high", "as_good", "doubt")


def decide(jobs: Sequence[Job], evidence: Evidence, layouts: Sequence[str], only: Sequence[str]) -> pd.DataFrame:
    """One row a job: what the advice puts first, and what cannot be told apart from it."""
    return pd.DataFrame(_rows(jobs, evidence, layouts, only), columns=COLUMNS)


def _rows(jobs, evidence, layouts, only) -> Iterator[tuple]:
    for job in jobs:
        advice = advise(job, evidence, layouts, only, streams=False)
        best = advice.rows.iloc[0]
        yield (
            job.operation,
            int(best["ranks"]),
            job.leaves,
            job.bytes,
            best["choice"],
            best["layout"],
            best["seconds"],
            best["low"],
            best["high"],
            as_good(advice),
            best["doubt"],
        )


def as_good(advice: Advice) -> str:
    """The other choices that cannot be told apart from the first."""
    rows = advice.rows.iloc[1:]
    layouts = advice.rows["layout"].nunique() > 1
    close = rows[rows["as_good"]]
    return ", ".join(f"{row.choice} {row.layout}" if layouts else row.choice for row in close.itertuples())
