"""Overhead of a large campaign: `make bench-campaign`. An argument replaces the approximate number
of points.

20,000 simulated points in 40 batches, and 8 batches of probes, go from plan to report with one job
at a time. The overhead of Snakemake is the time in which no stage runs. The memory of a driver is
that of its own process.
"""

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.measuring import make_project, print_figure, time_task
from commodel.plan.planning import load_plan
from commodel.platforms.build import build_toolchain
from commodel.platforms.tools import ROOT
from commodel.results.campaign import Campaign
from commodel.results.progress import StatusReader

PLATFORMS, RANKS, ALGORITHMS = 8, (2, 4, 8, 16, 32), ("linear", "binomial", "binary", "chain:1KiB")
SETTINGS = "{precision: 10%, min_samples: 3, max_samples: 3, seconds: 1, warmup: 0}"
# Runs a stage as `python -m` does, and notes when it ran and how much memory its process took at
# most.
STAGE = """#!{python}
import atexit, json, os, re, runpy, sys, time
began = time.time()
def note():  # the peak of getrusage counts what Snakemake took before it started this process
    peak = int(re.search("VmHWM: *(.*) kB", open("/proc/self/status").read().replace("\\t", " "))[1])
    line = json.dumps([sys.argv[1], began, time.time(), peak]) + "\\n"
    os.write(os.open({log!r}, os.O_WRONLY | os.O_APPEND | os.O_CREAT), line.encode())
atexit.register(note)
module, sys.argv = sys.argv[2], sys.argv[2:]
runpy.run_module(module, run_name="__main__", alter_sys=True)
"""
SNAKEMAKE = (
    "import sys; sys.executable = {stage!r}; from snakemake.cli import main; "
    "sys.exit(main(sys.argv[1:]))"
)


def write_project(place: Path, points: int) -> None:
    sizes = max(points // (PLATFORMS * len(RANKS) * len(ALGORITHMS)), 1)
    source, platforms, blocks = (ROOT / "tests/workflow/loggp-64.yaml").read_text(), {}, []
    for number in range(1, PLATFORMS + 1):
        title = f"the same for the {number}. time"
        platforms[f"p{number}"] = source.replace("title: ", f"title: {title}, ")
        axes = f"operation: bcast, algorithm: {list(ALGORITHMS)}, ranks: {list(RANKS)}"
        span = f"{{from: 1, to: {16 * sizes - 15}, step: 16}}"
        blocks.append(f"  - {{platform: p{number}, axes: {{{axes}, bytes: {span}}}}}\n")
    head = (
        "platform: p1\nmodels: [hockney]\nlibrary: false\nprobe_bytes: [1, 1024, 16384]\n"
        f"measure: {SETTINGS}\n"
    )
    make_project(place, platforms, {"large": f"{head}matrix:\n{''.join(blocks)}"})


def run_campaign(place: Path) -> tuple[float, list[tuple[str, float, float, int]]]:
    """Return the seconds of the campaign, and for each stage its verb, begin, end and peak memory
    in KiB."""
    stage, log = place / "stage", place / "stages"
    stage.write_text(STAGE.format(python=sys.executable, log=str(log)))
    stage.chmod(0o755)
    command = [
        sys.executable,
        "-c",
        SNAKEMAKE.format(stage=str(stage)),
        "--snakefile",
        str(ROOT / "Snakefile"),
    ]
    command += [
        "--workflow-profile",
        str(ROOT / "profiles/default"),
        "--quiet",
        "all",
        "--cores",
        "1",
    ]
    command += ["--config", "experiment=large", "quiet=true"]
    spent, _ = time_task(lambda: subprocess.run(command, cwd=place, check=True))
    return spent, [json.loads(line) for line in log.read_text().splitlines()]


def main(points: int) -> None:
    build_toolchain(ROOT, "smpi")
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        write_project(place, points)
        spent, stages = run_campaign(place)
        results = place / "results/large"
        plan = load_plan(results / "plan.json")
        reader = StatusReader(Campaign(plan, results))
        # The second reading takes as long as any later one.
        readings = [
            time_task(lambda: reader.read("", time.time()), time.process_time)[0] for _ in range(2)
        ]
    stage_seconds = sum(end - began for _, began, end, _ in stages)
    peaks = [peak for verb, _, _, peak in stages if verb == "measure"]
    print_figure(
        "points, batches, stages", f"{len(plan.points):,}, {len(plan.batches)}, {len(stages)}"
    )
    print_figure("whole campaign", f"{spent:.0f} s")
    for verb in dict.fromkeys(verb for verb, *_ in stages):
        seconds = sum(end - began for name, began, end, _ in stages if name == verb)
        peak = max(peak for name, *_, peak in stages if name == verb) / 1024
        print_figure(
            f"  {verb}", f"{seconds:.0f} s, {seconds / spent:.1%} of all; at most {peak:.0f} MiB"
        )
    print_figure(
        "  Snakemake itself",
        f"{spent - stage_seconds:.1f} s, {(spent - stage_seconds) / spent:.1%} of all",
    )
    print_figure("memory of the last driver / of the first", f"{peaks[-1] / peaks[0]:.3f}")
    print_figure("memory of the largest driver / of the smallest", f"{max(peaks) / min(peaks):.3f}")
    print_figure(
        "processor time of reading the status, every 2 s",
        f"{readings[-1]:.3f} s, the first time {readings[0]:.2f} s",
    )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 20_000)
