"""Advice for one job: the ranking, what is said of losses, and refusals in one line."""

import json
from dataclasses import replace

import numpy as np
import pytest

from commodel.files.parameter_sets import write_parameters
from commodel.models.parameter_sets import set_given
from commodel.platforms.tools import ROOT
from tests.cli.advise.asking import JOB, LOGGP
from tests.cli.running import read_rows, refused, run

FAST_ETHERNET = ROOT / "params/published/cluster/fast-ethernet-16.yaml"
SMALL_GATHER, GATHER = (f"--operation gather --ranks 16 --bytes {size}" for size in ("1KiB", "1MiB"))


def test_a_ranking_of_all_algorithms(params):
    rows = read_rows(f"advise {JOB} --params {params}")
    assert [row["seconds"] for row in rows] == sorted(row["seconds"] for row in rows)
    assert {"ring", "recursive-doubling", "rabenseifner", "reduce-bcast"} <= {row["choice"] for row in rows}
    text = run(f"advise {JOB} --params {params}").stdout
    assert f"allreduce over 8 ranks, 1 KiB: use {rows[0]['choice']}" in text
    assert "nothing measured here says how far off" in text


def test_only_and_layout(params):
    asked = "--only ring --only rabenseifner --layout block:2 --format json"
    rows = json.loads(run(f"advise {JOB} --params {params} {asked}").stdout)
    assert {(row["choice"], row["layout"]) for row in rows} == {("ring", "block:2"), ("rabenseifner", "block:2")}


def test_the_same_messages_under_two_names_stand_once(params):
    rows = read_rows(f"advise --operation bcast --ranks 16 --bytes 8 --params {params}")
    names = {row["choice"] for row in rows}
    assert "binomial" in names
    assert "knomial:2" not in names
    assert len({"knomial", "knomial:4"} & names) == 1


def test_beyond_what_was_probed_intervals_widen_without_any_measurement(tmp_path):
    path = tmp_path / "loggp.yaml"
    doubted = replace(set_given("loggp", LOGGP), bytes_range=(1, 1024), left_out={"error": 0.1, "cases": 9})
    write_parameters(path, doubted)
    wide = []
    for size in (1024, 4096, 65536):
        only = "--only recursive-doubling --format json"
        (row,) = json.loads(run(f"advise --operation allreduce --ranks 8 --bytes {size} --params {path} {only}").stdout)
        wide.append(np.log(row["high"] / row["seconds"]))
    assert wide == pytest.approx([0, 1.96 * np.log(1.1) * np.sqrt(2), 1.96 * np.log(1.1) * np.sqrt(6)])


def test_a_gather_that_loses_packets_is_behind_the_window_that_loses_none():
    """The conclusion of the cluster model's paper: 15 senders at once overflow the switch."""
    rows = read_rows(f"advise {GATHER} --params {FAST_ETHERNET}")
    behind = {row["choice"]: row["behind"] for row in rows}
    assert behind["windowed:1"] < 1e-3
    assert behind["linear"] == pytest.approx(0.2 / 1.29, rel=0.01)
    assert rows[0]["choice"] == "windowed:1"
    doubt = next(row["doubt"] for row in rows if row["choice"] == "linear")
    assert doubt.startswith("cluster: loses packets: 25 % get through")


def test_families_without_a_buffer_say_that_they_see_no_loss(params):
    text = run(f"advise {GATHER} --params {FAST_ETHERNET} --params {params}").stdout
    assert "by cluster a buffer overflows and packets have to be sent again: linear 75 %" in text
    assert "loggp does not see that" in text
    small = run(f"advise {SMALL_GATHER} --params {FAST_ETHERNET} --params {params}").stdout
    assert "overflows" not in small


def test_a_sum_of_iterations_is_for_another_verb(params):
    result = run(f"advise --operation summa:n=8 --ranks 4 --bytes 8KiB --params {params}", code=2)
    assert (
        "'summa:n=8' is a sum of iterations, each begun by all ranks at once: `commodel kernel` prices it"
        in result.output
    )
    assert result.output.count("\n") == 1
    assert "paper" in run(f"advise --operation summa:n=8:iteration=3 --ranks 4 --bytes 8 --params {params}").output


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (JOB, "give --params FILE…, or --platform or --experiment of a run"),
        (f"{JOB} --platform nowhere", "no platforms in params/platforms"),
        (f"{JOB} --experiment none", "found no results of experiment 'none'; run it first"),
        (f"{JOB} --params P --params P", "found two sets of family loggp"),
        (f"{JOB} --params P --leaves 8", "give leaves of a tree or ranks of a collective, one of the two"),
        ("--operation allreduce --bytes 8 --params P", "give leaves of a tree or ranks"),
        ("--operation allreduc --ranks 8 --bytes 1KiB --params P", "unknown operation 'allreduc'; did you mean"),
        ("--operation allreduce --ranks 8 --params P", "bytes is missing"),
        ("--ranks 8 --bytes 1KiB --params P", "operation is missing"),
        (f"{JOB} --params P --out t.txt", "found 't.txt', wanted a file .csv, .xlsx or .conf"),
        (f"{JOB} --params P --only rng", "no algorithm 'rng' for allreduce"),
        (f"{JOB} --params P --score", "nothing to score"),
        (f"{JOB} --params P --layout block --layout cyclic --out t.conf", "give one --layout"),
        (f"{JOB} --params P --only ring:1KiB:2 --open-mpi", "'1KiB:2'"),
        (
            "--operation gather --ranks 8 --bytes 1KiB --params P --only windowed:2 --open-mpi",
            "Open MPI's rules cannot name 'windowed:2' for gather",
        ),
        (
            "--operation reduce --leaves 8 --bytes 8 --params P --out t.conf",
            "Open MPI's rules are of collectives: give --ranks, not --leaves",
        ),
    ],
)
def test_what_is_refused(params, tmp_path, monkeypatch, arguments, said):
    monkeypatch.chdir(tmp_path)
    before = sorted(tmp_path.iterdir())
    line = refused(f"advise {arguments}".replace(" P", f" {params}"))
    assert said in line
    assert line.startswith("commodel: ")
    assert sorted(tmp_path.iterdir()) == before
