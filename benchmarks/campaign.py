"""Time of a campaign of probes by model, and the time that its stopping rule saves: `make bench`.

The rule is compared with a thousand repetitions of each case. Only cases count whose confidence
interval of the median reached the wanted precision.
"""

import tempfile
from contextlib import chdir
from pathlib import Path

from benchmarks.measuring import make_project, print_figure
from commodel.measure.batch import measure_batch
from commodel.models.families import find_family, list_family_names
from commodel.plan.planning import make_plan
from commodel.platforms.build import build_toolchain
from commodel.platforms.tools import ROOT, find_tool
from commodel.results.collection import collect_samples

FIXED_SAMPLES = 1000
MEASURE = "{precision: 5%, min_samples: 10, max_samples: 1000, seconds: 0.6, passes: 3, warmup: 2}"
PLATFORMS = {
    "local": "launcher: local\nnodes: 1\ncores: 2\n",
    "simulated": "launcher: simgrid\nnodes: 2\ncores: 1\nsimgrid: {file: loggp-64.xml}\n",
}


def measure_probes(name: str, toolchain: str) -> None:
    """Run the standard probes of all models on two ranks: on one real node, or on two simulated
    ones."""
    build_toolchain(ROOT, toolchain)
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        matrix = "matrix: [axes: {operation: bcast, algorithm: linear, ranks: 2, bytes: 8}]\n"
        text = f"platform: {name}\nmodels: all\nmeasure: {MEASURE}\n{matrix}"
        make_project(place, {name: PLATFORMS[name]}, {"probes": text})
        plan = make_plan("probes", place)
        batch = next(batch for batch in plan.batches if batch.cases)
        with chdir(place):  # where a plan's platforms are looked for
            measure_batch(plan, batch, place / "raw" / batch.name, lambda text: None)
        # the points are not measured
        samples, _ = collect_samples(plan, place / "raw", unfinished=True)
    print_probe_times(
        samples, "2 ranks of this machine" if name == "local" else "2 simulated nodes"
    )


def print_probe_times(samples, where: str) -> None:
    cases = samples.groupby("id").agg(
        probe=("name", "first"),
        spent=("seconds", "sum"),
        each=("seconds", "mean"),
        count=("seconds", "size"),
        precise=("stop", lambda stops: stops.isin(["precision", "equal samples"]).all()),
    )
    cases["fixed"] = FIXED_SAMPLES * cases["each"]
    by_probe = cases.groupby("probe")["spent"].sum()
    separate_seconds = 0.0
    print(f"\nprobes on {where}, time in samples")
    for name in list_family_names():
        needed = [entry for entry in find_family(name).probes if entry in by_probe]
        separate_seconds += by_probe[needed].sum()
        print_figure(f"  {name}", f"{by_probe[needed].sum():7.3f} s  ({', '.join(needed)})")
    print_figure("  all models, every probe once", f"{by_probe.sum():7.3f} s, {len(cases)} cases")
    print_figure(
        "  each model measuring for itself / every probe once",
        f"{separate_seconds / by_probe.sum():.1f} x",
    )
    precise = cases[cases["precise"]]
    print_figure("  cases that reached the wanted precision", f"{len(precise)} of {len(cases)}")
    saved = precise["fixed"].sum() / precise["spent"].sum()
    print_figure(f"  those with {FIXED_SAMPLES} repetitions each / with the rule", f"{saved:.1f} x")
    print_figure("  their median number of samples", f"{precise['count'].median():.0f}")


if __name__ == "__main__":
    measure_probes("local", "mpi")
    if find_tool("smpirun"):
        measure_probes("simulated", "smpi")
