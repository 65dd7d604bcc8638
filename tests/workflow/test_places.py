"""Layouts are measured where they say: the programs check each rank's host against the plan before a sample counts."""

import csv
import json

LAYOUTS = {
    "block-cyclic:2x1": "block-cyclic:2x1",
    "random:2@5": "random:2@5",
    "kinds:fat=1core+1accelerator,thin=1core": "kinds:1core+1accelerator@4,1core@4",
    "file:ranks.txt": "file:ranks.txt@7,0,3,1",
}
PLACES = """title: layouts
platform: two-types
families: [hockney]
library: false
measure: {precision: 5%, min_samples: 6, max_samples: 6, seconds: 1, warmup: 1}
probe_bytes: [1, 1024]
matrix:
  - axes: {operation: bcast, algorithm: linear, ranks: 8, bytes: 8}
    zips: {layout: {layout: LAYOUTS}}
  - axes: {operation: bcast, topology: ["optimal:5us,1us,2us@8", "k:3@8"], bytes: 8, layout: "random:1@1"}
"""


def test_any_layout_is_measured_and_priced(project):
    hosts = [7, 0, 3, 7, 1, 1, 3, 0]
    (project.folder / "ranks.txt").write_text("".join(f"rank {r}=node-{n} slot=0\n" for r, n in enumerate(hosts)))
    project.experiment("places", PLACES.replace("LAYOUTS", str(list(LAYOUTS))))
    results = project.compare("places")
    plan = json.loads((results / "plan.json").read_text())
    points = {point["layout"]: point for batch in plan["batches"] for point in batch["points"]}
    assert set(points) == {*LAYOUTS.values(), "random:1@1"}
    assert points["file:ranks.txt@7,0,3,1"]["nodes"] == 8
    assert points["kinds:1core+1accelerator@4,1core@4"]["nodes"] == 4
    with (results / "comparison.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    assert {row["topology"] for row in rows} == {"", "optimal:5us,1us,2us@8", "knomial:3@8"}
    assert all(float(row["measured"]) > 0 and float(row["predicted"]) > 0 for row in rows)
    assert len(rows) == 6
