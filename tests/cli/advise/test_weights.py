"""What families weigh in the vote: their errors where something was measured, and the score of the vote."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from commodel.files.parameter_sets import read_parameters, write_parameters
from tests.cli.advise.asking import JOB
from tests.cli.running import read_rows, run


def test_weights_come_from_the_errors_measured(platform):
    said = run(f"advise {JOB} --platform {platform}")
    assert "evidence: results/study, platform made-up" in said.stderr
    assert (
        "loggp 90 % (off by a factor of 1.10 at 4 points), hockney 10 % (off by a factor of 1.33 at 4 points)"
        in said.stdout
    )
    assert "SIMULATED" in said.stdout


def test_families_that_were_not_probed_where_ranks_sit_have_no_say_unless_that_was_measured(platform, tmp_path):
    """Within a node, where nothing was measured, Hockney alone was probed."""
    for name, probed in (("loggp", ["beyond"]), ("hockney", ["node", "beyond"])):
        path = tmp_path / f"results/study/fitted/made-up/{name}.yaml"
        known = read_parameters(path)
        write_parameters(path, replace(known, settings={**known.settings, "probed": probed}))
    table = tmp_path / "results/study/comparison.csv"
    rows = pd.read_csv(table)
    rows.assign(nodes=rows["ranks"]).to_csv(table, index=False)
    job = f"--operation allreduce --ranks 4 --bytes 8 --platform {platform}"
    within = run(f"advise {job} --layout block:4").stdout
    assert "loggp has no say within one node: not probed: ranks in same node" in within
    assert "Weights: hockney 100 %" in within
    between = run(f"advise {job} --layout block:1").stdout
    assert "Weights: loggp 90 %" in between
    rows.assign(nodes=1).to_csv(table, index=False)
    assert "Weights: loggp 90 %" in run(f"advise {job} --layout block:4").stdout


def test_the_score_of_a_platform(platform):
    (row,) = read_rows(f"advise --platform {platform} --score")
    assert (row["jobs"], row["right"], row["regret_max"]) == (2, 1.0, 0.0)


def test_what_the_weights_come_from_is_said_where_it_is_another_operation(platform):
    said = run(f"advise --operation bcast --ranks 8 --bytes 8 --platform {platform}").stdout
    assert "too little of bcast was measured here: the weights come from allreduce" in said


def test_smaller_than_what_was_measured_is_beyond_it_too(platform):
    said = run(f"advise --operation allreduce --ranks 2 --bytes 8 --platform {platform}").stdout
    assert "EXTRAPOLATED by 1.0 doublings: measured were 4 to 8 ranks and 8 B" in said


def test_streams_that_were_measured_weigh_the_times_between_waves_alone(platform, tmp_path):
    """Of waves Hockney is right here, and LogGP, which is right about one, is not."""
    job = "--operation bcast --ranks 8 --bytes 1KiB"
    before = read_rows(f"advise {job} --platform {platform}")
    path = tmp_path / "results/study/comparison.csv"
    rows = pd.read_csv(path).assign(waves=1)
    right = (rows["family"] == "hockney").to_numpy()
    waves = rows.assign(waves=50, mu=np.where(right, 1.01, 3.0), point=rows["point"] + " 50", group="stream")
    waves = waves.assign(predicted=waves["measured"] * waves["mu"])
    pd.concat([rows, waves]).to_csv(path, index=False)
    after = read_rows(f"advise {job} --platform {platform}")
    assert [row["seconds"] for row in after] == [row["seconds"] for row in before]
    command = "predict --family hockney --params results/study/fitted/made-up/hockney.yaml --pipelined"
    (by_hockney,) = read_rows(f"{command} {job} --algorithm linear")
    now, then = ({row["choice"]: row["period"] for row in rows}["linear"] for rows in (after, before))
    assert now == pytest.approx(by_hockney["seconds"], rel=0.01)
    assert then != pytest.approx(by_hockney["seconds"], rel=0.01)
    assert (
        "weights come from streams that were measured here: hockney 100 %"
        in run(f"advise {job} --platform {platform}").stdout
    )


def test_times_between_waves_are_by_those_who_do_not_doubt_them(platform, tmp_path):
    """LogGP was seen not to know what messages in a row take."""
    pattern = "--operation reduce --ranks 4 --bytes 1KiB"
    job = f"{pattern} --platform {platform}"
    (before, *_) = read_rows(f"advise {job}")
    path = tmp_path / "results/study/fitted/made-up"
    crowded = {"crowded": {"row": {"from": 0.0, "times": 8.0}}}
    for name, end in (("loggp", "those times are by others"), ("hockney", "nobody knows better")):
        known = read_parameters(path / f"{name}.yaml")
        write_parameters(path / f"{name}.yaml", replace(known, settings={**known.settings, **crowded}))
        output = run(f"advise {job}").stdout
        assert (
            ": blind to contention: messages in a row to one receiver took up to 8.0 times as long as priced; "
            in output
        )
        assert end in output
        if name == "loggp":
            (row, *_) = read_rows(f"advise {job}")
            assert row["seconds"] == before["seconds"]
            command = f"predict --params {path}/hockney.yaml --pipelined {pattern}"
            (price,) = read_rows(command, "--algorithm", row["choice"])
            assert row["period"] == pytest.approx(price["seconds"]) != before["period"]
