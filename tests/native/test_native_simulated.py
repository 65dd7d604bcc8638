"""On a simulated cluster that equals LogGP every program must give the closed form."""

import pytest

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
    result = simulated(3, "player", "id,schedule,finish\nwork,work.csv,all\nempty,empty.csv,all\nidle,work.csv,2")
    assert result.code == 0, result.err
    assert result.median("work") == near(2 * HOP + 25 * US)
    assert 0 <= result.median("empty") < 1e-9
    assert 0 <= result.median("idle") < 1e-9


def test_a_message_flies_while_its_receiver_still_computes(simulated, tmp_path, write_schedule):
    for size in (8, 100000):
        rows = [(0, "compute", 1, "", "", 5e-5), (1, "send", 0, 1, size, "")]
        write_schedule(tmp_path / f"late{size}.csv", rows)
    result = simulated(2, "player", "id,schedule,finish\nsmall,late8.csv,all\nbig,late100000.csv,all")
    assert result.median("small") == near(50 * US + O_R)
    assert result.median("big") == near(50 * US + O_R)


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
    cases = "\n".join(f"{d}{n},{d},isend,{n},8,8" for d in ("out", "in", "round") for n in (1, 4, 15))
    result = simulated(20, "fan", "id,direction,how,n,bytes,answer\n" + cases)
    assert result.code == 0, result.err
    for n in (1, 4, 15):
        assert result.median(f"out{n}") == near(HOP + (n - 1) * O_S)
        assert result.median(f"in{n}") == near(HOP + (n - 1) * O_R)
        # answers come back one by one behind the requests, or wait for rank 0 to be done with its sends
        assert result.median(f"round{n}") == near(max(2 * HOP, n * O_S + O_R) + (n - 1) * O_S)


def test_chain(simulated):
    result = simulated(9, "chain", "id,height,bytes\na,1,8\nb,2,8\nc,8,8")
    for case, height in (("a", 1), ("b", 2), ("c", 8)):
        assert result.median(case) == near(2 * height * HOP)


def test_work_costs_nothing(simulated):
    assert simulated(1, "work", "id,bytes\na,8000").median("a") == 0


def test_barrier_agrees_with_windows_within_the_skew_it_reports(simulated):
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
