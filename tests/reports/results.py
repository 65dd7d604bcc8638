"""A folder of results as the stages leave it, written from the made-up study: what `commodel report` reads."""

from dataclasses import replace
from pathlib import Path

from tests.planning import planned

from commodel.files.atomic import write_json
from commodel.files.parameter_sets import write_parameters
from commodel.files.tables import write_table
from commodel.records import Batch, Point

FAMILIES = ("loggp", "hockney")
INPUTS = {
    "experiments/trees.yaml": "title: =1+1  # <script>\nplatform: ether16\n",
    "platforms/ether16.yaml": "launcher: hosts\nnodes: 2\ncores: 2\nhosts: {names: [n001, n002, n009]}\n",
    "platforms/fattree.yaml": "launcher: simgrid\n",
}
BOTH = {"pid": 7, "started": 1790939000, "updated": 1790942441}
ATTEMPTS = [
    BOTH | {"host": "n001", "job": "41", "ended": None, "outcome": "", "commit": "4f2a91c", "nodes": ["n001", "n002"]},
    BOTH
    | {"host": "login1", "job": "42", "ended": 1790942441, "outcome": "error: rank 1 should be on n002, but is on n017"}
    | {"nodes": ["spare-b", "spare-a", "n002"], "commit": "5e11d07-dirty"},
]
PROGRAM = {
    "mpi": "MPICH 5.0.2",
    "compiler": "/home/someone/bin/mpicc (gcc 12.2.0)",
    "flags": "-O2",
    "clock": "MPI_Wtime",
    "clock_resolution": 1e-9,
    "clock_uncertainty": 1e-7,
    "hosts": ["n001", "n002"],
}


def write_results(folder: Path, inputs: dict) -> Path:
    sets = [fitted for fitted in inputs["parameter_sets"] if fitted.family in FAMILIES]
    comparison = inputs["comparison"]  # few points: a test builds many reports of them
    few = comparison["bytes"].isin([256, 1024]) & (comparison["ranks"] < 64) & comparison["family"].isin(FAMILIES)
    comparison = comparison[few]
    raw = inputs["raw"][inputs["raw"]["id"].isin(comparison["point"]) | (inputs["raw"]["kind"] == "probe")]
    batches = tuple(
        Batch(f"{name}-1n-0", name, 1, points=(Point(name, "bcast", "linear", "", "block:1", 2, 8),))
        for name in ("ether16", "fattree")
    )
    plan = planned(*batches, families=FAMILIES, simulated=("fattree",))
    plan = replace(plan, experiment="trees", title=inputs["title"])
    write_json(folder / "plan.json", plan.as_json())
    write_table(folder / "comparison.csv", comparison)
    write_table(
        folder / "summary.csv", raw.assign(simulated=raw["platform"] == "fattree", low=raw["min"], high=raw["max"])
    )
    write_table(folder / "distributions.csv", inputs["distributions"])
    for fitted in sets:
        write_parameters(
            folder / "fitted" / fitted.platform / f"{fitted.family}.yaml", replace(fitted, draws={}, curves=())
        )
    for batch, about in zip(batches, (inputs["provenance"][name] for name in ("ether16-0", "fattree-0")), strict=True):
        raw = folder / "raw" / batch.name
        machine = {"machine": "login1", "simulated": batch.platform == "fattree", "measure": {"passes": 3}}
        write_json(raw / "provenance.json", about | machine)
        write_json(raw / "player-2r-block1.json", PROGRAM if batch.platform == "ether16" else PROGRAM | {"hosts": []})
        write_json(raw / "state.json", {"attempts": ATTEMPTS})
        (raw / "0123456789ab.csv").write_text("id,pass\n")
    for name, text in INPUTS.items():
        (folder / "inputs" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / "inputs" / name).write_text(text)
    return folder
