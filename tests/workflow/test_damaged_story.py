"""A state.json that something damaged: drivers measure on, and tell that the story before them is lost."""

import json

from commodel.results.attempts import DAMAGED
from tests.results.damages import DAMAGES

KINDS = ("truncated", "a list", "no attempts", "a missing key", "a text for a number", "not UTF-8")


def test_no_damage_stops_a_driver(project):
    project.commodel("plan", "small", "--write")
    plan = json.loads((project.folder / "results/small/plan.json").read_text())
    batch = next(batch for batch in plan["batches"] if batch["points"] and batch["nodes"] == 16)
    out = f"results/small/raw/{batch['name']}"
    measure = ["measure", "--in", "results/small/plan.json", "--batch", batch["name"], "--out", out, "--quiet"]
    project.commodel(*measure)
    state = project.folder / out / "state.json"
    (first,) = json.loads(state.read_text())["attempts"]
    assert len(first["commit"].removesuffix("-dirty")) == 40
    assert first["nodes"] == []  # simulated ones belong to nobody
    victim = sorted(project.raw_files())[0]
    for damage in KINDS:
        state.write_bytes(DAMAGES[damage])
        (project.folder / out / victim).unlink()
        status = project.commodel("status", "small").stdout
        assert "5 of 39 measured, 34 left" in status
        assert DAMAGED in status
        project.commodel(*measure)
        assert len(project.raw_files()) == 6
        lost, own = json.loads(state.read_text())["attempts"]
        assert (lost["outcome"], own["outcome"]) == (DAMAGED, "done")
    project.commodel(*measure)  # nothing is missing
    assert len(json.loads(state.read_text())["attempts"]) == 2
