"""A state.json that something damaged: drivers measure on, and tell that the story before them is lost."""

import json

from commodel.results.attempts import DAMAGED
from tests.results.damages import DAMAGES

KINDS = ("truncated", "a list", "no attempts", "a missing key", "a text for a number", "not UTF-8")


def test_no_damage_stops_a_driver(project):
    project.verb("plan", "small", "--write")
    plan = json.loads((project.folder / "results/small/plan.json").read_text())
    batch = next(batch for batch in plan["batches"] if batch["points"] and batch["nodes"] == 16)
    project.measure("small", batch["name"])
    raw = project.folder / "results/small/raw" / batch["name"]
    state = raw / "state.json"
    (first,) = json.loads(state.read_text())["attempts"]
    assert len(first["commit"].removesuffix("-dirty")) == 40
    assert first["nodes"] == []  # simulated ones belong to nobody
    victim = sorted(project.raw_files())[0]
    for damage in KINDS:
        state.write_bytes(DAMAGES[damage])
        (raw / victim).unlink()
        status = project.verb("status", "small")
        assert "5 of 35 measured, 30 left" in status
        assert DAMAGED in status
        project.measure("small", batch["name"])
        assert len(project.raw_files()) == 6
        lost, own = json.loads(state.read_text())["attempts"]
        assert (lost["outcome"], own["outcome"]) == (DAMAGED, "done")
    project.measure("small", batch["name"])  # nothing is missing
    assert len(json.loads(state.read_text())["attempts"]) == 2
