"""Compare the numbers of this checkout with those of an earlier one, to the last digit: `make
golden`.

`python -m tests.golden record DIR` runs the experiments and keeps their results in DIR. `python -m
tests.golden compare DIR` fits, predicts, compares and reports the recorded samples again with this
checkout, repeats the recorded commands, and prints every output that differs. Samples are never
measured again: only the code can cause a difference.
"""

import difflib
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
COMMODEL = Path(sys.executable).with_name("commodel")
EXPERIMENTS = dict.fromkeys(
    ("sample", "demo", "families", "catalogue", "jobs"), "fast-ethernet-32"
) | {
    "kernels": "two-nodes",
    "networks": "trunks-72",
    "paper-cluster": "",
    "paper-lop": "",
    "paper-tan": "",
    "paper-taulop": "two-nodes",
}
TABLES = ("*.csv", "fitted/*/*.yaml", "validated/*/*", "predictions/*.csv")
TABLE = "examples/collectives.csv"
COMMANDS = Path(__file__).with_name("golden_commands.txt")
# What a run says of itself: when, where, by which commit, under which release.
OWN = re.compile(
    r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d\S*|\b(?=[0-9]*[a-f])[0-9a-f]{8,64}(?:\+\S*)?\b|n-[0-9]{8}\b"
    r"|commit \S+|/(?:tmp|work)/\S*"
    r"|\d+(?:\.\d+)? s of (?:one core|CPU)"
)


def read_workbook(path: Path) -> str:
    """Return every cell of a workbook as a line of its sheet, place and value."""
    import openpyxl

    book = openpyxl.load_workbook(path)
    cells = (
        cell
        for sheet in book
        for row in sheet.iter_rows()
        for cell in row
        if cell.value is not None
    )
    return "\n".join(f"{cell.parent.title}!{cell.coordinate}\t{cell.value}" for cell in cells)


def list_outputs(folder: Path) -> dict[str, str]:
    """Return the text of each output in a folder of results, reports and commands."""
    outputs = {}
    for name in EXPERIMENTS:
        results = folder / "results" / name
        for path in sorted(found for pattern in TABLES for found in results.glob(pattern)):
            outputs[str(path.relative_to(folder))] = path.read_text()
        for path in sorted((folder / "reports" / name).glob("*.xlsx")):
            outputs[str(path.relative_to(folder))] = read_workbook(path)
    outputs |= {
        str(path.relative_to(folder)): path.read_text()
        for path in sorted((folder / "commands").glob("*"))
    }
    outputs |= {
        path.name: path.read_text() for path in (*folder.glob("*.csv"), *folder.glob("*.yaml"))
    }
    return {name: OWN.sub("·", text) for name, text in outputs.items()}


def run(*arguments: str, cwd: Path) -> str:
    """Return the output of a commodel command, and its exit code if it fails."""
    environment = os.environ | {"COLUMNS": "120", "PYTHONPATH": str(ROOT / "workflow")}
    done = subprocess.run(
        [COMMODEL, *arguments], cwd=cwd, env=environment, capture_output=True, text=True
    )
    return done.stdout + (f"exit {done.returncode}\n{done.stderr}" if done.returncode else "")


def prepare_project(folder: Path) -> None:
    """Copy all inputs of the experiments into the folder."""
    shutil.rmtree(folder / "project", ignore_errors=True)
    printed = run("init", "project", cwd=folder)
    if "exit " in printed:
        raise SystemExit(f"golden: {printed}")
    for name in ("params", "examples"):
        shutil.copytree(ROOT / name, folder / name, dirs_exist_ok=True)
    for path in (folder / "project").iterdir():
        if path.is_dir():
            shutil.copytree(path, folder / path.name, dirs_exist_ok=True)
        else:
            shutil.copy(path, folder / path.name)
    shutil.rmtree(folder / "project")


def run_everything(folder: Path, names: list[str]) -> None:
    """Run the experiments, then the commands, in a folder; existing samples are not measured
    again."""
    prepare_project(folder)
    for name in names:
        only = ["--only", EXPERIMENTS[name]] if EXPERIMENTS[name] else []
        printed = run("run", name, *only, cwd=folder)
        if "exit " in printed:
            raise SystemExit(f"golden: {name}: {printed[-2000:]}")
        shutil.rmtree(folder / "reports" / name, ignore_errors=True)
        run(
            "report",
            "--in",
            f"results/{name}",
            "--out",
            f"reports/{name}",
            "--anonymous",
            cwd=folder,
        )
    (folder / "commands").mkdir(exist_ok=True)
    for number, line in enumerate(COMMANDS.read_text().splitlines()):
        if line and not line.startswith("#"):
            (folder / "commands" / f"{number:03}").write_text(
                line + "\n" + run(*shlex.split(line), cwd=folder)
            )


def compare(golden: Path, names: list[str]) -> int:
    """Return the number of outputs that differ from the golden ones, and print the first lines of
    each difference."""
    scratch = ROOT / "build" / "golden"
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir(parents=True)
    # commands read the results of all experiments
    shutil.copytree(golden / "results", scratch / "results")
    for name in names:
        for path in (
            found for pattern in TABLES for found in (scratch / "results" / name).glob(pattern)
        ):
            path.unlink()
    run_everything(scratch, names)
    now, then, different = list_outputs(scratch), list_outputs(golden), 0
    for name, text in then.items():
        if name.startswith(("results/", "reports/")) and name.split("/")[1] not in names:
            continue
        if name not in now or now[name] != text:
            different += 1
            lines = difflib.unified_diff(
                text.splitlines(), now.get(name, "").splitlines(), name, "now", n=0, lineterm=""
            )
            sys.stdout.write(
                "\n".join(line[:300] for line, _ in zip(lines, range(12), strict=False)) + "\n"
            )
    sys.stdout.write(f"golden: {different} of {len(then)} outputs differ\n")
    return different


if __name__ == "__main__":
    task, golden, names = (
        sys.argv[1],
        Path(sys.argv[2]).resolve(),
        sys.argv[3:] or list(EXPERIMENTS),
    )
    if task == "record":
        golden.mkdir(parents=True, exist_ok=True)
        run_everything(golden, names)
    elif not (golden / "results").is_dir():
        sys.exit(
            f"golden: found no recorded outputs in {golden}; record them before a change: make golden TASK=record"
        )
    else:
        sys.exit(min(compare(golden, names), 1))
