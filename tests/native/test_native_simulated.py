"""Closed forms of all programs on a simulated LogGP cluster, including the probes that load a rank
or a network."""

from math import ceil, log2

import numpy as np
import pytest

from commodel.models.evaluation.values import Values
from commodel.models.families import complete_values, find_family, shares
from commodel.models.probes import find_probe
from commodel.patterns.build import build_schedule
from commodel.patterns.schedule_files import write_player_table
from tests.patterns.catalogue import point

US = 1e-6
L, O_S, O_R, G_BYTE = 10 * US, 1.5 * US, 1.5 * US, 1e-10
HOP = L + O_S + O_R


def far_first_broadcast(ranks, size):
    rows, distance, step = [], ranks // 2, 0
    while distance:
        rows += [(step, "send", r, r + distance, size, "") for r in range(0, ranks, 2 * distance)]
        distance, step = distance // 2, step + 1
    return rows


def near(value):
    return pytest.approx(value, rel=0.01)


def test_player_gives_the_published_broadcasts(simulated, tmp_path, write_schedule):
    write_schedule(tmp_path / "binomial.csv", far_first_broadcast(16, 8))
    write_schedule(tmp_path / "flat.csv", [(0, "send", 0, r, 8, "") for r in range(1, 16)])
    write_schedule(tmp_path / "steps.csv", [(r, "send", 0, r, 8, "") for r in range(1, 16)])
    result = simulated(
        16,
        "player",
        """id,schedule,finish
        binomial,binomial.csv,all
        flat,flat.csv,all
        steps,steps.csv,all
        first,binomial.csv,8
        root,binomial.csv,0""",
    )
    assert result.code == 0, result.err
    assert result.median("binomial") == near(52.000 * US)
    assert result.median("flat") == near(34.000 * US)
    assert result.median("steps") == near(34.000 * US)
    assert result.median("first") == near(13 * US + 3 * O_S)
    assert result.median("root") == near(4 * O_S)


def test_equal_first_samples_are_enough(simulated):
    """Rank 0 times the samples, of which the last one of a chunk shares the network with the
    exchange of stamps."""
    options = ("--min-samples", 8, "--max-samples", 20, "--warmup", 1)
    cases = "id,bytes\na,8\nb,65536"
    stopped = simulated(4, "pingpong", cases, *options, "--enough-equal", 2)
    complete = simulated(4, "pingpong", cases, *options, out="complete")
    assert (stopped.code, complete.code) == (0, 0), stopped.err + complete.err
    for case in ("a", "b"):
        assert len(stopped.rows(case)) == 2
        assert {row["stop"] for row in stopped.rows(case)} == {"equal samples"}
        assert len(complete.rows(case)) == 8
        assert stopped.median(case) == pytest.approx(complete.median(case), abs=1e-9)


def test_local_work_and_empty_schedules(simulated, tmp_path, write_schedule):
    write_schedule(
        tmp_path / "work.csv",
        [
            (0, "send", 0, 1, 800, ""),
            (0, "reduce", 1, "", 800, ""),
            (0, "compute", 1, "", "", 2.5e-5),
            (3, "copy", 1, "", 801, ""),
            (3, "send", 1, 0, 0, ""),
        ],
    )
    write_schedule(tmp_path / "empty.csv", [])
    result = simulated(
        3, "player", "id,schedule,finish\nwork,work.csv,all\nempty,empty.csv,all\nidle,work.csv,2"
    )
    assert result.code == 0, result.err
    assert result.median("work") == near(2 * HOP + 25 * US)
    assert 0 <= result.median("empty") < 1e-9
    assert 0 <= result.median("idle") < 1e-9


def test_messages_after_the_last_sample_do_not_delay_that_sample(
    simulated, tmp_path, write_schedule
):
    """Rank r sends at r/5 µs. Time stamps of early ranks must not be sent while later messages are
    in flight."""
    rows = [(0, "compute", r, "", "", r * 2e-7) for r in range(1, 16)]
    rows += [(1, "send", r, 0, 1000, "") for r in range(1, 16)]
    write_schedule(tmp_path / "gather.csv", rows)
    settings = ("smpi/bw-factor:0:0.001",)
    options = ("--min-samples", 4, "--max-samples", 4)
    result = simulated(
        16, "player", "id,schedule,finish\ngather,gather.csv,all", *options, settings=settings
    )
    assert result.code == 0, result.err
    seconds = result.seconds("gather")
    assert len(seconds) == 4
    assert max(seconds) - min(seconds) < 1e-9


def test_a_message_is_in_flight_while_the_receiver_still_computes(
    simulated, tmp_path, write_schedule
):
    for size in (8, 100000):
        rows = [(0, "compute", 1, "", "", 5e-5), (1, "send", 0, 1, size, "")]
        write_schedule(tmp_path / f"late{size}.csv", rows)
    result = simulated(
        2, "player", "id,schedule,finish\nsmall,late8.csv,all\nbig,late100000.csv,all"
    )
    assert result.median("small") == near(50 * US + O_R)
    assert result.median("big") == near(50 * US + O_R)


def test_a_rendezvous_transfer_begins_in_the_step_that_posts_the_receive(
    simulated, tmp_path, write_schedule
):
    """The receiver computes for 50 µs in step 0. A message whose receive is posted before is
    transferred meanwhile."""
    for step in (0, 1):
        rows = [(0, "send", 0, 1, 1_000_000, "", "", 0, step, 1), (0, "compute", 1, "", "", 5e-5)]
        write_schedule(tmp_path / f"{step}.csv", rows)
    settings = ("smpi/async-small-thresh:0", "smpi/send-is-detached-thresh:0")
    cases = "id,schedule,finish\nposted,0.csv,all\nlater,1.csv,all"
    result = simulated(2, "player", cases, "--warmup", 1, settings=settings)
    assert result.code == 0, result.err
    takes = L + O_R + 1e6 * G_BYTE  # smpi/os is of sends that wait for nobody
    assert (result.median("posted"), result.median("later")) == (near(takes), near(50 * US + takes))


def test_ping_pong(simulated):
    result = simulated(2, "pingpong", "id,bytes\nempty,0\nsmall,8\nbig,1000000")
    assert result.median("empty") == near(2 * HOP)
    assert result.median("small") == near(2 * HOP)
    assert result.median("big") == near(2 * (HOP + 1e6 * G_BYTE))
    assert {row["skew"] for row in result.rows("small")} == {""}


def test_prtt_recovers_the_parameters(simulated):
    result = simulated(
        2,
        "prtt",
        """id,n,delay,late,bytes
        one,1,0,0,8
        many,11,0,0,8
        slow,11,2,0,8
        late,1,0,3,8
        big,1,0,0,100000""",
    )
    single, many, slow, late = (result.median(case) for case in ("one", "many", "slow", "late"))
    o_s = (slow - single) / 10
    o_r = late - o_s
    assert o_s == pytest.approx(O_S, rel=0.02)
    assert o_r == pytest.approx(O_R, rel=0.02)
    assert single / 2 - o_s - o_r == pytest.approx(L, rel=0.02)
    assert (many - single) / 10 == pytest.approx(O_S, rel=0.02)
    assert (result.median("big") - single) / 2 / (100000 - 8) == pytest.approx(G_BYTE, rel=0.02)


def test_fan(simulated):
    cases = "\n".join(
        f"{d}{n},{d},isend,{n},8,8" for d in ("out", "in", "round") for n in (1, 4, 15)
    )
    result = simulated(20, "fan", "id,direction,how,n,bytes,answer\n" + cases)
    assert result.code == 0, result.err
    for n in (1, 4, 15):
        assert result.median(f"out{n}") == near(HOP + (n - 1) * O_S)
        assert result.median(f"in{n}") == near(HOP + (n - 1) * O_R)
        # answers come back one by one behind the requests, or wait for rank 0 to be done with its
        # sends
        assert result.median(f"round{n}") == near(max(2 * HOP, n * O_S + O_R) + (n - 1) * O_S)


def test_chain(simulated):
    result = simulated(9, "chain", "id,height,bytes\na,1,8\nb,2,8\nc,8,8")
    for case, height in (("a", 1), ("b", 2), ("c", 8)):
        assert result.median(case) == near(2 * height * HOP)


def test_work_costs_nothing(simulated):
    assert simulated(1, "work", "id,bytes\na,8000").median("a") == 0


def test_barrier_and_window_synchronization_agree_within_the_reported_skew(simulated):
    cases = "id,direction,how,n,bytes,answer\nout,out,isend,15,8,8\nin,in,isend,15,8,8"
    window = simulated(16, "fan", cases, out="w")
    barrier = simulated(16, "fan", cases, "--sync", "barrier", out="b")
    for case in ("out", "in"):
        skew = max(float(row["skew"]) for row in barrier.rows(case))
        assert 0 < skew < 50 * US
        assert abs(barrier.median(case) - window.median(case)) <= skew
        assert max(float(row["skew"]) for row in window.rows(case)) <= 1.1e-9


def test_two_runs_are_byte_identical(simulated):
    cases = "id,direction,how,n,bytes,answer\n" + "\n".join(
        f"c{n},round,isend,{n},{n * 8},{n * 8}" for n in range(1, 8)
    )
    first = simulated(8, "fan", cases, "--seed", 5, out="first")
    second = simulated(8, "fan", cases, "--seed", 5, out="second")
    assert first.err == second.err
    assert len(first.files()) == 7
    for name in first.files():
        assert (first.out / name).read_bytes() == (second.out / name).read_bytes()
    straight = simulated(8, "fan", cases, out="straight")
    order = [line.split()[2] for line in straight.err.splitlines() if line.startswith("case ")]
    shuffled = [line.split()[2] for line in first.err.splitlines() if line.startswith("case ")]
    assert order == [f"c{n}" for n in range(1, 8)]
    assert shuffled != order
    assert sorted(shuffled) == order


def fan_cases(*hows, direction, answer, n=(1, 4, 15)):
    lines = [f"{how}{k},{direction},{how},{k},8,{answer}" for how in hows for k in n]
    return "\n".join(["id,direction,how,n,bytes,answer", *lines])


@pytest.mark.parametrize("direction", ["out", "in", "round"])
def test_a_posting_list_takes_as_long_as_single_sends(simulated, direction):
    result = simulated(20, "fan", fan_cases("isend", "list", direction=direction, answer=8))
    assert result.code == 0, result.err
    for n in (1, 4, 15):
        assert result.median(f"list{n}") == pytest.approx(result.median(f"isend{n}"), rel=1e-6)


def test_puts_pay_for_their_epochs(simulated):
    """SMPI opens and closes an epoch with one message for each pair of ranks, which takes o_s and
    o_r too.

    A target signals that it is open, a put follows, and a last message signals the end. The origin
    has two sends and a receive for each target; the target has one send and two receives for each
    origin.
    """
    out = simulated(20, "fan", fan_cases("put", direction="out", answer=8), out="out")
    into = simulated(20, "fan", fan_cases("put", direction="in", answer=8), out="in")
    both = simulated(20, "fan", fan_cases("put", direction="round", answer=8), out="round")
    for n in (1, 4, 15):
        assert out.median(f"put{n}") == near(2 * HOP + 2 * O_S + (n - 1) * (2 * O_S + O_R))
        assert into.median(f"put{n}") == near(2 * HOP + 2 * O_S + (n - 1) * 2 * O_R)
        assert both.median(f"put{n}") > max(out.median(f"put{n}"), into.median(f"put{n}"))
    assert both.median("put1") < both.median("put4") < both.median("put15")


@pytest.mark.parametrize("how", ["isend", "list", "put"])
def test_answers_have_their_own_size(simulated, how):
    answered = {}
    for size in (8, 100000, 200000):
        result = simulated(
            3, "fan", fan_cases(how, direction="round", answer=size, n=(1,)), out=f"answer{size}"
        )
        answered[size] = result.median(f"{how}1")
    assert answered[200000] - answered[100000] == near(100000 * G_BYTE)
    if how != "put":
        assert answered[100000] == near(2 * HOP + 100000 * G_BYTE)
    for direction in ("out", "in"):
        small, big = (
            simulated(
                3,
                "fan",
                fan_cases(how, direction=direction, answer=size, n=(1,)),
                out=f"{direction}{size}",
            )
            for size in (8, 100000)
        )
        assert small.seconds(f"{how}1") == big.seconds(f"{how}1")


def test_ring(simulated, tmp_path):
    shapes = {"two": (2, 8), "some": (5, 8), "all": (9, 8), "big": (9, 1000000)}
    for name, (procs, size) in shapes.items():
        write_player_table(
            tmp_path / f"{name}.play", find_probe("ring").pattern({"procs": procs, "bytes": size})
        )
    cases = "\n".join(f"{name},{name}.play,all" for name in shapes)
    result = simulated(9, "player", f"id,schedule,finish\n{cases}")
    for case in ("two", "some", "all"):
        assert result.median(case) == near(HOP)
    assert result.median("big") == near(HOP + 1e6 * G_BYTE)


def test_pairs_do_not_disturb_each_other_in_loggp(simulated):
    result = simulated(20, "pairs", "id,pairs,bytes\none,1,8\nsome,4,8\nall,10,8\nbig,10,1000000")
    for case in ("one", "some", "all"):
        assert result.median(case) == near(2 * HOP)
    assert result.median("big") == near(2 * (HOP + 1e6 * G_BYTE))


def test_stream(simulated):
    cases = [(senders, count) for senders in (1, 5) for count in (1, 11, 50)]
    text = "\n".join(f"s{s}-{k},{s},{k},8" for s, k in cases)
    result = simulated(
        7, "stream", f"id,senders,each,bytes\n{text}\nbig,1,1,100000\nbigs,1,101,100000"
    )
    for senders, count in cases:
        assert result.median(f"s{senders}-{count}") == near(
            HOP + (senders * count - 1) * max(O_S, O_R)
        )
    slope = (result.median("bigs") - result.median("big")) / 100
    # SimGrid's messages share a link evenly, arrive together at its end and then cost o_r one after
    # another
    assert 100000 * G_BYTE <= slope <= (100000 * G_BYTE + O_R) * 1.001


def test_posting(simulated):
    cases = "\n".join(
        f"{how}{n},{how},{n},8" for how in ("isend", "list", "put", "irecv") for n in (1, 5, 19)
    )
    result = simulated(20, "post", "id,how,n,bytes\n" + cases)
    assert result.code == 0, result.err
    for n in (1, 5, 19):
        for how in ("isend", "list", "put"):
            assert result.median(f"{how}{n}") == near(n * O_S)
        assert result.median(f"irecv{n}") == 0


def test_superstep(simulated):
    sizes = [(procs, h) for procs in (2, 5, 16) for h in (0, 1, 2, 7, 8, 20, 40)]
    result = simulated(
        18, "hrelation", "id,procs,h,bytes\n" + "\n".join(f"p{p}-h{h},{p},{h},8" for p, h in sizes)
    )
    assert result.code == 0, result.err
    for procs, h in sizes:
        exchange = max(h * O_S, O_S + L) + h * O_R if h else 0
        assert result.median(f"p{procs}-h{h}") == near(exchange + ceil(log2(procs)) * HOP)


def test_copies_cost_nothing(simulated):
    result = simulated(
        1, "memcopy", "id,path,bytes\na,ctc,8000\nb,ctm,8000\nc,mtm,8000\nd,anew,8000"
    )
    assert [result.median(case) for case in "abcd"] == [0, 0, 0, 0]


def test_overlap(simulated):
    counts, sizes = (0, 1, 10, 100), (8, 20000)
    cases = [
        f"{what}{k}-{s},{what},{k},{s}"
        for what in ("control", "user")
        for k in counts
        for s in sizes
    ]
    result = simulated(3, "overlap", "\n".join(["id,what,messages,bytes", *cases]))
    assert result.code == 0, result.err
    for k in counts:
        for s in sizes:
            assert result.median(f"control{k}-{s}") == pytest.approx(2e-3, rel=1e-6)
            assert result.median(f"user{k}-{s}") == pytest.approx(k * O_R, rel=1e-3, abs=1e-9)


def test_a_simulated_flood_arrives_as_a_whole(simulated):
    result = simulated(
        5,
        "flood",
        "id,what,senders,packets,bytes\na,arrived,1,1,8\nb,through,3,10,8\nc,arrived,4,100,1000",
    )
    assert result.code == 0, result.err
    for case, sent in (("a", 1), ("b", 30), ("c", 400)):
        assert {row["count"] for row in result.rows(case)} == {str(sent)}
        assert result.median(case) == near(HOP + (sent - 1) * O_R)


@pytest.mark.parametrize("back", [0, 1])
def test_crosstraffic_of_simgrid_delays_a_message_against_opposite_flows(simulated, tmp_path, back):
    """One message is sent against `flows` opposite messages. Crosstraffic adds 5 % of it to the
    opposite direction."""
    rows, size = [], 10**6
    for flows in (1, 2, 7):
        case = {"how": "against", "procs": flows + 2, "flows": flows, "bytes": size}
        write_player_table(tmp_path / f"{flows}.play", find_probe("capacity").pattern(case))
        rows.append(f"{flows},{flows}.play,{flows + 1}")
    cases = "\n".join(["id,schedule,finish", *rows])
    result = simulated(9, "player", cases, settings=[f"network/crosstraffic:{back}"])
    for flows in (1, 2, 7):
        assert result.median(f"{flows}") == near(
            HOP + size * G_BYTE * (flows + 0.05 if back else 1)
        )


def test_a_chain_of_ranks_with_queued_segments_takes_the_predicted_time(simulated, tmp_path):
    """60 segments are in flight and the acknowledgements are delayed: each rank is late by most of
    a queue."""
    part, ranks, parts = 100_000, 5, 60
    chain = build_schedule(point("bcast", f"chain:{part}B", ranks=ranks, bytes=parts * part))
    write_player_table(tmp_path / "chain.play", chain, "bcast", parts * part)
    result = simulated(
        ranks,
        "player",
        "id,schedule,finish\nchain,chain.play,all",
        settings=["network/crosstraffic:1"],
    )
    numbers = {
        "o_s": O_S,
        "o_r": O_R,
        "L.beyond.a": L,
        "G.beyond.a": G_BYTE,
        "c_out.node.a": G_BYTE,
        "back": 0.05,
    }
    values = Values({name: np.array([[number]]) for name, number in numbers.items()})
    prediction = shares.predict(chain, complete_values(find_family("shares"), values)).max()
    assert prediction == pytest.approx(result.median("chain"), rel=0.03)
    assert prediction > 2 * parts * part * G_BYTE


def test_simulated_copies_are_messages_of_the_ranks_to_each_other(simulated):
    """Copying takes no simulated time. Each rank sends and receives at the same time."""
    size = 32 << 20
    cases = f"id,procs,bytes\ntwo,2,{size}\nfour,4,{size}"
    result = simulated(4, "memory", cases, "--enough-equal", 2)
    assert result.code == 0, result.err
    assert result.median("two") == pytest.approx(size * G_BYTE, rel=0.01)
    assert result.median("four") == pytest.approx(result.median("two"), rel=0.01)
