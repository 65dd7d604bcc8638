"""Which alternative the measurements favour, job by job and over which sizes."""

from itertools import groupby
from operator import itemgetter

import pandas as pd

from commodel.compare.choices import clearly_faster
from commodel.compare.table import is_library, measured_once

ALTERNATIVE = ["bytes", "way", "own", "library", "measured", "measured_low", "measured_high"]  # of an alternative
JOB = ["platform", "operation", "place", "size"]  # alternatives for one job, over all byte sizes
ORDERED = ["platform", "operation", "place", "count", "size"]  # jobs: those of few ranks, or leaves, before larger ones

NOTHING = {"use": "", "own": False, "smallest": 0, "largest": 0, "next": [], "next_own": False, "clear": 0}
NOTHING |= {name: [1.0] for name in ("gains", "slowest", "over")}


def _counted(comparison: pd.DataFrame) -> pd.DataFrame:
    """Each measured point once, with how many ranks or leaves its job has."""
    once = measured_once(comparison)
    return once.assign(own=is_library(once), count=once["leaves"].where(once["leaves"] > 0, once["ranks"]))


def favoured(comparison: pd.DataFrame) -> pd.DataFrame:
    """The fastest measured alternative of every job, neighbouring byte sizes with the same winner taken together, and
    how much slower the library's own choice is; `own` where that is the winner."""
    once = _counted(comparison).sort_values([*ORDERED, "bytes", "measured", "way"], kind="stable")
    rows = []
    for job, entries in groupby(once[[*ORDERED, *ALTERNATIVE]].to_dict("records"), key=itemgetter(*ORDERED)):
        run: dict = {}
        for size, group in groupby(entries, key=itemgetter("bytes")):
            first, *others = group
            if not others:
                continue
            second = others[0]
            if run.get("use") != first["way"]:
                run = NOTHING | {name: [] for name in ("next", "gains", "slowest", "over")}
                run |= {"use": first["way"], "own": first["own"], "smallest": size, "next_own": True}
                rows.append(dict(zip(ORDERED, job, strict=True)) | {"run": run})
            run["largest"] = size
            run["next"].append(second["way"])
            run["next_own"] &= second["own"]
            run["over"].append(first["library"] / first["measured"])
            run["gains"].append(second["measured"] / first["measured"])
            run["slowest"].append(others[-1]["measured"] / first["measured"])
            run["clear"] += clearly_faster(first, second)
    return pd.DataFrame([finish(row) for row in rows], columns=[*ORDERED, *finish({})])


def finish(row: dict) -> dict:
    """One run of sizes as plain columns. Without a run: their names."""
    run = row.pop("run", NOTHING)
    return row | {
        "use": run["use"],
        "own": run["own"],
        "smallest": run["smallest"],
        "largest": run["largest"],
        "next": " or ".join(dict.fromkeys(run["next"])),
        "next_own": run["next_own"],
        "gain_low": min(run["gains"]),
        "gain_high": max(run["gains"]),
        "over_low": min(run["over"]),
        "over_high": max(run["over"]),
        "slowest": max(run["slowest"]),
        "clear": run["clear"],
        "sizes": len(run["gains"]),
    }


FASTEST = ["operation", "place", "size", "count", "bytes", "point", "use", "own", "measured", "next", "gain", "over"]
FASTEST += ["ties"]


def fastest(comparison: pd.DataFrame) -> pd.DataFrame:
    """One row a job and size with two measured alternatives or more: the fastest one, the next, how much slower that
    is and the library's own choice, and which others cannot be told apart from the fastest."""
    keys = ["operation", "place", "size", "count", "bytes"]
    once = _counted(comparison).sort_values([*keys, "measured", "way"], kind="stable")
    rows = []
    for key, group in groupby(once[[*keys, *ALTERNATIVE[1:], "point"]].to_dict("records"), key=itemgetter(*keys)):
        first, *others = group
        if not others:
            continue
        second = others[0]
        ties = tuple(dict.fromkeys(other["way"] for other in others if not clearly_faster(first, other)))
        figures = (first["measured"], second["way"], second["measured"] / first["measured"])
        over = first["library"] / first["measured"]
        rows.append((*key, first["point"], first["way"], first["own"], *figures, over, ties))
    return pd.DataFrame(rows, columns=FASTEST)
