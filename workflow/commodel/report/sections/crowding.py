"""Where more processes ran on a host than it has processors: no model of this project knows that they take turns."""

from collections.abc import Mapping

import pandas as pd

from commodel.compare.table import crowded, measured_once
from commodel.report.shape import Column
from commodel.report.words import count, shortened

COLUMNS = (
    Column("processes", "processes", "count", "on the host of the first rank"),
    Column("processors", "processors", "count", "of that host; where processes are more, they take turns"),
)


def sentences(comparison: pd.DataFrame, provenance: Mapping[str, Mapping]) -> list[str]:
    """One for each platform with such points. `provenance` is by batch, its hosts a list."""
    once = measured_once(comparison)
    lines = []
    for platform, rows in once[crowded(once)].groupby("platform"):
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
