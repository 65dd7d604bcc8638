"""The MPI library's own collectives: every operation arrives right on any number of ranks, and costs what it must."""

import pytest

US = 1e-6
OPERATIONS = ["bcast", "scatter", "gather", "reduce", "allreduce", "reduce-scatter", "allgather", "alltoall"]
SIZES = (0, 1, 8, 13, 4096, 100_000)  # whole doubles and not, shares that differ, above and below thresholds
HOP = 13 * US  # the simulated LogGP: L + o_s + o_r
G_BYTE = 1e-10


def cases(sizes=SIZES):
    rows = [f"{name}.{size},{name},{size}" for name in OPERATIONS for size in sizes]
    return "\n".join(["id,operation,bytes", *rows, "barrier.0,barrier,0"])


@pytest.mark.parametrize("ranks", [1, 2, 3, 7, 8, 24])
def test_every_operation_is_right_on_any_number_of_ranks(simulated, ranks):
    """The first pass checks every byte that arrives, and ends the program where one is wrong."""
    result = simulated(ranks, "library", cases(), "--min-samples", 6, "--max-samples", 6)
    assert result.code == 0, result.err
    assert len(result.files()) == len(OPERATIONS) * len(SIZES) + 1


def test_two_real_ranks(real):
    result = real(2, "library", cases(), "--max-samples", 20, "--max-seconds", 0.02, "--sync", "barrier")
    assert result.code == 0, result.err
    assert len(result.files()) == len(OPERATIONS) * len(SIZES) + 1
    assert all(min(result.seconds(f"{name}.100000")) > 0 for name in OPERATIONS)


def test_two_ranks_need_the_messages_that_the_operation_cannot_do_without(simulated):
    """Between two ranks every algorithm has the same lower bound: a message's time, there and back where both need
    the other's data before either is done."""
    size = 100_000
    result = simulated(2, "library", cases((size,)))
    for name in ("bcast", "scatter", "gather", "reduce", "allgather", "alltoall", "allreduce"):
        assert result.median(f"{name}.{size}") >= 0.99 * (HOP + size * G_BYTE), name
    assert result.median(f"reduce-scatter.{size}") >= 0.99 * (HOP + size / 2 * G_BYTE)
    assert result.median("barrier.0") >= 0.99 * HOP
    assert result.median(f"bcast.{size}") == pytest.approx(HOP + size * G_BYTE, rel=0.01)


def test_the_end_of_a_gather_is_the_root_s(simulated, tmp_path, write_schedule):
    """A root that takes one message after the other is done when it has the last one; the player's gather says the
    same of the same messages."""
    write_schedule(tmp_path / "gather.csv", [(0, "send", r, 0, 8, "") for r in range(1, 8)])
    own = simulated(8, "library", "id,operation,bytes\ng,gather,8\nb,bcast,8", out="own")
    played = simulated(8, "player", "id,schedule,finish\ng,gather.csv,0", out="played")
    assert own.median("g") == pytest.approx(played.median("g"), rel=0.3)
    assert own.median("g") >= 0.99 * HOP


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ("a,broadcast,8", "broadcast"),
        ("a,barrier,8", "a barrier has no message"),
        ("a,bcast,-1", "a whole number of bytes"),
        ("a,bcast,3000000000", "2147483647"),
    ],
)
def test_refusals(simulated, row, words):
    result = simulated(2, "library", f"id,operation,bytes\n{row}")
    assert result.code != 0
    assert len(result.errors) == 1
    assert words in result.errors[0]
    assert result.files() == []
