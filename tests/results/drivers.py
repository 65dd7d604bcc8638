"""Write the files that drivers leave, without running a driver."""

import os
import platform
import time
from pathlib import Path

from commodel.files.atomic import write_json
from commodel.plan.planning import make_plan
from commodel.results.campaign import Campaign
from commodel.results.progress import StatusReader

HERE = Path(__file__).parents[1] / "workflow"
EXPERIMENT = """
platform: loggp-64
models: [hockney]
probes: [pingpong, work]
probe_bytes: [1, 64]
matrix: [axes: {operation: bcast, algorithm: [linear, binomial], ranks: [8, 16], bytes: [1, 2, 3, 4, 5]}]
"""


def make_campaign(folder: Path, experiment: str) -> Campaign:
    for name in ("experiments", "platforms"):
        (folder / "params" / name).mkdir(parents=True)
    for path in HERE.glob("loggp-64.*"):
        (folder / "params/platforms" / path.name).write_text(path.read_text())
    (folder / "params/platforms/real.yaml").write_text("launcher: local\nnodes: 1\ncores: 16\n")
    (folder / "params/experiments/e.yaml").write_text(experiment)
    return Campaign(make_plan("e", folder), folder / "results/e")


def attempt(began: float, **settings) -> dict:
    common = {"host": platform.node(), "pid": os.getpid(), "job": "", "deadline": None}
    return (
        common | {"started": began, "updated": time.time(), "ended": None, "outcome": ""} | settings
    )


def leave(campaign, index: int, attempts=(), samples=0, done=False, turn=1, in_passes=()):
    """Write the files of an interrupted driver: raw files of the first cases of a batch, and files
    of passes over the next cases."""
    batch = campaign.plan.batches[index]
    folder = campaign.folder / "raw" / batch.name
    folder.mkdir(parents=True)
    for case in batch.ids[:samples]:
        (folder / f"{case}.csv").write_text("")
    for number, count in enumerate(in_passes, 1):
        (folder / f".pass-{number}").mkdir()
        for case in batch.ids[samples : samples + count]:
            (folder / f".pass-{number}" / f"{case}.csv").write_text("")
    if attempts:
        write_json(folder / "state.json", {"attempts": attempts, "pass": turn})
    if done:
        campaign.done_file(batch).touch()
    return folder


def read(campaign, now: float | None = None):
    return StatusReader(campaign).read("", time.time() if now is None else now)
