"""Which families are right on simulated networks of several levels, and what choosing by them costs: `make
bench-networks`, which measures in build/networks what it has not measured yet. Ten minutes a platform, and another
table for those that no model was made for (`unseen`). Arguments: platforms. With TABLE=T.csv `heldout` goes on with a
measured table, in the same columns (`scores`).

Those who compete do the same on the same nodes in one layout. In its interval a point's own job has no say. SimGrid
shares links between flows by itself.
"""

import sys
from collections.abc import Iterator
from contextlib import chdir
from pathlib import Path

import numpy as np
import pandas as pd
from tests.bench.scores import scores
from tests.bench.unseen import written

from commodel.api.fit_evaluation import parameters_of_sheet
from commodel.cli._output import table
from commodel.compare.comparison_intervals import expected
from commodel.files.safe_paths import SafePath
from commodel.fits.probe_fits import fit
from commodel.measure.batch import measure
from commodel.plan.config import find, load_platform
from commodel.plan.planning import make_plan
from commodel.platforms.build import build
from commodel.platforms.tools import ROOT
from commodel.predictions.prediction_intervals import cross_validate
from commodel.predictions.predictions import predict
from commodel.predictions.residuals import AXES, Residuals, operation_class
from commodel.records import Plan
from commodel.results.collection import collect

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
        sets["shares, sheet"] = parameters_of_sheet("shares", find("platform", platform))
    for name, parameters in sets.items():
        for price in predict(parameters, points, strict=False, draws=0):
            point = price.point
            yield {
                "platform": platform,
                "family": name,
                "group": f"{point.group} {point.layout}",
                "operation": point.operation,
                "algorithm": point.algorithm,
                "ranks": float(point.ranks),
                "nodes": float(point.nodes),
                "bytes": float(point.bytes),
                "measured": times[point.id],
                "predicted": price.seconds,
                "alone": price.alone,
                "status": price.status,
            }


def with_intervals(rows: pd.DataFrame) -> pd.DataFrame:
    """Of each family's prices: what those of other jobs were off."""
    return pd.concat([_with_intervals(own) for _, own in rows.groupby("family", sort=False)])


def _with_intervals(own: pd.DataFrame) -> pd.DataFrame:
    residuals = Residuals(
        np.log(own["measured"] / expected(own)).to_numpy(),
        own["operation"].map(operation_class).to_numpy(str),
        own["group"].to_numpy(str),
        np.full(len(own), ""),
        {name: own[name].to_numpy(float) for name in AXES},
    )
    interval = cross_validate(residuals)
    ends = {"predicted_low": interval.low, "predicted_high": interval.high}
    return own.assign(**{name: expected(own) * np.exp(logs) for name, logs in ends.items()})


def scored(project: Path, kept: Path, platforms: list[str]) -> None:
    build(project, "smpi")
    with chdir(project):  # where a plan's platforms are looked for
        plans = {name: make_plan(EXPERIMENT, project, name) for name in platforms}
        rows = {name: pd.DataFrame(rows_of(plan, name, project, kept)) for name, plan in plans.items()}
    print(table([{"platform": name} | row for name, here in rows.items() for row in scores(with_intervals(here))]))


def main(only: list[str]) -> None:
    build(ROOT, "prices")
    project = KEPT / "unseen"
    known, unseen = list(make_plan(EXPERIMENT, ROOT).platforms), written(project)
    scored(ROOT, KEPT, [name for name in known if name in (only or known)])
    if others := [name for name in unseen if name in (only or unseen)]:
        print("\nThat no model was made for:")
        scored(project, project / "raw", others)


if __name__ == "__main__":
    main(sys.argv[1:])
