"""Which families predict measured collectives that they have not seen: other sizes, other operations, more ranks; and
what choosing by them would have cost. Minutes to an hour; arguments: a table as `commodel import` writes it, families.
"""

import sys
from pathlib import Path

import numpy as np
import pandas as pd

from commodel.cli._heldout import show_errors
from commodel.cli._output import table
from commodel.compare.heldout import fit_seen, judged, split
from commodel.errors import UserError
from commodel.fit.collectives import from_collectives
from commodel.fit.pointtable import Measured, read_points
from commodel.fit.settings import only
from commodel.records import LIBRARY

EVERY_OTHER_SIZE = "log2(bytes) // 3 % 2 == 0"
SPLITS = {
    "other sizes": EVERY_OTHER_SIZE,
    "other operations": "operation != 'allreduce'",
    "more ranks": "ranks > 32",
}
JOB = ["operation", "ranks", "layout", "bytes"]


def priced(measured: Measured, where: str, family: str) -> pd.DataFrame:
    try:
        parts = split(measured, where)
        return judged(fit_seen(parts, family, "the table"), parts.unseen)
    except UserError as error:
        print(f"{family}: {error.message}", file=sys.stderr)
        return pd.DataFrame()


def by_operation(measured: Measured, where: str, family: str) -> pd.DataFrame:
    """A fit for each operation of its own."""
    studied = []
    for operation in dict.fromkeys(point.operation for point in measured.points):
        of_operation = only(measured, [point.operation == operation for point in measured.points])
        studied.append(priced(of_operation, where, family))
    return pd.concat(studied)


def choices(rows: pd.DataFrame, library: pd.Series) -> list[dict]:
    """Of the jobs with two and more measured algorithms: the one with the lowest price, beside the fastest and beside
    the library's own."""
    judged = []
    for (family, *job), group in rows.groupby(["family", *JOB]):
        if len(group) > 1:
            pick, fastest = group.loc[group["predicted"].idxmin(), "measured"], group["measured"].min()
            library_seconds = library.get(tuple(job), np.nan)
            judged.append((family, job[0], pick / fastest, pick / library_seconds, fastest / library_seconds))
    frame = pd.DataFrame(judged, columns=["family", "operation", "over fastest", "over library", "best over library"])
    ratios = frame.columns[2:]
    counts = frame.groupby("family").size()
    right = (frame["over fastest"] < 1.01).groupby(frame["family"]).mean()
    logs = frame.assign(**{name: np.log(frame[name]) for name in ratios})
    means = np.exp(logs.groupby("family")[list(ratios)].mean())
    operations = np.exp(logs.pivot_table(index="family", columns="operation", values="over library"))
    worst = frame.groupby("family")["over fastest"].max()
    return [
        {"family": name, "jobs": int(counts[name]), "right": f"{100 * right[name]:.0f} %", "worst": worst[name]}
        | means.loc[name].to_dict()
        | operations.loc[name].to_dict()
        for name in means.sort_values("over fastest").index
    ]


def main(path: Path, families: list[str]) -> None:
    measured = read_points(path)
    rows = pd.read_csv(path)
    library = rows[rows["algorithm"] == LIBRARY].groupby(JOB)["seconds"].median()
    studies = {title: (priced, where) for title, where in SPLITS.items()}
    studies["other sizes, a fit for each operation"] = by_operation, EVERY_OTHER_SIZE
    for title, (study, where) in studies.items():
        print(f"\n{title}: {where}", flush=True)
        rows = pd.concat([study(measured, where, name) for name in families], ignore_index=True)
        show_errors(rows, "table")
        print("\nchoosing by the lowest price (ratios of times, geometric means)")
        print(table(choices(rows, library)), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:] or from_collectives())
