"""commodel advise: the ranking for one workload, tables for several, weights of models, the score,
and refusals."""

import csv
import io
import json
import os
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import openpyxl
import pandas as pd
import pytest
from click.testing import CliRunner

from commodel.advice import Workload, advise
from commodel.api.predictions import list_points
from commodel.api.recommendations import find_evidence
from commodel.cli import main
from commodel.files.atomic import write_json, write_text
from commodel.files.parameter_sets import read_parameters, write_parameters
from commodel.files.tables import COMPARISON, add_default_columns
from commodel.interchange.rules import can_select
from commodel.models.parameter_sets import make_given_set
from commodel.patterns.point_digests import add_digests
from commodel.plan.planning import load_resources
from commodel.platforms.tools import ROOT
from commodel.records import Batch
from tests.cli.running import read_rows, refused, run
from tests.planning import planned
from tests.tables import check_table

LOGGP = ("L=20us", "o_s=5us", "o_r=5us", "g=10us", "G=80ns", "gamma=1ns")
WORKLOAD = "--operation allreduce --ranks 8 --bytes 1KiB"
TREES = "--operation reduce --leaves 4 --layout block:1"
WORKLOADS = "--operation allreduce --ranks 2:8:*2 --bytes 8,64KiB"
PLATFORM = "title: eight nodes\nlauncher: slurm\nnodes: 8\ncores: 4\n"


@pytest.fixture
def params(tmp_path):
    path = tmp_path / "loggp.yaml"
    write_parameters(path, make_given_set("loggp", LOGGP))
    return path


@pytest.fixture
def platform(tmp_path, monkeypatch):
    """Return the name of a simulated platform with two fitted models and a comparison: LogGP
    predicts 1.1 and Hockney 1.33 times the measured times."""
    monkeypatch.chdir(tmp_path)
    write_text(tmp_path / "params/platforms/made-up.yaml", PLATFORM)
    fitted = tmp_path / "results/study/fitted/made-up"
    for name, values in (("loggp", LOGGP), ("hockney", ("alpha=30us", "beta=80ns", "gamma=1ns"))):
        write_parameters(
            fitted / f"{name}.yaml",
            replace(make_given_set(name, values), platform="made-up", simulated=True),
        )
    rows = []
    for ranks in (4, 6, 8):
        for choice, measured in (("ring", 2e-4), ("recursive-doubling", 1e-4)):
            for family, off in (("loggp", 1.1), ("hockney", 1.331)):
                rows.append(
                    {
                        "point": f"{ranks} {choice}",
                        "platform": "made-up",
                        "operation": "allreduce",
                        "algorithm": choice,
                    }
                    | {
                        "alternative": choice,
                        "layout": "block:1",
                        "ranks": ranks,
                        "leaves": 0,
                        "bytes": 8,
                    }
                    | {"workload": f"{ranks}"}
                    | {
                        "measured": measured,
                        "measured_low": measured,
                        "measured_high": measured,
                        "model": family,
                    }
                    | {
                        "seconds": measured * off,
                        "mu": off,
                        "validity": "valid",
                        "held_out": True,
                        "simulated": True,
                    }
                )
    table = add_default_columns(
        pd.DataFrame(rows).assign(nodes=lambda table: table["ranks"]), COMPARISON
    )
    check_table(table, COMPARISON, tmp_path)
    table.to_csv(tmp_path / "results/study/comparison.csv", index=False)
    return "made-up"


FAST_ETHERNET = ROOT / "params/published/cluster/fast-ethernet-16.yaml"
SMALL_GATHER, GATHER = (
    f"--operation gather --ranks 16 --bytes {size}" for size in ("1KiB", "1MiB")
)


def test_a_ranking_of_all_algorithms(params):
    rows = read_rows(f"advise {WORKLOAD} --params {params}")
    assert [row["seconds"] for row in rows] == sorted(row["seconds"] for row in rows)
    assert {"ring", "recursive-doubling", "rabenseifner", "reduce-bcast"} <= {
        row["alternative"] for row in rows
    }
    text = run(f"advise {WORKLOAD} --params {params}").stdout
    assert f"allreduce over 8 ranks, 1 KiB: use {rows[0]['alternative']}" in text
    assert "intervals contain no model error" in text
    evidence, _ = find_evidence((Path(params),), None, None, "allreduce")
    assert text.startswith(f"{advise(Workload('allreduce', 1024, ranks=8), evidence).sentence}.")


def test_tables_name_the_layout_near(params, tmp_path):
    write_text(tmp_path / "leaves.yaml", f"{PLATFORM}levels: {{leaf: 2}}\n")
    command = (
        f"advise --operation allgather --ranks 32 --platform {tmp_path}/leaves.yaml --params "
        f"{params}"
    )
    text = run(f"{command} --layout near --bytes 4KiB").stdout
    rows = read_rows(f"{command} --layout near --bytes 4KiB")
    decisions = run(f"{command} --layout near --bytes 1KiB,4KiB").stdout
    assert ", near (predicted time" in text
    assert all(row["layout"].startswith("nodes:") and row["layout_name"] == "near" for row in rows)
    assert "near" in decisions
    assert "nodes:" not in text + decisions
    layouts = {row["alternative"]: row["layout"] for row in rows}
    predicted = read_rows(f"{command.replace('advise', 'predict')} --layout near --bytes 4KiB")
    assert {row["algorithm"]: row["layout"] for row in predicted}.items() <= layouts.items()


def test_only_and_layout(params):
    requested = "--only ring --only rabenseifner --layout block:2 --format json"
    rows = json.loads(run(f"advise {WORKLOAD} --params {params} {requested}").stdout)
    assert {(row["alternative"], row["layout"]) for row in rows} == {
        ("ring", "block:2"),
        ("rabenseifner", "block:2"),
    }


def test_the_same_messages_under_two_names_stand_once(params):
    rows = read_rows(f"advise --operation bcast --ranks 16 --bytes 8 --params {params}")
    names = {row["alternative"] for row in rows}
    assert "binomial" in names
    assert "knomial:2" not in names
    assert len({"knomial", "knomial:4"} & names) == 1


def test_prediction_intervals_widen_with_each_doubling_beyond_the_fitted_sizes(tmp_path):
    path = tmp_path / "loggp.yaml"
    doubted = replace(
        make_given_set("loggp", LOGGP), bytes_range=(1, 1024), left_out={"error": 0.1, "cases": 9}
    )
    write_parameters(path, doubted)
    wide = []
    for size in (1024, 4096, 65536):
        only = "--only recursive-doubling --format json"
        (row,) = json.loads(
            run(
                f"advise --operation allreduce --ranks 8 --bytes {size} --params {path} {only}"
            ).stdout
        )
        wide.append(np.log(row["high"] / row["seconds"]) if row["high"] else 0.0)
    assert wide == pytest.approx(
        [0, 1.96 * np.log(1.1) * np.sqrt(2), 1.96 * np.log(1.1) * np.sqrt(6)]
    )


def test_a_gather_that_loses_packets_is_behind_the_window_that_loses_none():
    """The conclusion of the cluster model's paper: 15 senders at once overflow the switch."""
    rows = read_rows(f"advise {GATHER} --params {FAST_ETHERNET}")
    behind = {row["alternative"]: row["behind"] for row in rows}
    assert behind["windowed:1"] < 1e-3
    assert behind["linear"] == pytest.approx(0.2 / 1.29, rel=0.01)
    assert rows[0]["alternative"] == "windowed:1"
    doubt = next(row["doubt"] for row in rows if row["alternative"] == "linear")
    assert doubt.startswith("cluster: loses packets: 25 % delivered")


def test_a_model_without_buffers_is_flagged_as_not_modelling_packet_loss(params):
    text = run(f"advise {GATHER} --params {FAST_ETHERNET} --params {params}").stdout
    assert "by cluster a buffer overflows and packets have to be sent again: linear 75 %" in text
    assert "loggp does not model losses" in text
    small = run(f"advise {SMALL_GATHER} --params {FAST_ETHERNET} --params {params}").stdout
    assert "overflows" not in small


def test_several_workloads_are_a_table(platform):
    text = run(f"advise {WORKLOADS} --platform {platform}").stdout
    assert ". SIMULATED: the parameters were fitted to a simulated platform." in text
    assert ". 4 of 6 workloads, such as allreduce over 2 ranks, 8 B: EXTRAPOLATED" in text
    assert (
        len(
            list(
                csv.DictReader(
                    io.StringIO(
                        run(f"advise {WORKLOADS} --platform {platform} --format csv").stdout
                    )
                )
            )
        )
        == 6
    )


def test_rules_are_the_same_through_a_table(platform, tmp_path):
    run(f"advise {WORKLOADS} --platform {platform} --out rules.conf")
    run(f"advise {WORKLOADS} --platform {platform} --open-mpi --out table.csv")
    result = CliRunner().invoke(main, ["export", "rules", "table.csv", "-o", "again.conf"])
    assert result.exit_code == 0, result.output
    text = (tmp_path / "rules.conf").read_text()
    assert text == (tmp_path / "again.conf").read_text()
    assert text.startswith("1 # collectives, advice for made-up (simulated); assumed of programs: ")
    assert "none in Open MPI" not in text


def test_the_open_mpi_option_restricts_the_ranking_to_selectable_algorithms(params, tmp_path):
    """Open MPI has no windowed gather, which is among the fastest alternatives here."""
    requested = f"--operation gather --ranks 4,8 --bytes 8 --params {params}"
    run(f"advise {requested} --open-mpi --out {tmp_path}/some.csv")
    run(f"advise {requested} --layout block --out {tmp_path}/all.csv")
    some, every = (
        pd.read_csv(tmp_path / name, keep_default_na=False) for name in ("some.csv", "all.csv")
    )
    named = [f"{row.algorithm}, {row.as_good}" for row in some.itertuples()]
    assert all(can_select("gather", spec) for text in named for spec in text.split(", ") if spec)
    assert any("windowed" in f"{row.algorithm}, {row.as_good}" for row in every.itertuples())


def test_an_operation_without_a_safe_algorithm_is_left_to_open_mpi(params, tmp_path):
    """The file for all other operations is written: every reduce-scatter that a rule can name
    reorders operands."""
    requested = f"--ranks 4 --bytes 8 --params {params}"
    result = run(
        f"advise --operation reduce-scatter --operation gather {requested} --out {tmp_path}/some.conf"
    )
    assert (
        "left to Open MPI: no algorithm of reduce-scatter is safe in a rule; wanted: --commutative"
        in result.stderr
    )
    text = (tmp_path / "some.conf").read_text()
    assert "# gather" in text
    assert "# reduce-scatter" not in text
    refusal = run(
        f"advise --operation reduce-scatter {requested} --out {tmp_path}/none.conf", code=2
    )
    assert (
        "no algorithm of reduce-scatter is safe in a rule; wanted: --commutative" in refusal.stderr
    )
    assert not (tmp_path / "none.conf").exists()


def test_a_workbook(platform, tmp_path):
    run(f"advise {WORKLOADS} --platform {platform} --out table.xlsx")
    book = openpyxl.load_workbook(tmp_path / "table.xlsx")
    assert book.sheetnames == ["Decisions", "allreduce"]
    run(f"advise {WORKLOADS} --platform {platform} --out table.csv")
    wanted = pd.read_csv(tmp_path / "table.csv")["algorithm"].tolist()
    (area,) = (area.ref for area in book["Decisions"].tables.values())
    head, *rows = ([cell.value for cell in cells] for cells in book["Decisions"][area])
    assert [row[head.index("use")] for row in rows] == wanted


def test_values_by_hand_are_reported_wherever_the_advice_goes(platform, tmp_path):
    what_if = "--set loggp:L=2ms --set hockney:alpha=2ms"
    plain, changed = (
        run(f"advise {WORKLOAD} --platform {platform} {more}").stdout for more in ("", what_if)
    )
    by_hand = "loggp L=2ms in place of 20 µs"
    assert by_hand not in plain
    assert by_hand in changed
    assert "weights come from the errors of the fitted sets" in changed
    for out in ("a.csv", "a.xlsx", "a.conf"):
        run(f"advise {WORKLOADS} --platform {platform} {what_if} --out {out}")
    assert pd.read_csv(tmp_path / "a.csv")["platform"].str.contains(by_hand).all()
    assert by_hand in (tmp_path / "a.conf").read_text().splitlines()[0]
    cells = [
        cell
        for row in openpyxl.load_workbook(tmp_path / "a.xlsx")["Decisions"].values
        for cell in row
        if cell
    ]
    assert any(by_hand in str(cell) for cell in cells)
    refused = run(
        f"advise {WORKLOAD} --platform {platform} --set L=1us", code=2
    ).output.splitlines()[-1]
    assert "model hockney has no parameter or setting 'L'" in refused


def test_weights_come_from_the_errors_measured(platform):
    said = run(f"advise {WORKLOAD} --platform {platform} --verbose")
    assert "evidence: results/study, platform made-up" in said.stderr
    assert "Weights of models: loggp 100 %" in said.stdout
    assert "SIMULATED" in said.stdout


def add_run(name, platform, operation, digest="d"):
    """Add a newer run, which measured one operation only: a copy of the first run, 100 times as
    slow."""
    earlier, later = Path("results/study"), Path("results") / name
    shutil.copytree(earlier, later)
    rows = pd.read_csv(later / "comparison.csv", dtype={"workload": str})
    rows[["measured", "measured_low", "measured_high", "seconds"]] *= 100
    # of the columns of algorithms
    rows = rows.replace({"ring": "chain", "recursive-doubling": "binomial"})
    rows.assign(operation=operation, point=operation + rows["point"]).to_csv(
        later / "comparison.csv", index=False
    )
    os.utime(earlier / "comparison.csv", (1, 1))
    for folder, own_digest in ((earlier, "d"), (later, digest)):
        points = add_digests(
            list_points(operation, ["linear"], (), "8", "8", "block:1", load_resources(platform))
        )
        plan = planned(Batch("b", platform, 8, tuple(points)), models=("loggp", "hockney"))
        described = replace(plan.platforms[platform], digest=own_digest)
        write_json(folder / "plan.json", replace(plan, platforms={platform: described}).as_json())


def test_evidence_is_that_of_all_runs_that_measured_the_operation(platform):
    """After a run with bcast only, a question about allreduce is answered as before that run."""
    before = read_rows(f"advise {WORKLOAD} --platform {platform}")
    add_run("later", platform, "bcast")
    after = run(f"advise {WORKLOAD} --platform {platform}")
    assert "evidence: results/study, platform made-up" in after.stderr
    assert read_rows(f"advise {WORKLOAD} --platform {platform}") == before
    assert read_rows(f"advise {WORKLOAD}") == before  # the platform of the newest run
    tables = [read_rows(f"advise {names} --ranks 4,8 --bytes 1KiB --platform {platform}") for names in (
        "--operation allreduce", "--operation bcast --operation allreduce"
    )]  # fmt: skip
    assert tables[0] == [row for row in tables[1] if row["operation"] == "allreduce"]
    of_both = "evidence: results/later, results/study, platform made-up"
    assert (
        of_both
        in run(f"advise --operation gather --ranks 8 --bytes 8 --platform {platform}").stderr
    )
    add_run("latest", platform, "bcast")
    said = run(f"advise --operation bcast --ranks 8 --bytes 8 --platform {platform}").stderr
    assert "evidence: results/latest, results/later, platform made-up" in said
    said = run(f"advise {WORKLOAD} --platform {platform} --experiment latest").stderr
    assert "evidence: results/latest, platform made-up" in said


def test_a_platform_with_a_changed_description_is_another_one(platform):
    """The older run measured the operation, but on a platform with another description."""
    add_run("later", platform, "bcast", digest="changed")
    said = run(f"advise {WORKLOAD} --platform {platform}")
    assert "evidence: results/later, platform made-up" in said.stderr
    assert "too little of allreduce was measured here" in said.stdout


def test_families_that_were_not_probed_where_ranks_sit_have_weight_0_unless_that_was_measured(
    platform, tmp_path
):
    """Within a node, only Hockney was probed. LogGP has a weight there once collectives were
    measured within a node."""
    for name, probed in (("loggp", ["beyond"]), ("hockney", ["node", "beyond"])):
        path = tmp_path / f"results/study/fitted/made-up/{name}.yaml"
        known = read_parameters(path)
        write_parameters(
            path, replace(known, settings={**known.settings, "probed_classes": probed})
        )
    table = tmp_path / "results/study/comparison.csv"
    rows = pd.read_csv(table)
    rows.assign(nodes=rows["ranks"]).to_csv(table, index=False)
    workload = f"--operation allreduce --ranks 4 --bytes 8 --verbose --platform {platform}"
    within = run(f"advise {workload} --layout block:4").stdout
    assert "loggp has weight 0 within one node: not probed: ranks in same node" in within
    assert "Weights of models: hockney 100 %" in within
    assert (
        "has weight 0"
        not in run(f"advise {workload} --layout block:4".replace("--verbose ", "")).stdout
    )
    between = run(f"advise {workload} --layout block:1").stdout
    assert "Weights of models: loggp 100 %" in between
    rows.assign(nodes=1).to_csv(table, index=False)
    assert "Weights of models: loggp 100 %" in run(f"advise {workload} --layout block:4").stdout


def test_the_score_of_a_platform(platform, tmp_path):
    """The score leaves out each workload in turn and needs at least three workloads."""
    table = tmp_path / "results/study/comparison.csv"
    rows = pd.read_csv(table, dtype={"workload": str})
    rows[rows["ranks"] != 6].to_csv(table, index=False)
    said = run(f"advise score --platform {platform}", code=2).stderr
    assert "wanted three workloads or more with two predicted and measured alternatives" in said
    more = [
        rows.assign(
            bytes=rows["bytes"] * 2**n,
            point=rows["point"] + f"-{n}",
            workload=rows["workload"] + f"-{n}",
        )
        for n in (1, 2, 3)
    ]
    pd.concat([rows, *more]).to_csv(table, index=False)
    (row,) = read_rows(f"advise score --platform {platform}")
    assert (row["workloads"], row["right"], row["regret_max"]) == (12, 1.0, 0.0)


def add_sizes(table):
    """Replace the rows of the single message size by rows of nine sizes, all between nodes."""
    rows = pd.read_csv(table, dtype={"workload": str}).assign(nodes=8)
    more = [
        rows.assign(
            bytes=8 * 2**n, point=rows["point"] + f"-{n}", workload=rows["workload"] + f"-{n}"
        )
        for n in range(9)
    ]
    pd.concat(more).to_csv(table, index=False)


def test_the_mpi_default_is_predicted_from_the_times_of_a_run(platform, tmp_path):
    """`predict` and `advise` answer the same at a size and a number of ranks without a time."""
    table = tmp_path / "results/study/comparison.csv"
    rows = pd.read_csv(table, dtype={"workload": str})
    defaults = []
    for ranks in (2, 4, 8):
        for size in (8, 64, 512, 4096, 32768):
            seconds = (ranks - 1).bit_length() * (4e-6 + 1e-9 * size)
            default = rows.iloc[:1].assign(
                point=f"default {ranks} {size}",
                algorithm="library",
                alternative="library",
                model="",
                validity="library default: measured, not predicted",
                ranks=ranks,
                nodes=ranks,
                bytes=size,
                measured=seconds,
                measured_low=seconds,
                measured_high=seconds,
            )
            defaults.append(default)
    line = f"--operation allreduce --ranks 6 --bytes 1KiB --layout block:1 --platform {platform}"
    assert "found no times of the MPI default" in refused(f"predict {line} --algorithm library")
    pd.concat([rows, *defaults]).to_csv(table, index=False)
    (predicted,) = read_rows(f"predict {line} --algorithm library")
    exact = np.log2(6) * (4e-6 + 1e-9 * 1024)
    assert predicted["model"] == "library"
    assert predicted["seconds"] == pytest.approx(exact, rel=0.3)
    advised = read_rows(f"advise {line}")[-1]
    assert advised["alternative"] == "library"
    assert advised["seconds"] == predicted["seconds"]
    both = read_rows(f"predict {line} --algorithm library --algorithm ring")
    assert [row["algorithm"] for row in both] == ["ring", "ring", "library"]


def test_predictions_without_a_set_are_the_recommended_ones(platform, tmp_path):
    """LogGP overestimates all times by 10 %. The recommended prediction corrects this factor; the
    uncorrected prediction of LogGP is the second row. Where too little was measured for that, it is
    the one of `advise`, too."""
    ring = "--algorithm ring "
    line = (
        f"predict --operation allreduce {ring}--ranks 8 --bytes 1KiB --layout block:1 --platform "
        f"{platform}"
    )
    recommended, model = read_rows(line)
    advised = {
        row["alternative"]: row
        for row in read_rows(line.replace("predict", "advise").replace(ring, ""))
    }
    assert (recommended["model"], model["model"]) == ("recommended", "loggp")
    assert recommended["seconds"] == advised["ring"]["seconds"]
    add_sizes(tmp_path / "results/study/comparison.csv")
    recommended, model = read_rows(line)
    assert (recommended["model"], model["model"]) == ("recommended", "loggp")
    assert recommended["seconds"] == pytest.approx(model["seconds"] / 1.1, rel=0.02)
    assert recommended["low"] <= recommended["seconds"] <= recommended["high"]
    assert recommended["validity"] == "valid"


def test_a_rank_sweep_skips_impossible_counts_and_averages_models_where_nothing_was_measured(
    platform, tmp_path
):
    """A node has four cores; no workload was measured within one node; a collective needs two
    ranks."""
    add_sizes(tmp_path / "results/study/comparison.csv")
    sweep = (
        "predict --operation allreduce --algorithm ring --ranks 1,4,8 --bytes 1KiB --layout block:4"
    )
    output = run(f"{sweep} --platform {platform}").stdout
    assert "left out: ranks: found 1, wanted 2 to" in output
    seconds = {
        (row["model"], row["ranks"]): row["seconds"]
        for row in read_rows(f"{sweep} --platform {platform}")
    }
    advised = read_rows(
        f"advise --operation allreduce --ranks 4 --bytes 1KiB --layout block:4 --platform {platform}"
    )
    assert (
        seconds["recommended", 4] == {row["alternative"]: row["seconds"] for row in advised}["ring"]
    )
    assert seconds["recommended", 8] == pytest.approx(seconds["loggp", 8] / 1.1, rel=0.02)


def test_measured_times_stand_beside_predictions_of_the_same_points(platform, tmp_path):
    (point,) = add_digests(
        list_points("allreduce", ["ring"], (), "8", "8", "block:1", load_resources(platform))
    )
    table = tmp_path / "results/study/comparison.csv"
    add_sizes(table)
    rows = pd.read_csv(table)
    rows.loc[rows["point"] == "8 ring-0", ["point", "measured"]] = point.id, 42e-6
    rows.to_csv(table, index=False)
    workload = f"--operation allreduce --ranks 8 --bytes 8 --layout block:1 --platform {platform}"
    measured = {row["alternative"]: row["measured"] for row in read_rows(f"advise {workload}")}
    assert measured["ring"] == 42e-6
    assert measured["recursive-doubling"] is None
    assert "measured" in run(f"advise {workload}").stdout.splitlines()[4]
    predicted = read_rows(f"predict {workload}")
    assert {row["measured"] for row in predicted if row["algorithm"] == "ring"} == {42e-6}
    assert {row["measured"] for row in predicted if row["algorithm"] != "ring"} == {None}


def test_equal_messages_have_one_recommended_time_and_the_name_that_was_measured(
    platform, tmp_path
):
    """Over two ranks, Rabenseifner's algorithm sends the messages of the ring."""
    (point,) = add_digests(
        list_points("allreduce", ["ring"], (), "2", "8", "block:1", load_resources(platform))
    )
    table = tmp_path / "results/study/comparison.csv"
    add_sizes(table)
    rows = pd.read_csv(table)
    of_ring = rows[rows["point"] == "8 ring-0"].assign(
        point=point.id, ranks=2, measured=42e-6, workload="2-0"
    )
    pd.concat([rows, of_ring]).to_csv(table, index=False)
    workload = f"--operation allreduce --ranks 2 --bytes 8 --layout block:1 --platform {platform}"
    advised = {row["alternative"]: row for row in read_rows(f"advise {workload}")}
    assert "rabenseifner" not in advised
    assert advised["ring"]["measured"] == 42e-6
    predicted = read_rows(f"predict {workload}")
    seconds = {
        row["algorithm"]: row["seconds"] for row in predicted if row["model"] == "recommended"
    }
    assert seconds["rabenseifner"] == seconds["ring"] == pytest.approx(advised["ring"]["seconds"])
    assert seconds["recursive-doubling"] != seconds["ring"]


def test_alternatives_measured_for_the_workload_are_ranked_under_their_own_names(
    platform, tmp_path
):
    """`binomial:3` sends the messages of `knomial:2@8`, which is among the trees that advice lists;
    it does not list `groups:3,1`."""
    resources = load_resources(platform)
    trees = ["binomial:3", "groups:3,1"]
    points = add_digests(list_points("reduce", (), trees, None, "8", "block:1", resources))
    table = tmp_path / "results/study/comparison.csv"
    rows = pd.read_csv(table)
    (row,) = rows[(rows["point"] == "8 ring") & (rows["model"] == "loggp")].to_dict("records")
    measured = [
        row | {"point": point.id, "operation": "reduce", "algorithm": "", "alternative": tree, "leaves": 4}
        | {"ranks": point.ranks, "measured": seconds, "workload": "trees"}
        for tree, point, seconds in zip(trees, points, (42e-6, 43e-6), strict=True)
    ]  # fmt: skip
    pd.concat([rows, pd.DataFrame(measured)]).to_csv(table, index=False)
    advised = {
        row["alternative"]: row["measured"]
        for row in read_rows(f"advise {TREES} --bytes 8 --platform {platform}")
    }
    assert {tree: advised[tree] for tree in trees} == {"binomial:3": 42e-6, "groups:3,1": 43e-6}
    assert "knomial:2@8" not in advised
    other_size = {
        row["alternative"] for row in read_rows(f"advise {TREES} --bytes 64 --platform {platform}")
    }
    assert "knomial:2@8" in other_size
    assert not other_size & set(trees)


def test_advise_states_that_weights_come_from_another_operation(platform):
    said = run(f"advise --operation bcast --ranks 8 --bytes 8 --platform {platform}").stdout
    assert "too little of bcast was measured here: the weights come from allreduce" in said


def test_fewer_ranks_than_measured_count_as_extrapolation(platform):
    said = run(f"advise --operation allreduce --ranks 2 --bytes 8 --platform {platform}").stdout
    assert "EXTRAPOLATED by 1 doubling: measured were 4 to 8 ranks and 8 B" in said


def test_streams_that_were_measured_weigh_the_times_between_waves_alone(platform, tmp_path):
    """Streams of 50 waves, which Hockney predicts within 1 % and LogGP three times too slow, change
    the weights for times between waves only."""
    workload = "--operation bcast --ranks 8 --bytes 1KiB"
    before = read_rows(f"advise {workload} --platform {platform}")
    path = tmp_path / "results/study/comparison.csv"
    rows = pd.read_csv(path).assign(waves=1)
    right = (rows["model"] == "hockney").to_numpy()
    waves = rows.assign(waves=50, mu=np.where(right, 1.01, 3.0), point=rows["point"] + " 50")
    waves["workload"] = "stream " + rows["workload"].astype(str)
    waves = waves.assign(seconds=waves["measured"] * waves["mu"])
    pd.concat([rows, waves]).to_csv(path, index=False)
    after = read_rows(f"advise {workload} --platform {platform}")
    assert [row["seconds"] for row in after] == [row["seconds"] for row in before]
    command = (
        "predict --model hockney --params results/study/fitted/made-up/hockney.yaml --pipelined"
    )
    (by_hockney,) = read_rows(f"{command} {workload} --algorithm linear")
    now, then = (
        {row["alternative"]: row["period"] for row in rows}["linear"] for rows in (after, before)
    )
    assert now == pytest.approx(by_hockney["seconds"], rel=0.01)
    assert then != pytest.approx(by_hockney["seconds"], rel=0.01)
    assert (
        "weights come from streams that were measured here: hockney 100 %"
        in run(f"advise {workload} --platform {platform} --verbose").stdout
    )


def test_wave_periods_prefer_models_without_a_contention_flag(platform, tmp_path):
    """LogGP is flagged first: it underestimates successive messages to one receiver."""
    pattern = "--operation reduce --ranks 4 --bytes 1KiB"
    workload = f"{pattern} --platform {platform}"
    (before, *_) = read_rows(f"advise {workload}")
    path = tmp_path / "results/study/fitted/made-up"
    crowded = {"contention": {"row": {"from_bytes": 0.0, "ratio": 8.0}}}
    for name, end in (
        ("loggp", "other models predict these times"),
        ("hockney", "no other model predicts them"),
    ):
        known = read_parameters(path / f"{name}.yaml")
        write_parameters(
            path / f"{name}.yaml", replace(known, settings={**known.settings, **crowded})
        )
        output = run(f"advise {workload} --verbose").stdout
        assert (
            ": contention not modelled: messages in a row to one receiver took up to 8.0 times as long as predicted; "
            in output
        )
        assert end in output
        if name == "loggp":
            (row, *_) = read_rows(f"advise {workload}")
            assert row["seconds"] == before["seconds"]
            command = f"predict --params {path}/hockney.yaml --pipelined {pattern}"
            (prediction,) = read_rows(command, "--algorithm", row["alternative"])
            assert row["period"] == pytest.approx(prediction["seconds"]) != before["period"]


def test_more_ranks_than_the_platform_has_cores_are_an_extrapolation_to_more_nodes(platform):
    workload, fitted = "--operation allreduce --ranks 64 --bytes 8", "results/study/fitted/made-up"
    result = run(f"advise {workload} --layout block")
    note = (
        "EXTRAPOLATED to 16 nodes: platform made-up has 8; the others are assumed to be like these."
    )
    assert f"1. {note}" in result.stdout
    assert "Measure first" not in result.stdout
    rows = read_rows(f"predict {workload} --params {fitted}")
    assert {row["model"] for row in rows} == {"loggp", "hockney"}  # of a folder
    said = run(f"predict {workload} --params {fitted} --platform made-up")
    assert "layout block:4" in said.stdout
    assert "EXTRAPOLATED to 16 nodes" in said.stdout
    write_text(Path("params/platforms/made-up.yaml"), PLATFORM.replace("nodes: 8", "nodes: 1"))
    assert (
        "64 ranks need 64 cores; platform 'made-up' has 4"
        in run(f"advise {workload} --layout block", code=2).stderr
    )


def test_of_two_platforms_of_a_run_the_one_that_is_not_simulated_is_meant(platform):
    write_text(Path("params/platforms/real.yaml"), PLATFORM)
    sets_of_both = Path("results/study/fitted")
    write_parameters(
        sets_of_both / "real" / "loggp.yaml",
        replace(make_given_set("loggp", LOGGP), platform="real"),
    )
    assert (
        "platform real"
        in run("advise --experiment study --operation allreduce --ranks 8 --bytes 8").stderr
    )
    write_parameters(
        sets_of_both / "other" / "loggp.yaml",
        replace(make_given_set("loggp", LOGGP), platform="other"),
    )
    said = run("advise --experiment study --operation allreduce --ranks 8 --bytes 8", code=2).stderr
    assert "on 3 platforms; give --platform made-up or other or real" in said
