"""A project whose results folder has the files of every stage. The samples are invented; all other
files are written by the verbs."""

import hashlib
import shutil
from contextlib import chdir
from pathlib import Path

from click.testing import CliRunner, Result

from commodel.cli import main
from commodel.files.atomic import write_json
from commodel.plan.planning import load_plan
from commodel.results import raw_samples

PLATFORM = "launcher: local\nnodes: 1\ncores: 2\n"
EXPERIMENT = """
platform: two-cores
models: [hockney]
library: false
measure: {passes: 2}
probe_bytes: [1, 1KiB, 64KiB]
matrix:
  - axes: {operation: bcast, algorithm: linear, ranks: 2, bytes: [8, 1KiB]}
  - axes: {operation: "file:halo.csv", layout: "file:ranks.txt"}
  - axes: {operation: reduce, topology: "file:tree.csv", bytes: 8}
"""
NAMED = {  # files that the experiment names
    "halo.csv": "step,kind,rank,peer,bytes\n0,send,0,1,65536\n0,send,1,0,65536\n",
    "ranks.txt": "0\n0\n",
    "tree.csv": "node,parent\n0,\n1,0\n",
}
OTHERS = {  # other files of the same names
    "halo.csv": "step,kind,rank,peer,bytes\n0,send,0,1,1\n1,send,1,0,1\n2,send,0,1,1\n",
    "ranks.txt": "1\n0\n",
    "tree.csv": "node,parent\n0,\n1,0\n2,0\n",
}
PROGRAM = {
    "mpi": "MPICH 5.0.2",
    "compiler": "mpicc (gcc 12)",
    "flags": "-O2",
    "clock": "CLOCK_MONOTONIC",
    "hosts": [],
}
FOLDER = "results/e"
VERBS = {
    "plan": ["plan", "e", "--write"],
    "run": ["run", "e", "--dry-run"],
    "measure": [
        "measure",
        "--in",
        f"{FOLDER}/plan.json",
        "--batch",
        "BATCH",
        "--out",
        f"{FOLDER}/raw/BATCH",
    ],
    "collect": ["collect", "--in", f"{FOLDER}/plan.json", "--out", f"{FOLDER}/observations.csv"],
    "fit": [
        *(
            "fit",
            "probes",
            f"{FOLDER}/plan.json",
            "--in",
            f"{FOLDER}/observations.csv",
            "--model",
            "hockney",
        ),
        *("--platform", "two-cores", "--out", f"{FOLDER}/fitted/two-cores/hockney.yaml"),
    ],
    "predict": [
        *("predict", "plan", f"{FOLDER}/plan.json", "--model", "hockney"),
        *(
            "--params",
            f"{FOLDER}/fitted/two-cores/hockney.yaml",
            "--out",
            f"{FOLDER}/predictions/hockney.csv",
        ),
    ],
    "compare": ["compare", "--in", FOLDER, "--out", f"{FOLDER}/comparison.csv"],
    "report": ["report", "--in", FOLDER, "--out", "reports/e"],
    "anonymous": ["report", "--in", FOLDER, "--out", "reports/e", "--anonymous"],
    "status": ["status", "e"],
    "advise": [
        *(
            "advise",
            "--platform",
            "two-cores",
            "--operation",
            "bcast",
            "--ranks",
            "2",
            "--bytes",
            "8",
        )
    ],
}


class Received:
    def __init__(self, root: Path, batch: str = ""):
        self.root, self.results, self.batch = root, root / FOLDER, batch

    def copy(self, root: Path) -> "Received":
        return Received(shutil.copytree(self.root, root), self.batch)

    def invoke(self, verb: str) -> Result:
        return self.run(*(word.replace("BATCH", self.batch) for word in VERBS[verb]))

    def run(self, *words: str) -> Result:
        with chdir(self.root):
            done = CliRunner().invoke(main, words)
        if done.exception and not isinstance(done.exception, SystemExit):
            raise done.exception
        return done

    def files(self) -> dict[str, bytes]:
        """Return the content of all files, without those about attempts."""
        places = [path for top in ("results", "reports") for path in (self.root / top).rglob("*")]
        kept = [
            path
            for path in places
            if path.name not in ("state.json", ".holder") and not path.is_symlink()
        ]
        return {
            str(path.relative_to(self.root)): path.read_bytes() for path in kept if path.is_file()
        }


def make_received(root: Path, reported: bool = True) -> Received:
    made = Received(root)
    for kind, name, text in (
        ("platforms", "two-cores", PLATFORM),
        ("experiments", "e", EXPERIMENT),
    ):
        (root / "params" / kind).mkdir(parents=True)
        (root / "params" / kind / f"{name}.yaml").write_text(text)
    for name, text in NAMED.items():
        (root / name).write_text(text)
    (made.results / "raw").mkdir(parents=True)
    with chdir(root):
        assert CliRunner().invoke(main, VERBS["plan"]).exit_code == 0
    batches = load_plan(made.results / "plan.json").batches
    made.batch = batches[0].name
    for batch in batches:
        write_raw(made.results / "raw" / batch.name, batch.ids)
    for verb in (
        "measure",
        "collect",
        "fit",
        "predict",
        "compare",
        *(["report"] if reported else []),
    ):
        done = made.invoke(verb)
        assert done.exit_code == 0, done.output + repr(done.exception)
    (made.results / "run.log").write_text("a log\n")
    return made


def copy_of(name: str) -> str:
    """Return the path of the copy of a named file, below the results folder."""
    return f"inputs/files/{hashlib.sha256(NAMED[name].encode()).hexdigest()[:12]}-{name}"


def write_raw(raw: Path, cases: list[str]) -> None:
    """Write the files of a measured batch."""
    raw.mkdir()
    for number, case in enumerate(cases):
        passes = {turn: raw / f".pass-{turn}.csv" for turn in (1, 2)}
        for turn, path in passes.items():
            rows = [
                f"{case},{k},{1e-6 * (number + 1 + 0.1 * k * turn):.9e},1e-9,1,samples"
                for k in range(5)
            ]
            path.write_text("\n".join([raw_samples.HEADERS[0], *rows]) + "\n")
        raw_samples.join_passes(passes, raw, case)
        for path in passes.values():
            path.unlink()
    write_json(raw / "player-2r-block2.json", PROGRAM)
    (raw / "done").write_text("1\n")
