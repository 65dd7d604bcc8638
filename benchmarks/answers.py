"""Processor time from the last measurement to the answers, as multiples of a fixed piece of work:
`make bench`.

Shared machines run at different speeds from one minute to the next. Each figure is therefore
divided by the time of the same loop, measured before and after it.
"""

import argparse
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.measuring import print_figure
from commodel.files.results_folder import Results
from commodel.plan.planning import load_plan
from commodel.platforms.tools import ROOT

LOOP_ROUNDS = 12_000_000  # about a second of processor time
DEFAULT_EXPERIMENT = "families"  # 179 simulated points, 19 models


def time_loop() -> float:
    """Return the processor seconds of the fixed piece of work."""
    start, total = time.process_time(), 0
    for number in range(LOOP_ROUNDS):
        total += number * number % 7
    return time.process_time() - start


def time_command(command: list[str], folder: Path) -> float:
    """Return the processor seconds of a command and its children."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(command)}: {done.stderr}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def print_ratio(title: str, command: list[str], folder: Path) -> None:
    loop = time_loop()
    seconds = time_command(command, folder)
    loop = (loop + time_loop()) / 2
    print_figure(
        f"  {title}", f"{seconds / loop:6.2f} x the loop  ({seconds:.2f} s, loop {loop:.2f} s)"
    )


def list_stages(results: Results, experiment: str) -> dict[str, list[str]]:
    """Return the commands of the stages after the last measurement, as the workflow calls them."""
    plan = load_plan(results.plan)
    folder = f"results/{experiment}"
    models = [word for family in plan.models for word in ("--model", family)]
    sets = [
        f"{folder}/fitted/{name}/{family}.yaml" for family in plan.models for name in plan.platforms
    ]
    params = [word for path in sets for word in ("--params", path)]
    fits = {
        f"fit, {platform}": [
            *("fit", "probes", f"{folder}/plan.json", *models),
            *("--platform", platform, "--out", f"{folder}/fitted/{platform}"),
        ]
        for platform in plan.platforms
    }
    workload = [
        "--operation",
        "bcast",
        "--algorithm",
        "binomial",
        "--ranks",
        "16",
        "--bytes",
        "1KiB",
    ]
    return {
        "collect": ["collect", "--in", folder],
        **fits,
        "predict the matrix": [
            "predict",
            "plan",
            f"{folder}/plan.json",
            *params,
            "--out",
            f"{folder}/predictions",
        ],
        "compare": ["compare", "--in", folder, "--sets"],
        "report": ["report", "--in", folder],
        "predict one workload": ["predict", "--params", sets[0], *workload],
        "commodel --help": ["--help"],
    }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("experiment", nargs="?", default=DEFAULT_EXPERIMENT)
    experiment = parser.parse_args().experiment
    commodel = [sys.executable, "-m", "commodel"]
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place, "project")
        time_command([*commodel, "init", str(folder)], Path(place))
        shutil.copy(
            ROOT / "params" / "experiments" / f"{experiment}.yaml",
            folder / "params" / "experiments",
        )
        print(f"\n{experiment}: processor time")
        print_ratio("the whole run", [*commodel, "run", experiment], folder)
        results = Results.of(folder / "results" / experiment)
        # so that all models are done again
        for record in results.folder.root.rglob(".inputs.json"):
            record.unlink()
        for title, arguments in list_stages(results, experiment).items():
            print_ratio(title, [*commodel, *arguments], folder)
        print_ratio("import commodel", [sys.executable, "-c", "import commodel"], folder)


if __name__ == "__main__":
    main()
