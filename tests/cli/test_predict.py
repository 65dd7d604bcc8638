"""Check values of the papers, through the command a user would type."""

import pytest

from tests.cli.predicting import CAB, predict, sets
from tests.cli.running import output as run


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
    (price,) = predict("--family", "tan", "--params", CAB, "--operation", "reduce", "--topology", spec)
    assert price["seconds"] == pytest.approx(microseconds * 1e-6, rel=1e-6)
    assert price["topology"] == spec
    assert price["bytes"] == 1024
    assert price["status"] == "ok"


@pytest.mark.parametrize(
    ("parameters", "nanoseconds"),
    [((2500, 1500, 1000, 6), 22000), ((1000, 100, 500, 2), 4800), ((5000, 300, 4000, 1), 22400)],
)
@pytest.mark.parametrize("choice", ["binomial", "binomial-near"])
def test_loggp_binomial_broadcast(parameters, nanoseconds, choice):
    L, o, g, G = (f"{value}ns" for value in parameters)
    (price,) = predict(
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
    assert price["seconds"] == pytest.approx(nanoseconds * 1e-9, rel=1e-6)
    assert price["low"] == price["seconds"] == price["high"]


def test_loggp_one_message():
    values = sets(L="1000ns", o_s="100ns", o_r="100ns", g=0, G="2ns")
    (price,) = predict(
        "--family", "loggp", *values, "--operation", "bcast", "--algorithm", "linear", "--ranks", 2, "--bytes", 1001
    )
    assert price["seconds"] == pytest.approx(3200e-9, rel=1e-6)


@pytest.mark.parametrize(("gap", "nanoseconds"), [("0", 34000), ("4000ns", 69000)])
@pytest.mark.parametrize("family", ["loggp", "logp"])
def test_flat_broadcast(family, gap, nanoseconds):
    overheads = {"o_s": "1500ns", "o_r": "1500ns", "G": "3ns"} if family == "loggp" else {"o": "1500ns"}
    values = sets(L="10000ns", g=gap, **overheads)
    (price,) = predict(
        "--family", family, *values, "--operation", "bcast", "--algorithm", "linear", "--ranks", 16, "--bytes", 1
    )
    assert price["seconds"] == pytest.approx(nanoseconds * 1e-9, rel=1e-6)


@pytest.mark.parametrize(
    ("family", "values", "microseconds"),
    [
        ("postal", sets(lam=3, g="1us"), 4 * 3),
        ("loggops", sets(L="10us", o="2us", g=0, G=0, S="4B"), 4 * (3 * 10 + 4 * 2)),  # 8 B ask first
    ],
)
def test_binomial_broadcast_of_8_bytes(family, values, microseconds):
    pattern = ("--operation", "bcast", "--algorithm", "binomial", "--ranks", 16, "--bytes", 8)
    (price,) = predict("--family", family, *values, *pattern)
    assert price["seconds"] == pytest.approx(microseconds * 1e-6, rel=1e-6)


def test_logp_on_the_papers_trees():
    """LogP priced properly, with the constant overhead of the chain: a leaf's send, L, and one receive a child."""
    (price,) = predict(
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
    assert price["seconds"] == pytest.approx((49.3 + 98 + 32 * 49.3) * 1e-6, rel=1e-6)


POSTING = 0.5557  # of RDMA Write, as far as it is legible


@pytest.mark.parametrize(("partners", "microseconds"), [(1, 16.01610), (8, 4.89929), (64, 9.03317)])
def test_lop_on_infiniband(partners, microseconds):
    """A linear barrier goes to all partners and back; the paper's function is that round trip, per partner. Its L takes
    both overheads off each half of it; what the first message of either way waits for is there again."""
    values = ["--params", "params/published/lop/infiniband-rdma-write.yaml"]
    pattern = ["--operation", "barrier", "--algorithm", "linear", "--ranks", partners + 1]
    (price,) = predict("--family", "lop", *values, *pattern)
    printed = microseconds - 4 * POSTING + 2 * POSTING / partners
    assert price["seconds"] / partners == pytest.approx(printed * 1e-6, rel=1e-6)
    assert price["status"] == "ok"
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


@pytest.mark.parametrize(
    ("size", "O_s", "g_s", "L", "O_r"), [(16, 6.7736, 6.73, 25.7856, 12.9266), (1500, 44.32, 122.427, 145.252, 76.526)]
)
def test_cluster_model_on_sixteen_pcs(size, O_s, g_s, L, O_r):
    """Table 1 of its paper: fifteen packets leave g_s apart, the last then takes its time. Packets of 16 bytes are on
    their way to four ranks at once, full ones to two: L is L(16, 5) and L(1500, 3)."""
    published = "params/published/cluster/fast-ethernet-16.yaml"
    pattern = ("--operation", "bcast", "--algorithm", "linear", "--ranks", 16, "--bytes", size)
    (price,) = predict("--family", "cluster", "--params", published, *pattern)
    assert price["seconds"] == pytest.approx((14 * g_s + O_s + L + O_r + 9.93) * 1e-6, rel=1e-6)
