"""commodel predict: values published in papers, waves, options, and one-line errors."""

from dataclasses import replace

import pytest

from commodel.files.parameter_sets import write_parameters
from commodel.files.text_tables import fold_columns
from commodel.models.parameter_sets import make_given_set
from tests.cli.running import CAB, output, read_rows, refused, run, sets
from tests.patterns.goal_files import BINARY

# ns
LOGGP_BROADCASTS = (
    (2500, 1500, 1000, 6, 22000),
    (1000, 100, 500, 2, 4800),
    (5000, 300, 4000, 1, 22400),
)
LINEAR = "--operation bcast --algorithm linear"
BY_HOCKNEY = "--model hockney --set alpha=1us --set beta=1ns"


def predict(line, *arguments):
    return read_rows(f"predict {line}", *arguments)


@pytest.mark.parametrize(
    ("spec", "microseconds"),
    [
        ("flat:32", 344.112),
        ("flat:128", 2860.944),
        ("groups:6,6,5,5,5,5", 320.948),
        ("groups:12x7,11x4", 363.316),
        ("kary:2^5", 755.310),
        ("kary:2^7", 1057.434),
        ("chain:32", 4783.808),
        ("flat:32 --pipelined", 344.112),
        ("groups:12x7,11x4 --pipelined", 184.012),
    ],
)
def test_tan_on_cab(spec, microseconds):
    (prediction,) = predict(f"--model tan --params {CAB} --operation reduce --topology {spec}")
    assert prediction["seconds"] == pytest.approx(microseconds * 1e-6, rel=1e-6)
    assert prediction["topology"] == spec.split()[0]
    assert prediction["bytes"] == 1024
    assert prediction["validity"] == "valid"


@pytest.mark.parametrize(
    ("model", "values", "pattern", "nanoseconds"),
    [
        *(
            (
                "loggp",
                sets(L=f"{L}ns", o_s=f"{o}ns", o_r=f"{o}ns", g=f"{g}ns", G=f"{G}ns"),
                f"{choice} 16 1",
                time,
            )
            for L, o, g, G, time in LOGGP_BROADCASTS
            for choice in ("binomial", "binomial-near")
        ),
        ("loggp", sets(L="1000ns", o_s="100ns", o_r="100ns", g=0, G="2ns"), "linear 2 1001", 3200),
        *(
            (model, f"{sets(L='10us', g=gap)} {overheads}", "linear 16 1", time)
            for gap, time in (("0", 34000), ("4000ns", 69000))
            for model, overheads in (
                ("loggp", sets(o_s="1.5us", o_r="1.5us", G="3ns")),
                ("logp", sets(o="1.5us")),
            )
        ),
        ("postal", sets(lam=3, g="1us"), "binomial 16 8", 4 * 3000),
        # 8 B ask first
        (
            "loggops",
            sets(L="10us", o="2us", g=0, G=0, S="4B"),
            "binomial 16 8",
            4000 * (3 * 10 + 4 * 2),
        ),
    ],
)
def test_broadcasts(model, values, pattern, nanoseconds):
    choice, ranks, size = pattern.split()
    requested = f"--operation bcast --algorithm {choice} --ranks {ranks} --bytes {size}"
    (prediction,) = predict(f"--model {model} {values} {requested}")
    assert prediction["seconds"] == pytest.approx(nanoseconds * 1e-9, rel=1e-6)
    assert prediction["low"] is prediction["high"] is None


def test_logp_on_the_papers_trees():
    """The time is the send overhead of a leaf, L, and one receive overhead for each of 32
    children."""
    values = sets(L="98us", o="49.3us", g=0)
    (prediction,) = predict(
        f"--model logp {values} --operation reduce --topology flat:32 --bytes 1KiB"
    )
    assert prediction["seconds"] == pytest.approx((49.3 + 98 + 32 * 49.3) * 1e-6, rel=1e-6)


POSTING = 0.5557  # of RDMA Write, as far as it is legible


@pytest.mark.parametrize(("partners", "microseconds"), [(1, 16.01610), (8, 4.89929), (64, 9.03317)])
def test_lop_on_infiniband(partners, microseconds):
    """The paper prints the round trip of a linear barrier, divided by the number of partners. The
    model counts posting for the first message of each direction only, not four times per partner
    (twice if `latency=halved`)."""
    requested = (
        "--model lop --params params/published/lop/infiniband-rdma-write.yaml --operation barrier"
    )
    pattern = f"{requested} --algorithm linear --ranks"
    (prediction,) = predict(f"{pattern} {partners + 1}")
    printed = microseconds - 4 * POSTING + 2 * POSTING / partners
    assert prediction["seconds"] / partners == pytest.approx(printed * 1e-6, rel=1e-6)
    assert prediction["validity"] == "valid"
    (halved,) = predict(f"{pattern} {partners + 1} --set latency=halved")
    once = microseconds - 2 * POSTING + 2 * POSTING / partners
    assert halved["seconds"] / partners == pytest.approx(once * 1e-6, rel=1e-6)
    (beyond,) = predict(f"{pattern} 130")
    assert "129 messages in a step, probed up to 64" in beyond["validity"]


def test_no_prediction_is_below_0():
    """The overhead o(x + 1) decreases with the number of children x and is negative for 32
    children."""
    values = sets(**{"L": "98us", "o.a": "49us", "o.b": "-10us"})
    text = output(
        f"predict --model tan {values} --operation reduce --topology flat:32 --format csv"
    )
    assert "-0.000" not in text
    assert text.splitlines()[1].endswith("no prediction: below 0")


@pytest.mark.parametrize(
    ("size", "O_s", "g_s", "L", "O_r"),
    [(16, 6.7736, 6.73, 25.7856, 12.9266), (1500, 44.32, 122.427, 145.252, 76.526)],
)
def test_cluster_model_on_sixteen_pcs(size, O_s, g_s, L, O_r):
    """Values of Table 1 of the paper: 15 packets leave at intervals of g_s. Packets of 16 B are in
    flight to four ranks at once, packets of 1500 B to two; hence L is L(16, 5) and L(1500, 3)."""
    published = "params/published/cluster/fast-ethernet-16.yaml"
    (prediction,) = predict(
        f"--model cluster --params {published} {LINEAR} --ranks 16 --bytes {size}"
    )
    assert prediction["seconds"] == pytest.approx(
        (14 * g_s + O_s + L + O_r + 9.93) * 1e-6, rel=1e-6
    )


def test_the_time_between_waves_of_a_family_without_an_equation():
    """The period is the busy time of the busiest rank: o_r + o_s = 5 µs in a chain, 7·o_s = 14 µs
    at the root of a flat tree."""
    values = sets(L="10us", o_s="2us", o_r="3us", g="1us", G=0)
    for choice, period in (("chain", 5e-6), ("linear", 14e-6)):
        pattern = (
            f"--model loggp {values} --ranks 8 --bytes 8 --operation bcast --algorithm {choice}"
        )
        (endless,) = predict(f"{pattern} --pipelined")
        one, two, fifty = predict(f"{pattern} --waves 1,2,50")
        assert [row["seconds"] for row in (endless, two, fifty)] == pytest.approx([period] * 3)
        assert [row["waves"] for row in (one, two, fifty)] == [1, 2, 50]
        assert [one["seconds"]] == [row["seconds"] for row in read_rows(f"predict {pattern}")]


HOCKNEY = sets(alpha="1us", beta="1ns")


def test_a_value_in_a_file_may_be_written_as_elsewhere(tmp_path):
    (tmp_path / "own.yaml").write_text(
        "model: hockney\nparameters:\n  alpha.a: {value: 50us, low: 40 us, high: 0.06ms}\n  beta.a: 80ns/B\n"
    )
    (from_file,) = predict(f"--params {tmp_path}/own.yaml {LINEAR} --ranks 8 --bytes 1KiB")
    (given,) = predict(
        f"--model hockney {sets(alpha='50us', beta='80ns/B')} {LINEAR} --ranks 8 --bytes 1KiB"
    )
    assert from_file["seconds"] == given["seconds"] == pytest.approx(7 * 50e-6 + 7 * 1024 * 80e-9)


def test_ranks_of_a_pattern_file_are_taken_if_they_agree(tmp_path):
    path = tmp_path / "a.bin"
    path.write_bytes(BINARY)
    line = f"{BY_HOCKNEY} --operation file:{path}"
    assert predict(f"{line} --ranks 3") == predict(line)
    for ranks, found in (("4", "4"), ("3,4", "4"), ("x", "'x'")):
        message = refused(f"predict {line} --ranks {ranks}")
        assert f"ranks: found {found}" in message
    assert f"found 4, but 'file:{path}' has 3 ranks" in refused(f"predict {line} --ranks 4")
    assert "bytes: the file of" in refused(f"predict {line} --bytes 8")


@pytest.mark.parametrize(
    "twice",
    [
        "--ranks 8,8 --bytes 8",
        "--ranks 8 --bytes 1KiB,1024",
        "--ranks 8 --bytes 8 --algorithm linear",
    ],
)
def test_a_pattern_that_is_named_twice_is_predicted_once(twice):
    """Without --format, all columns were once in the line above the table, which had no column
    left."""
    assert len(predict(f"{BY_HOCKNEY} {LINEAR} {twice}")) == 1
    assert output(f"predict {BY_HOCKNEY} {LINEAR} {twice}").count("linear") >= 1


def test_lists_and_ranges():
    rows = predict(f"--model hockney {HOCKNEY} --operation bcast --ranks 2:16:*2 --bytes 1,1KiB")
    assert {(row["ranks"], row["bytes"]) for row in rows} == {
        (p, m) for p in (2, 4, 8, 16) for m in (1, 1024)
    }
    assert {row["algorithm"] for row in rows} >= {"linear", "binomial", "chain"}


def test_barrier_needs_no_bytes_and_csv_has_the_columns():
    pattern = "--operation barrier --algorithm dissemination --ranks 8"
    head, row = output(f"predict --model hockney {HOCKNEY} {pattern} --format csv").splitlines()
    assert head.split(",")[:3] == ["model", "operation", "algorithm"]
    assert float(row.split(",")[head.split(",").index("seconds")]) == pytest.approx(3e-6)


def test_without_a_set_one_is_named_that_a_run_has_left(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("mine", "other"):
        (tmp_path / "results/e/validated" / name).mkdir(parents=True)
        (tmp_path / "results/e/validated" / name / "logp.yaml").touch()
    (tmp_path / "params/platforms").mkdir(parents=True)
    (tmp_path / "params/platforms/other.yaml").write_text(
        "{launcher: local, nodes: 1, cores: 4}", encoding="utf-8"
    )
    for more, name in (("", "mine"), ("--platform other", "other")):
        said = refused(f"predict --operation bcast --ranks 4 --bytes 1 {more}")
        assert (
            said
            == f"commodel: give --params FILE, such as results/e/validated/{name}/logp.yaml, or --set NAME=VALUE\n"
        )


def test_families_of_several_sets_stand_side_by_side():
    """The rows of a point follow each other, one for each model. Each equals the prediction with
    only that set."""
    lop = "--params params/published/lop/infiniband-send.yaml"
    pattern = "--operation reduce --topology flat:4 --topology flat:8 --bytes 1KiB"
    rows = predict(f"--params {CAB} {lop} {pattern}")
    wanted = [(spec, family) for spec in ("flat:4", "flat:8") for family in ("tan", "lop")]
    assert [(row["topology"], row["model"]) for row in rows] == wanted
    assert rows[1::2] == predict(f"--model lop {lop} {pattern}")


def test_a_set_is_read_another_way(tmp_path):
    """--set overrides a setting of the file. Unknown names and invalid values of a setting are
    refused."""
    path = tmp_path / "set.yaml"
    numbers = {"o_0.a": 1e-6, "o_1.a": 2e-6, "L_0.a": 1e-6, "L_1.a": 3e-6}
    lines = "".join(f"  {name}: {{value: {value}, unit: s}}\n" for name, value in numbers.items())
    path.write_text(f"model: taulop\nplatform: ''\nsource: test\nparameters:\n{lines}")
    line = f"--params {path} {LINEAR} --ranks 3 --bytes 8"
    assert read_rows(f"predict {line}")[0]["seconds"] == pytest.approx(2e-6 + 2 * 3e-6)
    assert predict(f"{line} --set shared=node")[0]["seconds"] == pytest.approx(2 * (2e-6 + 3e-6))
    for text, said in (
        ("shared=nod", "setting shared: found 'nod', wanted channel or node"),
        (
            "shraed=node",
            "--set shraed: model taulop has no parameter or setting 'shraed'; did you mean 'shared'?",
        ),
        (
            "o_2=1us",
            "--set o_2: model taulop has no parameter or setting 'o_2'; did you mean 'o_1'?",
        ),
        ("loggp:L=1us", "--set loggp:L=1us: found no set of model 'loggp'; wanted one of: taulop"),
    ):
        assert said in refused(f"predict {line} --set {text}")


def test_predict_lists_parameter_values_set_by_hand_beside_the_prediction(tmp_path):
    path = tmp_path / "set.yaml"
    write_parameters(
        path, make_given_set("loggp", ["L=10us", "o_s=1us", "o_r=1us", "g=1us", "G=1ns"])
    )
    line = f"--params {path} {LINEAR} --ranks 2 --bytes 1"
    (plain,), (changed,) = read_rows(f"predict {line}"), predict(f"{line} --set L=30us")
    assert changed["by hand"] == "L=30us in place of 10 µs"
    assert changed["seconds"] == pytest.approx(plain["seconds"] + 20e-6)
    assert "by hand" not in plain


def test_predictions_of_a_plan_with_values_by_hand_are_not_the_campaign_s(tmp_path):
    (tmp_path / "plan.json").write_text("{}")
    write_parameters(tmp_path / "set.yaml", make_given_set("hockney", ["alpha=1us", "beta=1ns"]))
    plan = f"{tmp_path}/plan.json --set alpha=2us --out {tmp_path}/predictions/hockney.csv"
    assert "--out lies in the results" in refused(
        f"predict plan --params {tmp_path}/set.yaml {plan}"
    )


def test_sets_of_other_platforms_are_marked(tmp_path):
    """The output names the platform of each set, and states if a set was fitted to a simulated
    platform."""
    values = {
        "loggp": ["L=1us", "o_s=1us", "o_r=1us", "g=1us", "G=1ns"],
        "hockney": ["alpha=1us", "beta=1ns"],
    }
    for name, platform in (("loggp", "here"), ("hockney", "there"), ("logp", "")):
        known = make_given_set(name, values.get(name, ["L=1us", "o=1us", "g=1us"]))
        write_parameters(
            tmp_path / f"{name}.yaml",
            replace(known, platform=platform, simulated=platform == "there"),
        )
    loggp = f"--params {tmp_path}/loggp.yaml"
    given = f"{loggp} --params {tmp_path}/hockney.yaml --params {tmp_path}/logp.yaml"
    several = "OF SEVERAL PLATFORMS: values of loggp of here; hockney of there; "
    several += "intervals rest on errors measured there."
    simulated = "SIMULATED: the parameters were fitted to a simulated platform."
    job = f"{LINEAR} --ranks 4 --bytes 8"
    assert run(f"predict {given} {job} --format csv").stderr.splitlines() == [several, simulated]
    assert f". {several}\n" in run(f"predict {given} {job}").stdout
    assert f". {several}" in run(f"advise {given} --operation bcast --ranks 4 --bytes 8").stdout
    assert "PLATFORM" not in run(f"predict {loggp} {job}").output
    said = run(f"predict {loggp} --platform tree-256 {job}").stdout
    assert "OF ANOTHER PLATFORM THAN tree-256: values of loggp of here" in said


def test_ends_of_an_interval_stay_columns_if_only_one_of_them_is_equal_in_all_rows():
    rows = [
        {"model": model, "low": 2.0, "high": high, "ranks": 4}
        for model, high in (("loggp", 3.0), ("hockney", 4.0))
    ]
    columns, caption = fold_columns(rows)
    assert list(columns[0]) == ["model", "low", "high"]
    assert caption == "ranks 4"
