"""Which alternative the measurements favour, job by job and over which sizes."""

from itertools import groupby

import pandas as pd

from commodel.compare import clearly_faster

JOB = ["platform", "operation", "layout", "size"]  # alternatives for one job, over all byte sizes


def favoured(comparison: pd.DataFrame) -> pd.DataFrame:
    """The fastest measured alternative of every job, neighbouring byte sizes with the same winner taken together."""
    once = comparison[comparison["measured"].notna()].drop_duplicates("point")
    once = once.sort_values([*JOB, "bytes", "measured", "choice"], kind="stable")
    columns = [*JOB, "bytes", "choice", "measured", "measured_low", "measured_high"]
    rows = []
    for job, entries in groupby(once[columns].to_dict("records"), key=lambda row: [row[key] for key in JOB]):
        run: dict = {}
        for size, group in groupby(entries, key=lambda row: row["bytes"]):
            first, *others = group
            if not others:
                continue
            second = others[0]
            if run.get("use") != first["choice"]:
                run = {"use": first["choice"], "first": size, "next": [], "gains": [], "slowest": [], "clear": 0}
                rows.append(dict(zip(JOB, job, strict=True)) | {"run": run})
            run["last"] = size
            run["next"].append(second["choice"])
            run["gains"].append(second["measured"] / first["measured"])
            run["slowest"].append(others[-1]["measured"] / first["measured"])
            run["clear"] += clearly_faster(first, second)
    return pd.DataFrame([finish(row) for row in rows], columns=[*JOB, *finish({})])


def finish(row: dict) -> dict:
    """One run of sizes as plain columns. Without a run: their names."""
    run = row.pop("run", {"use": "", "first": 0, "last": 0, "next": [], "gains": [1.0], "slowest": [1.0], "clear": 0})
    return row | {
        "use": run["use"],
        "first": run["first"],
        "last": run["last"],
        "next": ", ".join(dict.fromkeys(run["next"])),
        "gain_low": min(run["gains"]),
        "gain_high": max(run["gains"]),
        "slowest": max(run["slowest"]),
        "clear": run["clear"],
        "sizes": len(run["gains"]),
    }
