"""commodel configure: both times are what other verbs say of the partition, and the ranking is by their sum."""

from dataclasses import replace
from pathlib import Path

import pytest

from commodel.files.parameter_sets import write_parameters
from commodel.models.parameter_sets import set_given
from commodel.models.speeds import KernelSpeeds, Speeds, write_speeds
from commodel.parameters import Estimate, ParameterSet
from commodel.platforms.tools import find
from tests.cli.running import output, read_rows, refused
from tests.models.taulop_terms import parameters, table

SPEEDS = "--speeds params/speeds/fermi.yaml --platform fermi-ib"
WAVE = f"{SPEEDS} --kernel wave --blocks 96"


@pytest.fixture(scope="module")
def taulop(tmp_path_factory):
    path = tmp_path_factory.mktemp("sets") / "taulop.yaml"
    write_parameters(path, parameters(**table(2e-7, 1.3e-6, 2e-10, 3.1e-10)))
    return path


@pytest.fixture(scope="module")
def layouts(tmp_path_factory):
    """A folder with the three smallest of the paper."""
    folder = tmp_path_factory.mktemp("layouts")
    for name in ("M1", "M2", "M3"):
        (folder / f"{name}.csv").write_text(Path(f"params/layouts/fermi/{name}.csv").read_text())
    return folder


def test_layouts_are_ranked_by_the_sum_of_both_times(taulop, layouts):
    rows = read_rows(f"configure {WAVE} --params {taulop} --layout {layouts}")
    assert sorted(row["layout"] for row in rows) == ["M1", "M2", "M3"]
    assert all(row["total"] == row["computation"] + row["communication taulop"] for row in rows)
    assert [row["total"] for row in rows] == sorted(row["total"] for row in rows)


@pytest.mark.parametrize(("kernel", "side", "steps", "size"), [("wave", 96, 10, 8), ("gemm", 24, 1, 8192)])
def test_both_times_are_those_of_the_other_verbs(taulop, layouts, tmp_path, kernel, side, steps, size):
    asked = f"{SPEEDS} --kernel {kernel} --blocks {side} --params {taulop}"
    asked += f" --iterations {steps}" if kernel == "wave" else ""
    layout = f"processes:{layouts}/M3.csv"
    (row,) = read_rows(f"configure {asked} --layout {layout} --out {tmp_path}")
    (file,) = (path for path in tmp_path.glob("*.csv") if row["partition"].replace(" ", "-") in path.name)
    shown = read_rows(f"partition {SPEEDS} --kernel {kernel} --layout {layout} --from {file}")
    assert row["computation"] == pytest.approx(steps * shown["total"])
    operation = f"{'summa' if kernel == 'gemm' else 'wave2d'}:partition={file}"
    like = f"--operation {operation} --layout {layout} --bytes {size} --platform fermi-ib"
    (priced,) = read_rows(f"predict {like} --algorithm paper --params {taulop}")
    assert row["communication taulop"] == pytest.approx(steps * priced["seconds"])


def test_the_choice_is_the_cheapest_of_the_partitions_that_were_tried(taulop, layouts, tmp_path):
    (row,) = read_rows(f"configure {WAVE} --params {taulop} --layout processes:{layouts}/M3.csv --out {tmp_path}")
    layout = f"--layout processes:{layouts}/M3.csv"
    totals = []
    for file in tmp_path.glob("*.csv"):
        asked = f"--operation wave2d:partition={file} --algorithm paper --bytes 8 --platform fermi-ib"
        (priced,) = read_rows(f"predict {asked} {layout} --params {taulop}")
        shown = read_rows(f"partition {SPEEDS} --kernel wave {layout} --from {file}")
        totals.append(priced["seconds"] + shown["seconds"])
    assert len(totals) > 2
    assert row["total"] == pytest.approx(min(totals))


def test_processes_of_so_many_cores_are_laid_out_on_more_and_more_nodes(taulop, tmp_path):
    rows = read_rows(f"configure {WAVE} --params {taulop} --cores 6,4 --out {tmp_path} --blocks 64")
    assert {row["layout"] for row in rows} >= {"4-cores-on-1", "4-cores-on-16", "6-cores-on-8"}
    assert "6-cores-on-16" not in {row["layout"] for row in rows}  # nobody knows how fast thin/6 is
    table = (tmp_path / "4-cores-on-16.csv").read_text().splitlines()
    assert len(table) == 1 + 9 * 3 + 7 * 2  # 12 cores and 8


def test_sentences_say_what_looking_at_computation_alone_costs(taulop, layouts):
    text = output(f"configure {WAVE} --params {taulop} --layout {layouts}")
    assert "Fastest, communication included: M" in text
    assert text.endswith("The speeds are declared, not measured (simulated).\n")


def test_other_families_stand_beside_the_one_that_decides(taulop, layouts, tmp_path):
    numbers = {"L": 1.3e-6, "o_s": 3e-7, "o_r": 3e-7, "g": 5e-7, "G": 3e-10}
    values = {name: Estimate(number, "s/B" if name == "G" else "s", number, number) for name, number in numbers.items()}
    write_parameters(tmp_path / "loggp.yaml", ParameterSet("loggp", "", "", values))
    sets = f"--params {taulop} --params {tmp_path}/loggp.yaml"
    by_taulop = read_rows(f"configure {WAVE} {sets} --layout {layouts}")
    by_loggp = read_rows(f"configure {WAVE} {sets} --layout {layouts} --family loggp")
    assert list(by_taulop[0])[-3:] == ["total", "communication loggp", "simulated"]
    assert [row["total"] for row in by_loggp] == sorted(row["total"] for row in by_loggp)


def test_a_family_that_is_blind_to_sizes_neither_decides_nor_stands_beside(layouts, tmp_path):
    sets = []
    for name, values in (("bsp", ["g=1us", "l=1us"]), ("loggp", ["L=1us", "o_s=1us", "o_r=1us", "g=1us", "G=1ns"])):
        sets.append(tmp_path / f"{name}.yaml")
        write_parameters(sets[-1], replace(set_given(name, values), bytes_range=(8.0, 8.0)))
    given = " ".join(f"--params {path}" for path in sets)
    rows = read_rows(f"configure {WAVE} {given} --layout {layouts}")
    assert {(row["communication bsp"], row["status"].partition(":")[0]) for row in rows} == {(None, "extrapolated")}
    text = output(f"configure {WAVE} {given} --layout {layouts}")
    assert "\nloggp doubts 3 of 3 prices: extrapolated: messages of" in text
    assert "found values of bsp, wanted a family that sees sizes" in output(
        f"configure {WAVE} --params {sets[0]} --layout {layouts}", code=2
    )
    asked = output(f"configure {WAVE} --params {sets[0]} --layout {layouts} --family bsp")
    assert "\nbsp doubts 3 of 3 prices: blind to size: holds for 8 B" in asked


def test_the_best_are_measured_beside_the_one_that_computes_fastest(simgrid_programs, taulop, layouts):
    asked = f"{WAVE} --blocks 24 --params {taulop} --layout {layouts} --measure 1"
    ranked = read_rows(f"configure {asked}")
    fastest = min(ranked, key=lambda row: row["computation"])
    measured = [row for row in ranked if row["measured total"] is not None]
    assert measured == [ranked[0], fastest]
    for row in measured:
        assert row["measured computation"] == row["computation"]  # nothing computes where time is simulated
        assert row["measured communication"] > 0
        assert row["measured total"] == row["measured computation"] + row["measured communication"]
    text = output(f"configure {asked}")
    shortest = min(measured, key=lambda row: row["measured total"])["layout"]
    for way, row in (("Communication included", ranked[0]), ("By computation alone", fastest)):
        (line,) = (line for line in text.splitlines() if line.startswith(f"{way}: {row['layout']}, measured"))
        assert line.endswith("the fastest of these." if row["layout"] == shortest else f"longer than {shortest}.")


@pytest.mark.alone
def test_on_a_real_machine_the_kernel_computes_when_it_is_measured(mpi_programs, taulop, tmp_path):
    if not find("mpiexec"):
        pytest.skip("no mpiexec here")
    (tmp_path / "two.csv").write_text("rank,node,cores,device\n0,0,1,cpu\n1,0,1,cpu\n")
    kinds = {"node/1": ((1.0, 2e4, 2e4, 2e4), (64.0, 2e4, 2e4, 2e4))}
    write_speeds(tmp_path / "speeds.yaml", Speeds({"gemm": KernelSpeeds(kinds, 32)}, "local"))
    asked = f"--speeds {tmp_path}/speeds.yaml --platform local --blocks 8 --measure 3 --params {taulop}"
    (row,) = read_rows(f"configure {asked} --layout processes:{tmp_path}/two.csv")
    assert row["measured computation"] not in (0, row["computation"])
    assert row["measured total"] == row["measured computation"] + row["measured communication"]


@pytest.mark.parametrize(
    ("change", "wanted"),
    [
        ({"--layout": None}, "give --layout processes:PATH or a folder"),
        ({"--layout": "block:4"}, "'block:4' does not say how many ranks there are"),
        ({"--layout": "params/speeds"}, "params/speeds: found no tables of processes (.csv)"),
        ({"--layout": None, "--cores": "7"}, "no layout of processes with 7 cores: no speeds of 'fat/7'"),
        ({"--layout": None, "--cores": "13"}, "no layout of processes with 13 cores: no node has 13 cores"),
        ({"--family": "logp"}, "no values of family 'logp'"),
        ({"--blocks": "1"}, "found 2 processes for 1 blocks"),
        ({"--bytes": "-1"}, "-1"),
        ({"--kernel": "gemm", "--iterations": "5"}, "SUMMA has one for each block of a side"),
    ],
)
def test_mistakes_are_one_line(taulop, change, wanted):
    words = WAVE.split()
    options = dict(zip(words[::2], words[1::2], strict=True)) | {"--params": str(taulop)}
    options |= {"--layout": "processes:params/layouts/fermi/M1.csv"} | change
    assert wanted in refused("configure", *(part for pair in options.items() if pair[1] for part in pair))
