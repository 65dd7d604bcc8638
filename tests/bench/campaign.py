"""What a campaign of probes costs, family by family, and what its stopping rule saves: `make bench`.

The same cases with a fixed thousand repetitions are the alternative that is compared with; a case counts as saved only
where the rule stopped because the interval of the median had become as narrow as asked.
"""

import tempfile
from contextlib import chdir
from pathlib import Path

from commodel.measure.batch import measure_batch
from commodel.models.families import find_family, list_family_names
from commodel.plan.planning import make_plan
from commodel.platforms.build import build_toolchain
from commodel.platforms.tools import ROOT, find_tool
from commodel.results.collection import collect_samples
from tests.bench.measuring import make_project, show

FIXED = 1000
MEASURE = "{precision: 5%, min_samples: 10, max_samples: 1000, seconds: 0.6, passes: 3, warmup: 2}"
PLATFORMS = {
    "local": "launcher: local\nnodes: 1\ncores: 2\n",
    "simulated": "launcher: simgrid\nnodes: 2\ncores: 1\nsimgrid: {file: loggp-64.xml}\n",
}


def campaign(name: str, toolchain: str) -> None:
    """The standard probes of all families on two ranks: on one node that is real, or on two that are simulated."""
    build_toolchain(ROOT, toolchain)
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        matrix = "matrix: [axes: {operation: bcast, algorithm: linear, ranks: 2, bytes: 8}]\n"
        text = f"platform: {name}\nfamilies: all\nmeasure: {MEASURE}\n{matrix}"
        make_project(place, {name: PLATFORMS[name]}, {"probes": text})
        plan = make_plan("probes", place)
        batch = next(batch for batch in plan.batches if batch.cases)
        with chdir(place):  # where a plan's platforms are looked for
            measure_batch(plan, batch, place / "raw" / batch.name, lambda text: None)
        samples, _ = collect_samples(plan, place / "raw", unfinished=True)  # the points are not measured
    print_probe_times(samples, "2 ranks of this machine" if name == "local" else "2 simulated nodes")


def print_probe_times(samples, where: str) -> None:
    cases = samples.groupby("id").agg(
        probe=("name", "first"),
        spent=("seconds", "sum"),
        each=("seconds", "mean"),
        count=("seconds", "size"),
        precise=("stop", lambda stops: (stops == "precision").all()),
    )
    cases["fixed"] = FIXED * cases["each"]
    by_probe = cases.groupby("probe")["spent"].sum()
    alone = 0.0
    print(f"\nprobes on {where}, time in samples")
    for name in list_family_names():
        needed = [entry for entry in find_family(name).probes if entry in by_probe]
        alone += by_probe[needed].sum()
        show(f"  {name}", f"{by_probe[needed].sum():7.3f} s  ({', '.join(needed)})")
    show("  all families, every probe once", f"{by_probe.sum():7.3f} s, {len(cases)} cases")
    show("  each family measuring for itself / every probe once", f"{alone / by_probe.sum():.1f} x")
    precise = cases[cases["precise"]]
    show("  cases whose interval became as narrow as asked", f"{len(precise)} of {len(cases)}")
    saved = precise["fixed"].sum() / precise["spent"].sum()
    show(f"  those with {FIXED} repetitions each / with the rule", f"{saved:.1f} x")
    show("  their median number of samples", f"{precise['count'].median():.0f}")


if __name__ == "__main__":
    campaign("local", "mpi")
    if find_tool("smpirun"):
        campaign("simulated", "smpi")
