"""Which alternative the measurements favour, job by job and over which sizes."""

import pandas as pd

JOB = ["platform", "operation", "layout", "size"]  # alternatives for one job, over all byte sizes


def favoured(comparison: pd.DataFrame) -> pd.DataFrame:
    """The fastest measured alternative of every job, neighbouring byte sizes with the same winner taken together."""
    once = comparison[comparison["measured"].notna()].drop_duplicates("point")
    rows = []
    for job, part in once.groupby(JOB, sort=True):
        run: dict = {}
        for size, group in part.groupby("bytes", sort=True):
            if len(group) < 2:
                continue
            order = group.sort_values(["measured", "choice"])
            first, second = order.iloc[0], order.iloc[1]
            if run.get("use") != first["choice"]:
                run = {"use": first["choice"], "first": size, "next": [], "gains": [], "slowest": [], "clear": 0}
                rows.append(dict(zip(JOB, job, strict=True)) | {"run": run})
            run["last"] = size
            run["next"].append(second["choice"])
            run["gains"].append(second["measured"] / first["measured"])
            run["slowest"].append(order.iloc[-1]["measured"] / first["measured"])
            run["clear"] += not second["measured_low"] <= first["measured_high"]
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
