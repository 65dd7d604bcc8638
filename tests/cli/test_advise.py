"""Advice through the command a user would type: what the options give, files that agree, and refusals in one line."""

import csv
import io
import json
from dataclasses import replace
from functools import partial

import numpy as np
import openpyxl
import pandas as pd
import pytest
from click.testing import CliRunner

from commodel.cli import main
from commodel.files.atomic import write_text
from commodel.files.sets import write_parameters
from commodel.interchange.rules import has
from commodel.models.byhand import given
from commodel.platforms.tools import ROOT
from tests.cli import running

LOGGP = ("L=20us", "o_s=5us", "o_r=5us", "g=10us", "G=80ns", "gamma=1ns")
PLATFORM = "title: eight nodes\nlauncher: slurm\nnodes: 8\ncores: 4\n"


run = partial(running.run, "advise")


@pytest.fixture
def params(tmp_path):
    path = tmp_path / "loggp.yaml"
    write_parameters(path, given("loggp", LOGGP))
    return path


@pytest.fixture
def platform(tmp_path, monkeypatch):
    """A folder where an experiment has fitted two families on a simulated platform, and compared them: Hockney is off
    by three times as much."""
    monkeypatch.chdir(tmp_path)
    write_text(tmp_path / "params/platforms/made-up.yaml", PLATFORM)
    fitted = tmp_path / "results/study/fitted/made-up"
    for name, values in (("loggp", LOGGP), ("hockney", ("alpha=30us", "beta=80ns", "gamma=1ns"))):
        write_parameters(fitted / f"{name}.yaml", replace(given(name, values), platform="made-up", simulated=True))
    rows = []
    for ranks in (4, 8):
        for choice, measured in (("ring", 2e-4), ("recursive-doubling", 1e-4)):
            for family, off in (("loggp", 1.1), ("hockney", 1.331)):
                rows.append(
                    {"point": f"{ranks} {choice}", "platform": "made-up", "operation": "allreduce", "algorithm": choice}
                    | {"choice": choice, "layout": "block:1", "ranks": ranks, "leaves": 0, "bytes": 8}
                    | {"group": f"{ranks}"}
                    | {"measured": measured, "measured_low": measured, "measured_high": measured, "family": family}
                    | {"predicted": measured * off, "mu": off, "status": "ok", "held_out": True, "simulated": True}
                )
    pd.DataFrame(rows).to_csv(tmp_path / "results/study/comparison.csv", index=False)
    return "made-up"


JOB = ("--operation", "allreduce", "--ranks", "8", "--bytes", "1KiB")
JOBS = ("--operation", "allreduce", "--ranks", "2:8:*2", "--bytes", "8,64KiB")


def test_a_ranking_of_all_algorithms(params):
    rows = json.loads(run(*JOB, "--params", params, "--format", "json").stdout)
    assert [row["seconds"] for row in rows] == sorted(row["seconds"] for row in rows)
    assert {"ring", "recursive-doubling", "rabenseifner", "reduce-bcast"} <= {row["choice"] for row in rows}
    text = run(*JOB, "--params", params).stdout
    assert f"allreduce over 8 ranks, 1 KiB: use {rows[0]['choice']}" in text
    assert "nothing measured here says how far off" in text


def test_weights_come_from_the_errors_measured(platform):
    said = run(*JOB, "--platform", platform)
    assert "evidence: results/study, platform made-up" in said.stderr
    assert (
        "loggp 90 % (off by a factor of 1.10 at 4 points), hockney 10 % (off by a factor of 1.33 at 4 points)"
        in said.stdout
    )
    assert "SIMULATED" in said.stdout


def test_only_and_layout(params):
    asked = ("--only", "ring", "--only", "rabenseifner", "--layout", "block:2", "--format", "json")
    rows = json.loads(run(*JOB, "--params", params, *asked).stdout)
    assert {(row["choice"], row["layout"]) for row in rows} == {("ring", "block:2"), ("rabenseifner", "block:2")}


def test_several_jobs_are_a_table(platform):
    text = run(*JOBS, "--platform", platform).stdout
    assert "Note: SIMULATED: the parameters were fitted to a simulated platform." in text
    assert "Note: 4 of 6 jobs, such as allreduce over 2 ranks, 8 B: EXTRAPOLATED" in text
    assert len(list(csv.DictReader(io.StringIO(run(*JOBS, "--platform", platform, "--format", "csv").stdout)))) == 6


def test_rules_are_the_same_through_a_table(platform, tmp_path):
    run(*JOBS, "--platform", platform, "--out", "rules.conf")
    run(*JOBS, "--platform", platform, "--open-mpi", "--out", "table.csv")
    result = CliRunner().invoke(main, ["export", "rules", "table.csv", "-o", "again.conf"])
    assert result.exit_code == 0, result.output
    text = (tmp_path / "rules.conf").read_text()
    assert text == (tmp_path / "again.conf").read_text()
    assert text.startswith("1 # collectives, advice for made-up (simulated)\n2 # allreduce\n")
    assert "none in Open MPI" not in text


def test_rules_hold_only_what_open_mpi_has(params, tmp_path):
    """Of a gather Open MPI has no windows, which are cheaper here than nothing of its own."""
    asked = ("--operation", "gather", "--ranks", "4,8", "--bytes", "8", "--params", params)
    run(*asked, "--open-mpi", "--out", tmp_path / "some.csv")
    run(*asked, "--layout", "block", "--out", tmp_path / "all.csv")
    some, every = (pd.read_csv(tmp_path / name, keep_default_na=False) for name in ("some.csv", "all.csv"))
    named = [f"{row.algorithm}, {row.as_good}" for row in some.itertuples()]
    assert all(has("gather", spec) for text in named for spec in text.split(", ") if spec)
    assert any("windowed" in f"{row.algorithm}, {row.as_good}" for row in every.itertuples())


def test_a_workbook(platform, tmp_path):
    run(*JOBS, "--platform", platform, "--out", "table.xlsx")
    book = openpyxl.load_workbook(tmp_path / "table.xlsx")
    assert book.sheetnames == ["Decisions", "allreduce"]
    run(*JOBS, "--platform", platform, "--out", "table.csv")
    wanted = pd.read_csv(tmp_path / "table.csv")["algorithm"].tolist()
    (area,) = (area.ref for area in book["Decisions"].tables.values())
    head, *rows = ([cell.value for cell in cells] for cells in book["Decisions"][area])
    assert [row[head.index("use")] for row in rows] == wanted


def test_the_score_of_a_platform(platform):
    (row,) = json.loads(run("--platform", platform, "--score", "--format", "json").stdout)
    assert (row["jobs"], row["right"], row["regret_max"]) == (2, 1.0, 0.0)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (JOB, "give --params FILE…, or --platform or --experiment of a run"),
        ((*JOB, "--platform", "nowhere"), "no platforms in params/platforms"),
        ((*JOB, "--experiment", "none"), "found no results of experiment 'none'; run it first"),
        ((*JOB, "--params", "P", "--params", "P"), "found two sets of family loggp"),
        ((*JOB, "--params", "P", "--leaves", 8), "give --leaves of a tree or --ranks of a collective, one of the two"),
        (("--operation", "allreduce", "--bytes", 8, "--params", "P"), "give --leaves of a tree or --ranks"),
        (("--operation", "allreduc", *JOB[2:], "--params", "P"), "unknown operation 'allreduc'; did you mean"),
        ((*JOB[:4], "--params", "P"), "--bytes is missing"),
        ((*JOB[2:], "--params", "P"), "--operation is missing"),
        ((*JOB, "--params", "P", "--out", "t.txt"), "found 't.txt', wanted a file .csv, .xlsx or .conf"),
        ((*JOB, "--params", "P", "--only", "rng"), "no algorithm 'rng' for allreduce"),
        ((*JOB, "--params", "P", "--score"), "nothing to score"),
        ((*JOB, "--params", "P", "--layout", "block", "--layout", "cyclic", "--out", "t.conf"), "give one --layout"),
        ((*JOB, "--params", "P", "--only", "ring:1KiB:2", "--open-mpi"), "'1KiB:2'"),
        (
            ("--operation", "gather", *JOB[2:], "--params", "P", "--only", "windowed:2", "--open-mpi"),
            "Open MPI's rules cannot name 'windowed:2' for gather",
        ),
        (
            ("--operation", "reduce", "--leaves", 8, "--bytes", 8, "--params", "P", "--out", "t.conf"),
            "Open MPI's rules are of collectives: give --ranks, not --leaves",
        ),
    ],
)
def test_what_is_refused(params, tmp_path, monkeypatch, arguments, said):
    monkeypatch.chdir(tmp_path)
    before = sorted(tmp_path.iterdir())
    result = run(*(params if argument == "P" else argument for argument in arguments), code=2)
    assert said in result.stderr
    assert result.stderr.startswith("commodel: ")
    assert result.stderr.count("\n") == 1
    assert sorted(tmp_path.iterdir()) == before


def test_the_same_messages_under_two_names_stand_once(params):
    rows = json.loads(
        run("--operation", "bcast", "--ranks", 16, "--bytes", 8, "--params", params, "--format", "json").stdout
    )
    names = {row["choice"] for row in rows}
    assert "binomial" in names
    assert "knomial:2" not in names
    assert len({"knomial", "knomial:4"} & names) == 1


def test_what_the_weights_come_from_is_said_where_it_is_another_operation(platform):
    said = run("--operation", "bcast", "--ranks", 8, "--bytes", 8, "--platform", platform).stdout
    assert "too little of bcast was measured here: the weights come from allreduce" in said


def test_smaller_than_what_was_measured_is_beyond_it_too(platform):
    said = run("--operation", "allreduce", "--ranks", 2, "--bytes", 8, "--platform", platform).stdout
    assert "EXTRAPOLATED by 1.0 doublings: measured were 4 to 8 ranks and 8 B" in said


def test_beyond_what_was_probed_intervals_widen_without_any_measurement(tmp_path):
    path = tmp_path / "loggp.yaml"
    write_parameters(path, replace(given("loggp", LOGGP), bytes_range=(1, 1024), left_out={"error": 0.1, "cases": 9}))
    wide = []
    for size in (1024, 4096, 65536):
        only = ("--only", "recursive-doubling", "--format", "json")
        (row,) = json.loads(
            run("--operation", "allreduce", "--ranks", 8, "--bytes", size, "--params", path, *only).stdout
        )
        wide.append(np.log(row["high"] / row["seconds"]))
    assert wide == pytest.approx([0, 1.96 * np.log(1.1) * np.sqrt(2), 1.96 * np.log(1.1) * np.sqrt(6)])


FAST_ETHERNET = ROOT / "params/published/cluster/fast-ethernet-16.yaml"
GATHER = ("--operation", "gather", "--ranks", "16", "--bytes", "1MiB")


def test_a_gather_that_loses_packets_is_behind_the_window_that_loses_none():
    """The conclusion of the cluster model's paper: 15 senders at once overflow the switch."""
    rows = json.loads(run(*GATHER, "--params", FAST_ETHERNET, "--format", "json").stdout)
    behind = {row["choice"]: row["behind"] for row in rows}
    assert behind["windowed:1"] < 1e-3
    assert behind["linear"] == pytest.approx(0.2 / 1.29, rel=0.01)
    assert rows[0]["choice"] == "windowed:1"
    doubt = next(row["doubt"] for row in rows if row["choice"] == "linear")
    assert doubt.startswith("loses packets: 25 % get through")


def test_families_without_a_buffer_say_that_they_see_no_loss(params):
    text = run(*GATHER, "--params", FAST_ETHERNET, "--params", params).stdout
    assert "by cluster a buffer overflows and packets have to be sent again: linear 75 %" in text
    assert "loggp does not see that" in text
    small = run(*GATHER[:-1], "1KiB", "--params", FAST_ETHERNET, "--params", params).stdout
    assert "overflows" not in small


def test_streams_that_were_measured_weigh_the_times_between_waves_alone(platform, tmp_path):
    """Of waves Hockney is right here, and LogGP, which is right about one, is not."""
    job = ("--operation", "bcast", "--ranks", "8", "--bytes", "1KiB")
    before = json.loads(run(*job, "--platform", platform, "--format", "json").stdout)
    path = tmp_path / "results/study/comparison.csv"
    rows = pd.read_csv(path).assign(waves=1)
    right = (rows["family"] == "hockney").to_numpy()
    waves = rows.assign(waves=50, mu=np.where(right, 1.01, 3.0), point=rows["point"] + " 50", group="stream")
    waves = waves.assign(predicted=waves["measured"] * waves["mu"])
    pd.concat([rows, waves]).to_csv(path, index=False)
    after = json.loads(run(*job, "--platform", platform, "--format", "json").stdout)
    assert [row["seconds"] for row in after] == [row["seconds"] for row in before]
    command = ("predict", "--family", "hockney", "--params", "results/study/fitted/made-up/hockney.yaml", "--pipelined")
    price = CliRunner().invoke(main, [*command, *job, "--algorithm", "linear", "--format", "json"])
    (by_hockney,) = json.loads(price.stdout)
    now, then = ({row["choice"]: row["period"] for row in rows}["linear"] for rows in (after, before))
    assert now == pytest.approx(by_hockney["seconds"], rel=0.01)
    assert then != pytest.approx(by_hockney["seconds"], rel=0.01)
    assert (
        "weights come from streams that were measured here: hockney 100 %" in run(*job, "--platform", platform).stdout
    )


def test_values_by_hand_are_told_wherever_the_advice_goes(platform, tmp_path):
    what_if = ("--set", "loggp:L=2ms", "--set", "hockney:alpha=2ms")
    plain, changed = (run(*JOB, "--platform", platform, *more).stdout for more in ((), what_if))
    told = "loggp L=2ms in place of 20 µs"
    assert told not in plain
    assert told in changed
    assert "weights are by the errors of what was fitted" in changed
    for out in ("a.csv", "a.xlsx", "a.conf"):
        run(*JOBS, "--platform", platform, *what_if, "--out", out)
    assert pd.read_csv(tmp_path / "a.csv")["platform"].str.contains(told).all()
    assert told in (tmp_path / "a.conf").read_text().splitlines()[0]
    cells = [cell for row in openpyxl.load_workbook(tmp_path / "a.xlsx")["Decisions"].values for cell in row if cell]
    assert any(told in str(cell) for cell in cells)
    assert run(*JOB, "--platform", platform, "--score", "--set", "loggp:L=1us", code=2).output == (
        "commodel: --score is about what was fitted: leave --set out\n"
    )
    refused = run(*JOB, "--platform", platform, "--set", "L=1us", code=2).output.splitlines()[-1]
    assert "family hockney has no parameter or setting 'L'" in refused


def test_a_sum_of_iterations_is_for_another_verb(params):
    result = run("--operation", "summa:n=8", "--ranks", 4, "--bytes", "8KiB", "--params", params, code=2)
    assert (
        "'summa:n=8' is a sum of iterations, each begun by all ranks at once: `commodel kernel` prices it"
        in result.output
    )
    assert result.output.count("\n") == 1
    assert "paper" in run("--operation", "summa:n=8:iteration=3", "--ranks", 4, "--bytes", 8, "--params", params).output
