"""Check values of the papers, through the command a user would type."""

import json

import pytest
from click.testing import CliRunner

from commodel.cli import main

CAB = "params/published/tan/cab-mrnet.yaml"


def run(*arguments):
    result = CliRunner().invoke(main, [str(argument) for argument in arguments])
    assert result.exit_code == 0, result.output
    return result.output


def predict(*arguments):
    return json.loads(run("predict", *arguments, "--format", "json"))


def sets(**values):
    return [part for name, value in values.items() for part in ("--set", f"{name}={value}")]


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
    ],
)
def test_tan_on_cab(spec, microseconds):
    (found,) = predict("--family", "tan", "--params", CAB, "--operation", "reduce", "--topology", spec)
    assert found["seconds"] == pytest.approx(microseconds * 1e-6, rel=1e-6)
    assert found["topology"] == spec
    assert found["bytes"] == 1024
    assert found["status"] == "ok"


@pytest.mark.parametrize(
    ("values", "said"),
    [
        (
            "alpha.a: {value: 1e-6, unit: s}\n  beta.a: 1e-9",
            "set.yaml:4: parameters.beta.a: found a value without a unit",
        ),
        (
            "alpha.a: {value: 1, unit: us}\n  beta.a: 0",
            "set.yaml:3: parameters.alpha.a: found the unit 'us', wanted a value in s",
        ),
        (
            "alpha.a: {value: 1e-6, unit: s}\n  beta.a: {value: 1e-9, unit: s}",
            "beta.a: found the unit 's', wanted a value in s/B",
        ),
    ],
)
def test_a_value_in_a_file_has_the_unit_of_its_family(values, said, tmp_path):
    file = tmp_path / "set.yaml"
    file.write_text(f"family: hockney\nparameters:\n  {values}\n")
    arguments = ["predict", "--family", "hockney", "--params", str(file), "--operation", "barrier", "--ranks", "4"]
    result = CliRunner().invoke(main, arguments)
    assert (result.exit_code, said in result.output) == (2, True), result.output


@pytest.mark.parametrize(("spec", "microseconds"), [("flat:32", 344.112), ("groups:12x7,11x4", 184.012)])
def test_tan_pipelined_on_cab(spec, microseconds):
    (found,) = predict("--family", "tan", "--params", CAB, "--operation", "reduce", "--topology", spec, "--pipelined")
    assert found["seconds"] == pytest.approx(microseconds * 1e-6, rel=1e-6)


@pytest.mark.parametrize(
    ("parameters", "nanoseconds"),
    [((2500, 1500, 1000, 6), 22000), ((1000, 100, 500, 2), 4800), ((5000, 300, 4000, 1), 22400)],
)
@pytest.mark.parametrize("choice", ["binomial", "binomial-near"])
def test_loggp_binomial_broadcast(parameters, nanoseconds, choice):
    L, o, g, G = (f"{value}ns" for value in parameters)
    (found,) = predict(
        "--family",
        "loggp",
        *sets(L=L, o_s=o, o_r=o, g=g, G=G),
        "--operation",
        "bcast",
        "--algorithm",
        choice,
        "--ranks",
        16,
        "--bytes",
        1,
    )
    assert found["seconds"] == pytest.approx(nanoseconds * 1e-9, rel=1e-6)
    assert found["low"] == found["seconds"] == found["high"]


def test_loggp_one_message():
    values = sets(L="1000ns", o_s="100ns", o_r="100ns", g=0, G="2ns")
    (found,) = predict(
        "--family", "loggp", *values, "--operation", "bcast", "--algorithm", "linear", "--ranks", 2, "--bytes", 1001
    )
    assert found["seconds"] == pytest.approx(3200e-9, rel=1e-6)


@pytest.mark.parametrize(("gap", "nanoseconds"), [("0", 34000), ("4000ns", 69000)])
@pytest.mark.parametrize("family", ["loggp", "logp"])
def test_flat_broadcast(family, gap, nanoseconds):
    overheads = {"o_s": "1500ns", "o_r": "1500ns", "G": "3ns"} if family == "loggp" else {"o": "1500ns"}
    values = sets(L="10000ns", g=gap, **overheads)
    (found,) = predict(
        "--family", family, *values, "--operation", "bcast", "--algorithm", "linear", "--ranks", 16, "--bytes", 1
    )
    assert found["seconds"] == pytest.approx(nanoseconds * 1e-9, rel=1e-6)


@pytest.mark.parametrize(
    ("family", "values", "microseconds"),
    [
        ("postal", sets(lam=3, g="1us"), 4 * 3),
        ("loggops", sets(L="10us", o="2us", g=0, G=0, S="4B"), 4 * (3 * 10 + 4 * 2)),  # 8 B ask first
    ],
)
def test_binomial_broadcast_of_8_bytes(family, values, microseconds):
    pattern = ("--operation", "bcast", "--algorithm", "binomial", "--ranks", 16, "--bytes", 8)
    (found,) = predict("--family", family, *values, *pattern)
    assert found["seconds"] == pytest.approx(microseconds * 1e-6, rel=1e-6)


def test_logp_on_the_papers_trees():
    """LogP priced properly, with the constant overhead of the chain: a leaf's send, L, and one receive a child."""
    (found,) = predict(
        "--family",
        "logp",
        *sets(L="98us", o="49.3us", g=0),
        "--operation",
        "reduce",
        "--topology",
        "flat:32",
        "--bytes",
        "1KiB",
    )
    assert found["seconds"] == pytest.approx((49.3 + 98 + 32 * 49.3) * 1e-6, rel=1e-6)


POSTING = 0.5557  # of RDMA Write, as far as it is legible


@pytest.mark.parametrize(("partners", "microseconds"), [(1, 16.01610), (8, 4.89929), (64, 9.03317)])
def test_lop_on_infiniband(partners, microseconds):
    """A linear barrier goes to all partners and back; the paper's function is that round trip, per partner. Its L takes
    both overheads off each half of it; what the first message of either way waits for is there again."""
    values = ["--params", "params/published/lop/infiniband-rdma-write.yaml"]
    pattern = ["--operation", "barrier", "--algorithm", "linear", "--ranks", partners + 1]
    (found,) = predict("--family", "lop", *values, *pattern)
    printed = microseconds - 4 * POSTING + 2 * POSTING / partners
    assert found["seconds"] / partners == pytest.approx(printed * 1e-6, rel=1e-6)
    assert found["status"] == "ok"
    (halved,) = predict("--family", "lop", *values, *pattern, "--set", "latency=halved")
    once = microseconds - 2 * POSTING + 2 * POSTING / partners
    assert halved["seconds"] / partners == pytest.approx(once * 1e-6, rel=1e-6)
    (beyond,) = predict("--family", "lop", *values, *pattern[:-1], 130)
    assert "129 messages in a step, probed up to 64" in beyond["status"]


def test_no_price_is_below_0():
    """What a line that falls says beyond its end is no price."""
    text = run(
        *("predict", "--family", "tan", *sets(**{"L": "98us", "o.a": "49us", "o.b": "-10us"})),
        *("--operation", "reduce", "--topology", "flat:32", "--format", "csv"),
    )
    assert "-0.000" not in text
    assert text.splitlines()[1].endswith("not priced: below 0")


def test_lists_and_ranges():
    values = sets(alpha="50us", beta="80ns")
    found = predict("--family", "hockney", *values, "--operation", "bcast", "--ranks", "2:16:*2", "--bytes", "1,1KiB")
    assert {(row["ranks"], row["bytes"]) for row in found} == {(p, m) for p in (2, 4, 8, 16) for m in (1, 1024)}
    assert {row["algorithm"] for row in found} >= {"linear", "binomial", "chain"}


def test_barrier_needs_no_bytes_and_csv_has_the_columns():
    text = run(
        "predict",
        "--family",
        "hockney",
        *sets(alpha="50us", beta="80ns"),
        "--operation",
        "barrier",
        "--algorithm",
        "dissemination",
        "--ranks",
        8,
        "--format",
        "csv",
    )
    head, row = text.splitlines()
    assert head.split(",")[:3] == ["family", "operation", "algorithm"]
    assert float(row.split(",")[head.split(",").index("seconds")]) == pytest.approx(150e-6)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--family", "logggp", *sets(L=1)], "did you mean 'loggp'"),
        (["--family", "logp", *sets(L="1us")], "needs o"),
        (["--family", "logp", *sets(L="2.5", o="1us", g=0)], "L: found '2.5', wanted a unit with it, such as 2.5us"),
        (["--family", "hockney", *sets(alpha="1us", beta="2e-9")], "beta.a: found '2e-9', wanted a unit with it"),
        (["--family", "hockney", *sets(**{"alpha": "1us", "beta.a": "1ns", "beta.b": "-3"})], "beta.b: found"),
        (["--family", "logp", *sets(L="1us", o="1us", g="-1us")], "found"),
        (["--family", "logp", *sets(L="1us", o="1us", q="1us")], "no parameter 'q'"),
        (["--family", "logp", "--params", CAB], "wanted logp"),
        (["--family", "tan", "--params", "/no/such.yaml"], "/no/such.yaml"),
        (["--family", "tan"], "--params"),
        (["--family", "lop", *sets(o_s="1us")], "no rtt"),
        (["--family", "lop", *sets(rtt="9us", **{"rtt.b": "20us"})], "needs rtt.c"),
    ],
)
def test_a_mistake_is_one_line_and_exit_2(arguments, words):
    result = CliRunner().invoke(
        main, ["predict", *arguments, "--operation", "reduce", "--topology", "flat:4", "--bytes", "1KiB"]
    )
    assert result.exit_code == 2
    assert result.stderr.count("\n") == 1
    assert words in result.stderr


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        (["--operation", "bcat", "--ranks", "4", "--bytes", "1"], "did you mean 'bcast'"),
        (["--operation", "bcast", "--algorithm", "binomal", "--ranks", "4", "--bytes", "1"], "did you mean 'binomial'"),
        (["--operation", "gather", "--topology", "flat:4", "--bytes", "1"], "topology"),
        (["--operation", "bcast", "--ranks", "4"], "--bytes"),
        (["--operation", "bcast", "--bytes", "4"], "--ranks"),
        (["--operation", "bcast", "--ranks", "0", "--bytes", "1"], "found"),
        (["--operation", "bcast", "--ranks", "1", "--bytes", "1"], "wanted 2 to"),
        (["--operation", "bcast", "--ranks", "4", "--bytes", "1", "--layout", "blok:2"], "block"),
        (["--ranks", "4", "--bytes", "1"], "--operation"),
    ],
)
def test_a_wrong_pattern_is_one_line_and_exit_2(pattern, words):
    result = CliRunner().invoke(main, ["predict", "--family", "hockney", *sets(alpha="1us", beta="1ns"), *pattern])
    assert result.exit_code == 2
    assert result.stderr.count("\n") == 1
    assert words in result.stderr


@pytest.mark.parametrize(
    ("size", "O_s", "g_s", "L", "O_r"), [(16, 6.7736, 6.73, 25.7856, 12.9266), (1500, 44.32, 122.427, 145.252, 76.526)]
)
def test_cluster_model_on_sixteen_pcs(size, O_s, g_s, L, O_r):
    """Table 1 of its paper: fifteen packets leave g_s apart, the last then takes its time. Packets of 16 bytes are on
    their way to four ranks at once, full ones to two: L is L(16, 5) and L(1500, 3)."""
    published = "params/published/cluster/fast-ethernet-16.yaml"
    pattern = ("--operation", "bcast", "--algorithm", "linear", "--ranks", 16, "--bytes", size)
    (found,) = predict("--family", "cluster", "--params", published, *pattern)
    assert found["seconds"] == pytest.approx((14 * g_s + O_s + L + O_r + 9.93) * 1e-6, rel=1e-6)


@pytest.mark.parametrize("verb", ["predict", "schedule"])
def test_the_library_is_measured_and_not_priced(verb):
    pattern = ["--operation", "gather", "--algorithm", "library", "--ranks", "16", "--bytes", "8"]
    family = ["--family", "hockney", *sets(alpha="10us", beta="2ns")] if verb == "predict" else []
    result = CliRunner().invoke(main, [verb, *family, *pattern])
    assert result.exit_code == 2
    assert result.stderr.count("\n") == 1
    assert "'library' is the MPI library's own gather: it is measured, not priced" in result.stderr


def test_a_set_is_read_another_way(tmp_path):
    """Settings beside a file; anything else there is refused, and so is a value that no setting has."""
    path = tmp_path / "set.yaml"
    numbers = {"o_0.a": 1e-6, "o_1.a": 2e-6, "L_0.a": 1e-6, "L_1.a": 3e-6}
    lines = "".join(f"  {name}: {{value: {value}, unit: s}}\n" for name, value in numbers.items())
    path.write_text(f"family: taulop\nplatform: ''\nsource: test\nparameters:\n{lines}")

    def seconds(*more):
        about = ["--operation", "bcast", "--algorithm", "linear", "--ranks", "3", "--bytes", "8", "--format", "json"]
        return json.loads(run("predict", "--family", "taulop", "--params", str(path), *about, *more))[0]["seconds"]

    assert seconds() == pytest.approx(2e-6 + 2 * 3e-6)
    assert seconds("--set", "shared=node") == pytest.approx(2 * (2e-6 + 3e-6))
    about = ["predict", "--family", "taulop", "--params", str(path), "--operation", "bcast", "--ranks", "2"]
    for text, said in (
        ("shared=nod", "setting shared: found 'nod', wanted channel or node"),
        ("shraed=node", "--set shraed beside --params: wanted a setting of family taulop; did you mean 'shared'?"),
        ("o_1=1us", "--set o_1 beside --params: wanted a setting of family taulop"),
    ):
        result = CliRunner().invoke(main, [*about, "--bytes", "8", "--set", text])
        assert (result.exit_code, said in result.output) == (2, True), result.output
