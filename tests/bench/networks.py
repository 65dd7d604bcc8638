"""Which families are right on simulated networks of several levels, and what choosing by them costs: `make
bench-networks`, which measures in build/networks what it has not measured yet. Ten minutes a platform, and another
table for those that no model was made for (`unseen`). Arguments: platforms.

μ is max(price, time) / min(price, time); regret what the algorithm of the lowest price takes longer than the fastest
one, of those that do the same on the same nodes in one layout. Inside: of the times in their intervals, in which a
point's own job has no say; width: of these, beside the narrowest band that holds 95 % of the times. SimGrid shares
links between flows by itself.
"""

import sys
from collections.abc import Iterator
from contextlib import chdir
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

import numpy as np
import pandas as pd
from tests.bench.coverage import oracle
from tests.bench.unseen import written

from commodel.cli._output import table
from commodel.cli._sheets import of_platform
from commodel.files.paths import SafePath
from commodel.fit.probes import fit
from commodel.measure.batch import measure
from commodel.plan.config import find, load_platform
from commodel.plan.make import make_plan
from commodel.platforms.build import build
from commodel.platforms.tools import ROOT
from commodel.price.intervals import judged as bands_of_others
from commodel.price.points import predict
from commodel.price.residuals import AXES, Residuals, operation_class
from commodel.records import Plan
from commodel.results.collect import collect

EXPERIMENT = "networks"
KEPT = ROOT / "build" / EXPERIMENT


def rows_of(plan: Plan, platform: str, project: Path, kept: Path) -> Iterator[dict]:
    """A row for each point and family."""
    raw = SafePath.given(kept, project)
    for batch in plan.batches:
        measure(plan, batch, raw / batch.name, lambda text: None)
    observations, _ = collect(plan, raw, unfinished=True)
    times = observations[observations["valid"]].groupby("id")["seconds"].median()
    points = [point for point in plan.points if point.priced and point.id in times]
    sets = {name: fit(plan, observations, name, platform) for name in plan.families}
    if load_platform(find("platform", platform)).data_sheet:
        sets["shares, sheet"] = of_platform("shares", find("platform", platform))
    for name, parameters in sets.items():
        for price in predict(parameters, points, strict=False, draws=0):
            point, measured = price.point, times[price.point.id]
            yield {
                "platform": platform,
                "family": name,
                "job": f"{point.group} {point.layout}",
                "operation": point.operation,
                "ranks": float(point.ranks),
                "nodes": float(point.nodes),
                "bytes": float(point.bytes),
                "measured": measured,
                "predicted": price.seconds,
                "mu": max(price.seconds / measured, measured / price.seconds),
                "ok": price.status == "ok",
            }


def judged(rows: pd.DataFrame) -> Iterator[dict]:
    for (platform, name), own in rows.groupby(["platform", "family"], sort=False):
        jobs = own.groupby("job").filter(lambda job: len(job) > 1).groupby("job")
        chosen = jobs.apply(lambda job: job.loc[job["predicted"].idxmin(), "measured"], include_groups=False)
        regret = 100 * (chosen / jobs["measured"].min() - 1)
        mu, count = own["mu"], len(own)
        inside, width = interval(own)
        yield {
            "platform": platform,
            "family": name,
            "points": count,
            "μ": f"{mu.mean():.2f}",
            "90 %": f"{mu.quantile(0.9):.2f}",
            "worst": f"{mu.max():.1f}",
            "inside": f"{100 * inside:.0f} %",
            "width": f"{width:.2f}",
            "status ok": f"{own['ok'].sum()}",
            "jobs": len(chosen),
            "regret": f"{regret.mean():.1f} %",
            "worst regret": f"{regret.max():.0f} %",
        }


def interval(own: pd.DataFrame) -> tuple[float, float]:
    """Of one family: the share of times in bands of other jobs, and how many times as wide as an oracle's these are."""
    logs = np.log(own["measured"] / own["predicted"]).to_numpy()
    residuals = Residuals(
        logs,
        own["operation"].map(operation_class).to_numpy(str),
        own["job"].to_numpy(str),
        np.full(len(own), ""),
        {name: own[name].to_numpy(float) for name in AXES},
    )
    low, high, _ = bands_of_others(residuals)
    return float(np.mean((low <= logs) & (logs <= high))), float(np.mean(high - low) / oracle(logs))


def scored(project: Path, kept: Path, platforms: list[str]) -> None:
    build(project, "smpi")
    with chdir(project):  # where a plan's platforms are looked for
        plans = {name: make_plan(EXPERIMENT, project, name) for name in platforms}
        rows = [row for name, plan in plans.items() for row in rows_of(plan, name, project, kept)]
    if rows:
        print(table(list(judged(pd.DataFrame(rows)))))


def main(only: list[str]) -> None:
    build(ROOT, "prices")
    project = KEPT / "unseen"
    known, unseen = list(make_plan(EXPERIMENT, ROOT).platforms), written(project)
    scored(ROOT, KEPT, [name for name in known if name in (only or known)])
    print("\nThat no model was made for:")
    scored(project, project / "raw", [name for name in unseen if name in (only or unseen)])


if __name__ == "__main__":
    main(sys.argv[1:])
